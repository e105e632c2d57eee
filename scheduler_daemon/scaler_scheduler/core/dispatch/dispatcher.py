"""Chooses which worker gets which waiting tasks.

The share that has used the least time by its weight goes first (`core/state/shares.py`). Within a share, the highest
rank goes first. Within a rank, lanes take turns. A client has one lane there for each set of capabilities and kind of
function that its tasks need. Workers get tasks as they have room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Protocol

from scaler_scheduler.core.dispatch.bookings import Booking, Bookings, Host, is_useful
from scaler_scheduler.core.dispatch.dispatch_writer import DispatchWriter, has_copies
from scaler_scheduler.core.dispatch.followers import followers_of
from scaler_scheduler.core.dispatch.free_workers import FreeWorkers, Need, is_reserved
from scaler_scheduler.core.dispatch.gang_dispatch import GangReservation
from scaler_scheduler.core.dispatch.holdings import Holdings
from scaler_scheduler.core.dispatch.host_choice import PATIENCE_SECONDS, HostChoice
from scaler_scheduler.core.dispatch.near_data import INFINITY, NearData, makes_large_result
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.dispatch.prefetch import cost_ns, has_portion_room, prefetch_count, wants_work
from scaler_scheduler.core.dispatch.share_queue import RankedLanes, ShareQueues
from scaler_scheduler.core.dispatch.spare_copies import SpareCopies
from scaler_scheduler.core.dispatch.task_limits import TaskLimits
from scaler_scheduler.core.dispatch.transfers import Transfers
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Agent, Client, Lane, StoredObject, Task, Worker, WorkerProfile
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.state.transitions import UNREADY, WAITING
from scaler_scheduler.core.tables import Tables

TURN_NS = 2_000_000
"""The work of one turn of a lane, about a full queue of tasks that do nothing. A lane that dispatches more, for example
rows of many calls, lets turns pass. So clients of one rank share workers by time."""

MAX_TURN_NS = 32_000_000
"""A longer turn counts as this: twice what prefetch aims at."""

MAX_RUNS = 4
"""How often the dispatcher looks at all lanes if reservations end meanwhile."""

MAX_PASSED = 64
"""At most so many tasks are passed over in one run: it bounds the work of a run."""


class SuccessorSource(Protocol):
    """Passes the slot of a worker on (`core/peers/successors.py`)."""

    def are_enough(self, tasks: int) -> bool: ...

    def are_coming(self, worker: Worker) -> bool: ...

    def find(self, worker: Worker) -> Worker | None: ...


class Dispatcher:
    """The queue of lanes with waiting tasks, and the lists of workers that have room."""

    def __init__(
        self,
        outbox: Outbox,
        tables: Tables,
        writer: DispatchWriter,
        *,
        task_limits: TaskLimits,
        bookings: Bookings,
        holdings: Holdings,
        transfers: Transfers,
        queue_size: int,
        has_common_ranks: bool,
    ) -> None:
        self.queues = ShareQueues()
        """Lanes with waiting tasks. Lanes of paused clients are not in it."""
        self.idle = FreeWorkers()
        """Workers that hold no task."""
        self.partial = FreeWorkers()
        """Workers that hold a task and had room for more when they were listed."""
        self._filling: dict[WorkerProfile, Worker] = {}
        """Of each profile the worker that got tasks last. It gets more until its portion is full: a message to an idle
        worker costs more than little work."""
        self.long_running: dict[Worker, None] = {}
        """Workers that are known to run a long task, and may have other tasks queued behind it."""
        self._reserved: set[Need] = set()
        """Of lanes that have found no idle worker in this run. The workers that can serve them get no other tasks in
        this run, so that they become idle."""
        self._passed: list[Task] = []
        """Tasks that this run passes over, because they wait for a host that has their inputs, or because enough tasks
        wait for the same file on the same host."""
        self.spare_copies = SpareCopies(tables, transfers, outbox)
        self.near_data = NearData(tables, transfers, self.spare_copies)
        self.gangs = GangReservation(
            self.idle, tables.workers, bookings, add_worker=self.add_worker, has_common_ranks=has_common_ranks
        )
        self._outbox = outbox
        self._tables = tables
        self._counts = tables.counts
        self._agents = tables.agents
        self._writer = writer
        self._task_limits = task_limits
        self._bookings = bookings
        self._holdings = holdings
        self.host_choice = HostChoice(tables, bookings, task_limits, self.idle)
        self.successors: SuccessorSource | None = None
        """Takes workers that have suspended tasks, and gives others. None: tasks share the process with these."""
        self.next_limit_at = INFINITY
        """When the first of the tasks that wait for a limit may begin, in seconds of the monotonic clock."""
        self._is_last_run = False
        """Whether no further run follows if a reservation ends in this one."""
        self._parked_at = 0
        """The changes of what hosts have, when lanes were parked."""
        self._transfers = transfers
        self._clock = tables.clock
        self._queue_size = queue_size
        self.has_common_ranks = has_common_ranks
        """Whether a higher rank goes first across shares."""

    # ------------------------------------------------------------------------------------------ what waits, who is free

    def enqueue(self, lane: Lane, count: int, weight: int) -> None:
        """Count `count` more waiting tasks of the lane, each of `weight` calls, and queue the lane."""
        self._counts.add_waiting(lane, count, weight)
        if not lane.is_queued and not lane.client.pause_reasons:
            lane.is_queued = True
            self.queues.append(lane)

    def requeue(self, task: Task) -> None:
        """Queue a task that was just moved to WAITING. It goes before tasks that were never dispatched."""
        lane = task.client.lane_of(task)
        lane.requeue(task)
        task.since = self._clock.now
        self.enqueue(lane, 1, task.options.weight)

    def dequeue(self, lane: Lane) -> None:
        """Remove the lane from its queue."""
        if lane.is_queued:
            lane.is_queued = False
            self.queues.remove(lane)

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

    def add_worker(self, worker: Worker) -> None:
        """List a worker that can take more tasks, unless it retires, is unreachable or gives way to another one."""
        if worker.is_retiring or worker.is_unreachable or worker.is_changing or worker.is_holder:
            return
        held = worker.task_count
        if self._bookings.hosts and self._is_kept(worker, held):
            return
        if worker.is_ready:
            if held or worker not in self.partial:
                return
            self.partial.remove(worker)  # it has no task left
        worker.is_ready = True
        (self.partial if held else self.idle).add(worker)
        if worker.has_parents and not held:  # a suspended task goes on later if its process runs another task
            self.idle.make_oldest(worker)

    def _is_kept(self, worker: Worker, held: int) -> bool:
        """Whether a worker gets no tasks: it is set aside, or its host lacks workers to set aside."""
        bookings = self._bookings
        if worker in bookings.aside_of:
            return True
        host = bookings.short.get(worker.agent)
        if host is None:
            return False
        if worker.is_ready:
            self._take(worker)
        if not held:
            kept = host.reservation
            if kept is not None and not is_useful(kept, worker):
                return False
            bookings.set_aside(worker, host)
        return True

    def settle(self) -> None:
        """Set as many workers of hosts aside as their bookings and reservations want."""
        bookings = self._bookings
        for reservation in list(bookings.reservations.values()):
            if not self.host_choice.is_valid(reservation):
                bookings.cancel(reservation.lane)
        while bookings.unsettled:
            host = next(iter(bookings.unsettled))
            del bookings.unsettled[host]
            self._settle_host(host)

    def _settle_host(self, host: Host) -> None:
        bookings = self._bookings
        wanted = host.wanted
        bookings.short.pop(host.agent, None)
        while len(host.aside) > wanted:
            worker = next(reversed(host.aside))
            bookings.take_aside(worker)
            self.add_worker(worker)
        if len(host.aside) < wanted:
            bookings.short[host.agent] = host
            for worker in list(self.idle.of_agent(host.agent)):
                if host.agent in bookings.short:
                    self.add_worker(worker)
            if host.agent in bookings.short:
                for worker in list(self.partial.of_agent(host.agent)):
                    self._take(worker)
        bookings.forget_if_empty(host)

    def note_long(self, worker: Worker) -> None:
        """Note that the worker is known to run a long task."""
        self.long_running[worker] = None
        self.queues.has_news = True

    def mark_busy(self, worker: Worker) -> None:
        """Note that the worker resumes a suspended task, so it may be busy for long."""
        self.note_long(worker)
        if worker.task_count:
            self._bookings.take_aside(worker)
        if worker.is_ready and worker.task_count and worker not in self.partial:
            self.idle.remove(worker)
            self.partial.add(worker)

    def remove_worker(self, worker: Worker) -> None:
        """Remove the worker from all lists. The listed workers share the waiting tasks."""
        self.long_running.pop(worker, None)
        if self._filling.get(worker.profile) is worker:
            del self._filling[worker.profile]
        if worker.is_ready:
            self._take(worker)
        self._bookings.take_aside(worker)

    def _take(self, worker: Worker) -> None:
        """Remove a free worker from its list."""
        if not worker.is_ready:
            self._bookings.take_aside(worker)
            return
        worker.is_ready = False
        (self.partial if worker in self.partial else self.idle).remove(worker)

    # --------------------------------------------------------------------------------------------------------- choosing

    def run(self) -> None:
        """Dispatch waiting tasks to the workers that have room."""
        if self._parked_at != self._bookings.changes:
            self._parked_at = self._bookings.changes
            self.queues.unpark()
        runs = 0
        while True:
            self._bookings.has_cancelled = self.gangs.is_given_up = False
            runs += 1
            self._is_last_run = runs >= MAX_RUNS
            self._run_once()
            # What was passed over for the sake of a gang or of a reservation may find room now.
            if not self.gangs.is_given_up and (not self._bookings.has_cancelled or self._is_last_run):
                break

    def _run_once(self) -> None:
        self.near_data.next_choice_at = self.next_limit_at = INFINITY
        for lane in list(self._bookings.reservations):
            self._serve_reservation(lane)
        by_share = self.queues.by_share
        if len(by_share) == 1:
            for share, queue in list(by_share.items()):
                self._run_share(share, queue, queue.ranks[::-1], is_alone=True)
        elif self.has_common_ranks:
            for rank in sorted({rank for queue in by_share.values() for rank in queue.ranks}, reverse=True):
                self._run_shares({share: [rank] for share, queue in by_share.items() if rank in queue.by_rank})
        else:
            self._run_shares({share: queue.ranks[::-1] for share, queue in by_share.items()})
        self._reserved.clear()
        self.gangs.end_run()
        self.near_data.end_run()
        self.spare_copies.end_run()
        passed, self._passed = self._passed, []
        for task in passed:
            lane = task.client.lane_of(task)
            lane.requeue(task)
            self.enqueue(lane, 0, 1)

    def _run_shares(self, ranks: Mapping[Share, Sequence[int]]) -> None:
        """Serve several shares in turn: each time the one with the least virtual time of those that can be served.

        Args:
            ranks: the ranks that are served now, the highest first, of each share that has some.
        """
        by_share = self.queues.by_share
        heap = [(share.virtual_ns, share.number, share) for share in ranks]
        heapify(heap)
        while heap and self._goes_on():
            virtual_ns, number, share = heap[0]
            if not self._run_share(share, by_share[share], ranks[share], is_alone=False):
                heappop(heap)  # no free worker can run its tasks
                continue
            self.queues.virtual_ns = max(self.queues.virtual_ns, virtual_ns)
            if share in by_share:
                heapreplace(heap, (share.virtual_ns, number, share))
            else:
                heappop(heap)

    def _run_share(self, share: Share, queue: RankedLanes, ranks: Sequence[int], is_alone: bool) -> bool:
        """Dispatch tasks of some ranks of one share: all that find workers, or if others wait too, those of one turn.
        Returns whether a turn of this share may follow."""
        is_served = False
        for rank in ranks:
            lanes = queue.by_rank.get(rank)
            if lanes is None:
                continue
            if self.gangs.lane is not None and self.gangs.hold_for(share, rank):
                self._reserved.add(self.gangs.need)
            is_served = self._run_rank(share, lanes, is_alone)
            if not lanes:
                queue.drop_if_empty(rank)
            if is_served or not self._goes_on():
                break
        self.queues.drop_if_empty(share)
        return is_served

    def _run_rank(self, share: Share, lanes: deque[Lane], is_alone: bool) -> bool:
        """Dispatch tasks of one rank of a share. If others wait too, the first dispatch ends its turn.

        Returns:
            Whether a turn has ended so.
        """
        queue_size = self._queue_size
        skipped = 0
        if len(lanes) > 1 and self._bookings.hosts:
            self.host_choice.arrange(lanes)
        while skipped < len(lanes) and self._goes_on():
            room = share.room
            if room <= 0:
                break
            lane = lanes[0]
            if lane.debt_ns > 0 and len(lanes) > 1:
                # Its last turn was longer than a turn: the others have theirs first (deficit round robin).
                lane.debt_ns -= TURN_NS
                skipped = 0
                lanes.rotate(-1)
                continue
            function = self.next_function(lane)
            if function is None:
                lane.is_queued = False
                lanes.popleft()
                continue
            if lane.gang_size:
                if self._start_gang(lane, function):
                    skipped = 0
                    self._end_turn(lanes)
                    if not is_alone:
                        return True
                else:
                    skipped += 1
                    lanes.rotate(-1)
                continue
            if lane.limits and not self._is_within_limits(lane):
                skipped += 1
                lanes.rotate(-1)
                continue
            options = lane.next_options
            cost = cost_ns(function, options)
            if lane.resources:
                worker = self._booked_worker(lane, function, cost)
            else:
                worker = self._worker_with_inputs(lane) or self._next_worker(lane, function, cost)
            if worker is None and lane.ticket and self.host_choice.is_hopeless(lane):
                lanes.popleft()
                self.queues.parked[lane] = None
                continue
            if worker is None:
                # No free worker can run this lane's tasks. The lanes behind it do not wait.
                skipped += 1
                lanes.rotate(-1)
                continue
            if lane.requeued and self._needs_place(lane, worker):
                near = self._place(lane, worker, cost)
                if near is None:
                    if len(self._passed) >= MAX_PASSED:
                        skipped += 1
                        lanes.rotate(-1)
                    continue
                worker = near
            if worker.has_parents and lane.next_may_end_worker:
                other = self._without_parents(lane, worker)
                if other is None:
                    skipped += 1
                    lanes.rotate(-1)
                    continue
                worker = other
            workers = len(self.idle) + len(self.partial) + 1
            if lane.limits or function.ends_workers:
                room = 1
            elif lane.requeued and makes_large_result(lane.first_requeued):
                room = min(room, self.near_data.results_in_room(function, worker))
            count = min(prefetch_count(worker, cost, self._counts.waiting, workers, queue_size), room)
            if count == 0:
                continue  # it has no room left, and is listed again when it reports
            if not worker.task_count:
                worker.heard_at = self._clock.now
            taken = self._writer.dispatch(worker, lane, function, count)
            if lane.limits or lane.resources:
                self._hold(worker, lane, taken)
            self._filling[worker.profile] = worker
            if self._writer.kept:
                most = min(queue_size, worker.task_count + share.room)
                self._writer.dispatch_followers(worker, followers_of(self._writer.kept, worker, most, self._tables))
            if len(lanes) > 1:
                # Bounded: workers report any run time, and each pass of a lane in debt is a turn of this loop.
                turn_ns = min(taken * options.weight * function.mean_ns, MAX_TURN_NS)
                lane.debt_ns = max(0, lane.debt_ns + turn_ns - TURN_NS)
            self._end_turn(lanes)
            skipped = 0
            if wants_work(worker, queue_size):
                self.add_worker(worker)
            if not is_alone:
                return True
        return False

    def _booked_worker(self, lane: Lane, function: Function, cost: int) -> Worker | None:
        """Choose a worker for the next task of a lane that asks for resources, and remove it from its list. If no host
        has room, one keeps what becomes free for the lane.

        First a host with inputs of the task. Then the worker that got rows with the same resources last, until its
        portion is full; an idle worker of the host that fits best; a worker that has such a booking.
        """
        if self._task_limits.hold_until > self._clock.now:
            # Workers join again after a restart, and name what they hold.
            self.next_limit_at = min(self.next_limit_at, self._task_limits.hold_until)
            return None
        if self.gangs.is_holding and self.gangs.keeps_resources(lane):
            return None
        worker = self._worker_with_inputs(lane)
        if worker is not None:
            return worker
        choice, may_queue = self.host_choice, function.mean_ns >= 0 and not lane.limits
        if may_queue:
            worker = choice.filling(lane, cost, self._reserved)
        worker = worker or choice.find(lane)
        if worker is None and may_queue:
            worker = choice.joinable(lane, self._reserved)
        if worker is not None:
            self._take(worker)
            return worker
        self._bookings.take_ticket(lane)
        if self.gangs.is_holding:
            return None  # a reservation would take workers that are kept for the gang
        reserve_at = lane.refused_at + PATIENCE_SECONDS
        if reserve_at > self._clock.now:
            self.next_limit_at = min(self.next_limit_at, reserve_at)
            return None
        reservation = choice.reserve(lane)
        if reservation is not None:
            self._bookings.reserve(reservation)
            self.settle()
            worker = choice.find(lane)  # another lane may have had the reservation, and a worker set aside
            if worker is not None:
                self._take(worker)
        return worker

    def _hold(self, worker: Worker, lane: Lane, count: int) -> None:
        """Let the tasks that were just dispatched hold tokens of limits and resources."""
        bookings = self._bookings
        options = worker.newest_task.options
        outgoing = self._outbox.dispatch_batch(worker)
        ids, attempts = outgoing.ids[-count:], outgoing.attempts[-count:]
        booking = None
        if lane.resources:
            booking = bookings.open_of.get(worker)
            bookings.cancel(lane)
            lane.ticket = 0
            if booking is None or booking.resources != lane.resources:
                booking = bookings.book(worker, lane.resources)
            bookings.note_rows(worker, booking)
            outgoing.add_bookings(count, booking.text)
        self._holdings.take(worker, lane.client.incarnation, ids, attempts, options, booking)
        if bookings.unsettled or bookings.reservations:
            self.settle()

    def _serve_reservation(self, lane: Lane) -> None:
        """Dispatch a task of this lane, if its reservation has all that it needs. The workers that it needs are in no
        list, so a run that begins with free workers may not come to it."""
        reservation = self._bookings.reservations.get(lane)
        if reservation is None or lane.client.share.room <= 0:
            return
        if not self.host_choice.has_room(lane, reservation.host.agent):
            return
        function = self.next_function(lane)
        if function is None:
            self.dequeue(lane)
            return
        cost = cost_ns(function, lane.next_options)
        worker = self._booked_worker(lane, function, cost)
        if worker is None:
            return
        if lane.requeued and self._needs_place(lane, worker):
            near = self._place(lane, worker, cost)
            if near is None:
                return
            worker = near
        if worker.has_parents and lane.next_may_end_worker:
            other = self._without_parents(lane, worker)
            if other is None:
                return
            worker = other
        if not worker.task_count:
            worker.heard_at = self._clock.now
        self._hold(worker, lane, self._writer.dispatch(worker, lane, function, 1))
        self._writer.kept = []
        self.prune(lane)
        if wants_work(worker, self._queue_size):
            self.add_worker(worker)

    def _goes_on(self) -> bool:
        """Whether the present run may find workers for more tasks. It ends when a gang has given up its reservation, or
        a task has got or lost its own: tasks of higher ranks come first to what was kept for it."""
        gangs = self.gangs
        if gangs.is_given_up or (self._bookings.has_cancelled and not self._is_last_run):
            return False
        return bool(self.idle or self.partial or gangs.held_back)

    def _end_turn(self, lanes: deque[Lane]) -> None:
        """Move the first lane of a rank behind the others, or take it out if nothing waits in it any more."""
        lane = lanes[0]
        if lane.waiting or self.next_function(lane) is not None:
            has_resources = bool(lane.resources) and not lane.gang_size
            if not (has_resources and len(lanes) > 1 and self.host_choice.goes_on(lane, lanes[1])):
                lanes.rotate(-1)
        else:
            lane.is_queued = False
            lanes.popleft()

    def _start_gang(self, lane: Lane, function: Function) -> bool:
        """Dispatch all members of the lane's next gang, or none. Returns whether it has begun."""
        size = lane.gang_size
        had = self.gangs.lane is lane
        if had:
            self.gangs.cancel()  # its workers are free for it now
        if lane.resources and self._task_limits.hold_until > self._clock.now:
            # Workers join again after a restart, and name what they hold.
            self.next_limit_at = min(self.next_limit_at, self._task_limits.hold_until)
            return False
        if lane.client.share.room < size or (lane.limits and not self._is_within_limits(lane, size)):
            return False
        if lane.clashes():
            return False
        if lane.requeued:
            lead = lane.first_requeued
            away = [stored for stored in lead.inputs if stored.is_remote]
            if away:  # the members may run on several hosts: the scheduler gets the bytes and gives them to all
                lane.pop_requeued()
                self.block_on_fetch(lead, away)
                return False
        members = self._choose_members(lane)
        if members is None:
            if self.gangs.reserve(lane, had=had) and self.gangs.hold_for(lane.client.share, lane.rank):
                self._reserved.add(self.gangs.need)
                self.gangs.is_given_up = False
            return False
        workers = [worker for worker, _ in members]
        for worker in workers:
            self._take(worker)
            worker.heard_at = self._clock.now
        self._writer.dispatch_gang(lane, function, workers)
        for worker, booking in members:
            task = worker.newest_task
            if booking is not None:
                self._bookings.note_rows(worker, booking)
                self._outbox.dispatch_batch(worker).add_bookings(1, booking.text)
            if booking is not None or lane.limits:
                self._holdings.take(worker, task.client.incarnation, [task.id], [task.attempt], task.options, booking)
        if lane.resources:
            self.settle()
        return True

    def _choose_members(self, lane: Lane) -> list[tuple[Worker, Booking | None]] | None:
        """Choose idle workers for all members of the lane's next gang, and book what each asks for. None: there is not
        enough for all, and nothing is booked."""
        if not lane.resources:
            workers = self.gangs.choose(lane)
            return None if workers is None else [(worker, None) for worker in workers]
        bookings, size = self._bookings, lane.gang_size
        booked: list[tuple[Worker, Booking]] = []
        for host in self.gangs.hosts_of(lane):
            slots, idle = host.slots_for(lane.resources), list(self.idle.of_agent(host.agent))
            able = [worker for worker in idle if worker.can_serve(lane.capabilities, lane.kind)]
            spare = len(idle)
            while able and spare >= slots and len(booked) < size and host.has_amounts(lane.resources, lane):
                worker = able.pop()
                booked.append((worker, bookings.book(worker, lane.resources)))
                bookings.close(worker)  # no further rows join it
                spare -= slots
        if len(booked) < size:
            for worker, booking in booked:
                bookings.end(booking, worker)
            return None
        return [*booked]

    def _is_within_limits(self, lane: Lane, tasks: int = 1) -> bool:
        """Whether the limits of the lane let so many tasks begin together now."""
        ready_at = self._task_limits.ready_at(lane.limits, tasks)
        if ready_at <= self._clock.now:
            return True
        self.next_limit_at = min(self.next_limit_at, ready_at)
        return False

    def _needs_place(self, lane: Lane, worker: Worker) -> bool:
        """Whether the host of a worker matters for the lane's next task: some peer has an input of it, or its result
        finds no room on this host."""
        task = lane.first_requeued
        return has_copies(task) or (makes_large_result(task) and self.near_data.is_full(task, worker))

    def _place(self, lane: Lane, worker: Worker, cost: int) -> Worker | None:
        """Return the worker that gets the lane's next task: this one, a nearer one, or one of a host with room. None:
        the task waits for its inputs, or for a host that has them or has room."""
        hidden_ns = lane.waiting * cost if len(self._passed) >= MAX_PASSED else 0
        near: Worker | None = worker
        is_full = self.near_data.is_full(lane.first_requeued, worker)
        if is_full:
            other = self._idle_elsewhere(lane, lane.first_requeued)
            if other is not None:
                self.add_worker(worker)
                self._take(other)
                worker, is_full = other, False
        if not lane.resources:  # else another host may not have them
            near = self.near_data.choose(lane, worker, cost, self._reserved, hidden_ns)
        elif is_full and self.near_data.waits_for_room(lane, worker, self._has_busy_host(lane)):
            near = None
        if near is not None and near is not worker:
            self.add_worker(worker)
            self._take(near)
            worker = near
        task = lane.first_requeued
        away = self.away(task, worker)
        if near is not None and self._has_enough_tasks(away, worker):
            other = self._idle_elsewhere(lane, task)
            if other is not None:
                self.add_worker(worker)
                self._take(other)
                worker = other
                away = self.away(task, worker)
        if near is not None and not away:
            return worker
        lane.pop_requeued()
        self._cancel_reservation(lane)
        if near is None or self._has_enough_tasks(away, worker):
            self._passed.append(task)
        else:
            self.block_on_fetch(task, away, self._agents.find(worker.agent))
        self.add_worker(worker)
        # The next task goes to another host.
        self.idle.make_oldest(worker)
        if self._filling.get(worker.profile) is worker:
            del self._filling[worker.profile]
        return None

    def _without_parents(self, lane: Lane, worker: Worker) -> Worker | None:
        """Replace a worker that was chosen for a task which may end its process, because it has suspended tasks.

        Returns:
            An idle worker without suspended tasks, or a successor. If the host that has the task's inputs has no idle
            worker, and no successor comes, it is one of another host, if the scheduler has the inputs. None: the task
            waits until a successor joins or a worker has ended its task. The same or another worker: none can start,
            and the tasks share a process.
        """
        is_bound = bool(lane.resources) or (lane.requeued and has_copies(lane.first_requeued))  # to the host
        self.add_worker(worker)
        if lane.resources and not self.host_choice.has_room(lane, worker.agent):
            return None  # the task could only have joined the booking of this worker
        parents: list[Worker] = []
        elsewhere: list[Worker] = []
        for idle in self.idle:
            if not idle.can_serve(lane.capabilities, lane.kind):
                continue
            if idle.agent == worker.agent or not is_bound:
                if not idle.has_parents:
                    self._take(idle)
                    return idle
                parents.append(idle)
            elif not lane.resources and not self.away(lane.first_requeued, idle):
                elsewhere.append(idle)
        if elsewhere and not parents and not (self.successors is not None and self.successors.are_coming(worker)):
            parents = elsewhere
            for idle in elsewhere:
                if not idle.has_parents:
                    self._take(idle)
                    return idle
        for idle in parents:
            if self.successors is not None and self.successors.are_enough(lane.waiting):
                break
            self._take(idle)
            found = idle if self.successors is None else self.successors.find(idle)
            if found is not None:
                return found
        lane.refused_at = self._clock.now
        self._cancel_reservation(lane)
        return None

    def _cancel_reservation(self, lane: Lane) -> None:
        """End the lane's reservation, if it has one: its task waits for more than room on a host."""
        if lane in self._bookings.reservations:
            self._bookings.cancel(lane)
            self.settle()

    def _has_busy_host(self, lane: Lane) -> bool:
        """Whether a busy host has the resources of the lane, free or not, and may have room for the values of the
        lane's next task. The expected results of the tasks at its workers do not count."""
        for host in self.host_choice.busy_hosts(lane):
            agent = self._agents.find(host.agent)
            if agent is not None and self.near_data.has_room(agent, lane.first_requeued, is_later=True):
                return True
        return False

    def _has_enough_tasks(self, away: Sequence[StoredObject], worker: Worker) -> bool:
        """Whether enough tasks wait for one of these files on the worker's host."""
        return any(self._transfers.has_enough_tasks(stored, worker.agent) for stored in away)

    def _idle_elsewhere(self, lane: Lane, task: Task) -> Worker | None:
        """Return an idle worker of a host with room for the task's inputs, where not enough tasks wait for them yet."""
        for agent in islice(self.idle.agents(), MAX_PASSED):  # some of which may not have joined
            if lane.resources and not self.host_choice.has_room(lane, agent):
                continue
            worker = self.idle.newest_of_agent(agent, lane.capabilities, lane.kind)
            if worker is None or self.near_data.is_full(task, worker):
                continue
            if not self._has_enough_tasks(self.away(task, worker), worker):
                return worker
        return None

    def _worker_with_inputs(self, lane: Lane) -> Worker | None:
        """Choose an idle worker that has the largest possible input of the next task, and remove it from its list."""
        inputs = lane.first_requeued.inputs if lane.requeued else ()
        best: Worker | None = None
        most = 0
        for stored in inputs:
            if stored.size <= most or not (stored.copies or stored.workers):
                continue
            worker = self._idle_with(stored, lane)
            if worker is not None:
                best, most = worker, stored.size
        if best is not None:
            self._take(best)
        return best

    def _idle_with(self, stored: StoredObject, lane: Lane) -> Worker | None:
        """Return an idle worker that has the object, or whose host has it."""
        for worker in stored.workers or ():
            if worker.is_ready and not worker.task_count and worker.can_serve(lane.capabilities, lane.kind):
                if not lane.resources or self.host_choice.has_room(lane, worker.agent):
                    return worker
        for agent in stored.known_places:
            if lane.resources and not self.host_choice.has_room(lane, agent.incarnation):
                continue
            found = self.idle.newest_of_agent(agent.incarnation, lane.capabilities, lane.kind)
            if found is not None:
                return found
        return None

    def away(self, task: Task, worker: Worker) -> list[StoredObject]:
        """The inputs of a task that only other hosts than this worker's have."""
        for stored in task.inputs:
            if stored.frames is None and not stored.is_on(worker.agent):
                return [each for each in task.inputs if each.is_remote and not each.is_on(worker.agent)]
        return []

    def block_on_fetch(self, task: Task, away: Sequence[StoredObject], target: Agent | None = None) -> None:
        """Block a waiting task until these inputs are on the target's host, or in the scheduler. None: until they are
        in the scheduler."""
        lane = task.client.lane_of(task)
        self._counts.add_waiting(lane, -1, task.options.weight)
        task.transition(UNREADY)
        if target is not None:
            self.spare_copies.note_placed(task, target)
        for stored in away:
            if target is None or not self._transfers.request(stored, target):
                self.fetch(stored)
            stored.block(task)
            task.missing_inputs += 1

    def fetch(self, stored: StoredObject) -> None:
        """Ask the home of an object for its bytes, unless it was asked already."""
        home = stored.home
        if home is not None and stored.fetched_from is not home:
            stored.fetched_from = home
            self._outbox.fetch_object(home.route, stored.client.incarnation, stored.file_id)

    def _next_worker(self, lane: Lane, function: Function, cost: int) -> Worker | None:
        """Choose a free worker for the lane's next task of this cost, and remove it from its list.

        First the worker that got tasks last, until its portion is full. Then the idle worker that was busy last: it has
        the warmest caches, and with few tasks the others can rest. Then the worker that has waited for more the
        longest.
        """
        capabilities, kind = lane.capabilities, lane.kind
        worker: Worker | None = None
        if function.mean_ns < 0 or lane.limits or function.ends_workers:
            # Such a task goes neither behind others nor before them. A limited one would hold a token while it waits.
            # If a task ends its worker, the answers of tasks before it may be lost.
            worker = self.idle.newest(capabilities, kind)
            if worker is None:
                self._reserved.add((capabilities, kind))
        else:
            for filling in self._filling.values():
                if (
                    filling.is_ready
                    and not (filling.has_parents and self.idle)
                    and has_portion_room(filling, cost, self._counts.waiting, self._clock.now)
                    and filling.can_serve(capabilities, kind)
                    and not is_reserved(filling, self._reserved)
                ):
                    worker = filling
                    break
            else:
                worker = self.idle.newest(capabilities, kind)
                worker = worker or self.partial.oldest(capabilities, kind, self._reserved)
        if worker is None and self.gangs.held_back:
            is_known = function.mean_ns >= 0 and not (lane.requeued and lane.first_requeued.is_node)
            worker = self.gangs.backfill(lane, cost if is_known else INFINITY, self._clock.now)
        if worker is not None:
            self._take(worker)
        return worker

    def next_function(self, lane: Lane) -> Function | None:
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

    def prune(self, lane: Lane) -> None:
        """Drop tasks at the lane's front that no longer wait. Otherwise they would stay until a worker can take tasks
        of the lane."""
        if self.next_function(lane) is None:
            self.dequeue(lane)
