"""python -m tests.chaos.run: real clusters under steady load, while processes and the network fail in every way.

Workers, agents, fork servers, whole hosts and the scheduler are killed; clusters and the scheduler are stopped in order
and started again; processes are frozen; the scheduler is cut off from all peers. A long run consists of rounds, each
with processes of its own, one without keys and one with keys in turn.

Exit status 0 if every task was resolved once and correctly, and no other check failed; 1 otherwise.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.chaos import report
from tests.chaos.killers import Deaths, kill_workers, trouble_hosts, trouble_scheduler
from tests.chaos.load import Outcome
from tests.chaos.network import Network
from tests.chaos.processes import Host, LoadProcess, MortalScheduler, hosts, loads, mortal_scheduler, network_to
from tests.chaos.remains import mark_children, remains
from tests.integration.commands import key_command, monitor
from tests.integration.executions import notes
from tests.waiting import wait_until

HOSTS = 2
WORKERS = 4
"""The number of workers of each host."""
CLIENTS = 4
ROUND_SECONDS = 300.0
"""The length of a round. A longer run has several rounds."""
LONG_ROUND_SECONDS = 240.0
"""A round of this length or more may have a cut of the network that is longer than all leases."""
REST_SECONDS = 30.0
"""The longest time from the end of the load until the scheduler has no task and no client."""


class Round:
    """A part of a run, with its own processes."""

    def __init__(self, number: int, seconds: float, options: argparse.Namespace) -> None:
        self.seconds = seconds
        self.seed = options.seed + 1000 * number
        self.has_keys = options.keys == "yes" or (options.keys == "both" and (self.seed + number) % 2 == 0)
        self.has_long_cut = number == 1 and seconds >= LONG_ROUND_SECONDS
        self.worker_every = options.worker_every
        self.host_every = options.host_every
        self.scheduler_every = options.scheduler_every


def run(folder: Path, this: Round) -> report.Figures:
    """Run one round."""
    log = folder / "executions"
    keys = str(folder / "keys") if this.has_keys else ""
    if keys:
        key_command("keygen", keys)
    deaths = Deaths()
    directories: set[Path] = set()
    with (
        mortal_scheduler(folder, keys) as scheduler,
        network_to(scheduler) as network,
        hosts(folder, network.address, keys, HOSTS, WORKERS) as clusters,
        loads(folder, network.address, keys, log, CLIENTS, this.seed) as clients,
    ):
        for client in clients:
            client.wait_ready()
        wait_until(lambda: all(len(host.workers()) == WORKERS for host in clusters), what="the workers")
        began = time.monotonic()
        complaints = let_fail(scheduler, network, clusters, clients, this, deaths)
        outcomes = finish(clients, complaints)
        seconds = time.monotonic() - began
        complaints += [*look_at_rest(scheduler), *stop(scheduler, clusters)]
        sockets = [scheduler.command.monitor_address]
    for host in clusters:
        directories |= host.directories
    complaints += remains(directories, sockets)
    return report.figures(outcomes, deaths, notes(str(log)), seconds, complaints)


def let_fail(
    scheduler: MortalScheduler,
    network: Network,
    clusters: list[Host],
    clients: list[LoadProcess],
    this: Round,
    deaths: Deaths,
) -> list[str]:
    """Inject faults until the time is over. Returns the errors of the injection."""
    over = threading.Event()
    pool = ThreadPoolExecutor(3)
    seed, long = this.seed, this.has_long_cut
    try:  # before the first thread starts: an interrupt may come at any time
        threads: list[Future[None]] = [
            pool.submit(kill_workers, clusters, this.worker_every, seed, over, deaths),
            pool.submit(trouble_hosts, clusters, clients, this.host_every, seed + 1, over, deaths),
            pool.submit(trouble_scheduler, scheduler, network, this.scheduler_every, seed + 2, long, over, deaths),
        ]
        wait(threads, this.seconds, FIRST_COMPLETED)
    finally:
        over.set()
        pool.shutdown()
    return [f"{error!r}" for thread in threads if (error := thread.exception()) is not None]


def finish(clients: list[LoadProcess], complaints: list[str]) -> list[tuple[Outcome, array[float]]]:
    for client in clients:
        client.stop()  # stop all first: each waits for its open tasks
    outcomes = []
    for client in clients:
        try:
            outcomes.append(client.finish())
        except Exception as error:
            complaints.append(f"{error!r}")
    return outcomes


def look_at_rest(scheduler: MortalScheduler) -> list[str]:
    """The tasks and clients that the scheduler still has after the end of all clients."""
    with monitor(scheduler.command.monitor_address) as watch:
        deadline = time.monotonic() + REST_SECONDS
        # Each worker may have a nested client, for the tasks of its tasks, as long as the worker lives.
        while True:
            now = watch.next()
            tasks = now.waiting + now.dispatched + now.blocked
            if not tasks and not now.objects and now.clients <= HOSTS * WORKERS:
                return []
            if time.monotonic() > deadline:
                left = f"{now.waiting} waiting, {now.dispatched} dispatched, {now.blocked} blocked"
                return [f"left in the scheduler: {left}, {now.objects} objects, {now.clients} clients"]


def stop(scheduler: MortalScheduler, clusters: list[Host]) -> list[str]:
    """End all processes as a user does. Returns errors of the end, and errors in the logs."""
    found = []
    for host in clusters:
        try:
            host.stop()
        except Exception as error:
            found.append(f"{error!r}")
    status = scheduler.command.stop()
    if status:
        found.append(f"the scheduler ended with status {status}")
    for name, log in [*(("a cluster", host.logs()) for host in clusters), ("a scheduler", scheduler.logs())]:
        begin = log.find("Traceback")
        if begin >= 0:
            found.append(f"{name} logged\n{log[max(0, begin - 500) : begin + 3000]}")
    return found


def rounds(options: argparse.Namespace) -> list[Round]:
    count = max(1, round(options.seconds / ROUND_SECONDS))
    return [Round(number, options.seconds / count, options) for number in range(count)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of what fails and what is submitted (default: a random one)")
    parser.add_argument("--worker-every", type=float, default=0.5, help="seconds between two (default: %(default)s)")
    parser.add_argument("--host-every", type=float, default=5.0, help="seconds between two (default: %(default)s)")
    parser.add_argument(
        "--scheduler-every", type=float, default=12.0, help="seconds between two (default: %(default)s)"
    )
    parser.add_argument(
        "--keys", choices=("both", "yes", "no"), default="both", help="both: in turn, the first by the seed (default)"
    )
    parser.add_argument(
        "--folder", type=Path, help="a new folder that keeps the logs, the tasks' notes and all findings"
    )
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 16)
    return options


@contextmanager
def folder_of(number: int, kept: Path | None) -> Iterator[Path]:
    """The folder of a round: its logs, its tasks' notes, and after it what the judge knows."""
    if kept is not None:
        folder = kept / f"round-{number + 1}"
        folder.mkdir(parents=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="chaos-") as name:
            yield Path(name)


def write_findings(folder: Path, figures: report.Figures) -> None:
    faults = sorted(figures.deaths.faults, key=lambda fault: fault.begin)
    lines = [f"{fault.begin:.6f} {fault.end:.6f} {fault.kind} {sorted(fault.pids)}" for fault in faults]
    (folder / "faults").write_text("\n".join(lines))
    (folder / "unexplained").write_text("\n".join(figures.unexplained))


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, interrupt)
    mark_children()
    planned = rounds(options)
    print(
        f"chaos: seed {options.seed}, {options.seconds:g} s in {len(planned)} round(s), {HOSTS} hosts with {WORKERS} "
        f"workers each, {CLIENTS} clients; a worker dies every {options.worker_every:g} s, a host fails every "
        f"{options.host_every:g} s, the scheduler every {options.scheduler_every:g} s",
        flush=True,
    )
    together = report.Figures()
    try:
        for number, this in enumerate(planned):
            with folder_of(number, options.folder) as folder:
                figures = run(folder, this)
                write_findings(folder, figures)
            together.add(figures)
            if len(planned) > 1:
                keys = "with keys" if this.has_keys else "without keys"
                print(f"-- round {number + 1}, seed {this.seed}, {keys}: {figures.summary()}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    for line in together.lines():
        print(line)
    return 0 if together.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
