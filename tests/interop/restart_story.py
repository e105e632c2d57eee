"""The restart of a scheduler with a client and a worker in C++, for the tests with keys and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.integration.commands import monitor
from tests.integration.restarts import Restarts, restarts
from tests.interop.cpp_programs import SECONDS, cpp_client, cpp_worker
from tests.waiting import wait_until

TASKS = 2000


def until(gate: Path, log: Path) -> str:
    """Return the command for a task that runs until the file `gate` exists. It logs a line each time it begins."""
    return f"submit json until {json.dumps([str(gate), str(log)])}"


def begun(log: Path) -> list[int]:
    """Return the ids of the processes that have begun the task."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def check_restart(folder: Path, end: Callable[[Restarts], None], *keys: str) -> None:
    """Both join again: the running task continues and runs once, queued tasks run, each task is resolved once.

    Args:
        end: ends the scheduler.
        keys: options of all three programs.
    """
    gate, log = folder / "gate", folder / "runs"
    with (
        restarts(folder, *keys) as daemon,
        cpp_worker(folder, daemon.now.address, *keys),
        cpp_client(daemon.now.address, *keys) as client,
    ):
        first = client.expect("welcome")
        client.say(until(gate, log), f"many json add {TASKS}")
        client.expect("started 0")
        end(daemon)
        daemon.start(daemon.now.address)
        assert client.expect("welcome") != first
        with monitor(daemon.now.monitor_address) as watch:
            wait_until(lambda: watch.next().dispatched, SECONDS, "the worker is back with its task")
        gate.touch()
        client.end()
    (began,) = begun(log)
    assert client.resolved[0] == ("value", str(began))
    assert [client.resolved[1 + i] for i in range(TASKS)] == [("value", str(i + 1)) for i in range(TASKS)]
