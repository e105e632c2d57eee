"""Tasks that wait for tasks of their own: while they do, their slot is free.

It is the nested client that says so, on the connection by which it has submitted what is waited for: so the scheduler
knows the children before it looks for something to put into the slot.
"""

from typing import List, Optional, Tuple

from scaler_scheduler.core.dispatch.prefetch import cost_ns
from scaler_scheduler.core.events import Resumed, Suspended, Tasks
from scaler_scheduler.core.state.records import Client, Task, Worker
from scaler_scheduler.core.state.tables import Tables
from scaler_scheduler.core.state.transitions import RESUME, RUNNING, SUSPEND, SUSPENDED

Name = Tuple[int, int, int]
"""A dispatched task's: client, id, attempt."""


def suspend(task: Task) -> None:
    """The task's slot is free from now on."""
    worker = task.worker
    assert worker is not None
    if task.state != SUSPENDED:
        if task.state == RUNNING:
            worker.running -= 1
        worker.suspended += 1
        worker.load_ns -= task.cost
    task.transition(SUSPEND)


def resume(task: Task, now: float) -> None:
    """The task has its slot again."""
    worker = task.worker
    if worker is None or task.state != SUSPENDED:
        return
    task.cost = cost_ns(task.function)
    worker.suspended -= 1
    worker.running += 1
    worker.started_at.setdefault(task, now)
    worker.load_ns += task.cost
    task.transition(RESUME)


def suspend_named(event: Suspended, client: Client, worker: Optional[Worker], tables: Tables) -> None:
    """The names stay with the client, for a worker that joins later than it."""
    for name in _names(event):
        client.suspended.add(name)
        if worker is None:
            continue
        task = tables.find_held(worker, *name)
        unclaimed = tables.unclaimed.get(name[:2])
        if task is not None:
            suspend(task)
        elif unclaimed is not None and unclaimed.worker is worker and not unclaimed.is_suspended:
            unclaimed.is_suspended = True
            worker.unclaimed -= 1


def resume_named(event: Resumed, client: Client, worker: Optional[Worker], tables: Tables, now: float) -> None:
    resume_all(_names(event), client, worker, tables, now)


def resume_all(names: List[Name], client: Client, worker: Optional[Worker], tables: Tables, now: float) -> None:
    """The client's worker, where that has joined, goes on with these."""
    for name in names:
        client.suspended.discard(name)
        if worker is None:
            continue
        task = tables.find_held(worker, *name)
        unclaimed = tables.unclaimed.get(name[:2])
        if task is not None:
            resume(task, now)
        elif unclaimed is not None and unclaimed.worker is worker and unclaimed.is_suspended:
            unclaimed.is_suspended = False
            worker.unclaimed += 1


def is_suspended(tables: Tables, worker: Worker, name: Name) -> bool:
    """Whether the worker's nested client has said so of this task."""
    return any(name in client.suspended for client in tables.clients.nested_in(worker.incarnation))


def _names(event: Tasks) -> List[Name]:
    return list(zip(event.clients, event.ids, event.attempts))
