"""The story of one task: its kept history, and for an open task also rows from the tables."""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core.state.history import (
    ANY_CLIENT,
    DISPATCHED,
    ENDED,
    NO_WORKER,
    REATTACHED,
    RETURNED,
    STARTED,
    SUBMITTED,
)
from scaler_scheduler.core.state.history_rows import Rows
from scaler_scheduler.core.state.records import Client, Task
from scaler_scheduler.core.tables import Tables

ROW_LIMIT = 10_000
"""The most rows of a story, of which the newest are kept. Thousands of clients may have a task of the same id."""


def story(tables: Tables, incarnation: int, task_id: int) -> list[Rows]:
    """Return the history rows of this task, one by one, the oldest first. Empty if the task is unknown.

    ANY_CLIENT: rows of the tasks with this id of all clients.
    """
    rows = tables.history.rows_of_task(incarnation, task_id)
    known = {(each.clients[0], each.kinds[0], each.attempts[0]) for each in rows}
    for client in _clients(tables, incarnation):
        for row in _of_tables(client, task_id):
            whose, kind, attempt = client.incarnation, row.kinds[0], row.attempts[0]
            # A worker that joined again had begun the task at an unknown time.
            if (whose, kind, attempt) not in known and (kind == SUBMITTED or (whose, REATTACHED, attempt) not in known):
                rows.append(row)
    return sorted(rows, key=lambda row: row.seconds[0])[-ROW_LIMIT:]


def _clients(tables: Tables, name: int) -> Iterable[Client]:
    if name == ANY_CLIENT:
        return tables.clients
    client = tables.clients.find(name)
    return () if client is None else (client,)


def story_tracebacks(tables: Tables, task_id: int, rows: list[Rows]) -> list[str]:
    """Return the traceback for each row that ends a failed attempt. Empty for other rows, and if the traceback is
    unknown."""
    of = tables.history.tracebacks.find
    return [
        of(row.clients[0], task_id, row.attempts[0]) if row.kinds[0] in (ENDED, RETURNED) and row.outcomes[0] else ""
        for row in rows
    ]


def _of_tables(client: Client, task_id: int) -> list[Rows]:
    """Return rows of an open task that the tables imply."""
    task = client.tasks.get(task_id)
    if task is None:
        waiting = _waiting(client, task_id)
        if waiting is None:
            lead = waiting_gang(client, task_id)
            waiting = None if lead is None else _waiting(client, lead)
        return [] if waiting is None else [_row(SUBMITTED, waiting[0], NO_WORKER, *waiting[1:], client, task_id, 0)]
    names = task.name, task.function.name
    rows = [_row(SUBMITTED, task.submitted_at, NO_WORKER, *names, client, task_id, 0)]
    if task.worker is not None:
        rows.append(_at_worker(DISPATCHED, task.since, task.worker.incarnation, task))
        begun = task.worker.started_at.get(task)
        if begun is not None:
            rows.append(_at_worker(STARTED, begun, task.worker.incarnation, task))
    return rows


def waiting_gang(client: Client, task_id: int) -> int | None:
    """Return the id of the gang that waits for its first dispatch and gets a member of this id. None: there is none."""
    for lane in client.lanes.values():
        first = task_id - lane.gang_size + 1
        if lane.gang_size > 1 and lane.batches.has_any(first, task_id - 1):
            return next((lead for lead in range(first, task_id) if lane.batches.find(lead) is not None), None)
    return None


def _waiting(client: Client, task_id: int) -> tuple[float, str, str] | None:
    """Return the arrival, the task's name and the function's name of a task that waits as a row of a batch."""
    for lane in client.lanes.values():
        found = lane.batches.find(task_id)
        if found is not None:
            batch, row = found
            function = batch.function_at(row).name
            return batch.arrived, batch.options.name or function, function
    return None


def _at_worker(kind: int, seconds: float, worker: int, task: Task) -> Rows:
    return _row(kind, seconds, worker, task.name, task.function.name, task.client, task.id, task.attempt)


def _row(
    kind: int, seconds: float, worker: int, name: str, function: str, client: Client, task_id: int, attempt: int
) -> Rows:
    return Rows((kind,), (seconds,), (worker,), (name,), (function,), (client.incarnation,), (task_id,), (attempt,))
