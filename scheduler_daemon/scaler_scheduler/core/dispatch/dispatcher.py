"""The loop that dispatches waiting tasks: which lane is next. Placement says where its tasks run (`placement.py`).

The share that has used the least time by its weight goes first (`core/state/shares.py`). Within a share, the highest
rank goes first. Within a rank, lanes take turns. A client has one lane there for each set of capabilities and kind of
function that its tasks need. Workers get tasks as they have room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from scaler_scheduler.core.data.spare_copies import SpareCopies
from scaler_scheduler.core.dispatch.dispatch_writer import DispatchWriter
from scaler_scheduler.core.dispatch.followers import followers_of
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.placement.bookings import Bookings
from scaler_scheduler.core.placement.data_placement import DataPlacement
from scaler_scheduler.core.placement.gang_reservation import GangReservation
from scaler_scheduler.core.placement.holdings import Holdings
from scaler_scheduler.core.placement.host_choice import HostChoice
from scaler_scheduler.core.placement.near_data import NearData
from scaler_scheduler.core.placement.placement import Members, Placement
from scaler_scheduler.core.placement.prefetch import wants_work
from scaler_scheduler.core.placement.share_queue import RankedLanes, ShareQueues
from scaler_scheduler.core.placement.wait import INFINITY, Wait
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.tables import Tables

TURN_NS = 2_000_000
"""The work of one turn of a lane, about a full queue of tasks that do nothing. A lane that dispatches more, for example
rows of many calls, lets turns pass. So clients of one rank share workers by time."""

MAX_TURN_NS = 32_000_000
"""A longer turn counts as this: twice what prefetch aims at."""

MAX_RUNS = 4
"""How often the dispatcher looks at all lanes if reservations end meanwhile."""


class Dispatcher:
    """Dispatches the tasks of queued lanes to workers that have room."""

    def __init__(
        self,
        outbox: Outbox,
        tables: Tables,
        writer: DispatchWriter,
        *,
        queues: ShareQueues,
        pool: WorkerPool,
        placement: Placement,
        data: DataPlacement,
        hosts: HostChoice,
        gangs: GangReservation,
        near_data: NearData,
        spare_copies: SpareCopies,
        bookings: Bookings,
        holdings: Holdings,
        limits: Limits,
    ) -> None:
        self._outbox = outbox
        self._tables = tables
        self._writer = writer
        self._queues = queues
        self._pool = pool
        self._placement = placement
        self._data = data
        self._hosts = hosts
        self._gangs = gangs
        self._near_data = near_data
        self._spare_copies = spare_copies
        self._bookings = bookings
        self._holdings = holdings
        self._clock = tables.clock
        self._queue_size = limits.queue_size
        self._has_common_ranks = limits.has_common_ranks
        self.next_wait_at = INFINITY
        """When the first of the tasks that wait may begin, in seconds of the monotonic clock."""
        self._is_last_run = False
        """Whether no further run follows if a reservation ends in this one."""
        self._parked_at = 0
        """The changes of what hosts have, when lanes were parked."""

    def run(self) -> None:
        """Dispatch waiting tasks to the workers that have room."""
        if self._parked_at != self._bookings.changes:
            self._parked_at = self._bookings.changes
            self._queues.unpark()
        runs = 0
        while True:
            self._bookings.has_cancelled = self._gangs.is_given_up = False
            runs += 1
            self._is_last_run = runs >= MAX_RUNS
            self._run_once()
            # What was passed over for the sake of a gang or of a reservation may find room now.
            if not self._gangs.is_given_up and (not self._bookings.has_cancelled or self._is_last_run):
                break

    def _run_once(self) -> None:
        self.next_wait_at = INFINITY
        for lane in list(self._bookings.reservations):
            self._serve_reservation(lane)
        by_share = self._queues.by_share
        if len(by_share) == 1:
            for share, queue in list(by_share.items()):
                self._run_share(share, queue, queue.ranks[::-1], is_alone=True)
        elif self._has_common_ranks:
            for rank in sorted({rank for queue in by_share.values() for rank in queue.ranks}, reverse=True):
                self._run_shares({share: [rank] for share, queue in by_share.items() if rank in queue.by_rank})
        else:
            self._run_shares({share: queue.ranks[::-1] for share, queue in by_share.items()})
        self._pool.reserved.clear()
        self._gangs.end_run()
        self._near_data.end_run()
        self._spare_copies.end_run()
        self._queues.pass_again(self._data.pop_passed())

    # ------------------------------------------------------------------------------------------------- whose turn it is

    def _run_shares(self, ranks: Mapping[Share, Sequence[int]]) -> None:
        """Serve several shares in turn: each time the one with the least virtual time of those that can be served.

        Args:
            ranks: the ranks that are served now, the highest first, of each share that has some.
        """
        by_share = self._queues.by_share
        heap = [(share.virtual_ns, share.number, share) for share in ranks]
        heapify(heap)
        while heap and self._goes_on():
            virtual_ns, number, share = heap[0]
            if not self._run_share(share, by_share[share], ranks[share], is_alone=False):
                heappop(heap)  # no free worker can run its tasks
                continue
            self._queues.virtual_ns = max(self._queues.virtual_ns, virtual_ns)
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
            if self._gangs.lane is not None and self._gangs.hold_for(share, rank):
                self._pool.reserved.add(self._gangs.need)
            is_served = self._run_rank(share, lanes, is_alone)
            if not lanes:
                queue.drop_if_empty(rank)
            if is_served or not self._goes_on():
                break
        self._queues.drop_if_empty(share)
        return is_served

    def _run_rank(self, share: Share, lanes: deque[Lane], is_alone: bool) -> bool:
        """Dispatch tasks of one rank of a share. If others wait too, the first dispatch ends its turn.

        Returns:
            Whether a turn has ended so.
        """
        skipped = 0
        if len(lanes) > 1 and self._bookings.hosts:
            self._hosts.arrange(lanes)
        while skipped < len(lanes) and share.room > 0 and self._goes_on():
            lane = lanes[0]
            if lane.debt_ns > 0 and len(lanes) > 1:
                # Its last turn was longer than a turn: the others have theirs first (deficit round robin).
                lane.debt_ns -= TURN_NS
                skipped = 0
                lanes.rotate(-1)
                continue
            function = self._queues.next_function(lane)
            if function is None:
                lane.is_queued = False
                lanes.popleft()
                continue
            dispatch = self._dispatch_gang if lane.gang_size else self._dispatch
            wait = dispatch(lane, function, lanes)
            if wait is None:
                skipped = 0
                if not is_alone:
                    return True
            elif wait.is_hopeless:
                lanes.popleft()
                self._queues.parked[lane] = None
            elif wait.is_lane:  # the lanes behind it do not wait
                skipped += 1
                lanes.rotate(-1)
        return False

    def _goes_on(self) -> bool:
        """Whether the present run may find workers for more tasks. It ends when a gang has given up its reservation, or
        a task has got or lost its own: tasks of higher ranks come first to what was kept for it."""
        gangs = self._gangs
        if gangs.is_given_up or (self._bookings.has_cancelled and not self._is_last_run):
            return False
        return bool(self._pool or gangs.held_back)

    def _end_turn(self, lanes: deque[Lane]) -> None:
        """Move the first lane of a rank behind the others, or take it out if nothing waits in it any more."""
        lane = lanes[0]
        if lane.waiting or self._queues.next_function(lane) is not None:
            has_resources = bool(lane.resources) and not lane.gang_size
            if not (has_resources and len(lanes) > 1 and self._hosts.goes_on(lane, lanes[1])):
                lanes.rotate(-1)
        else:
            lane.is_queued = False
            lanes.popleft()

    # --------------------------------------------------------------------------------------------------------- dispatch

    def _note(self, wait: Wait) -> Wait:
        """Note until when a task waits."""
        if wait.until < self.next_wait_at:
            self.next_wait_at = wait.until
        return wait

    def _dispatch(self, lane: Lane, function: Function, lanes: deque[Lane]) -> Wait | None:
        """Dispatch tasks of a lane, the first of its rank. Returns None if its turn has ended with that."""
        options = lane.next_options
        placed = self._placement.place(lane, function)
        if isinstance(placed, Wait):
            return self._note(placed)
        worker, count = placed
        if count == 0:
            return _ANOTHER  # it has no room left, and is listed again when it reports
        taken = self._send(lane, function, worker, count)
        self._pool.filling[worker.profile] = worker
        if self._writer.kept:
            most = min(self._queue_size, worker.task_count + lane.client.share.room)
            self._writer.dispatch_followers(worker, followers_of(self._writer.kept, worker, most, self._tables))
        if len(lanes) > 1:
            # Bounded: workers report any run time, and each pass of a lane in debt is a turn of this loop.
            turn_ns = min(taken * options.weight * function.mean_ns, MAX_TURN_NS)
            lane.debt_ns = max(0, lane.debt_ns + turn_ns - TURN_NS)
        self._end_turn(lanes)
        if wants_work(worker, self._queue_size):
            self._pool.add(worker)
        return None

    def _send(self, lane: Lane, function: Function, worker: Worker, count: int) -> int:
        """Send a worker at most so many tasks of a lane. Returns their number."""
        if not worker.task_count:
            worker.heard_at = self._clock.now
        taken = self._writer.dispatch(worker, lane, function, count)
        if lane.limits or lane.resources:
            self._hold(worker, lane, taken)
        return taken

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
            self._hosts.settle()

    def _serve_reservation(self, lane: Lane) -> None:
        """Dispatch a task of this lane, if its reservation has all that it needs. The workers that it needs are in no
        list, so a run that begins with free workers may not come to it."""
        reservation = self._bookings.reservations.get(lane)
        if reservation is None or lane.client.share.room <= 0:
            return
        if not self._hosts.has_room(lane, reservation.host.agent):
            return
        function = self._queues.next_function(lane)
        if function is None:
            self._queues.dequeue(lane)
            return
        placed = self._placement.place(lane, function)
        if isinstance(placed, Wait):
            self._note(placed)
            return
        self._send(lane, function, placed.worker, 1)
        self._writer.kept = []
        self._queues.prune(lane)
        if wants_work(placed.worker, self._queue_size):
            self._pool.add(placed.worker)

    def _dispatch_gang(self, lane: Lane, function: Function, lanes: deque[Lane]) -> Wait | None:
        """Dispatch all members of the next gang of a lane, the first of its rank, or none. Returns None if its turn has
        ended with that."""
        members = self._placement.place_gang(lane)
        if isinstance(members, Wait):
            return self._note(members)
        for worker, _ in members:
            self._pool.take(worker)
            worker.heard_at = self._clock.now
        self._writer.dispatch_gang(lane, function, [worker for worker, _ in members])
        self._hold_members(lane, members)
        self._end_turn(lanes)
        return None

    def _hold_members(self, lane: Lane, members: Members) -> None:
        """Let the members of a gang hold tokens of limits and resources."""
        for worker, booking in members:
            task = worker.newest_task
            if booking is not None:
                self._bookings.note_rows(worker, booking)
                self._outbox.dispatch_batch(worker).add_bookings(1, booking.text)
            if booking is not None or lane.limits:
                self._holdings.take(worker, task.client.incarnation, [task.id], [task.attempt], task.options, booking)
        if lane.resources:
            self._hosts.settle()


_ANOTHER = Wait(is_lane=False)
"""Another worker may have room for the lane's tasks."""
