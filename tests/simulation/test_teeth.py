"""The simulation finds faults: each of these, put into the core on purpose, makes one of the first seeds fail."""

from __future__ import annotations

import inspect
import logging
import textwrap
from typing import Any

import pytest

from scaler_scheduler.core import scheduler, suspension, withdrawals
from scaler_scheduler.core.adoption import Adoption
from scaler_scheduler.core.credit import Credits
from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.endings import Endings
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.losses import Losses
from scaler_scheduler.core.peers import Peers
from scaler_scheduler.core.records import Worker
from scaler_scheduler.core.withdrawals import Withdrawals

from .run import run_seed

MOST_SEEDS = 120

FAULTS: dict[str, tuple[Any, str, str, str]] = {
    "forget to requeue what a lost worker held": (
        Endings, "settle_returned", "self._dispatcher.requeue(task)", "pass",
    ),
    "accept an old attempt's result": (
        scheduler, "take_results", "task is None or task.worker is not worker or task.attempt != attempts[row]",
        "task is None or task.worker is None",
    ),
    "give two attempts the same number": (Dispatcher, "_give_again", "task.attempt += 1", "pass"),
    "drop a cancel that crosses a retract": (
        Withdrawals, "_withdraw", "if wish <= task.wish:", "if wish <= task.wish or task.is_retracting:",
    ),
    "requeue a cancelled task": (Endings, "settle_returned", "wish in (CANCEL, FORCE)", "wish == FORCE"),
    "count queued tasks as died": (
        Losses, "connection_lost", "task.move(WORKER_LOST)", "task.failures += 2; task.move(WORKER_LOST)",
    ),
    "never have a process ended": (Withdrawals, "_end_worker", "if agent is not None:", "if False:"),
    "ignore that a worker keeps a task": (
        Withdrawals, "take_retracted", "if event.given[row]:", "if True:",
    ),
    "never look at time limits": (Withdrawals, "look", "self._withdraw(task, TIME_LIMIT, now)", "pass"),
    "forget to free the slot of a suspended task": (suspension, "suspend", "worker.suspended += 1", "pass"),
    "leave the clients of a dead worker's tasks": (Losses, "worker_left", "self.client_left(client, now)", "pass"),
    "take a task twice": (
        scheduler.Scheduler, "_drop_known_rows", "batch.cancelled.add(row)", "pass",
    ),
    "adopt nothing that runs": (Adoption, "_take", "task.state != WAITING", "True"),
    "release a function too early": (FunctionTable, "let_go", "function.tasks -= 1", "function.tasks = 0"),
    "leave a stalled client stalled": (Credits, "_go_on", "if client.is_stalled:", "if False:"),
    "serve a task without its capabilities": (Worker, "can_serve", "return", "return True or"),
    "let nobody renew leases": (Peers, "heartbeat", "worker.deadline = worker_deadline", "pass"),
    "begin a task twice": (withdrawals, "begin", "if task.state == DISPATCHED:", "if True:"),
}  # fmt: skip


def put_in(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, right: str, wrong: str) -> None:
    """Replace a line of a function by another."""
    original = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(original))
    assert right in source, f"{name} has no {right!r} any more"
    namespace: dict[str, Any] = {}
    exec(compile(source.replace(right, wrong), f"faulty {name}", "exec"), original.__globals__, namespace)
    monkeypatch.setattr(owner, name, namespace[name])


@pytest.mark.parametrize("fault", FAULTS)
def test_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logging.disable(logging.CRITICAL)
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    put_in(monkeypatch, *FAULTS[fault])
    for seed in range(MOST_SEEDS):
        _, failure = run_seed(seed)
        if failure is not None:
            print(f"{fault}: caught by seed {seed}")
            return
    pytest.fail(f"{MOST_SEEDS} seeds run with this fault and nothing is wrong: {fault}")
