"""Who gets which waiting task: the highest rank first, within it clients in turn, workers as they have room."""

from bisect import insort
from collections import OrderedDict, deque
from heapq import heappop, heappush
from typing import Deque, Dict, Iterable, List, Optional, Sequence, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.batches import Batch, BatchQueue
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.dispatch import allowance, cost, wants_work
from scaler_scheduler.core.events import DEFAULT_OPTIONS, Capabilities, Options
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client, Copies, Function, Lane, StoredObject, Task, Worker
from scaler_scheduler.core.states import ADOPT, BLOCKED, DISPATCH, UNREADY, WAITING
from scaler_scheduler.core.supply import supply
from scaler_scheduler.core.workers import AgentTable


class Dispatcher:
    def __init__(self, outbox: Outbox, counts: Counts, agents: AgentTable, queue_size: int) -> None:
        self.ranks: List[int] = []
        """Those of the lanes in `lanes`, ascending."""
        self.lanes: Dict[int, Deque[Lane]] = {}
        """Lanes with waiting tasks, by rank; within one each gets its turn. None of a client that is stalled."""
        self.idle: List[Worker] = []
        """Workers that hold nothing."""
        self.partial: OrderedDict[Worker, None] = OrderedDict()
        """Workers that hold something and have room for more."""
        self.stuck: Dict[Worker, None] = {}
        """Workers that are known to run a task for long, and may have others queued behind it."""
        self._outbox = outbox
        self._counts = counts
        self._agents = agents
        self._queue_size = queue_size
        self._next_serial = 1
        self._requeued = 0
        """How often a task was: what tells the entries of the same one apart."""

    # ------------------------------------------------------------------------------------------ what waits, who is free

    def enqueue(self, lane: Lane, count: int) -> None:
        """So many more of the lane's tasks wait."""
        lane.waiting += count
        self._counts.waiting += count
        if not lane.is_queued and not lane.client.is_stalled:
            lane.is_queued = True
            there = self.lanes.get(lane.rank)
            if there is None:
                there = self.lanes[lane.rank] = deque()
                insort(self.ranks, lane.rank)
            there.append(lane)

    def requeue(self, task: Task) -> None:
        """The task, which has just been moved there, waits again: before those that never were dispatched."""
        lane = task.client.lane(task.options)
        self._requeued += 1
        heappush(lane.requeued, (task.id, self._requeued, task))
        self.enqueue(lane, 1)

    def dequeue(self, lane: Lane) -> None:
        """Nothing of this lane is to be dispatched, for now or for good."""
        if lane.is_queued:
            lane.is_queued = False
            there = self.lanes[lane.rank]
            there.remove(lane)
            if not there:
                self._drop_rank(lane.rank)

    def offer(self, worker: Worker) -> None:
        """The worker can take more: put it where it is looked for."""
        held = worker.held
        if worker.is_ready:
            if held or worker not in self.partial:
                return
            del self.partial[worker]  # it has run dry
        worker.is_ready = True
        if held:
            self.partial[worker] = None
        else:
            # A stack: the worker that was busy last has the warmest caches, and with few tasks the others can rest.
            self.idle.append(worker)

    def go_on(self, worker: Worker) -> None:
        """The worker goes on with a task that it was not thought to run: it is idle no longer, and perhaps for long."""
        self.stuck[worker] = None
        if worker.is_ready and worker.held and worker not in self.partial:
            self.idle.remove(worker)
            self.partial[worker] = None

    def withdraw(self, worker: Worker) -> None:
        """The worker is gone: what stands in these lists shares the waiting tasks."""
        self.stuck.pop(worker, None)
        if worker.is_ready:
            worker.is_ready = False
            if worker in self.partial:
                del self.partial[worker]
            else:
                self.idle.remove(worker)

    def _drop_rank(self, rank: int) -> None:
        del self.lanes[rank]
        self.ranks.remove(rank)

    # --------------------------------------------------------------------------------------------------------- choosing

    def run(self) -> None:
        """Give out what waits, as far as workers want it."""
        declined: List[Worker] = []
        for rank in self.ranks[::-1]:
            self._run_rank(self.lanes[rank], declined)
            if not self.lanes[rank]:
                self._drop_rank(rank)
            if not self.idle and not self.partial:
                break
        for worker in declined:
            self.offer(worker)

    def _run_rank(self, lanes: Deque[Lane], declined: List[Worker]) -> None:
        queue_size = self._queue_size
        unserved = 0
        while unserved < len(lanes) and (self.idle or self.partial):
            lane = lanes[0]
            function = self.next_function(lane)
            if function is None:
                lane.is_queued = False
                lanes.popleft()
                continue
            worker = self._holder(lane) or self._next_worker(lane.capabilities)
            if worker is None:
                # Nobody who is free can serve it: those behind it need not wait for that.
                unserved += 1
                lanes.rotate(-1)
                continue
            if lane.requeued and self._must_fetch(lane, worker):
                self.offer(worker)
                continue
            workers = len(self.idle) + len(self.partial) + 1
            count = allowance(worker, function, self._counts.waiting, workers, queue_size)
            if count == 0:
                declined.append(worker)
                continue
            self._give(worker, lane, function, count)
            lanes.rotate(-1)
            unserved = 0
            if wants_work(worker, queue_size):
                self.offer(worker)

    def _holder(self, lane: Lane) -> Optional[Worker]:
        """Of the free workers the one that has most of what the lane's next task reads, taken out of its list."""
        inputs = lane.requeued[0][-1].inputs if lane.requeued else ()
        best: Optional[Worker] = None
        most = 0
        for stored in inputs:
            if stored.copies is None or stored.size <= most:
                continue
            # A partial one has other work: to wait for it could cost more than to send the bytes again.
            worker = self._idle_with(stored.copies, lane.capabilities)
            if worker is None and stored.home is not None and stored.frames is None and not self.idle:
                # But nobody would begin at once where they are sent.
                worker = _of_agent(self.partial, stored.home.incarnation, lane.capabilities)
            if worker is not None:
                best, most = worker, stored.size
        if best is not None:
            self.withdraw(best)
        return best

    def _idle_with(self, copies: Copies, capabilities: Capabilities) -> Optional[Worker]:
        """A worker that holds nothing and has the object, or whose host has."""
        for worker in copies.holders:
            if worker.is_ready and not worker.held and worker.can_serve(capabilities):
                return worker
        for agent in copies.agents:
            found = _of_agent(reversed(self.idle), agent.incarnation, capabilities)
            if found is not None:
                return found
        return None

    def _must_fetch(self, lane: Lane, worker: Worker) -> bool:
        """Whether the lane's next task, which waits, can't run at this worker before something has been fetched."""
        task = lane.requeued[0][-1]
        for stored in task.inputs:
            if stored.frames is None and not _is_home(stored, worker):
                break
        else:
            return False
        heappop(lane.requeued)
        self.fetch(task, [each for each in task.inputs if each.is_away and not _is_home(each, worker)])
        return True

    def fetch(self, task: Task, away: Sequence[StoredObject]) -> None:
        """The task, which waits, is to read these somewhere else than at their homes: it is blocked until they are
        here."""
        lane = task.client.lane(task.options)
        lane.waiting -= 1
        self._counts.waiting -= 1
        task.move(UNREADY)
        for stored in away:
            assert stored.home is not None
            if not stored.blocked:
                self._outbox.fetch_object(stored.home.route, stored.client.incarnation, stored.id)
            stored.blocked.append(task)
            task.missing += 1

    def _next_worker(self, capabilities: Capabilities) -> Optional[Worker]:
        """A free worker that has these, taken out of its list."""
        if not capabilities:
            worker = self.idle.pop() if self.idle else self.partial.popitem(last=False)[0]
        else:
            able = next((free for free in reversed(self.idle) if free.can_serve(capabilities)), None)
            if able is not None:
                self.idle.remove(able)
            else:
                able = next((free for free in self.partial if free.can_serve(capabilities)), None)
                if able is None:
                    return None
                del self.partial[able]
            worker = able
        worker.is_ready = False
        return worker

    def next_function(self, lane: Lane) -> Optional[Function]:
        """The function of the task that this lane's next dispatch begins with; None, and the lane is gone, when nothing
        waits."""
        while lane.requeued:
            task = lane.requeued[0][-1]
            if task.state == WAITING:
                return task.function
            heappop(lane.requeued)
        while lane.batches:
            batch = lane.batches.first
            batch.skip_cancelled()
            if not batch.is_empty:
                return batch.function_at(batch.next)
            lane.batches.remove_first()
        if lane.client.lanes.get((lane.rank, lane.capabilities)) is lane:
            del lane.client.lanes[lane.rank, lane.capabilities]
        return None

    def let_go(self, lane: Lane) -> None:
        """Tasks of this lane wait no longer: what is over at its front is dropped now, as perhaps no worker comes."""
        if self.next_function(lane) is None:
            self.dequeue(lane)

    # ----------------------------------------------------------------------------------------------------------- giving

    def _give(self, worker: Worker, lane: Lane, function: Function, count: int) -> None:
        """Dispatch up to `count` of the lane's next tasks, all of `function`, to the worker."""
        if function not in worker.functions:
            worker.functions.add(function)
            self._outbox.add(
                effects.Function(worker.route, function.number, function.name, function.serializer, function.payload)
            )
        outgoing = self._outbox.dispatch(worker)
        if lane.requeued:
            taken = self._give_again(worker, lane, function, count, outgoing)
        else:
            taken = self._give_run(worker, lane.client, function, lane.batches, count, outgoing)
        lane.waiting -= taken
        self._counts.waiting -= taken
        self._counts.dispatched += taken

    def _give_again(
        self, worker: Worker, lane: Lane, function: Function, count: int, outgoing: effects.Dispatch
    ) -> int:
        """Dispatch tasks that have objects of their own."""
        requeued = lane.requeued
        taken = 0
        while requeued and taken < count:
            task = requeued[0][-1]
            if task.state == WAITING:
                if taken and (task.function is not function or _has_holders(task)):
                    break  # another worker may be a better one
                self._give_task(worker, task, outgoing)
                taken += 1
            heappop(requeued)
        return taken

    def _give_task(self, worker: Worker, task: Task, outgoing: effects.Dispatch) -> None:
        task.move(DISPATCH)
        task.attempt = task.client.next_attempt(task.attempt)
        task.cost = cost(task.function)
        worker.hold(task)
        may_store = task.may_store and self._agents.find(worker.agent) is not None
        if may_store or task.options is not DEFAULT_OPTIONS:
            special = _special(task.options, effects.FLAG_MAY_STORE if may_store else 0)
            if any(special):
                outgoing.special[len(outgoing.ids)] = special
            if task.options.name:
                outgoing.names[len(outgoing.ids)] = task.options.name
        if task.inputs:
            supply(task, worker, outgoing, self._agents, self._outbox)
        elif task.is_large:
            outgoing.rows.append_large(task.payload)
        else:
            outgoing.rows.append_run([task.size], task.payload[task.start : task.start + task.size])
        outgoing.clients.append(task.client.incarnation)
        outgoing.ids.append(task.id)
        outgoing.attempts.append(task.attempt)
        outgoing.functions.append(task.function.number)

    def _give_run(
        self,
        worker: Worker,
        client: Client,
        function: Function,
        batches: BatchQueue,
        count: int,
        outgoing: effects.Dispatch,
    ) -> int:
        """Dispatch rows from the front of a batch: their bytes lie behind one another and go as one slice."""
        batch = batches.first
        first = batch.next
        count = batch.run_length(count)
        ids = batch.ids[first : first + count]
        sizes = batch.sizes[first : first + count]
        large = batch.large.pop(first, None) if batch.large else None
        task_cost = cost(function)
        serial = self._next_serial
        position = batch.position
        payload = batch.payload if large is None else large
        large_size = 0 if large is None else len(large)
        options = batch.options
        attempt = client.next_attempt(0)
        client_tasks = client.tasks
        worker_tasks = worker.tasks
        for row in range(count):
            task_id = ids[row]
            size = sizes[row]
            task = Task(
                task_id,
                client,
                function,
                options,
                payload,
                position,
                size + large_size,
                large is not None,
                serial,
                task_cost,
                worker,
                attempt,
            )
            client_tasks[task_id] = task
            worker_tasks[serial] = task
            serial += 1
            position += size
        worker.load += task_cost * count
        worker.bytes += position - batch.position + large_size
        if options is not DEFAULT_OPTIONS:
            special = _special(options)
            row = len(outgoing.ids)
            if any(special):
                outgoing.special.update(dict.fromkeys(range(row, row + count), special))
            if options.name:
                outgoing.names.update(dict.fromkeys(range(row, row + count), options.name))
        outgoing.clients.extend([client.incarnation] * count)
        outgoing.ids.extend(ids)
        outgoing.attempts.extend([attempt] * count)
        outgoing.functions.extend([function.number] * count)
        if large is not None:
            outgoing.rows.append_large(large)
        else:
            outgoing.rows.append_run(sizes, payload[batch.position : position])
        self._next_serial = serial
        batch.next = first + count
        batch.position = position
        if batch.is_empty:
            batches.remove_first()
        return count

    def new_task(
        self,
        task_id: int,
        client: Client,
        function: Function,
        options: Options,
        payload: bytes,
        start: int,
        size: int,
        is_large: bool,
    ) -> Task:
        """A task that may have to wait for what it reads: it is blocked, and on no worker."""
        serial = self._next_serial
        self._next_serial += 1
        task = Task(task_id, client, function, options, payload, start, size, is_large, serial, 0, None, 0)
        task.state = BLOCKED
        return task

    # --------------------------------------------------------------------------------------------------------- adopting

    def adopt(self, worker: Worker, task: Task, attempt: int) -> None:
        """A task that waits for another attempt is run by this worker already."""
        lane = task.client.lane(task.options)  # in whose `requeued` it stays for now, no longer waiting
        task.move(ADOPT)
        task.attempt = attempt
        task.cost = cost(task.function)
        task.reads_files = len(task.inputs) > 0
        self._adopted(worker, task, lane)
        self.let_go(lane)

    def adopt_row(self, worker: Worker, lane: Lane, batch: Batch, row: int, attempt: int) -> Task:
        """A task that was never dispatched (as far as is known here) is run by this worker already."""
        function = batch.function_at(row)
        payload, start, size, is_large = batch.take_row(row)
        serial = self._next_serial
        self._next_serial += 1
        client = lane.client
        task = Task(
            batch.ids[row],
            client,
            function,
            batch.options,
            payload,
            start,
            size,
            is_large,
            serial,
            cost(function),
            worker,
            attempt,
        )
        task.state = WAITING
        task.move(ADOPT)
        client.tasks[task.id] = task
        self._adopted(worker, task, lane)
        return task

    def _adopted(self, worker: Worker, task: Task, lane: Lane) -> None:
        worker.hold(task)
        task.client.newest_attempt = max(task.client.newest_attempt, task.attempt)
        lane.waiting -= 1
        self._counts.waiting -= 1
        self._counts.dispatched += 1


def _has_holders(task: Task) -> bool:
    """Whether some workers have of what the task reads."""
    for stored in task.inputs:
        if stored.copies is not None:
            return True
    return False


def _is_home(stored: StoredObject, worker: Worker) -> bool:
    """Whether a worker of this one's host has made a file of it."""
    return stored.home is not None and stored.home.incarnation == worker.agent


def _of_agent(workers: Iterable[Worker], agent: int, capabilities: Capabilities) -> Optional[Worker]:
    """The first of them that is this host agent's and has these."""
    for worker in workers:
        if worker.agent == agent and worker.can_serve(capabilities):
            return worker
    return None


def _special(options: Options, flags: int = 0) -> Tuple[int, int, int]:
    if options.profiling:
        flags |= effects.FLAG_PROFILE
    if options.timeout_seconds:
        flags |= effects.FLAG_TELL_START
    if options.stream_output:
        flags |= effects.FLAG_STREAM_OUTPUT
    return flags, options.depth, options.priority
