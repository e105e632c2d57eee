"""How much work a worker gets: adaptive prefetch. Reads state, returns choices.

A worker holds about as much queued work as covers one round trip to it, measured in run time and not in tasks: hundreds
of no-ops, one spare task of 10 ms, none behind a task of 10 s (ARCHITECTURE.md, decisions).
"""

from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Worker

TARGET_NS = 15_000_000
"""Work that a worker may hold and still be given more."""

TARGET_BYTES = 16 << 20
"""Payload bytes that a worker may hold and still be given more: large arguments are not piled up ahead of their use,
and a Dispatch stays below what a message can say (this, and one batch of at most 2^28 bytes)."""

GRAIN_NS = 200_000
"""Work worth a message of its own: fewer tasks than this are not spread over more workers."""

UNKNOWN_COST_NS = TARGET_NS + 1
"""Load of a task whose function never returned yet: nothing is queued behind it."""


def cost_ns(function: Function) -> int:
    """Nanoseconds that one task of this function adds to a worker's load."""
    return UNKNOWN_COST_NS if function.mean_ns < 0 else function.mean_ns


def prefetch_count(worker: Worker, function: Function, waiting: int, workers: int, queue_size: int) -> int:
    """How many tasks of `function` this worker gets now.

    Args:
        waiting: tasks that wait, of which it should not take more than its share.
        workers: workers that share them, this one included.
        queue_size: tasks that a worker may hold at most.
    """
    held = worker.task_count
    if function.mean_ns < 0:
        return 0 if held else 1
    if held and (worker.load_ns > TARGET_NS or worker.payload_bytes > TARGET_BYTES):
        return 0
    if worker.running or worker.unclaimed:
        return 0  # it takes longer than its function's mean says, nobody knows how long
    by_time = max(0, TARGET_NS - worker.load_ns) // function.mean_ns + 1
    share = max(-(-waiting // workers), GRAIN_NS // function.mean_ns)
    return max(0, min(by_time, share, queue_size - held))


def wants_work(worker: Worker, queue_size: int) -> bool:
    """Whether it is time to give this worker more: in large portions while it has much, at once when it has little."""
    held = worker.task_count
    if worker.payload_bytes > TARGET_BYTES:
        return not held
    return held <= 1 or (held * 2 <= queue_size and worker.load_ns * 2 <= TARGET_NS)
