"""Bar charts as SVG; `benchmarks/rates.svg` and `scale.svg` are those of `make bench`. `documents.py` writes them.

A bar is a figure's median; the line on it goes from the least run to the greatest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .report import number

LABELS = {
    "map.rate": "Scaler, map",
    "submit.rate": "Scaler, submit one by one",
    "submit.pool_rate": "ProcessPoolExecutor, submit",
}
SCALE = re.compile(r"scale\.cpu(_one_by_one)?_(\d+)")
"""The names of the scheduler's processor times at some numbers of workers."""

OURS, OTHERS = "#3f6ad8", "#9aa3ad"

WIDTH, LABEL_WIDTH, VALUE_WIDTH = 720, 240, 100
TOP, ROW, BAR_HEIGHT = 44, 38, 20
STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#24292f}.title{font-weight:bold}"
    ".small{font-size:12px;fill:#57606a}.range{stroke:#24292f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9aa3ad}.range{stroke:#e6edf3}}"
)


@dataclass(frozen=True)
class Bar:
    """A figure of one system."""

    label: str
    least: float
    median: float
    most: float
    is_ours: bool


def rates_of(result: dict[str, Any]) -> list[Bar]:
    """The rates of a result, for their chart."""
    figures = _figures(result)
    return [
        _bar(label, figures[name], is_ours=label.startswith("Scaler"))
        for name, label in LABELS.items()
        if name in figures
    ]


def processor_times_of(result: dict[str, Any]) -> list[Bar]:
    """The scheduler's processor time a task at each number of workers, for its chart; empty if it was not measured."""
    bars = []
    for name, figure in _figures(result).items():
        found = SCALE.fullmatch(name)
        if found is not None:
            way = "one by one" if found[1] else "no-ops"
            bars.append(_bar(f"{int(found[2]):,} workers, {way}", figure, is_ours=not found[1]))
    return bars


def _figures(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {figure["name"]: figure for measure in result["measures"].values() for figure in measure["figures"]}


def _bar(label: str, figure: dict[str, Any], is_ours: bool) -> Bar:
    return Bar(label, figure["min"], figure["median"], figure["max"], is_ours)


def drawn(result: dict[str, Any]) -> str:
    """The chart of the rates of a result, as SVG."""
    return bar_chart("No-op tasks per second, 10 workers", _source(result), rates_of(result))


def scale_drawn(result: dict[str, Any]) -> str:
    """The chart of the scheduler's processor time at each number of workers, as SVG."""
    title = "The scheduler's processor time a task in microseconds, by the number of workers"
    return bar_chart(title, _source(result), processor_times_of(result))


def _source(result: dict[str, Any]) -> str:
    scheduler = result["versions"]["scheduler"]
    return f"{place_of(result)}, scheduler under {scheduler['implementation']} {scheduler['version']}"


def place_of(result: dict[str, Any]) -> str:
    """The date and the machine of a result."""
    machine = result["machine"]
    return f"{result['date'][:10]}, {machine['cpu']}, {machine['cores']} cores"


def bar_chart(title: str, source: str, bars: Sequence[Bar]) -> str:
    """A chart as SVG, one bar above the other. The scale is logarithmic if the bars differ by a factor of 30.

    Args:
        title: with the unit.
        source: when and where it was measured.
    """
    least, most = min(bar.least for bar in bars), max(bar.most for bar in bars)
    is_logarithmic = least > 0 and most > 30 * least
    begin = 10.0 ** math.floor(math.log10(least) - 0.2) if is_logarithmic else 0.0

    def length(value: float) -> float:
        share = math.log(value / begin) / math.log(most / begin) if is_logarithmic else max(0.0, value) / most
        return share * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)

    height = TOP + ROW * len(bars) + 26
    scale = "; logarithmic scale" if is_logarithmic else ""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text x="0" y="20" class="title">{title}</text>',
    ]
    for position, bar in enumerate(bars):
        y = TOP + position * ROW
        middle = y + BAR_HEIGHT / 2
        left, right = LABEL_WIDTH + length(bar.least), LABEL_WIDTH + length(bar.most)
        lines += [
            f'<text x="0" y="{middle + 5:g}">{bar.label}</text>',
            f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length(bar.median):.1f}" height="{BAR_HEIGHT}" rx="3" '
            f'fill="{OURS if bar.is_ours else OTHERS}"/>',
            f'<path class="range" d="M{left:.1f} {middle:g}H{right:.1f}" stroke-width="2"/>',
            f'<text x="{right + 10:.1f}" y="{middle + 5:g}">{number(bar.median)}</text>',
        ]
    note = f"{source}; line: least to most of the runs{scale}"
    lines += [f'<text class="small" x="0" y="{height - 6}">{note}</text>', "</svg>", ""]
    return "\n".join(lines)
