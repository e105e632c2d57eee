"""Adaptive prefetch: how much work a worker gets. Reads state, returns choices.

A worker holds about as much queued work as covers one round trip to it. Work is measured in run time and not in tasks.
So a worker gets hundreds of tasks that do nothing, one more task behind a task of 10 ms, and none behind a task of 10 s
(see decision 10).
"""

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

GRAIN_NS = 200_000
"""The least work that is worth a message. Less work is not split among several workers."""

UNKNOWN_COST_NS = TARGET_NS + 1
"""The load of a task whose function has not returned yet. Nothing is queued behind it."""


def cost_ns(function: Function, options: Options) -> int:
    """Nanoseconds that one row with this function and these options adds to a worker's load."""
    return UNKNOWN_COST_NS if function.mean_ns < 0 else function.mean_ns * options.weight


def prefetch_count(
    worker: Worker, function: Function, options: Options, waiting: int, workers: int, queue_size: int
) -> int:
    """Return how many rows of `function` this worker gets now.

    Args:
        worker: a worker with room.
        function: the function of the next rows.
        options: the options of the next row.
        waiting: the number of waiting tasks, of which it gets at most its share.
        workers: the number of workers that share them, with this one.
        queue_size: the most tasks that a worker may hold.
    """
    held = worker.task_count
    if function.mean_ns < 0:
        return 0 if held else 1
    if held and (worker.load_ns > TARGET_NS or worker.payload_bytes > TARGET_BYTES):
        return 0
    if worker.running or worker.unclaimed:
        return 0  # it takes longer than its function's mean, for an unknown time
    cost = function.mean_ns * options.weight
    by_time = max(0, TARGET_NS - worker.load_ns) // cost + 1
    share = max(-(-waiting // workers), GRAIN_NS // cost)
    return max(0, min(by_time, share, queue_size - held))


def wants_work(worker: Worker, queue_size: int) -> bool:
    """Whether this worker gets more tasks now: large portions while it holds much, at once when it holds little."""
    held = worker.task_count
    if worker.payload_bytes > TARGET_BYTES:
        return not held
    return held <= 1 or (held * 2 <= queue_size and worker.load_ns * 2 <= TARGET_NS)
