"""python -m tests.chaos.run: one real cluster under steady load, while its workers and its scheduler are killed.

Exit status 0 when every task was resolved once and rightly, and nothing else went wrong; 1 otherwise.
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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType

from tests.chaos import report
from tests.chaos.killers import Deaths, kill_schedulers, kill_workers
from tests.chaos.load import Outcome
from tests.chaos.processes import Agent, LoadProcess, MortalScheduler, agents, loads, mortal_scheduler
from tests.integration.commands import monitor
from tests.integration.executions import notes
from tests.waiting import wait_until

AGENTS = 2
WORKERS = 4
"""Of each agent."""
CLIENTS = 4
REST_SECONDS = 20.0
"""From the end of the load until the scheduler has no task and no client any more, at the most."""


def run(folder: Path, options: argparse.Namespace) -> bool:
    """A whole run, printed; whether all went well."""
    log = folder / "executions"
    with (
        mortal_scheduler(folder) as scheduler,
        agents(folder, scheduler.command.address, AGENTS, WORKERS) as hosts,
        loads(folder, scheduler.command.address, log, CLIENTS, options.seed) as clients,
    ):
        for client in clients:
            client.wait_ready()
        wait_until(lambda: all(len(host.workers()) == WORKERS for host in hosts), what="the workers")
        began = time.monotonic()
        deaths = let_die(scheduler, hosts, options)
        outcomes = finish(clients)
        seconds = time.monotonic() - began
        complaints = [*look_at_rest(scheduler), *stop(scheduler, hosts)]
    executions = notes(str(log))
    together = report.total(outcome for outcome, _ in outcomes)
    times = [moment for _, moments in outcomes for moment in moments]
    found = report.recoveries(deaths, times, executions)
    for line in report.lines(together, deaths, found, report.repeats(executions), seconds):
        print(line)
    for complaint in complaints:
        print(f"also: {complaint}")
    return report.went_well(together, complaints)


def let_die(scheduler: MortalScheduler, hosts: list[Agent], options: argparse.Namespace) -> Deaths:
    """Kill until the time is over."""
    deaths = Deaths()
    over = threading.Event()
    pool = ThreadPoolExecutor(2)
    try:  # from before the first thread is there: an interrupt may come at any moment
        killers: list[Future[None]] = [
            pool.submit(kill_workers, hosts, options.worker_every, options.seed, over, deaths),
            pool.submit(kill_schedulers, scheduler, options.scheduler_every, over, deaths),
        ]
        wait(killers, options.seconds, FIRST_COMPLETED)
    finally:
        over.set()
        pool.shutdown()
    for killer in killers:
        killer.result()
    return deaths


def finish(clients: list[LoadProcess]) -> list[tuple[Outcome, array[float]]]:
    for client in clients:
        client.stop()  # all first: each waits for what it has open
    return [client.finish() for client in clients]


def look_at_rest(scheduler: MortalScheduler) -> list[str]:
    """What the scheduler still holds when all clients have gone."""
    with monitor(scheduler.command.monitor_address) as watch:
        deadline = time.monotonic() + REST_SECONDS
        # Each worker may have a client of its own, for its tasks' tasks, for as long as it lives.
        while (now := watch.next()).waiting or now.dispatched or now.clients > AGENTS * WORKERS:
            if time.monotonic() > deadline:
                return [
                    f"left in the scheduler: {now.waiting} waiting, {now.dispatched} dispatched, {now.clients} clients"
                ]
    return []


def stop(scheduler: MortalScheduler, hosts: list[Agent]) -> list[str]:
    """End everything as a user would; what was wrong with that, and what the logs complain of."""
    found = []
    for name, command in [*(("a cluster", host.command) for host in hosts), ("the scheduler", scheduler.command)]:
        status = command.stop()
        if status:
            found.append(f"{name} ended with status {status}")
    for name, log in [*(("a cluster", host.command.log()) for host in hosts), ("a scheduler", scheduler.logs())]:
        begin = log.find("Traceback")
        if begin >= 0:
            found.append(f"{name} logged\n{log[begin : begin + 3000]}")
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of what is killed and what is submitted (default: a random one)")
    parser.add_argument("--worker-every", type=float, default=0.2, help="seconds between two (default: %(default)s)")
    parser.add_argument(
        "--scheduler-every", type=float, default=10.0, help="seconds between two (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 16)
    return options


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, interrupt)
    print(
        f"chaos: seed {options.seed}, {options.seconds:g} s, {AGENTS} agents with {WORKERS} workers each, {CLIENTS} "
        f"clients; a worker dies every {options.worker_every:g} s, the scheduler every {options.scheduler_every:g} s",
        flush=True,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            return 0 if run(Path(folder), options) else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
