"""A task is over: what every end has in common."""

from scaler_scheduler.core.credit import TASK_OVERHEAD
from scaler_scheduler.core.records import Task
from scaler_scheduler.core.tables import Tables


def close(tables: Tables, task: Task) -> None:
    """Drop the task, which has reached a final state and is no worker's, from its client and its function."""
    client = task.client
    del client.tasks[task.id]
    client.returned += task.size + TASK_OVERHEAD
    tables.functions.let_go(task.function)
    tables.clients.bury(client)
