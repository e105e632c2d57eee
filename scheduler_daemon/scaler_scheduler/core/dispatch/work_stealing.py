"""Which queued tasks to take back, when workers are idle and nothing waits. Reads state, returns choices.

The adaptive prefetch (prefetch.py) leaves little to balance: what was queued behind a task that runs longer than its
function's mean says. A worker that has told that it runs something for long is where such tasks are. One that can't
say so, as what it runs never lets go of the interpreter's lock, or as its process is stopped, can't give them back
either: its agent tells, and they are taken away.
"""

from typing import Iterable, List

from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.state.records import Task, Worker
from scaler_scheduler.core.state.transitions import DISPATCHED, INTENT_BALANCE, NO_INTENT

SILENT_CHECKS = 2
"""Looks, one a second, at which a worker that runs something, and was asked to give back what it has queued, has said
nothing since the one before. Then its queue is taken away; what runs stays where it is."""


QUIET_CHECKS = 5
"""At so many looks in a row a worker has said nothing, whose heartbeats come every second or two. What it runs may keep
it from that; or its connection is gone, which nobody notices where nothing is sent, as its agent's heartbeats go on."""


def tasks_to_steal(dispatcher: Dispatcher) -> List[Task]:
    """Tasks that idle workers should get."""
    chosen: List[Task] = []
    for worker in list(dispatcher.long_running):
        queue_length = len(worker.tasks) - worker.running - worker.suspended
        if not (worker.running or worker.unclaimed) or not queue_length:
            del dispatcher.long_running[
                worker
            ]  # nothing is queued behind what runs; it comes back with its next long task
        else:
            chosen += _share(worker, dispatcher.idle)
    return chosen


def tasks_of_silent_workers(workers: Iterable[Worker], idle: List[Worker]) -> List[List[Task]]:
    """Call it once a second. What idle workers should get and its own worker can't give back, by worker."""
    chosen = []
    for worker in workers:
        is_busy = worker.running or worker.unclaimed
        queued = [task for task in worker.tasks.values() if task.state == DISPATCHED] if is_busy else []
        is_silent = worker.message_count == worker.checked_message_count and any(task.is_retracting for task in queued)
        worker.silent_checks = worker.silent_checks + 1 if is_silent else 0
        worker.quiet_checks = worker.quiet_checks + 1 if worker.message_count == worker.checked_message_count else 0
        worker.checked_message_count = worker.message_count
        if is_unresponsive(worker) and idle:
            taken = [task for task in queued if task.intent in (NO_INTENT, INTENT_BALANCE) and _is_servable(task, idle)]
            if taken:
                chosen.append(taken)
    return chosen


def needs_probe(worker: Worker) -> bool:
    """Whether it has been quiet for so long that it is to be looked, now, whether it still has its connection."""
    return worker.quiet_checks > 0 and worker.quiet_checks % QUIET_CHECKS == 0 and not worker.is_unreachable


def is_unresponsive(worker: Worker) -> bool:
    """Whether it was asked to give queued tasks back, and has said nothing since: it can't."""
    return worker.silent_checks >= SILENT_CHECKS


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
    wanted, kind = task.options.capabilities, task.function.kind
    return any(worker.can_serve(wanted, kind) for worker in idle)
