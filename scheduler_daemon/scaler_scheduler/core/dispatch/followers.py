"""Chooses the tasks that follow the tasks whose results they read: one Dispatch brings all of them to one worker.

The worker hands each result to the row behind it. Otherwise each link of a chain would cost a message there and back.
"""

from collections.abc import Iterable

from scaler_scheduler.core.placement.prefetch import TARGET_BYTES, TARGET_NS
from scaler_scheduler.core.state.records import Task, Worker
from scaler_scheduler.core.state.transitions import BLOCKED
from scaler_scheduler.core.tables import Tables


def followers_of(dispatched: Iterable[Task], worker: Worker, queue_size: int, tables: Tables) -> list[Task]:
    """Return the tasks that can follow, each behind the tasks that it reads.

    A task follows if it is the only one that reads a result of these tasks, and if all its other inputs exist or come
    from these tasks as well. So nothing that could run beside it waits for it. A result that becomes a file is read
    from the file.

    Args:
        dispatched: the tasks that the worker gets in this Dispatch and whose results are kept.
        worker: the worker.
        queue_size: the most tasks that a worker may hold.
        tables: say which tasks run or have ended already, at workers that have joined again.
    """
    if not worker.takes_followers:
        return []
    has_parents = worker.has_parents
    makers = dict.fromkeys(dispatched)
    followers: list[Task] = []
    load_ns, payload_bytes, held = worker.load_ns, worker.payload_bytes, worker.task_count
    queue = list(makers)
    for maker in queue:  # grows in the loop
        if load_ns > TARGET_NS or payload_bytes > TARGET_BYTES or held >= queue_size:
            break
        stored = maker.client.objects.get(maker.id)
        reader = None if stored is None or stored.producer is not maker else stored.only_blocked_task
        if reader is None:
            continue
        if reader.state != BLOCKED or reader in makers or not _can_follow(reader, maker, makers):
            continue
        if has_parents and reader.may_end_worker:
            continue
        if (tables.unclaimed or tables.early) and tables.is_named(reader):
            continue
        load_ns += reader.function.mean_ns
        payload_bytes += reader.size
        held += 1
        makers[reader] = None
        followers.append(reader)
        queue.append(reader)
    return followers


def _can_follow(reader: Task, maker: Task, makers: dict[Task, None]) -> bool:
    options, others = reader.options, maker.options
    if options.limits or options.resources:
        return False
    if options is not others and (
        options.weight != 1 or options.rank != others.rank or options.capabilities != others.capabilities
    ):
        return False
    if reader.function.mean_ns < 0 or reader.function.kind != maker.function.kind:
        return False
    # An input that is missing at the scheduler has no bytes there, and one without bytes may be at another host.
    return all(stored.frames is not None or stored.producer in makers for stored in reader.inputs)
