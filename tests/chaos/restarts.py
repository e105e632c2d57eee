"""python -m tests.chaos.restarts --rounds 100: the scheduler restarts under load, in order and by kill in turn.

In each round tasks run, wait and end while no scheduler is there, and the client submits more meanwhile. Some keep
their results on the host, which are read at the end. Every task must run once: tasks note each run in a file. Exit
status 0 if all did, and every future had its value; 1 otherwise.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import cloudpickle
from tests.integration.commands import cluster
from tests.integration.executions import note, notes
from tests.integration.restarts import OFTEN, Restarts, restarts
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

WORKERS = 4
LONG = 40
"""Tasks of up to LONG_SECONDS. So some end before the restart, some in the gap, some after it."""
LONG_SECONDS = 0.6
SHORT = 600
"""Tasks that take no time, so that answers are always on their way."""
KEPT = 60
"""Tasks of up to LONG_SECONDS whose results stay on the host."""
KEPT_BYTES = 100_000
GAP = 120
"""Tasks that are submitted in the gap. Their options differ, so that each is a message of its own."""
SECONDS = 60


def work(log: str, key: str, seconds: float) -> str:
    """Note the run, and return the key after these seconds."""
    note(log, "began", key)
    time.sleep(seconds)
    note(log, "ended", key)
    return key


def keep(log: str, key: str, seconds: float) -> bytes:
    """Note the run, and return a large value after these seconds."""
    return work(log, key, seconds).encode().ljust(KEPT_BYTES)


def restart_once(client: Client, daemon: Restarts, log: str, chance: random.Random, *, by_kill: bool) -> Counter[str]:
    """Restart the scheduler under load.

    Args:
        log: a file that does not exist, for the tasks' notes.
        by_kill: kill the scheduler; else stop it in order.

    Returns:
        How often each task has run.
    """
    futures: dict[str, Future[str]] = {}

    def submit(key: str, seconds: float, **options: int) -> None:
        futures[key] = (client.options(**options) if options else client).submit(work, log, key, seconds)

    for number in range(LONG):
        submit(f"long{number}", chance.uniform(0.0, LONG_SECONDS))
    keeping = client.options(keep=True)
    kept = {
        f"kept{number}": keeping.submit(keep, log, f"kept{number}", chance.uniform(0.0, LONG_SECONDS))
        for number in range(KEPT)
    }
    for number in range(SHORT):
        submit(f"short{number}", 0.0)
    began = chance.randint(1, LONG + KEPT + SHORT // 2)
    wait_until(lambda: _count(log, "began") >= began, what="tasks run")
    (daemon.kill if by_kill else daemon.stop)()
    ended = _count(log, "ended")
    for number in range(GAP):
        submit(f"gap{number}", 0.0, priority=number % 7 - 3, retries=number % 5)
    wait_until(lambda: _count(log, "ended") > ended or _is_idle(log), what="a task ends in the gap")
    daemon.start(daemon.now.address)
    for key, future in futures.items():
        assert future.result(SECONDS) == key
    for key, future_of_bytes in kept.items():
        assert future_of_bytes.result(SECONDS) == key.encode().ljust(KEPT_BYTES)
    return Counter(each.task for each in notes(log) if each.event == "began")


def _count(log: str, event: str) -> int:
    return sum(each.event == event for each in notes(log))


def _is_idle(log: str) -> bool:
    return _count(log, "began") == _count(log, "ended")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    repeated = runs = bad_rounds = 0
    with tempfile.TemporaryDirectory() as folder, restarts(Path(folder)) as daemon:
        with cluster(Path(folder), daemon.now.address, WORKERS, *OFTEN), Client(daemon.now.address) as client:
            for number in range(options.rounds):
                by_kill = number % 2 == 1
                chance = random.Random(f"restart {options.seed + number}")
                log = f"{folder}/round{number}"
                counts = restart_once(client, daemon, log, chance, by_kill=by_kill)
                again = {key: count for key, count in counts.items() if count > 1}
                runs += counts.total()
                repeated += sum(again.values()) - len(again)
                bad_rounds += bool(again)
                print(f"round {number}: {'kill' if by_kill else 'stop'}, {counts.total()} runs, repeated: {again or 0}")
                sys.stdout.flush()
    print(f"{options.rounds} restarts, {runs} runs, {repeated} repeated in {bad_rounds} rounds")
    return 1 if repeated else 0


if __name__ == "__main__":
    sys.exit(main())
