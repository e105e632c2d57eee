"""The size, start time and task rate of each package of the scheduler. `make package-bench` calls it.

    python -m benchmarks.package_bench [--quick]

prints a table, writes it into packaging/README.md, and the JSON into benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from .artefacts import Artefact, artefacts, empty_caches, started, version_of, watchers
from .figures import Figure
from .machine import Disturbance, describe_machine, describe_source, describe_versions
from .processes import ROOT, interrupt_on_signals
from .report import number, save
from .scheduler_alone import FULL, LEASES, QUICK, ROWS, WINDOW, Sizes, echoing_peers

README = ROOT / "packaging" / "README.md"
BEGIN, END = "<!-- make package-bench: begin -->\n", "<!-- make package-bench: end -->"
COLD_STARTS, WARM_STARTS = 3, 7
HEADINGS = ("", "size", "first start", "start", "tasks/s")


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.package_bench", description="Measure what make package builds.")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it works; the figures mean nothing"
    )
    is_quick = parser.parse_args(argv).quick
    os.environ.setdefault("SCALER_SCHEDULER_LOGGING_LEVEL", "WARNING")
    interrupt_on_signals()
    disturbance = Disturbance(1.0)
    rows = []
    for artefact in artefacts():
        print(f"[package-bench] {artefact.title} ... ", end="", flush=True)
        rows.append((artefact, _measure(artefact, QUICK if is_quick else FULL)))
        print("done", flush=True)
    for artefact in watchers():
        print(f"[package-bench] {artefact.title} ... ", end="", flush=True)
        rows.append((artefact, _measure_watcher(artefact)))
        print("done", flush=True)
    text = _table(rows)
    print(text, end="")
    record = {**disturbance.as_json(), "figures": [figure.as_json() for _, figures in rows for figure in figures]}
    print(save(_result(is_quick, record), ROOT / "benchmarks" / "results"))
    if not is_quick:
        _write(text)
    return 0


def _measure(artefact: Artefact, sizes: Sizes) -> list[Figure]:
    cold = []
    for _ in range(COLD_STARTS):
        with empty_caches():
            cold.append(_start(artefact))
    with empty_caches():
        _start(artefact)
        warm = [_start(artefact) for _ in range(WARM_STARTS)]
        rates = _rates(artefact, sizes)
    prefix, title = f"package.{artefact.name}", artefact.title
    figures = [
        Figure(f"{prefix}.cold_start", f"first start of {title}, to the bound socket", "s", cold),
        Figure(f"{prefix}.warm_start", f"start of {title}", "s", warm),
        Figure(f"{prefix}.rate", f"the scheduler alone between echoing peers, {title}", "tasks/s", rates),
    ]
    if artefact.file is not None:
        figures.insert(0, Figure(f"{prefix}.size", f"size of {title}", "bytes", [artefact.file.stat().st_size]))
    return figures


def _measure_watcher(artefact: Artefact) -> list[Figure]:
    cold = []
    for _ in range(COLD_STARTS):
        with empty_caches():
            cold.append(_answer(artefact))
    with empty_caches():
        _answer(artefact)
        warm = [_answer(artefact) for _ in range(WARM_STARTS)]
    prefix, title = f"package.{artefact.name}", artefact.title
    figures = [
        Figure(f"{prefix}.cold_start", f"first start of {title}, to its answer to --version", "s", cold),
        Figure(f"{prefix}.warm_start", f"start of {title}", "s", warm),
    ]
    if artefact.file is not None:
        figures.insert(0, Figure(f"{prefix}.size", f"size of {title}", "bytes", [artefact.file.stat().st_size]))
    return figures


def _answer(artefact: Artefact) -> float:
    begin = time.perf_counter()
    version_of(artefact)
    return time.perf_counter() - begin


def _start(artefact: Artefact) -> float:
    with started(artefact) as (_, seconds):
        return seconds


def _rates(artefact: Artefact, sizes: Sizes) -> list[float]:
    with started(artefact, LEASES) as (address, _), echoing_peers(address) as client:
        client.run(sizes.warm_up_batches[artefact.implementation], WINDOW)
        return [_rate(client.run, sizes.batches[artefact.implementation]) for _ in range(sizes.runs)]


def _rate(run: Any, batches: int) -> float:
    begin = time.perf_counter()
    run(batches, WINDOW)
    return batches * ROWS / (time.perf_counter() - begin)


def _table(rows: Sequence[tuple[Artefact, Sequence[Figure]]]) -> str:
    lines = [HEADINGS, ("---", *["--:"] * (len(HEADINGS) - 1))]
    for artefact, figures in rows:
        of = {figure.name.rpartition(".")[2]: figure.median for figure in figures}
        cold, warm = of["cold_start"], of["warm_start"]
        rate = number(round(of["rate"], -3)) if "rate" in of else "-"
        size = "-" if artefact.file is None else f"{artefact.file.stat().st_size / 2**20:.0f} MiB"
        lines.append((artefact.title, size, f"{cold:.2f} s", f"{warm:.2f} s", rate))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _result(is_quick: bool, record: dict[str, Any]) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000"),
        "quick": is_quick,
        "machine": describe_machine(),
        "versions": describe_versions(),
        "source": describe_source(),
        "measures": {"packages": record},
    }


def _write(text: str) -> None:
    before, found, rest = README.read_text("utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise RuntimeError(f"{README} has no lines {BEGIN.strip()} and {END} for the table")
    README.write_text(before + BEGIN + "\n" + text + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
