"""Do the same work on each system in turn; print a table and write JSON. `make bench-peers` calls it.

    python -m benchmarks.compared.run [--systems NAME,...] [--rows NAME,...] [--quick] [--results FOLDER]

Each row of each system is a process of its own, in the environment of that system, with a time limit. All processes
that it starts inherit a mark in their environment, by which they are found and ended by their ids, also those that have
left its process group.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from scaler_client.io.process_exit import interrupts_deferred

from ..interpreters import scheduler_python
from ..machine import Disturbance, describe_machine, describe_source, describe_versions
from ..processes import ROOT, interrupt_on_signals
from ..report import save
from .catalogue import ROWS, SYSTEMS, Entry, Row
from .page import RESULTS, table
from .rows import WORKERS

ENVIRONMENTS = ROOT / ".venv-peers"
MARK = "COMPARED_SYSTEM"
MOST_SECONDS = 25 * 60.0
"""Of a whole run. What is left then is not measured, and the result says so."""
CLOSE_SECONDS = 5.0
"""How long a system may take to end after its figures are there."""
QUICK_SECONDS = 30.0
GRACE_SECONDS = 2.0
"""How long the processes of a system may take to end after its program, and again after SIGTERM."""
END_SECONDS = 10.0
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 if no process failed."""
    arguments = _parse(argv)
    interrupt_on_signals()
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.compared.run", description="Compare Scaler with other systems.")
    parser.add_argument("--systems", type=_names(SYSTEMS), default=list(SYSTEMS), metavar="NAME,...")
    parser.add_argument("--rows", type=_names(ROWS), default=list(ROWS), metavar="NAME,...")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="of the JSON")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, metavar="FOLDER", help="of the systems")
    return parser.parse_args(argv)


def _names(known: Any) -> Any:
    def names(given: str) -> list[str]:
        for name in given.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r}: there are {', '.join(known)}")
        return [name for name in known if name in given.split(",")]

    return names


def _run(arguments: argparse.Namespace) -> int:
    result: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000"),
        "quick": arguments.quick,
        "machine": describe_machine(),
        "source": describe_source(),
        "scheduler": describe_versions()["scheduler"],
        "workers": WORKERS,
        "busy_before_percent": Disturbance(0.1 if arguments.quick else 1.0).busy_before_percent,
        "systems": {},
        "rows": {name: {} for name in arguments.rows},
    }
    pythons = {}
    for name in arguments.systems:
        python = arguments.environments / SYSTEMS[name].environment / "bin" / "python"
        version = _version(python, SYSTEMS[name])
        result["systems"][name] = {"title": SYSTEMS[name].title, "version": version}
        if version:
            pythons[name] = python
        else:
            print(f"[peers] {name} is left out: {python} does not have it")
    failed = []
    deadline = time.monotonic() + MOST_SECONDS
    for row in arguments.rows:
        for name, python in pythons.items():
            print(f"[peers] {row}: {name} ... ", end="", flush=True)
            begin = time.monotonic()
            record = _record(ROWS[row], name, python, arguments.quick, deadline)
            result["rows"][row][name] = record
            print(f"{record['error'] or 'done'} ({time.monotonic() - begin:.0f} s)", flush=True)
            if record["error"]:
                failed.append(f"{row} of {name}: {record['error']}")
    print(f"\n{table(result)}\n\n{save(result, arguments.results)}")
    for line in failed:
        print(f"[peers] {line}", file=sys.stderr)
    return 1 if failed else 0


def _version(python: Path, entry: Entry) -> str:
    """The version of a system in its environment; empty if it is not there."""
    ask = "import platform; print(platform.python_version())"
    if entry.distribution:
        ask = f"from importlib.metadata import version; print(version({entry.distribution!r}))"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _record(row: Row, name: str, python: Path, is_quick: bool, deadline: float) -> dict[str, Any]:
    """The entry of a row and system in the JSON: each figure's runs, or why there are none; and an error."""
    figures: dict[str, Any] = {}
    for _ in range(1 if is_quick else row.processes):
        limit = min(QUICK_SECONDS if is_quick else row.seconds, deadline - time.monotonic())
        if limit <= 0:
            return {"figures": figures, "error": f"the whole run has taken {MOST_SECONDS / 60:.0f} minutes"}
        found, error = run_process(row.name, name, python, is_quick, limit)
        if error:
            return {"figures": figures, "error": error}
        for figure, runs in found.items():
            if isinstance(runs, str):
                figures[figure] = {"unable": runs}
            else:
                figures.setdefault(figure, {"runs": []})["runs"] += runs
    for entry in figures.values():
        if "runs" in entry:
            entry["median"] = median(entry["runs"])
    return {"figures": figures, "error": ""}


def run_process(row: str, name: str, python: Path, is_quick: bool, limit: float) -> tuple[dict[str, Any], str]:
    """Do a row on a system; return its figures and an error, which is empty if there is none.

    Args:
        row: a name in ROWS.
        name: a name in SYSTEMS.
        python: the interpreter of the system's environment.
        limit: how long it may take, in seconds.
    """
    mark = uuid.uuid4().hex
    folder = Path(tempfile.mkdtemp(prefix="peer-"))
    written = folder / "result.json"
    command: list[str | Path] = [python, "-m", "benchmarks.compared.program", name, row, written]
    environment = {
        **os.environ,
        MARK: mark,
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),  # some systems keep files there
        "TMPDIR": str(folder),
        "SCALER_SCHEDULER_PYTHON": scheduler_python(),
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "log").open("w+") as log:
            error = ""
            with interrupts_deferred():
                process = subprocess.Popen(
                    [*command, repr(time.monotonic()), "quick" if is_quick else "full"],
                    cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
                started.append(process)
            try:
                _await_result(process, written, limit)
            except subprocess.TimeoutExpired:
                error = f"no figures within {limit:.0f} s"
            if not error and not written.exists():
                log.seek(0)
                lines = log.read().strip().splitlines()
                error = f"status {process.returncode}: {lines[-1] if lines else 'nothing said'}"
                sys.stderr.write("\n".join(["", *lines[-15:], ""]))
        return ({}, error) if error else (json.loads(written.read_text()), "")
    finally:
        for process in started:
            _end(process, mark)
        shutil.rmtree(folder, ignore_errors=True)


def _await_result(process: subprocess.Popen[bytes], written: Path, limit: float) -> None:
    """Return when the process has ended, or CLOSE_SECONDS after its result is there.

    Raises:
        TimeoutExpired: neither happens within so many seconds.
    """
    deadline = time.monotonic() + limit
    while process.poll() is None:
        if written.exists():
            try:
                process.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            return
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, limit)
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End the process and all others with its mark, each by its id; return when none is left.

    The others first have time to end by themselves, then a SIGTERM. Trackers of resources ignore it. They remove the
    semaphores and the shared memory of the rest when all of it is gone.
    """
    process.kill()
    process.wait()
    if not _have_ended(mark, GRACE_SECONDS):
        _signal(mark, signal.SIGTERM)
    seconds = GRACE_SECONDS
    deadline = time.monotonic() + GRACE_SECONDS + END_SECONDS
    while not _have_ended(mark, seconds):
        if time.monotonic() > deadline:
            raise RuntimeError(f"these processes do not end: {_marked(mark)}")
        _signal(mark, signal.SIGKILL)
        seconds = 0.5


def _have_ended(mark: str, seconds: float) -> bool:
    """Whether all processes with the mark end in this time."""
    deadline = time.monotonic() + seconds
    while _marked(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(mark: str, number: signal.Signals) -> None:
    for process in _marked(mark):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:  # it has ended, or belongs to another user
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
