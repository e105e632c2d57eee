"""The output of a result: a table and a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .figures import Bar, Figure

_HEADINGS = ("median", "min", "max", "unit", "bar", "verdict")


def save(result: dict[str, Any], folder: Path) -> Path:
    """Write a result into the folder, named by its date; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = result["date"].replace(":", "").replace("+0000", "Z")
    path = folder / f"{stamp}{'-quick' if result['quick'] else ''}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return path


def table(groups: Iterable[tuple[str, Sequence[Figure]]]) -> str:
    """Return a table with one line a figure, grouped by measure."""
    rows: list[tuple[str, ...]] = [("", *_HEADINGS)]
    for name, figures in groups:
        rows.append((name, *[""] * len(_HEADINGS)))
        rows.extend(_row(figure) for figure in figures)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        f"  {figure.title}",
        number(figure.median),
        number(min(figure.runs)),
        number(max(figure.runs)),
        figure.unit,
        _limit(figure.bar),
        {True: "met", False: "FALLS SHORT", None: ""}[figure.is_met],
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    title, median, least, most, unit, bar, verdict = (
        f"{cell:<{width}}" if column in (0, 4) else f"{cell:>{width}}"
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"{title}  {median}  {least}  {most}  {unit}  {bar}  {verdict.strip()}".rstrip()


def _limit(bar: Bar | None) -> str:
    return "" if bar is None else f"{'>=' if bar.is_lower_limit else '<='} {number(bar.value)}"


def number(value: float) -> str:
    """Format with at least three digits and thousands separators."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
