"""Which queued tasks to take back, when workers are idle and nothing waits. Reads state, returns choices.

The adaptive prefetch (dispatch.py) leaves little to balance: what was queued behind a task that runs longer than its
function's mean says. A worker that has told that it runs something for long is where such tasks are.
"""

from typing import List

from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.records import Task, Worker
from scaler_scheduler.core.states import DISPATCHED


def choose(dispatcher: Dispatcher) -> List[Task]:
    """Tasks that idle workers should get."""
    chosen: List[Task] = []
    for worker in list(dispatcher.stuck):
        queue_length = len(worker.tasks) - worker.running - worker.suspended
        if not (worker.running or worker.unclaimed) or not queue_length:
            del dispatcher.stuck[worker]  # nothing is queued behind what runs; it comes back with its next long task
        else:
            chosen += _share(worker, dispatcher.idle)
    return chosen


def _share(busy: Worker, idle: List[Worker]) -> List[Task]:
    """Tasks from the end of the busy worker's queue: as many as leave everybody the same."""
    queued = [task for task in busy.tasks.values() if task.state == DISPATCHED]
    if any(task.is_retracting for task in queued):
        return []  # it has been asked, and how much it gives back is not known yet
    # What runs holds its worker for unknown time: with one idle worker half goes, with seven seven of eight.
    count = -(-len(queued) * len(idle) // (len(idle) + 1))
    servable = [task for task in reversed(queued) if _is_servable(task, idle)]
    return servable[:count]


def _is_servable(task: Task, idle: List[Worker]) -> bool:
    wanted = task.options.capabilities
    return not wanted or any(worker.can_serve(wanted) for worker in idle)
