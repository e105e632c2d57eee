"""Which queued tasks to take back: when workers are idle and no task waits (work stealing), and when tasks wait that go
before them. Reads state, returns choices.

Prefetch leaves little to take back: only tasks queued behind a task that runs longer than its function's mean. Workers
that reported a long task have such queues, and get no more until this task has ended. So nothing goes back and forth
between a queue and a lane. A worker cannot report it if its task holds the GIL, or if its process is
stopped, and then it cannot give tasks back either. In this case its agent reports, and the tasks are reassigned.
"""

from collections.abc import Iterable
from itertools import islice, takewhile

from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.placement.free_workers import FreeWorkers
from scaler_scheduler.core.state.records import Lane, Task, Worker, lane_key
from scaler_scheduler.core.state.transitions import DISPATCHED, INTENT_BALANCE, NO_INTENT

SILENT_CHECKS = 2
"""Checks, one a second, at which a busy worker has not answered a Retract. Then its queued tasks go to other workers,
and its running task stays."""


QUIET_CHECKS = 5
"""Checks in a row without any message from a worker with tasks, which sends a heartbeat every second or two. Its task
may block it, or its connection may be lost. ZeroMQ notices a lost connection only when a message is sent, so the
scheduler sends the worker an echo."""

IDLE_QUIET_CHECKS = 15
"""The same for a worker without tasks. It sends a heartbeat every ten seconds."""

MAX_LANES = 64
"""At most so many waiting lanes are compared with queued tasks."""


def tasks_to_steal(core: CoreState) -> list[Task]:
    """Return tasks that idle workers should get."""
    chosen: list[Task] = []
    for worker in list(core.pool.long_running):
        queue_length = len(worker.tasks) - worker.running - worker.suspended
        if not (worker.running or worker.unclaimed) or not queue_length:
            # Nothing is queued behind its running task. Its next long task lists it again.
            del core.pool.long_running[worker]
        else:
            chosen += _share(worker, core.pool.idle)
    return chosen


def tasks_to_overtake(core: CoreState) -> list[Task]:
    """Return tasks that are queued behind a long task, and that come after waiting tasks which no free worker can run.
    They wait again in their lanes, where shares, ranks and turns decide."""
    core.queues.has_news = False
    lanes = [lane for lane in islice(core.queues.lanes(), MAX_LANES) if core.placement.waits_for_worker(lane)]
    chosen: list[Task] = []
    for worker in core.pool.long_running if lanes else ():
        if worker.running or worker.unclaimed:
            able = [lane for lane in lanes if worker.can_serve(lane.capabilities, lane.kind)]
            chosen += [task for task in queued_tasks(worker) if any(_goes_before(each, task, core) for each in able)]
    return chosen


def _goes_before(lane: Lane, task: Task, core: CoreState) -> bool:
    """Whether the next task of a waiting lane would be dispatched before this one, if this one waited too."""
    rank, share, other = task.options.rank, lane.client.share, task.client.share
    if lane.rank != rank and (share is other or core.limits.has_common_ranks):
        return lane.rank > rank
    if share is other:  # lanes of one rank take turns
        return lane.client is not task.client or lane.key != lane_key(task.options, task.function.kind)
    return share.virtual_ns <= other.virtual_ns


def tasks_of_silent_workers(workers: Iterable[Worker], idle: FreeWorkers) -> list[list[Task]]:
    """Return tasks, by worker, that idle workers should get and their own workers cannot give back.

    Call it once a second.
    """
    chosen = []
    for worker in workers:
        is_busy = worker.running or worker.unclaimed
        queued = queued_tasks(worker) if is_busy else []
        is_silent = worker.message_count == worker.checked_message_count and any(task.is_retracting for task in queued)
        worker.silent_checks = worker.silent_checks + 1 if is_silent else 0
        worker.quiet_checks = worker.quiet_checks + 1 if worker.message_count == worker.checked_message_count else 0
        worker.checked_message_count = worker.message_count
        if is_unresponsive(worker) and idle:
            taken = [task for task in queued if task.intent in (NO_INTENT, INTENT_BALANCE) and _is_servable(task, idle)]
            if taken:
                chosen.append(taken)
    return chosen


def queued_tasks(worker: Worker) -> list[Task]:
    """Return the tasks that another worker could begin now.

    A worker begins tasks in the order in which it got them. So all tasks before one that is known to have begun have
    begun too: they have ended, and their answers are on their way, or they are suspended, and their client could not
    say so yet. If the running task holds the GIL, neither comes before its end.
    """
    behind = takewhile(lambda task: task.state == DISPATCHED, reversed(worker.tasks.values()))
    return [task for task in behind if not task.missing_inputs and task.gang is None][::-1]


def needs_probe(worker: Worker) -> bool:
    """Whether a message must be sent now, to learn whether the worker's connection still exists."""
    checks = QUIET_CHECKS if worker.task_count else IDLE_QUIET_CHECKS
    return worker.quiet_checks > 0 and worker.quiet_checks % checks == 0 and not worker.is_unreachable


def is_unresponsive(worker: Worker) -> bool:
    """Whether the worker has not answered a Retract."""
    return worker.silent_checks >= SILENT_CHECKS


def _share(busy: Worker, idle: FreeWorkers) -> list[Task]:
    """Return tasks from the end of the busy worker's queue, so that all workers get the same number."""
    queued = queued_tasks(busy)
    if any(task.is_retracting for task in queued):
        return []  # A Retract is open, and the number of tasks that it gives back is unknown.
    # The running task blocks its worker for an unknown time. With one idle worker half of the queue goes, with seven
    # idle workers seven eighths.
    count = -(-len(queued) * len(idle) // (len(idle) + 1))
    servable = [task for task in reversed(queued) if _is_servable(task, idle)]
    return servable[:count]


def _is_servable(task: Task, idle: FreeWorkers) -> bool:
    return idle.can_serve(task.options.capabilities, task.function.kind)
