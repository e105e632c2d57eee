"""The tasks that more workers could begin, by what they require, with their expected run time, for autoscalers.

These are the waiting tasks, and those that are queued at a worker behind a task that runs for long. Waiting tasks are
columns, and a lane may have millions. So a lane with many batches or many functions is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from itertools import islice

from ..core.dispatch.work_stealing import queued_tasks
from ..core.events import Capabilities, Resources
from ..core.state.environments import split_kind
from ..core.state.functions import Function
from ..core.state.records import Client, Lane, Worker
from ..core.state.shares import NO_LIMIT
from ..core.state.transitions import RUNNING, WAITING
from ..wire.schema import Need, Resource

MAX_NEEDS = 1000
"""The most groups in a snapshot: those with the most tasks."""

SAMPLED_BATCHES = 1000
SAMPLED_ROWS = 1000
"""Of each lane, so many batches and so many single tasks are read. The others count like them."""

QUEUED_LIMIT = 20_000
"""The most queued tasks that are read. Those of the other workers do not count."""

_Key = tuple[Capabilities, str, tuple[str, ...], Resources]
_RunTimes = dict[Function, "tuple[int, float]"]
"""Of the tasks that run now, by function: their calls, and for how many nanoseconds they run together."""


class _Sum:
    """Waiting calls: all, those whose function has not returned, the run time of the others, those that shares hold."""

    def __init__(self) -> None:
        self.calls = 0.0
        self.unknown = 0.0
        self.run_ns = 0.0
        self.held = 0
        self.together = 0
        """The members of the largest gang, which start together: so many workers are needed, however short they run."""

    def add(self, function: Function, calls: int, run_times: _RunTimes) -> None:
        self.calls += calls
        if function.done_tasks:
            self.run_ns += calls * _expected_ns(function, run_times)
        else:
            self.unknown += calls

    def add_scaled(self, other: _Sum, calls: int) -> None:
        """Add a sample that stands for this many calls."""
        scale = calls / other.calls if other.calls else 0.0
        self.calls += calls
        self.unknown += other.unknown * scale if scale else calls
        self.run_ns += other.run_ns * scale


def need_rows(
    clients: Iterable[Client], workers: Iterable[Worker], long_running: Iterable[Worker], now: float
) -> list[Need]:
    """The tasks that more workers could begin, grouped by their requirements.

    Args:
        clients: all clients.
        workers: all workers.
        long_running: the workers whose running task is long.
        now: seconds of the monotonic clock.
    """
    groups: dict[_Key, _Sum] = {}
    run_times = _run_times(workers, now)
    room: dict[int, int] = {}
    for client in clients:
        share = client.share
        for lane in client.lanes.values():
            calls = (lane.waiting + lane.further_calls) * max(1, lane.gang_size)
            if calls > 0:
                # Any host may make the environment: it does not tell which hosts to start.
                key = lane.capabilities, split_kind(lane.kind)[0], lane.limits, lane.resources
                group = groups.setdefault(key, _Sum())
                group.add_scaled(_sample(lane, run_times), calls)
                group.together = max(group.together, lane.gang_size)
                if share.limits.max_running != NO_LIMIT:
                    may_start = min(calls, max(0, room.get(share.number, share.room)))
                    room[share.number] = room.get(share.number, share.room) - may_start
                    group.held += calls - may_start
    _add_queued(groups, long_running, run_times)
    shown = nlargest(MAX_NEEDS, groups.items(), key=lambda item: item[1].calls)
    return [
        Need(
            capabilities=" ".join(f"{name}={amount}" for name, amount in sorted(capabilities)),
            kind=kind,
            limits=list(limits),
            waiting=int(group.calls),
            unknown=max(round(group.unknown), group.together),
            milliseconds=min(int(group.run_ns / 1e6), (1 << 64) - 1),
            resources=[Resource(name=name, amount=amount) for name, amount in resources],
            held=group.held,
        )
        for (capabilities, kind, limits, resources), group in shown
    ]


def _add_queued(groups: dict[_Key, _Sum], long_running: Iterable[Worker], run_times: _RunTimes) -> None:
    """Add the tasks that idle workers would take from these workers. They have their part of each limit already."""
    rest = QUEUED_LIMIT
    for worker in long_running:
        for task in queued_tasks(worker):
            options = task.options
            key = options.capabilities, split_kind(task.function.kind)[0], (), options.resources
            groups.setdefault(key, _Sum()).add(task.function, options.weight, run_times)
            rest -= 1
        if rest <= 0:
            break


def _run_times(workers: Iterable[Worker], now: float) -> _RunTimes:
    """How long the tasks run that are known to have begun."""
    found: _RunTimes = {}
    for worker in workers:
        for task, began in worker.started_at.items():
            if task.state == RUNNING:
                calls, run_ns = found.get(task.function, (0, 0.0))
                found[task.function] = calls + task.options.weight, run_ns + max(0.0, now - began) * 1e9
    return found


def _expected_ns(function: Function, run_times: _RunTimes) -> float:
    """The mean run time of a function that has returned, in nanoseconds.

    Running tasks count as if they ended now, if this makes the mean longer: the first call may have been a short one.
    """
    mean = function.run_ns / function.done_tasks
    calls, run_ns = run_times.get(function, (0, 0.0))
    return max(mean, (function.run_ns + run_ns) / (function.done_tasks + calls))


def _sample(lane: Lane, run_times: _RunTimes) -> _Sum:
    """The first waiting tasks of a lane."""
    sample = _Sum()
    for task in islice(lane.requeued.values(), SAMPLED_ROWS):
        if task.state == WAITING:
            sample.add(task.function, task.options.weight, run_times)
    rows = SAMPLED_ROWS
    for batch in islice(lane.batches, SAMPLED_BATCHES):
        weight = batch.options.weight
        if len(batch.functions) == 1:
            sample.add(batch.functions[0], (len(batch.ids) - batch.next - len(batch.cancelled)) * weight, run_times)
            continue
        for row in range(batch.next, min(len(batch.ids), batch.next + rows)):
            sample.add(batch.functions[row], weight, run_times)
            rows -= 1
    return sample
