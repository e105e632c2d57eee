"""Suspended tasks: the slot of a task is free while the task waits for its children.

The nested client reports a suspension on the connection by which it has submitted the children. So the scheduler knows
the children before it fills the slot.
"""

from __future__ import annotations

from scaler_scheduler.core.events import Resumed, Suspended, Tasks
from scaler_scheduler.core.placement.holdings import Holdings
from scaler_scheduler.core.placement.prefetch import cost_ns
from scaler_scheduler.core.state.records import Client, Task, Worker
from scaler_scheduler.core.state.transitions import DISPATCHED, RESUME, RUNNING, SUSPEND, SUSPENDED
from scaler_scheduler.core.tables import Tables

TaskAttempt = tuple[int, int, int]
"""The name of a dispatched task: client, id, attempt."""


def suspend(task: Task, holdings: Holdings) -> None:
    """Free the task's slot, and the other cpus that it has."""
    worker = task.worker
    assert worker is not None
    if task.options.resources:
        name = task.client.incarnation, task.id, task.attempt
        (holdings.release if task.options.release_resources else holdings.suspend)(worker, name)
    if task.state != SUSPENDED:
        if task.state == RUNNING:
            worker.running -= 1
        worker.suspended += 1
        worker.load_ns -= task.cost
        share = task.client.share
        share.held -= 1
        share.held_ns -= task.cost
    task.transition(SUSPEND)


def resume(task: Task, holdings: Holdings, now: float) -> None:
    """Give the task its slot again, and its other cpus as soon as workers of its host are idle."""
    worker = task.worker
    if worker is None or task.state != SUSPENDED:
        return
    if task.options.resources:
        holdings.resume(worker, (task.client.incarnation, task.id, task.attempt))
    task.cost = cost_ns(task.function, task.options)
    worker.suspended -= 1
    worker.running += 1
    worker.started_at.setdefault(task, now)
    worker.load_ns += task.cost
    share = task.client.share
    share.held += 1
    share.held_ns += task.cost
    task.transition(RESUME)


def suspend_named(
    event: Suspended, client: Client, worker: Worker | None, tables: Tables, holdings: Holdings
) -> dict[Client, list[int]]:
    """Suspend the named tasks. The client keeps the names, for a worker that joins later.

    Returns:
        The tasks that nobody has reported as begun, by their client.
    """
    begun: dict[Client, list[int]] = {}
    for name in _names(event):
        client.suspended.add(name)
        if worker is None:
            continue
        worker.hides_suspended = False
        task = tables.find_held(worker, *name)
        unclaimed = tables.unclaimed.get(name[:2])
        if task is not None:
            is_told = task.gang is None or task is task.gang.lead
            if task.state == DISPATCHED and is_told and not task.client.is_gone:
                begun.setdefault(task.client, []).append(task.id)
            suspend(task, holdings)
        elif unclaimed is not None and unclaimed.worker is worker and not unclaimed.is_suspended:
            unclaimed.is_suspended = True
            worker.unclaimed -= 1
            holdings.suspend(worker, name)
    return begun


def resume_named(
    event: Resumed, client: Client, worker: Worker | None, tables: Tables, holdings: Holdings, now: float
) -> None:
    """Resume the named tasks."""
    resume_all(_names(event), client, worker, tables, holdings, now)


def resume_all(
    names: list[TaskAttempt], client: Client, worker: Worker | None, tables: Tables, holdings: Holdings, now: float
) -> None:
    """Resume the named tasks on the client's worker, if it has joined."""
    for name in names:
        client.suspended.discard(name)
        if worker is None:
            continue
        worker.hides_suspended = False
        task = tables.find_held(worker, *name)
        unclaimed = tables.unclaimed.get(name[:2])
        if task is not None:
            resume(task, holdings, now)
        elif unclaimed is not None and unclaimed.worker is worker and unclaimed.is_suspended:
            unclaimed.is_suspended = False
            worker.unclaimed += 1
            holdings.resume(worker, name)


def is_suspended(tables: Tables, worker: Worker, name: TaskAttempt) -> bool:
    """Whether a nested client of the worker has reported this task as suspended."""
    return any(name in client.suspended for client in tables.clients.nested_in(worker.incarnation))


def _names(event: Tasks) -> list[TaskAttempt]:
    return list(zip(event.clients, event.ids, event.attempts))
