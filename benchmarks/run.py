"""Run the benchmarks: print a table, and write JSON into benchmarks/results/. `make bench` calls it.

    python -m benchmarks.run [--only MEASURE,...] [--quick] [--results FOLDER]

It needs an environment with all three distributions and the repository as the working directory, which
`packaging/within.sh` provides.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import (
    chains,
    data,
    encryption,
    environments,
    graph_analysis,
    graph_rate,
    hostile,
    hosts,
    large_argument,
    latency,
    makespan,
    map_rate,
    monitor_cost,
    scale,
    scheduler_alone,
    shared_inputs,
    small_values,
    start_up,
    stencil,
    submit_rate,
    waiting_memory,
)
from .figures import Figure
from .machine import Disturbance, describe_machine, describe_source, describe_versions
from .processes import ROOT, interrupt_on_signals, time_limit
from .report import save, table

MEASURES: dict[str, Callable[[bool], list[Figure]]] = {
    "submit": submit_rate.measure,
    "map": map_rate.measure,
    "latency": latency.measure,
    "scheduler": scheduler_alone.measure,
    "memory": waiting_memory.measure,
    "monitor": monitor_cost.measure,
    "sleep": makespan.measure,
    "tcp": map_rate.measure_tcp,
    "start": start_up.measure,
    "large": large_argument.measure,
    "graph": graph_rate.measure,
    "chains": chains.measure,
    "stencil": stencil.measure,
    "analysis": graph_analysis.measure,
    "data": data.measure,
    "encryption": encryption.measure,
    "hostile": hostile.measure,
    "scale": scale.measure,
    "environments": environments.measure,
    "hosts": hosts.measure,
}

ON_REQUEST: dict[str, Callable[[bool], list[Figure]]] = {
    "large_hosts": hosts.measure_large,
    "small_values": small_values.measure,
    "inputs": shared_inputs.measure,
}
"""Measures that run only if `--only` names them, because a whole run has no time for them."""

QUIET_SECONDS = 0.5
"""How long the load of the machine is watched before each measure."""

BUSY_PERCENT = 10.0
"""A load of other processes, in percent of all cores, from which on the line of a measure names it."""

RUN_SECONDS = 12 * 60.0
"""Of the whole run. What is left then gives no figures, and the last lines name it."""

MEASURE_SECONDS = 4 * 60.0
"""Of one measure, so that one that hangs loses no other."""

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 if every measure gave figures, whether they meet their bars or not."""
    arguments = _parse(argv)
    for command in ("SCHEDULER", "CLUSTER"):
        os.environ.setdefault(f"SCALER_{command}_LOGGING_LEVEL", "WARNING")
    interrupt_on_signals()
    try:
        return _run(arguments.only, arguments.quick, arguments.results)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.run",
        description="Measure how fast the scheduler is.",
        epilog=f"Measures: {', '.join(MEASURES)}. Only if named: {', '.join(ON_REQUEST)}.",
    )
    parser.add_argument(
        "--only",
        type=_measures,
        default=list(MEASURES),
        metavar="MEASURE,...",
        help="these measures (default: all that need not be named)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it works; the figures mean nothing"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        metavar="FOLDER",
        help="the folder of the JSON (default: %(default)s)",
    )
    return parser.parse_args(argv)


def _measures(given: str) -> list[str]:
    wanted = [name.strip() for name in given.split(",")]
    for name in wanted:
        if name not in (*MEASURES, *ON_REQUEST):
            raise argparse.ArgumentTypeError(f"no measure {name!r}: there are {', '.join((*MEASURES, *ON_REQUEST))}")
    return [name for name in (*MEASURES, *ON_REQUEST) if name in wanted]


def _run(names: Sequence[str], is_quick: bool, folder: Path) -> int:
    result: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000"),
        "quick": is_quick,
        "machine": describe_machine(),
        "versions": describe_versions(),
        "source": describe_source(),
        "measures": {},
    }
    print(_heading(result), flush=True)
    groups: list[tuple[str, list[Figure]]] = []
    deadline = time.monotonic() + RUN_SECONDS
    for name in names:
        figures, record = _measure(name, is_quick, deadline)
        result["measures"][name] = record
        groups.append((name, figures))
    print(f"\n{table(groups)}\n\n{save(result, folder)}")
    if is_quick:
        print("This was a quick run. It shows that everything works; its figures mean nothing.")
    failed = {name: record["error"] for name, record in result["measures"].items() if record["error"]}
    for name, error in failed.items():
        print(f"[bench] {name} gave no figures: {error}", file=sys.stderr)
    return 1 if failed else 0


def _measure(name: str, is_quick: bool, deadline: float) -> tuple[list[Figure], dict[str, Any]]:
    """Run one measure; return its figures and its entry for the JSON. An error of it is part of the entry."""
    print(f"[bench] {name} ... ", end="", flush=True)
    disturbance = Disturbance(0.1 if is_quick else QUIET_SECONDS)
    begin = time.monotonic()
    figures: list[Figure] = []
    error = ""
    try:
        if begin >= deadline:
            raise TimeoutError(f"the whole run has taken {RUN_SECONDS / 60:.0f} minutes")
        with time_limit(min(MEASURE_SECONDS, deadline - begin)):
            figures = {**MEASURES, **ON_REQUEST}[name](is_quick)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
        traceback.print_exc()
    seconds = time.monotonic() - begin
    print(f"{'failed' if error else 'done'} ({seconds:.0f} s){_remark(disturbance, is_quick)}", flush=True)
    record = {"seconds": round(seconds, 2), **disturbance.as_json(), "error": error}
    return figures, {**record, "figures": [figure.as_json() for figure in figures]}


def _remark(disturbance: Disturbance, is_quick: bool) -> str:
    if is_quick or disturbance.busy_before_percent < BUSY_PERCENT:
        return ""
    return f"; other processes kept the machine {disturbance.busy_before_percent:.0f} % busy before it"


def _heading(result: dict[str, Any]) -> str:
    machine, versions = result["machine"], result["versions"]
    scheduler, others = versions["scheduler"], versions["client_and_workers"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['kernel']}\n"
        f"scheduler: {scheduler['implementation']} {scheduler['version']}; client and workers: "
        f"{others['implementation']} {others['version']}; pyzmq {others['pyzmq']}, ZeroMQ {others['zeromq']}"
    )


if __name__ == "__main__":
    sys.exit(main())
