"""Where the next tasks of a lane run, or until when they wait: each policy in turn.

1. The limits of the lane have tokens.
2. A worker is free. For a lane that asks for resources, it is a worker of a host that has them.
3. The worker's host has the inputs of the task and room for its result, or another host is a better choice.
4. A task that may end its process does not run beside suspended tasks.
5. The worker gets as many tasks as it has room for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional, Protocol

from scaler_scheduler.core.data.fetches import Fetches, away_from, has_copies
from scaler_scheduler.core.placement.bookings import Booking, Bookings
from scaler_scheduler.core.placement.data_placement import DataPlacement
from scaler_scheduler.core.placement.free_workers import is_reserved
from scaler_scheduler.core.placement.gang_reservation import GangReservation
from scaler_scheduler.core.placement.host_choice import HostChoice
from scaler_scheduler.core.placement.near_data import NearData, makes_large_result
from scaler_scheduler.core.placement.prefetch import cost_ns, has_portion_room, prefetch_count
from scaler_scheduler.core.placement.task_limits import TaskLimits
from scaler_scheduler.core.placement.wait import INFINITY, LANE_WAITS, Go, Wait
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.tables import Tables

Members = list[tuple[Worker, Optional[Booking]]]
"""The workers of a gang by rank, each with what its member has booked."""


class SuccessorSource(Protocol):
    """Passes the slot of a worker on (`core/peers/successors.py`)."""

    def are_enough(self, tasks: int) -> bool: ...

    def are_coming(self, worker: Worker) -> bool: ...

    def find(self, worker: Worker) -> Worker | Wait: ...


class Placement:
    """Asks the policies where a lane's next tasks run."""

    def __init__(
        self,
        tables: Tables,
        pool: WorkerPool,
        *,
        task_limits: TaskLimits,
        bookings: Bookings,
        hosts: HostChoice,
        gangs: GangReservation,
        near_data: NearData,
        data: DataPlacement,
        fetches: Fetches,
        queue_size: int,
    ) -> None:
        self._clock = tables.clock
        self._counts = tables.counts
        self._pool = pool
        self._task_limits = task_limits
        self._bookings = bookings
        self._hosts = hosts
        self._gangs = gangs
        self._near_data = near_data
        self._data = data
        self._fetches = fetches
        self._queue_size = queue_size
        self.successors: SuccessorSource | None = None
        """Takes workers that have suspended tasks, and gives others. None: tasks share the process with these."""

    def place(self, lane: Lane, function: Function) -> Go | Wait:
        """Return where the next tasks of a lane run, or until when they wait.

        Args:
            lane: the lane. It is none of gangs.
            function: of its next task.
        """
        if lane.limits:
            ready_at = self._task_limits.ready_at(lane.limits)
            if ready_at > self._clock.now:
                return Wait(ready_at)
        cost = cost_ns(function, lane.next_options)
        worker: Worker | Wait | None
        if lane.resources:
            worker = self._worker_with_resources(lane, function, cost)
            if isinstance(worker, Wait) and lane.ticket and self._hosts.is_hopeless(lane):
                return worker._replace(is_hopeless=True)
        else:
            worker = self._data.worker_with_inputs(lane) or self._free_worker(lane, function, cost)
        if isinstance(worker, Worker) and lane.requeued and self._data.matters(lane, worker):
            worker = self._data.place(lane, worker, cost)
        if isinstance(worker, Worker) and worker.has_parents and lane.next_may_end_worker:
            worker = self._without_parents(lane, worker)
        if worker is None:
            return LANE_WAITS
        return Go(worker, self._count(lane, function, worker, cost)) if isinstance(worker, Worker) else worker

    def can_ever_run(self, lane: Lane, workers: Iterable[Worker]) -> bool:
        """Whether the lane's next task could run if nothing was running.

        Args:
            lane: the lane.
            workers: those that do not retire.
        """
        if lane.gang_size:
            return self._gangs.count_able(lane, lane.gang_size) >= lane.gang_size
        if lane.resources:
            return any(True for _ in self._hosts.able_hosts(lane, 1))
        return any(worker.can_serve(lane.capabilities, lane.kind) for worker in workers)

    def waits_for_worker(self, lane: Lane) -> bool:
        """Whether the lane's next task could begin if a worker was free: its share, its limits and some host have room
        for it."""
        if not lane.waiting or lane.client.share.room <= 0:
            return False
        if lane.limits and self._task_limits.ready_at(lane.limits) > self._clock.now:
            return False
        if not lane.resources or lane.gang_size:
            return True
        hosts = self._bookings.with_free(lane.resources)
        return hosts is None or any(host.has_amounts(lane.resources, lane) for host in hosts)

    def _count(self, lane: Lane, function: Function, worker: Worker, cost: int) -> int:
        """How many tasks of the lane the worker gets now."""
        workers = len(self._pool.idle) + len(self._pool.partial) + 1
        count = prefetch_count(worker, cost, self._counts.waiting, workers, self._queue_size)
        if lane.limits or function.ends_workers:
            return min(count, 1)
        if lane.requeued and makes_large_result(lane.first_requeued):
            count = min(count, self._near_data.results_in_room(function, worker))
        return min(count, lane.client.share.room)

    def _free_worker(self, lane: Lane, function: Function, cost: int) -> Worker | None:
        """Choose a free worker for the lane's next task of this cost, and remove it from its list.

        First the worker that got tasks last, until its portion is full. Then the idle worker that was busy last: it has
        the warmest caches, and with few tasks the others can rest. Then the worker that has waited for more the
        longest.
        """
        pool, capabilities, kind = self._pool, lane.capabilities, lane.kind
        if function.mean_ns < 0 or lane.limits or function.ends_workers:
            # Such a task goes neither behind others nor before them. A limited one would hold a token while it waits.
            # If a task ends its worker, the answers of tasks before it may be lost.
            worker = pool.idle.newest(capabilities, kind)
            if worker is None:
                pool.reserved.add((capabilities, kind))
        else:
            worker = self._filling_worker(lane, cost) or pool.idle.newest(capabilities, kind)
            worker = worker or pool.partial.oldest(capabilities, kind, pool.reserved)
        if worker is None and self._gangs.held_back:
            is_known = function.mean_ns >= 0 and not (lane.requeued and lane.first_requeued.is_node)
            worker = self._gangs.backfill(lane, cost if is_known else INFINITY, self._clock.now)
        return None if worker is None else pool.take(worker)

    def _filling_worker(self, lane: Lane, cost: int) -> Worker | None:
        """Return the worker that got tasks last, until its portion is full."""
        pool = self._pool
        for filling in pool.filling.values():
            if (
                filling.is_ready
                and not (filling.has_parents and pool.idle)
                and has_portion_room(filling, cost, self._counts.waiting, self._clock.now)
                and filling.can_serve(lane.capabilities, lane.kind)
                and not is_reserved(filling, pool.reserved)
            ):
                return filling
        return None

    def _worker_with_resources(self, lane: Lane, function: Function, cost: int) -> Worker | Wait:
        """Choose a worker for the next task of a lane that asks for resources, and remove it from its list. If no host
        has room, one keeps what becomes free for the lane.

        First a host with inputs of the task. Then the worker that got rows with the same resources last, until its
        portion is full; an idle worker of the host that fits best; a worker that has such a booking.
        """
        if self._task_limits.hold_until > self._clock.now:
            # Workers join again after a restart, and name what they hold.
            return Wait(self._task_limits.hold_until)
        if self._gangs.is_holding and self._gangs.keeps_resources(lane):
            return LANE_WAITS
        worker = self._data.worker_with_inputs(lane)
        if worker is not None:
            return worker
        hosts, may_queue = self._hosts, function.mean_ns >= 0 and not lane.limits
        if may_queue:
            worker = hosts.filling(lane, cost, self._pool.reserved)
        worker = worker or hosts.find(lane)
        if worker is None and may_queue:
            worker = hosts.joinable(lane, self._pool.reserved)
        if worker is not None:
            return self._pool.take(worker)
        # A reservation would take workers that are kept for the gang.
        return hosts.wait_for_room(lane, may_reserve=not self._gangs.is_holding)

    def _without_parents(self, lane: Lane, worker: Worker) -> Worker | Wait:
        """Replace a worker that was chosen for a task which may end its process, because it has suspended tasks.

        Returns:
            1. An idle worker without suspended tasks.
            2. Such a worker of another host, if the host with the task's inputs has none, no successor comes, and the
               scheduler has the inputs.
            3. A successor.
            4. This or another worker, if no successor can start: the tasks share its process.
            5. A Wait, until a successor joins or a worker ends its task.
        """
        self._pool.add(worker)
        if lane.resources and not self._hosts.has_room(lane, worker.agent):
            return LANE_WAITS  # the task could only have joined the booking of this worker
        parents, elsewhere = self._able_workers(lane, worker)
        if elsewhere and not parents and not (self.successors is not None and self.successors.are_coming(worker)):
            parents = elsewhere
        for idle in parents:
            if not idle.has_parents:
                return self._pool.take(idle)
        until = INFINITY
        for idle in parents:
            if self.successors is not None and self.successors.are_enough(lane.waiting):
                break
            self._pool.take(idle)
            found = idle if self.successors is None else self.successors.find(idle)
            if isinstance(found, Worker):
                return found
            until = min(until, found.until)
        lane.refused_at = self._clock.now
        self._hosts.give_up(lane)
        return Wait(until)

    def _able_workers(self, lane: Lane, worker: Worker) -> tuple[list[Worker], list[Worker]]:
        """Return the idle workers that can run a lane's next task, and those of other hosts than the one that has the
        task's inputs."""
        is_bound = bool(lane.resources) or (lane.requeued and has_copies(lane.first_requeued))  # to the host
        able: list[Worker] = []
        elsewhere: list[Worker] = []
        for idle in self._pool.idle:
            if not idle.can_serve(lane.capabilities, lane.kind):
                continue
            if idle.agent == worker.agent or not is_bound:
                able.append(idle)
            elif not lane.resources and not away_from(idle, lane.first_requeued):
                elsewhere.append(idle)
        return able, elsewhere

    def place_gang(self, lane: Lane) -> Members | Wait:
        """Return idle workers for all members of the lane's next gang, with what each has booked. Or the gang waits:
        there is not enough for all, and nothing is booked."""
        gangs = self._gangs
        had = gangs.lane is lane
        if had:
            gangs.cancel()  # its workers are free for it now
        wait = self._gang_wait(lane)
        if wait is not None:
            return wait
        members = gangs.choose_members(lane)
        if members is None:
            if gangs.reserve(lane, had=had) and gangs.hold_for(lane.client.share, lane.rank):
                self._pool.reserved.add(gangs.need)
                gangs.is_given_up = False
            return LANE_WAITS
        return members

    def _gang_wait(self, lane: Lane) -> Wait | None:
        """Why the lane's next gang can't begin, whoever is idle. None: it can."""
        size, now = lane.gang_size, self._clock.now
        if lane.resources and self._task_limits.hold_until > now:
            # Workers join again after a restart, and name what they hold.
            return Wait(self._task_limits.hold_until)
        if lane.client.share.room < size:
            return LANE_WAITS
        ready_at = self._task_limits.ready_at(lane.limits, size) if lane.limits else now
        if ready_at > now:
            return Wait(ready_at)
        if lane.clashes():
            return LANE_WAITS
        if lane.requeued:
            lead = lane.first_requeued
            away = [stored for stored in lead.inputs if stored.is_remote]
            if away:  # the members may run on several hosts: the scheduler gets the bytes and gives them to all
                lane.pop_requeued()
                self._fetches.block_task(lead, away)
                return LANE_WAITS
        return None
