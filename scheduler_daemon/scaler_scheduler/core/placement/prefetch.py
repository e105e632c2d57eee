"""Adaptive prefetch: how much work a worker gets. Reads state, returns choices.

A worker holds about as much queued work as covers one round trip to it. Work is measured in run time and not in tasks.
So a worker gets hundreds of tasks that do nothing, one more task behind a task of 10 ms, and none behind a task of 10 s
(see decision 10).
"""

from math import sqrt

from scaler_scheduler.core.events import Options
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Worker

TARGET_NS = 15_000_000
"""A worker with more work than this gets no more."""

TARGET_BYTES = 16 << 20
"""A worker with more payload bytes than this gets no more.

Large arguments do not pile up ahead of their use, and a Dispatch stays below the limit of a message: this, and one
batch of at most 2^28 bytes.
"""

MESSAGE_NS = 40_000
"""The time that one more message costs: the scheduler writes it, and a worker wakes up."""

LEAST_PORTION_NS = 200_000
"""The least work that is worth a message. Less work is not split among several workers."""

MOST_PORTION_NS = 2_000_000
"""Work that is behind this much work is worth a message to an idle worker."""

SILENT_SECONDS = 0.05
"""A worker that has had work for this long without an answer gets no more while others are idle: it may be lost."""

UNKNOWN_COST_NS = TARGET_NS + 1
"""The load of a task whose function has not returned yet. Nothing is queued behind it."""


def cost_ns(function: Function, options: Options) -> int:
    """Nanoseconds that one row with this function and these options adds to a worker's load."""
    return UNKNOWN_COST_NS if function.mean_ns < 0 else function.mean_ns * options.weight


def portion_ns(work_ns: int) -> int:
    """Nanoseconds of work for one worker, if this much work waits and enough workers are idle.

    k messages that go out one after another, and then the work of one of k workers, take `k * MESSAGE_NS + work_ns /
    k`. The sum is least at portions of `sqrt(work_ns * MESSAGE_NS)`.
    """
    return min(max(int(sqrt(work_ns * MESSAGE_NS)), LEAST_PORTION_NS), MOST_PORTION_NS)


def has_portion_room(worker: Worker, cost: int, waiting: int, now: float) -> bool:
    """Whether one more row goes to this worker although other workers are idle.

    Args:
        worker: the worker that got rows last.
        cost: nanoseconds of the row.
        waiting: the number of waiting tasks.
        now: seconds of the monotonic clock.
    """
    if not worker.task_count:
        return True
    if not _has_room(worker) or now - worker.heard_at > SILENT_SECONDS:
        return False
    return worker.load_ns + cost <= portion_ns(waiting * cost)


def prefetch_count(worker: Worker, cost: int, waiting: int, workers: int, queue_size: int) -> int:
    """Return how many rows this worker gets now. At least one if it holds nothing.

    Args:
        worker: a worker that is free, or was so when its list was written.
        cost: nanoseconds of one row, as `cost_ns` returns it.
        waiting: the number of waiting tasks, of which it gets at most its share, or what fills its portion.
        workers: the number of workers that share them, with this one.
        queue_size: the most tasks that a worker may hold.
    """
    held = worker.task_count
    if held and not _has_room(worker):
        return 0
    by_time = max(0, TARGET_NS - worker.load_ns) // cost + 1
    share = max(-(-waiting // workers), (portion_ns(waiting * cost) - worker.load_ns) // cost)
    return max(0, min(by_time, share, queue_size - held))


def wants_work(worker: Worker, queue_size: int) -> bool:
    """Whether this worker gets more tasks now: large portions while it holds much, at once when it holds little."""
    held = worker.task_count
    if not held:
        return True
    if not _has_room(worker):
        return False
    return (held == 1 < queue_size) or (held * 2 <= queue_size and worker.load_ns * 2 <= TARGET_NS)


def _has_room(worker: Worker) -> bool:
    """Whether a worker that holds tasks may get more. It may not behind a task that takes an unknown time."""
    if worker.running or worker.unclaimed:
        return False
    return worker.load_ns <= TARGET_NS and worker.payload_bytes <= TARGET_BYTES
