"""What a scheduler's restart must not change for a client and a worker in C++, with keys and without."""

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
    """A C++ client's task that runs until the gate is there; the log has a line for each time that it began."""
    return f"submit json until {json.dumps([str(gate), str(log)])}"


def begun(log: Path) -> list[int]:
    """By which processes."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def check_restart(folder: Path, end: Callable[[Restarts], None], *keys: str) -> None:
    """Both join again: what runs goes on and runs once, what was queued runs, and everything is resolved once.

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
