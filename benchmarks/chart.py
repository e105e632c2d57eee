"""Draw README's chart, `benchmarks/rates.svg`, from the newest result that has the rate of `submit`.

    packaging/within.sh python -m benchmarks.chart

A bar is a figure's median; the line on it goes from the slowest run to the fastest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
CHART = FOLDER / "rates.svg"
LABELS = {
    "map.rate": "Scaler, map",
    "submit.rate": "Scaler, submit one by one",
    "submit.pool_rate": "ProcessPoolExecutor, submit",
}
OURS, OTHERS = "#3f6ad8", "#9aa3ad"

WIDTH, LABEL_WIDTH, VALUE_WIDTH = 720, 210, 130
TOP, ROW, BAR = 44, 38, 20
STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#24292f}.title{font-weight:bold}"
    ".small{font-size:12px;fill:#57606a}.range{stroke:#24292f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9aa3ad}.range{stroke:#e6edf3}}"
)


@dataclass(frozen=True)
class Rate:
    """A figure in tasks a second."""

    label: str
    least: float
    median: float
    most: float


def newest_result(folder: Path = FOLDER / "results") -> dict[str, Any]:
    """The newest result of full size that has the rate of `submit`.

    Raises:
        FileNotFoundError: the folder has none.
    """
    for path in sorted(folder.glob("*.json"), reverse=True):
        result: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if not result["quick"] and any(rate.label == LABELS["submit.rate"] for rate in rates_of(result)):
            return result
    raise FileNotFoundError(f"no result in {folder} has the rate of submit: make bench ONLY=submit")


def rates_of(result: dict[str, Any]) -> list[Rate]:
    """The figures of a result that the chart shows."""
    figures = {figure["name"]: figure for measure in result["measures"].values() for figure in measure["figures"]}
    return [
        Rate(label, figures[name]["min"], figures[name]["median"], figures[name]["max"])
        for name, label in LABELS.items()
        if name in figures
    ]


def drawn(result: dict[str, Any]) -> str:
    """The chart of a result, as SVG."""
    rates = rates_of(result)
    most = max(rate.most for rate in rates)
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most
    height = TOP + ROW * len(rates) + 26
    title = "No-op tasks per second, 10 workers, tcp"
    machine, versions = result["machine"], result["versions"]
    scheduler = versions["scheduler"]
    source = (
        f"{result['date'][:10]}, {machine['cpu']}, {machine['cores']} cores, scheduler under "
        f"{scheduler['implementation']} {scheduler['version']}; line: slowest to fastest run"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text x="0" y="20" class="title">{title}</text>',
    ]
    for number, rate in enumerate(rates):
        y = TOP + number * ROW
        middle = y + BAR / 2
        colour = OURS if rate.label.startswith("Scaler") else OTHERS
        left, right = LABEL_WIDTH + rate.least * scale, LABEL_WIDTH + rate.most * scale
        lines += [
            f'<text x="0" y="{middle + 5:g}">{rate.label}</text>',
            f'<rect x="{LABEL_WIDTH}" y="{y}" width="{rate.median * scale:.1f}" height="{BAR}" rx="3" '
            f'fill="{colour}"/>',
            f'<path class="range" d="M{left:.1f} {middle:g}H{right:.1f}" stroke-width="2"/>',
            f'<text x="{right + 10:.1f}" y="{middle + 5:g}">{rate.median:,.0f}</text>',
        ]
    lines += [f'<text class="small" x="0" y="{height - 6}">{source}</text>', "</svg>", ""]
    return "\n".join(lines)


def main() -> None:
    CHART.write_text(drawn(newest_result()), "utf-8")
    print(CHART)


if __name__ == "__main__":
    main()
