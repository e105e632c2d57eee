"""Write the figures of the newest results into the documents.

    packaging/within.sh python -m benchmarks.documents

Of `make bench`: the charts `benchmarks/rates.svg` and `scale.svg`, and the table of the performance page. Of
`make bench-peers`: the page that compares Scaler with other systems, its charts, and README's part.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import fill
from typing import Any

from . import chart
from .compared import page
from .report import number
from .run import MEASURES

ROOT = Path(__file__).resolve().parent.parent
CHART = Path("benchmarks/rates.svg")
SCALE_CHART = Path("benchmarks/scale.svg")
PERFORMANCE = Path("scheduler_daemon/docs/performance.md")
PERFORMANCE_PART = re.compile(
    r"(?<=<!-- figures of make bench -->\n).*?(?=<!-- end of the figures of make bench -->)", re.DOTALL
)
VERDICTS = {True: "met", False: "**falls short**", None: ""}


def written() -> dict[Path, str]:
    """The text of each file that has figures, by its path in the repository."""
    result = newest_result()
    files = {CHART: chart.drawn(result)}
    if chart.processor_times_of(result):
        files[SCALE_CHART] = chart.scale_drawn(result)
    if is_whole(result):
        present = (ROOT / PERFORMANCE).read_text("utf-8")
        files[PERFORMANCE] = PERFORMANCE_PART.sub(lambda _: performance_part(result), present)
    return files | page.written(page.newest_result(), (ROOT / page.README).read_text("utf-8"))


def newest_result(folder: Path = ROOT / "benchmarks" / "results") -> dict[str, Any]:
    """The newest result of `make bench` with all measures; if there is none, the newest with the rate of `submit`.

    Raises:
        FileNotFoundError: the folder has none.
    """
    paths = sorted(folder.glob("*.json"), reverse=True)
    results = [result for path in paths if not (result := json.loads(path.read_text("utf-8")))["quick"]]
    for is_wanted in (is_whole, has_submit):
        for result in results:
            if is_wanted(result):
                return dict(result)
    raise FileNotFoundError(f"no result in {folder} has the rate of submit: make bench")


def is_whole(result: dict[str, Any]) -> bool:
    return set(MEASURES) <= set(result["measures"])


def has_submit(result: dict[str, Any]) -> bool:
    return any(bar.label == chart.LABELS["submit.rate"] for bar in chart.rates_of(result))


def performance_part(result: dict[str, Any]) -> str:
    """Where and when it was measured, a table of all figures, and the measures that gave none."""
    machine, versions = result["machine"], result["versions"]
    scheduler, others = versions["scheduler"], versions["client_and_workers"]
    busy = max(measure["busy_before_percent"] for measure in result["measures"].values())
    source = (
        f"One run of `make bench` on {chart.place_of(result)}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['kernel']}, of revision {result['source']['revision'][:12]}. The scheduler runs under "
        f"{scheduler['implementation']} {scheduler['version']}, everything else under {others['implementation']} "
        f"{others['version']}. Figures are medians of several runs after warm-up. Before each measure, other processes "
        f"kept the machine at most {busy:.0f} % busy."
    )
    lines = [fill(source, 120), "", "| measure | median | min | max | unit | bar | |", "|---|--:|--:|--:|---|--:|---|"]
    failed = []
    for name, measure in result["measures"].items():
        if measure["error"]:
            failed.append(f"`{name}` gave no figures: {measure['error']}")
        lines += [_line(name, figure) for figure in measure["figures"]]
    return "\n".join([*lines, *(["", *failed] if failed else []), ""])


def _line(measure: str, figure: dict[str, Any]) -> str:
    bar = "" if figure["bar"] is None else f"{figure['bar_is']} {number(figure['bar'])}"
    values = " | ".join(number(figure[name]) for name in ("median", "min", "max"))
    return f"| `{measure}`: {figure['title']} | {values} | {figure['unit']} | {bar} | {VERDICTS[figure['is_met']]} |"


def main() -> None:
    for path, text in written().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
