"""Compare two versions of the code: the same work in turn, on one machine.

    python -m benchmarks.pairs BEFORE AFTER [--rounds N] [--only WORK,...]

BEFORE and AFTER are folders with a checkout each; the packages that both need are those of the environment that runs
this. Both systems run all the time, and one of them works. So what else happens on the machine strikes both alike, and
the ratios are exact to some percent where the rates of two separate runs differ by a half.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import add
from pathlib import Path

import psutil

from benchmarks.interpreters import scheduler_python  # not relative: the working processes run this file as a script
from benchmarks.processes import client_of_combo
from benchmarks.workload import first, identity, noop
from scaler_client import Client

DISTRIBUTIONS = ("scheduler_daemon", "client_lib", "worker_lib")

WARM_UP_ROUNDS = 3

REST_SECONDS = 0.15
"""After each piece of work, so that the last messages count."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.pairs", description="Compare two versions of the code.")
    parser.add_argument("before", type=Path, help="the folder of the first checkout")
    parser.add_argument("after", type=Path, help="the folder of the second checkout")
    parser.add_argument("--rounds", type=int, default=20, help="how often each works (default: %(default)s)")
    parser.add_argument("--only", default=",".join(WORK), metavar="WORK,...", help="these works (default: all)")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    unknown = [name for name in names if name not in WORK]
    if unknown:
        parser.error(f"no work {unknown[0]!r}: there are {', '.join(WORK)}")
    with ExitStack() as stack:
        systems = [stack.enter_context(_system(folder.resolve())) for folder in (arguments.before, arguments.after)]
        taken: dict[str, list[list[tuple[float, ...]]]] = {name: [[], []] for name in names}
        for turn in range(arguments.rounds):
            for name in names:
                for place in (0, 1) if turn % 2 else (1, 0):
                    taken[name][place].append(_ask(systems[place], name))
    print(f"{'':34}{'before':>9}{'after':>9}{'ratio':>8}")
    for name in names:
        for column, what in enumerate(("seconds", "client's processor seconds", "other processor seconds")):
            before, after = ([row[column] for row in rows] for rows in taken[name])
            ratio = statistics.median(b / a for a, b in zip(before, after, strict=True) if a)
            medians = f"{statistics.median(before):9.3f}{statistics.median(after):9.3f}"
            print(f"{name if not column else '':8}{what:26}{medians}{ratio:8.3f}")
    return 0


@contextmanager
def _system(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a scheduler, a cluster and a client of this checkout, which works on request."""
    paths = [str(folder), *(str(folder / name) for name in DISTRIBUTIONS)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "SCALER_SCHEDULER_PYTHON": scheduler_python(),
        "SCALER_SCHEDULER_LOGGING_LEVEL": "WARNING",
        "SCALER_CLUSTER_LOGGING_LEVEL": "WARNING",
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"the system of {folder} has not started")
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _ask(system: subprocess.Popen[str], name: str) -> tuple[float, ...]:
    assert system.stdin is not None and system.stdout is not None
    system.stdin.write(f"{name}\n")
    system.stdin.flush()
    return tuple(map(float, system.stdout.readline().split()))


# -------------------------------------------------------------------------------------------- in the process that works


def _serve() -> None:
    with client_of_combo() as client:
        for _ in range(WARM_UP_ROUNDS):
            for work in WORK.values():
                work(client)
        print("ready", flush=True)
        for line in sys.stdin:
            before, started = _processor_seconds(), time.perf_counter()
            WORK[line.strip()](client)
            seconds = time.perf_counter() - started
            time.sleep(REST_SECONDS)
            print(seconds, *(b - a for a, b in zip(before, _processor_seconds(), strict=True)), flush=True)


def _processor_seconds() -> tuple[float, float]:
    """The processor time of this process, and of those that it has started."""
    others = 0.0
    for child in psutil.Process().children(recursive=True):
        times = child.cpu_times()
        others += times.user + times.system
    return time.process_time(), others


def _submit(client: Client) -> None:
    for future in [client.submit(noop) for _ in range(50_000)]:
        future.result()


def _values(client: Client) -> None:
    for future in [client.submit(identity, number) for number in range(50_000)]:
        future.result()


def _map(client: Client) -> None:
    client.map(first, [(number,) for number in range(1_000_000)])


def _latency(client: Client) -> None:
    for number in range(1_500):
        client.submit(identity, number).result()


def _chain(client: Client) -> None:
    future = client.submit(identity, 1)
    for _ in range(10_000):
        future = client.submit(add, future, 1)
    future.result()


def _tree(client: Client) -> None:
    level = [client.submit(identity, number) for number in range(8_192)]
    while len(level) > 1:
        level = [client.submit(add, *pair) for pair in zip(level[::2], level[1::2])]
    level[0].result()


def _graph(client: Client) -> None:
    level = [f"leaf {number}" for number in range(8_192)]
    graph: dict[str, object] = dict.fromkeys(level, (identity, 1))
    while len(level) > 1:
        pairs = {f"{left} {len(level)}": (add, left, right) for left, right in zip(level[::2], level[1::2])}
        graph.update(pairs)
        level = list(pairs)
    client.get(graph, level)


def _kept(client: Client) -> None:
    keeping = client.options(keep=True)
    made = [keeping.submit(bytes, 100_000) for _ in range(300)]
    for future in [client.submit(len, each) for each in made]:
        future.result()


WORK: dict[str, Callable[[Client], None]] = {
    "submit": _submit,
    "values": _values,
    "map": _map,
    "latency": _latency,
    "chain": _chain,
    "tree": _tree,
    "graph": _graph,
    "kept": _kept,
}

if __name__ == "__main__":
    _serve() if sys.argv[1:] == ["--serve"] else sys.exit(main())
