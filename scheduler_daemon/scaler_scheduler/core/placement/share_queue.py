"""The lanes with waiting tasks, by share and rank, and the time of tasks that take longer than expected."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator

from scaler_scheduler.core.state.counts import Counts
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Client, Lane, Task
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.state.timers import Clock
from scaler_scheduler.core.state.transitions import RUNNING, WAITING
from scaler_scheduler.core.tables import Tables


class RankedLanes:
    """The queued lanes of one share. Lanes of one rank take turns."""

    __slots__ = ("by_rank", "ranks")

    def __init__(self) -> None:
        self.ranks: list[int] = []
        """The ranks in `by_rank`, ascending."""
        self.by_rank: dict[int, deque[Lane]] = {}

    def append(self, lane: Lane) -> None:
        """Queue a lane behind the others of its rank."""
        lanes = self.by_rank.get(lane.rank)
        if lanes is None:
            lanes = self.by_rank[lane.rank] = deque()
            insort(self.ranks, lane.rank)
        lanes.append(lane)

    def drop_if_empty(self, rank: int) -> None:
        """Forget a rank without lanes."""
        if not self.by_rank[rank]:
            del self.by_rank[rank]
            self.ranks.remove(rank)


class ShareQueues:
    """The shares with queued lanes. None of them is empty, except while a run of the dispatcher takes lanes out. Lanes
    of paused clients are not queued."""

    def __init__(self, counts: Counts, clock: Clock) -> None:
        self._counts = counts
        self._clock = clock
        self.by_share: dict[Share, RankedLanes] = {}
        self.parked: dict[Lane, None] = {}
        """Queued lanes that no run looks at, because no host has the resources that they ask for, free or not. They are
        in no share's queue, so that no run of the dispatcher pays for them."""
        self.has_news = False
        """Whether a lane was queued, or a worker was found to run a long task, since queued tasks were compared with
        waiting ones."""
        self.virtual_ns = 0.0
        """The virtual time of the share that was served last while others waited too, or that waited last. A share that
        begins to wait has at least this."""

    def __bool__(self) -> bool:
        return bool(self.by_share or self.parked)

    def lanes(self) -> Iterator[Lane]:
        """All queued lanes."""
        yield from self.parked
        for queue in self.by_share.values():
            for lanes in queue.by_rank.values():
                yield from lanes

    # -------------------------------------------------------------------------------------------------------- its tasks

    def enqueue(self, lane: Lane, count: int, weight: int) -> None:
        """Count `count` more waiting tasks of the lane, each of `weight` calls, and queue the lane."""
        self._counts.add_waiting(lane, count, weight)
        if not lane.is_queued and not lane.client.pause_reasons:
            lane.is_queued = True
            self.append(lane)

    def requeue(self, task: Task) -> None:
        """Queue a task that was just moved to WAITING. It goes before tasks that were never dispatched."""
        lane = task.client.lane_of(task)
        lane.requeue(task)
        task.since = self._clock.now
        self.enqueue(lane, 1, task.options.weight)

    def pass_again(self, tasks: Iterable[Task]) -> None:
        """Put back tasks that a run of the dispatcher has passed over."""
        for task in tasks:
            lane = task.client.lane_of(task)
            lane.requeue(task)
            self.enqueue(lane, 0, 1)

    def dequeue(self, lane: Lane) -> None:
        """Remove the lane from its queue."""
        if lane.is_queued:
            lane.is_queued = False
            self.remove(lane)

    def pause(self, client: Client, reason: int) -> None:
        """Dispatch none of the client's tasks until `resume` for the same reason."""
        client.pause_reasons |= reason
        for lane in client.lanes.values():
            self.dequeue(lane)

    def resume(self, client: Client, reason: int) -> None:
        """Remove a reason to pause. The client's tasks are dispatched again if no other reason is left."""
        if not client.pause_reasons & reason:
            return
        client.pause_reasons &= ~reason
        for lane in client.lanes.values():
            if lane.waiting:
                self.enqueue(lane, 0, 1)

    @staticmethod
    def next_function(lane: Lane) -> Function | None:
        """Return the function of the lane's next task. None if no task waits; then the lane is forgotten."""
        while lane.requeued:
            task = lane.first_requeued
            if task.state == WAITING:
                return task.function
            lane.pop_requeued()
        while lane.batches:
            batch = lane.batches.first
            batch.skip_cancelled()
            if not batch.is_empty:
                return batch.function_at(batch.next)
            lane.batches.remove_first()
        if not lane.waiting and lane.client.lanes.get(lane.key) is lane:  # else this run passes over tasks of it
            del lane.client.lanes[lane.key]
        return None

    def prune(self, lane: Lane) -> None:
        """Drop tasks at the lane's front that no longer wait. Otherwise they would stay until a worker can take tasks
        of the lane."""
        if self.next_function(lane) is None:
            self.dequeue(lane)

    # -------------------------------------------------------------------------------------------------------- its lanes

    def append(self, lane: Lane) -> None:
        """Queue a lane."""
        share = lane.client.share
        queue = self.by_share.get(share)
        if queue is None:
            if len(self.by_share) == 1:
                self._note_only_one()
            share.start_at(self.virtual_ns)
            queue = self.by_share[share] = RankedLanes()
        queue.append(lane)
        self.has_news = True

    def remove(self, lane: Lane) -> None:
        """Take a lane out."""
        if lane in self.parked:
            del self.parked[lane]
            return
        share = lane.client.share
        queue = self.by_share[share]
        queue.by_rank[lane.rank].remove(lane)
        queue.drop_if_empty(lane.rank)
        self.drop_if_empty(share)

    def unpark(self) -> None:
        """Queue all parked lanes again."""
        parked, self.parked = self.parked, {}
        for lane in parked:
            self.append(lane)

    def drop_if_empty(self, share: Share) -> None:
        """Forget a share without queued lanes."""
        if not self.by_share[share].ranks:
            if len(self.by_share) == 1:
                self._note_only_one()
            del self.by_share[share]

    def _note_only_one(self) -> None:
        """Let others begin where the only share is that waits."""
        for share in self.by_share:
            self.virtual_ns = max(self.virtual_ns, share.virtual_ns)


def note_late_tasks(tables: Tables) -> None:
    """Count the time of running tasks that take longer than expected in their shares. Call it once a second."""
    shares, now = tables.clients.shares, tables.clock.now
    for share in shares:
        share.late_ns = 0
    if len(shares) < 2:
        return
    for worker in tables.workers:
        for task, started_at in worker.started_at.items():
            if task.state == RUNNING:
                task.client.share.late_ns += max(0, int((now - started_at) * 1e9) - task.cost)
