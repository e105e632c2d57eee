"""The steps that every end of a task shares, and the texts of failed tasks."""

from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.effects import OUTCOME_KEPT, OUTCOME_VALUE, OUTCOME_WORKER_DIED
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.records import Task
from scaler_scheduler.core.tables import Tables


def detach(tables: Tables, task: Task) -> None:
    """Take the task from its worker. The worker's later answers about it do not count."""
    assert task.worker is not None
    task.worker.release(task)
    tables.timers.cancel(task)
    task.is_retracting = task.is_stopping = False
    tables.counts.add_dispatched(-1, task.options.weight)


def close_task(tables: Tables, task: Task) -> None:
    """Remove a task in a final state, which no worker holds, from its client and its function."""
    client = task.client
    del client.tasks[task.id]
    client.returned_bytes += task.size + TASK_OVERHEAD
    tables.counts.payload_bytes -= task.size
    tables.remove_row(client, task.function, task.options)
    tables.clients.remove_if_done(client)


def end_with_client(tables: Tables, task: Task) -> None:
    """Count and record a task that is cancelled because its client has left."""
    tables.counts.count_client_left(task.options.weight)
    tables.history.record_client_left(task.client, (task.id,), (task.function,), task.options.name, task.attempt)


def answer_task(tables: Tables, outbox: Outbox, task: Task, outcome: int, payload: bytes) -> None:
    """Close a task that the scheduler itself answers, and tell its client."""
    weight = task.options.weight
    if weight > 1 and outcome == OUTCOME_WORKER_DIED:
        weight = 0  # the client submits these calls again, each as a row of its own
    tables.counts.resolved += weight
    tables.counts.outcomes[outcome] += weight
    if outcome not in (OUTCOME_VALUE, OUTCOME_KEPT):
        task.function.failed_tasks += weight
    client = task.client
    if outcome != OUTCOME_KEPT:  # the worker's results recorded the end of a kept task
        tables.history.record_ended(client, task.id, task.attempt, task.function, task.options.name, outcome, payload)
    close_task(tables, task)
    if not client.is_gone:
        client.answered_tasks += weight - 1  # the outbox counts the row
        if outcome == OUTCOME_KEPT and not payload:
            outbox.answer_kept(client, task.id, tables.clock.now)
        else:
            outbox.answer(client, task.id, outcome, payload)


def has_retries_left(task: Task, default: int) -> bool:
    """Whether the task may run again after its failures.

    A row of several calls runs once. Its client submits the calls again as single rows, so that a call which ends its
    worker does not take the others with it.

    Args:
        task: the task.
        default: the retries of tasks that ask for no number.
    """
    if task.options.calls > 1:
        return not task.failures
    limit = task.options.retries
    return task.failures <= (default if limit < 0 else limit)


def deaths_text(task: Task) -> bytes:
    """Return the error text of a task whose attempts ended with the death of their workers."""
    deaths = task.deaths or []
    if task.failures == 1 == len(deaths):
        return f"{task.name}#{task.id}: the worker died in its only attempt: {deaths[0]}".encode()
    of = f"each of {task.failures}" if len(deaths) == task.failures else f"{len(deaths)} of {task.failures}"
    return f"{task.name}#{task.id}: the worker died in {of} attempts: {'; '.join(deaths)}".encode()


def exceeds_limit(task: Task, duration: int) -> bool:
    """Whether an attempt of this run time, in nanoseconds, was longer than the time limit of the task."""
    return duration >= task.options.timeout_seconds * 1e9 > 0


def time_limit_text(task: Task) -> bytes:
    """Return the error text of a task that exceeded its time limit."""
    return f"{task.name}#{task.id}: stopped after its time limit of {task.options.timeout_seconds:g} s".encode()
