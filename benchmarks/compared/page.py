"""What `make bench-peers` has measured, as documents: the page with its charts, and README's part.

`benchmarks/documents.py` writes them, from the newest result of full size that has every system and every row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

from ..chart import Bar, bar_chart, place_of
from ..report import number
from .catalogue import ROWS, SYSTEMS, Figure

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "compared"
DOCUMENTS = Path("client_lib/docs")
PAGE = DOCUMENTS / "compared.md"
CHARTS = DOCUMENTS / "compared"
README = Path("README.md")
README_PART = re.compile(r"(?<=<!-- compared -->\n).*?(?=<!-- end of compared -->)", re.DOTALL)
README_FIGURES = ("submit", "one", "metg")

Cells = list[tuple[str, "dict[str, Any] | None", str]]
"""The name of a system, its figure if it has one, and the text of it or why there is none."""

INTRODUCTION = """# Compared with other systems

`make bench-peers` does the same work with Scaler, six other systems and the pools of the standard library, in turn, on
one machine. Each system is installed from PyPI into an environment of its own. Run it on your machine: figures of
different machines, and of different hours of a shared one, cannot be compared.

```sh no-run: it takes about 25 minutes
make bench-peers                                    # all systems, all rows
make bench-peers ROWS=submit,map SYSTEMS=scaler,dask
make bench-peers QUICK=1                            # small sizes, to see that everything works
```
"""

METHOD = """
## How it is measured

- Each row of each system is a process of its own, with a time limit. All processes are ended before the next row.
- Every system has 4 workers; for METG it has as many as the machine has cores.
- A figure is the median of three runs. Before the runs each system does the same work for 4 seconds.
- A slow system gets fewer tasks: a run has as many as take about 1.5 seconds, at most 100,000 by submit and 1,000,000
  by map.
- Tasks of 10 ms sleep. Their ideal speed is 400 tasks a second.
- **METG(50 %)**, after Task Bench, is the shortest task with which half of the time of all cores is useful work. The
  tasks form a stencil: each of 8 columns reads the previous values of its own and both neighbours' column. A system
  without dependencies between tasks gathers each step before it submits the next.
- From nothing to the first result includes the start of Python, the imports and the start of the workers.
- Memory is resident memory. All workers are busy while the tasks wait.

The program of each system is written as its documents recommend:

| system | what is used |
|---|---|
"""


def table(result: dict[str, Any]) -> str:
    """A result as a table for the screen: the systems of each figure, the best one first."""
    lines = []
    for figure, cells in figures_of(result):
        lines.append(f"{figure.title} ({figure.unit})")
        lines += [f"  {result['systems'][name]['title']:<22} {text}" for name, _, text in cells]
    return "\n".join(lines)


def figures_of(result: dict[str, Any]) -> Iterator[tuple[Figure, Cells]]:
    """Each figure with the entry of each system: the best first, those without one last."""
    for row, records in result["rows"].items():
        for figure in ROWS[row].figures:
            cells: Cells = []
            for name in result["systems"]:
                record = records.get(name, {"figures": {}, "error": "it could not be installed"})
                entry = record["figures"].get(figure.name, {})
                if "median" in entry:
                    cells.append((name, entry, number(entry["median"])))
                else:
                    cells.append((name, None, entry.get("unable") or record["error"]))
            sign = -1 if figure.is_more_better else 1
            cells.sort(key=lambda cell: (cell[1] is None, sign * cell[1]["median"] if cell[1] else 0.0))
            yield figure, cells


def newest_result(folder: Path = RESULTS) -> dict[str, Any] | None:
    """The newest result of full size with every system and row; None if there is none."""
    needed = {name for name, row in ROWS.items() if not row.is_new}
    for path in sorted(folder.glob("*.json"), reverse=True):
        result: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if not result["quick"] and set(result["systems"]) == set(SYSTEMS) and needed <= set(result["rows"]):
            return result
    return None


def written(result: dict[str, Any] | None, readme: str) -> dict[Path, str]:
    """The text of each file, by its path in the repository.

    Args:
        result: None if there is none yet: then only the page is written, without figures.
        readme: the present text of README.md.
    """
    methods = "".join(f"| {entry.title} | {entry.how} |\n" for entry in SYSTEMS.values())
    if result is None:
        note = "\nNo run of this version is kept yet.\n"
        return {PAGE: INTRODUCTION + note + METHOD + methods}
    figures = list(figures_of(result))
    files = {CHARTS / f"{figure.name}.svg": _chart(result, figure, cells) for figure, cells in figures}
    sections = "".join(_section(result, figure, cells) for figure, cells in figures)
    files[PAGE] = INTRODUCTION + _summary(result, figures) + sections + METHOD + methods
    files[README] = README_PART.sub(lambda _: _readme_part(result, dict(_by_name(figures))), readme)
    return files


def _by_name(figures: list[tuple[Figure, Cells]]) -> Iterator[tuple[str, tuple[Figure, Cells]]]:
    for figure, cells in figures:
        yield figure.name, (figure, cells)


def _summary(result: dict[str, Any], figures: list[tuple[Figure, Cells]]) -> str:
    """Where and when it was measured, and the table of all figures."""
    scheduler = result["scheduler"]
    versions = ", ".join(_label(result, name) for name in result["systems"] if name != "scaler")
    source = (
        f"Measured on {place_of(result)}, {result['machine']['kernel']}. Other processes kept the "
        f"machine {result['busy_before_percent']:.0f} % busy before the run. Scaler is revision "
        f"{result['source']['revision'][:12]}; its scheduler runs under {scheduler['implementation']} "
        f"{scheduler['version']}. The others: {versions}. The standard library's pools have Python's version."
    )
    lines = [
        f"\n## The figures\n\n{fill(source, 120)}\n",
        "| | unit | " + " | ".join(result["systems"][name]["title"] for name in result["systems"]) + " | first |",
        "|---|---|" + "--:|" * len(result["systems"]) + "---|",
    ]
    for figure, cells in figures:
        texts = {name: text if entry else "-" for name, entry, text in cells}
        first = cells[0][0] if cells[0][1] else None
        if first:
            texts[first] = f"**{texts[first]}**"
        values = " | ".join(texts[name] for name in result["systems"])
        winner = result["systems"][first]["title"] if first else "-"
        lines.append(f"| {figure.title} | {figure.unit} | {values} | {winner} |")
    return "\n".join(lines) + "\n"


def _section(result: dict[str, Any], figure: Figure, cells: Cells) -> str:
    """A figure: who is first, the chart, and who has no figure and why."""
    title = f"{figure.title[0].upper()}{figure.title[1:]}"
    text = f"\n### {title}\n\n"
    if cells[0][1]:
        text += f"{_verdict(result, figure, cells)}\n\n"
        text += f"![Bar chart: {figure.title}, of each system](compared/{figure.name}.svg)\n"
    without = [f"- {result['systems'][name]['title']}: {text}.\n" for name, entry, text in cells if entry is None]
    return text + ("\nWithout a figure:\n\n" + "".join(without) if without else "")


def _verdict(result: dict[str, Any], figure: Figure, cells: Cells) -> str:
    better = "more" if figure.is_more_better else "less"
    names = [name for name, entry, _ in cells if entry]
    medians = {name: entry["median"] for name, entry, _ in cells if entry}
    titles = {name: result["systems"][name]["title"] for name in result["systems"]}
    text = f"In {figure.unit}; {better} is better. {titles[names[0]]} is first"
    if "scaler" not in names or len(names) == 1:
        return f"{text}."
    if names[0] != "scaler":
        place = names.index("scaler") + 1
        factor = _factor(medians["scaler"], medians[names[0]])
        return f"{text}, {factor} times as good as Scaler, which is number {place} of {len(names)}."
    return f"{text}, {_factor(medians['scaler'], medians[names[1]])} times as good as {titles[names[1]]}."


def _factor(one: float, other: float) -> str:
    least, most = sorted((one, other))
    return number(round(most / least, 1 if most >= 1.1 * least else 2)) if least > 0 else "many"


def _chart(result: dict[str, Any], figure: Figure, cells: Cells) -> str:
    bars = [
        Bar(_label(result, name), min(entry["runs"]), entry["median"], max(entry["runs"]), name == "scaler")
        for name, entry, _ in cells
        if entry
    ]
    return bar_chart(f"{figure.title[0].upper()}{figure.title[1:]} ({figure.unit})", place_of(result), bars)


def _label(result: dict[str, Any], name: str) -> str:
    system = result["systems"][name]
    return f"{system['title']} {system['version']}"


def _readme_part(result: dict[str, Any], figures: dict[str, tuple[Figure, Cells]]) -> str:
    """The chart of `submit`, and a table of few figures."""
    submit, cells = figures["submit"]
    texts = {
        shown: {name: text if entry else "-" for name, entry, text in figures[shown][1]} for shown in README_FIGURES
    }
    lines = [
        f"![Bar chart of {submit.title} in tasks per second: Scaler and other systems]({CHARTS}/submit.svg)\n",
        f"Measured in one run on {place_of(result)}, with {result['workers']} workers:\n",
        "| system | no-op tasks/s by `submit` | one task (ms) | shortest useful task: METG(50 %) (ms) |",
        "|---|--:|--:|--:|",
    ]
    for name, _, _ in cells:
        row = [_label(result, name), *(texts[shown][name] for shown in README_FIGURES)]
        lines.append("| " + " | ".join(f"**{cell}**" if name == "scaler" else cell for cell in row) + " |")
    firsts = [cells[0][0] for _, cells in figures.values() if cells[0][1]]
    lines.append(
        "\nMETG(50 %) is the shortest task with which half of the time of all cores is useful work.\n"
        f"Scaler is first in {firsts.count('scaler')} of {len(firsts)} figures. [Compared with other systems]({PAGE})\n"
        "says who is first in each of them. `make bench-peers` measures all figures on your machine.\n"
        "[Performance](scheduler_daemon/docs/performance.md) has what `make bench` measures of Scaler alone.\n"
    )
    return "\n".join(lines)
