"""Checks the order of dispatches: higher priority first, then depth; and which worker can serve which task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.state.records import Worker

from .held_tasks import TaskId
from .trace import SimulationError

Rank = tuple[int, int]


def rank(options: events.Options) -> Rank:
    return options.priority, options.depth


def serves(worker: Worker, wanted: events.Capabilities) -> bool:
    return all(worker.capabilities.get(name, 0) >= amount for name, amount in wanted)


def check_priorities(
    collected: list[effects.Effect],
    workers: Mapping[bytes, Worker],
    waiting: Mapping[TaskId, events.Options],
    submitted: Mapping[TaskId, list[events.Options]],
    share_of: Callable[[int], object],
) -> None:
    """Check that no dispatched task passes over a waiting task of its share that has a higher rank and that its worker
    could run.

    Args:
        collected: the scheduler's effects.
        workers: the connected workers by route.
        waiting: tasks that no worker holds and that may be dispatched.
        submitted: all open tasks, with the options of each of their submits.
        share_of: what is equal for the clients, by their incarnation, whose ranks are compared.

    Raises:
        SimulationError: a task was passed over.
    """
    kinds = {
        (share_of(name[0]), rank(options), options.capabilities): name
        for name, options in waiting.items()
        # Such a task may wait for its limit, for room, or for enough workers.
        if not (options.limits or options.resources or options.gang_size)
    }
    for effect in collected if kinds else ():
        worker = workers.get(effect.route) if isinstance(effect, effects.Dispatch) else None
        if worker is None or not isinstance(effect, effects.Dispatch):
            continue
        least: dict[object, Rank] = {}
        for row, name in enumerate(zip(effect.clients, effect.ids)):
            if name in submitted and not effect.booking_of(row):  # else its worker may have been reserved for it
                # Its present rank, which may be higher than the submitted one: that of a task that reads its result.
                _, depth, priority = effect.row_options.get(row, (0, 0, 0))
                share, given = share_of(name[0]), (priority, depth)
                least[share] = min(given, least.get(share, given))
        for (share, waiting_rank, capabilities), name in kinds.items():
            if share in least and waiting_rank > least[share] and serves(worker, capabilities):
                raise SimulationError(f"{name} of rank {waiting_rank} is passed over by one of rank {least[share]}")
