"""The state machine: events in, effects out. The only file that knows all tables.

`handle` takes one event and keeps what follows for later; `collect` returns all effects since the last call, one batch a
peer. Time comes in as an argument, in seconds of a monotonic clock.
"""

from array import array
from collections import deque
from typing import Callable, Deque, Dict, List, Optional

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.batches import Batch
from scaler_scheduler.core.clients import ClientTable
from scaler_scheduler.core.dispatch import DISPATCH_BYTES, allowance, cost, wants_work
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.ids import INCARNATION_LIMIT
from scaler_scheduler.core.records import Agent, Client, Function, Task, Worker
from scaler_scheduler.core.states import (
    CANCEL,
    DISPATCH,
    GIVE_UP,
    RESULT,
    RUNNING,
    START,
    WAITING,
    WORKER_LOST,
)
from scaler_scheduler.core.timers import LeaseTimer
from scaler_scheduler.core.workers import AgentTable, WorkerTable


class Limits:
    """What the operator may set of the core's behaviour."""

    __slots__ = ("client_timeout_seconds", "queue_size", "task_retries", "worker_timeout_seconds")

    def __init__(
        self,
        client_timeout_seconds: float = 60.0,
        worker_timeout_seconds: float = 60.0,
        queue_size: int = 1000,
        task_retries: int = 3,
    ) -> None:
        self.client_timeout_seconds = client_timeout_seconds
        self.worker_timeout_seconds = worker_timeout_seconds
        self.queue_size = queue_size
        self.task_retries = task_retries


class Scheduler:
    def __init__(self, limits: Limits, protocol_version: int, now: float) -> None:
        self.limits = limits
        self.clients = ClientTable()
        self.workers = WorkerTable()
        self.agents = AgentTable()
        self.functions = FunctionTable()
        self.waiting = 0
        """Tasks that no worker holds, of all clients."""
        self.dispatched = 0
        """Tasks that some worker holds, of all clients."""
        self.resolved = 0
        """Tasks answered since the start."""
        self.late = 0
        """Results that nobody waits for any more: of an attempt, a worker or a client given up."""
        self._protocol_version = protocol_version
        self._leases = LeaseTimer(now)
        self._effects: List[effects.Effect] = []
        self._outboxes: List[Client] = []
        self._outgoing: List[Worker] = []
        self._dropped_functions: List[Function] = []
        self._queue: Deque[Client] = deque()
        self._idle: List[Worker] = []
        self._partial: Deque[Worker] = deque()
        self._next_peer = 1
        self._next_serial = 1
        self._handlers: List[Optional[Callable[..., None]]] = [None] * events.KINDS
        self._handlers[events.HELLO] = self._hello
        self._handlers[events.GOODBYE] = self._goodbye
        self._handlers[events.HEARTBEAT] = self._heartbeat
        self._handlers[events.FUNCTION] = self._function
        self._handlers[events.FORGET_FUNCTIONS] = self._forget_functions
        self._handlers[events.SUBMIT] = self._submit
        self._handlers[events.RESULTS] = self._results
        self._handlers[events.STARTED] = self._started
        self._handlers[events.CANCEL] = self._cancel
        self._handlers[events.WORKER_DIED] = self._worker_died

    # ------------------------------------------------------------------------------------------------------- in and out

    def handle(self, event: events.Event, now: float) -> None:
        """Take one event. A wrong one changes nothing, and its sender is told.

        Raises:
            InvariantError: the core is broken.
        """
        handler = self._handlers[event.kind]
        assert handler is not None
        try:
            handler(event, now)
        except ProtocolError as error:
            self._effects.append(effects.Error(event.route, str(error)))

    def tick(self, now: float) -> None:
        """Give up peers whose lease has run out."""
        if not self._leases.is_due(now):
            return
        for client in self.clients.overdue(now):
            self._remove_client(client)
        for agent in self.agents.overdue(now):
            self.agents.remove(agent)
        for worker in self.workers.overdue(now):
            self._lose_worker(worker, "lease ran out", 0, self._likely_running(worker))

    @property
    def next_deadline(self) -> float:
        """When `tick` has something to do at the earliest."""
        return self._leases.next_check

    def collect(self) -> List[effects.Effect]:
        """Dispatch what can be, and hand over all effects since the last call."""
        if self._queue:
            self._dispatch_waiting()
        if self._dropped_functions:
            self._forget_dropped_functions()
        collected = self._effects
        for worker in self._outgoing:
            if worker.outgoing is not None:
                collected.append(worker.outgoing)
                worker.outgoing = None
        for client in self._outboxes:
            if client.outbox is not None:
                collected.append(client.outbox)
                client.outbox = None
        self._outgoing = []
        self._outboxes = []
        self._effects = []
        return collected

    def farewell(self, reason: str) -> List[effects.Effect]:
        """What to tell every peer when the scheduler stops on purpose."""
        routes = [*self.clients.by_route, *self.workers.by_route, *self.agents.by_route]
        return [effects.Goodbye(route, reason) for route in routes]

    # ------------------------------------------------------------------------------------------------------------ peers

    def _hello(self, event: events.Hello, now: float) -> None:
        refusal = self._refusal(event)
        if refusal is not None:
            self._effects.append(refusal)
            return
        self._leave_route(event.route, event.role, event.incarnation)
        if event.role == events.CLIENT:
            number = self._welcome_client(event, now)
        elif event.role == events.WORKER:
            number = self._welcome_worker(event, now)
        else:
            number = self._welcome_agent(event, now)
        limits = self.limits
        lease = limits.client_timeout_seconds if event.role == events.CLIENT else limits.worker_timeout_seconds
        self._effects.append(effects.Welcome(event.route, number, int(lease * 1000)))

    def _refusal(self, event: events.Hello) -> Optional[effects.Refused]:
        if event.protocol_version != self._protocol_version:
            text = f"protocol version {event.protocol_version} is not {self._protocol_version}"
            return effects.Refused(event.route, effects.REFUSED_PROTOCOL_VERSION, text)
        if not 0 < event.incarnation < INCARNATION_LIMIT:
            text = f"incarnation {event.incarnation} is not between 1 and 2^63"
            return effects.Refused(event.route, effects.REFUSED_MALFORMED_HELLO, text)
        return None

    def _leave_route(self, route: bytes, role: int, incarnation: int) -> None:
        """Whoever else spoke on this connection before has been replaced."""
        client = self.clients.by_route.get(route)
        if client is not None and (client.incarnation != incarnation or role != events.CLIENT):
            self._remove_client(client)
        worker = self.workers.by_route.get(route)
        if worker is not None and (worker.incarnation != incarnation or role != events.WORKER):
            self._lose_worker(worker, "", 0, None)
        agent = self.agents.by_route.get(route)
        if agent is not None and (agent.incarnation != incarnation or role != events.AGENT):
            self.agents.remove(agent)

    def _welcome_client(self, event: events.Hello, now: float) -> int:
        client = self.clients.find(event.incarnation)
        deadline = now + self.limits.client_timeout_seconds
        if client is None:
            client = Client(self._new_peer(), event.incarnation, event.route, event.name, deadline)
            self.clients.add(client)
        else:
            # A new connection of a known client: it submits again what it has no answer to, which is told apart by id.
            self.clients.move(client, event.route)
            client.deadline = deadline
            if client.outbox is not None:
                client.outbox.route = event.route
        return client.number

    def _welcome_worker(self, event: events.Hello, now: float) -> int:
        known = self.workers.find(event.incarnation)
        if known is not None:
            # A new connection of a known worker: what was on its way to it is lost, and nothing says what arrived.
            self._lose_worker(known, "", 0, None)
        deadline = now + self.limits.worker_timeout_seconds
        worker = Worker(
            self._new_peer(),
            event.incarnation,
            event.agent,
            event.route,
            event.name,
            event.host,
            event.pid,
            deadline,
        )
        self.workers.add(worker)
        self._offer(worker)
        return worker.number

    def _welcome_agent(self, event: events.Hello, now: float) -> int:
        agent = self.agents.find(event.incarnation)
        deadline = now + self.limits.worker_timeout_seconds
        if agent is None:
            agent = Agent(self._new_peer(), event.incarnation, event.route, event.name, event.host, deadline)
            self.agents.add(agent)
        else:
            self.agents.move(agent, event.route)
            agent.deadline = deadline
        return agent.number

    def _new_peer(self) -> int:
        number = self._next_peer
        self._next_peer += 1
        return number

    def _goodbye(self, event: events.Goodbye, now: float) -> None:
        client = self.clients.by_route.get(event.route)
        if client is not None:
            self._remove_client(client)
        worker = self.workers.by_route.get(event.route)
        if worker is not None:
            self._lose_worker(worker, "", 0, None)
        agent = self.agents.by_route.get(event.route)
        if agent is not None:
            self.agents.remove(agent)
            for worker in self.workers:
                if worker.agent == agent.incarnation:
                    self._lose_worker(worker, "", 0, None)

    def _heartbeat(self, event: events.Heartbeat, now: float) -> None:
        worker_deadline = now + self.limits.worker_timeout_seconds
        client = self.clients.by_route.get(event.route)
        agent = self.agents.by_route.get(event.route)
        worker = self.workers.by_route.get(event.route)
        if client is not None:
            client.deadline = now + self.limits.client_timeout_seconds
        elif agent is not None:
            agent.deadline = worker_deadline
            for incarnation in event.workers:
                named = self.workers.find(incarnation)
                if named is not None and named.agent == agent.incarnation:
                    named.deadline = worker_deadline
        elif worker is not None:
            worker.deadline = worker_deadline
        else:
            self._effects.append(effects.HelloWanted(event.route))
            return
        self._effects.append(effects.HeartbeatEcho(event.route, event.sequence))

    def _known_client(self, route: bytes) -> Optional[Client]:
        """The client on this connection; None when its hello is wanted first."""
        client = self.clients.by_route.get(route)
        if client is None:
            self._check_stranger(route, "client")
        return client

    def _known_worker(self, route: bytes) -> Optional[Worker]:
        """The worker on this connection; None when its hello is wanted first."""
        worker = self.workers.by_route.get(route)
        if worker is None:
            self._check_stranger(route, "worker")
        return worker

    def _check_stranger(self, route: bytes, wanted: str) -> None:
        if route in self.clients.by_route or route in self.workers.by_route or route in self.agents.by_route:
            raise ProtocolError(f"this message is a {wanted}'s to send")
        self._effects.append(effects.HelloWanted(route))

    # -------------------------------------------------------------------------------------------------------- functions

    def _function(self, event: events.Function, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        known = client.functions.get(event.number)
        if known is not None:
            if known.digest == event.digest:
                return
            raise ProtocolError(f"function number {event.number} is taken")
        function = self.functions.add(event.digest, event.name, event.serializer, event.payload)
        client.functions[event.number] = function
        function.holders[client.number] = function.holders.get(client.number, 0) + 1

    def _forget_functions(self, event: events.ForgetFunctions, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        for number in event.numbers:
            function = client.functions.pop(number, None)
            if function is not None:
                self._release(function, client)

    def _release(self, function: Function, client: Client) -> None:
        """One of the client's numbers names this function no longer."""
        held = function.holders.pop(client.number) - 1
        if held:
            function.holders[client.number] = held
        elif function.is_unused:
            self._dropped_functions.append(function)

    def _forget_dropped_functions(self) -> None:
        # Once each: a function may have been dropped, taken up and dropped again meanwhile.
        dropped = [function for function in dict.fromkeys(self._dropped_functions) if function.is_unused]
        self._dropped_functions = []
        for function in dropped:
            self.functions.remove(function)
        for worker in self.workers:
            numbers = [function.number for function in dropped if function in worker.functions]
            if numbers:
                worker.functions.difference_update(dropped)
                self._effects.append(effects.ForgetFunctions(worker.route, numbers))

    # ----------------------------------------------------------------------------------------------------------- submit

    def _submit(self, event: events.Submit, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        functions = []
        for number in event.functions:
            function = client.functions.get(number)
            if function is None:
                raise ProtocolError(f"submit names function {number}, which this client has not sent")
            functions.append(function)
        batch = Batch(event.ids, functions, event.sizes, event.payload, event.large)
        if event.ids[0] <= client.highest_id:
            self._drop_known_rows(client, batch)
        rows = len(batch.ids) - len(batch.cancelled)
        if not rows:
            return
        for row, function in enumerate(functions):
            if len(functions) == 1:
                function.tasks += rows
            elif row not in batch.cancelled:
                function.tasks += 1
        client.highest_id = max(client.highest_id, event.ids[-1])
        client.batches.append(batch)
        self._enqueue(client, rows)

    def _drop_known_rows(self, client: Client, batch: Batch) -> None:
        """A client that says again what it has no answer to: what is here already is not taken twice."""
        for row, task_id in enumerate(batch.ids):
            if task_id <= client.highest_id and (
                task_id in client.tasks or self._find_batch(client, task_id) is not None
            ):
                batch.cancelled.add(row)

    def _find_batch(self, client: Client, task_id: int) -> Optional[Batch]:
        for batch in client.batches:
            if not batch.is_empty and batch.row_of(task_id) >= 0:
                return batch
        return None

    def _enqueue(self, client: Client, count: int) -> None:
        client.waiting += count
        self.waiting += count
        if not client.is_queued:
            client.is_queued = True
            self._queue.append(client)

    # --------------------------------------------------------------------------------------------------------- dispatch

    def _offer(self, worker: Worker) -> None:
        """The worker can take more: put it where the dispatcher looks."""
        if worker.is_ready:
            return
        worker.is_ready = True
        if worker.tasks:
            self._partial.append(worker)
        else:
            # A stack: the worker that was busy last has the warmest caches, and with few tasks the others can rest.
            self._idle.append(worker)

    def _dispatch_waiting(self) -> None:
        queue_size = self.limits.queue_size
        declined: List[Worker] = []
        while self._queue and (self._idle or self._partial):
            client = self._queue[0]
            function = self._next_function(client)
            if function is None:
                client.is_queued = False
                self._queue.popleft()
                continue
            worker = self._idle.pop() if self._idle else self._partial.popleft()
            worker.is_ready = False
            workers = len(self._idle) + len(self._partial) + 1
            count = allowance(worker, function, self.waiting, workers, queue_size)
            if count == 0:
                declined.append(worker)
                continue
            self._give(worker, client, function, count)
            self._queue.rotate(-1)
            if wants_work(worker, queue_size):
                self._offer(worker)
        for worker in declined:
            self._offer(worker)

    def _next_function(self, client: Client) -> Optional[Function]:
        """The function of the task that this client's next dispatch begins with; None when nothing waits."""
        while client.requeued:
            task = client.requeued[0]
            if task.state == WAITING:
                return task.function
            client.requeued.popleft()
        while client.batches:
            batch = client.batches[0]
            batch.skip_cancelled()
            if not batch.is_empty:
                return batch.function_at(batch.next)
            client.batches.popleft()
        return None

    def _give(self, worker: Worker, client: Client, function: Function, count: int) -> None:
        """Dispatch up to `count` of the client's next tasks, all of `function`, to the worker."""
        if function not in worker.functions:
            worker.functions.add(function)
            self._effects.append(
                effects.Function(worker.route, function.number, function.name, function.serializer, function.payload)
            )
        outgoing = worker.outgoing
        if outgoing is not None and outgoing.rows.run_bytes > DISPATCH_BYTES:
            self._effects.append(outgoing)
            outgoing = None
        if outgoing is None:
            outgoing = worker.outgoing = effects.Dispatch(worker.route)
            self._outgoing.append(worker)
        if client.requeued:
            taken = self._give_again(worker, client, outgoing)
        else:
            taken = self._give_run(worker, client, function, client.batches[0], count, outgoing)
        client.waiting -= taken
        self.waiting -= taken
        self.dispatched += taken

    def _give_again(self, worker: Worker, client: Client, outgoing: effects.Dispatch) -> int:
        task = client.requeued.popleft()
        task.move(DISPATCH)
        task.attempt += 1
        task.worker = worker
        task.cost = cost(task.function)
        worker.tasks[task.serial] = task
        worker.load += task.cost
        outgoing.clients.append(client.number)
        outgoing.ids.append(task.id)
        outgoing.attempts.append(task.attempt)
        outgoing.functions.append(task.function.number)
        if task.is_large:
            outgoing.rows.append_large(task.payload)
        else:
            outgoing.rows.append_run([task.size], task.payload[task.start : task.start + task.size])
        return 1

    def _give_run(
        self,
        worker: Worker,
        client: Client,
        function: Function,
        batch: Batch,
        count: int,
        outgoing: effects.Dispatch,
    ) -> int:
        """Dispatch rows from the front of a batch: their bytes lie behind one another and go as one slice."""
        first = batch.next
        count = batch.run_length(count)
        ids = batch.ids[first : first + count]
        sizes = batch.sizes[first : first + count]
        large = batch.large.pop(first, None) if batch.large else None
        task_cost = cost(function)
        serial = self._next_serial
        position = batch.position
        payload = batch.payload if large is None else large
        client_tasks = client.tasks
        worker_tasks = worker.tasks
        for row in range(count):
            task_id = ids[row]
            size = sizes[row]
            task = Task(
                task_id, client, function, payload, position, size, large is not None, serial, task_cost, worker
            )
            client_tasks[task_id] = task
            worker_tasks[serial] = task
            serial += 1
            position += size
        worker.load += task_cost * count
        outgoing.clients.extend([client.number] * count)
        outgoing.ids.extend(ids)
        outgoing.attempts.extend([1] * count)
        outgoing.functions.extend([function.number] * count)
        if large is not None:
            outgoing.rows.append_large(large)
        else:
            outgoing.rows.append_run(sizes, payload[batch.position : position])
        self._next_serial = serial
        batch.next = first + count
        batch.position = position
        if batch.is_empty:
            client.batches.popleft()
        return count

    # ---------------------------------------------------------------------------------------------------------- results

    def _results(self, event: events.Results, now: float) -> None:
        worker = self._known_worker(event.route)
        if worker is None:
            self.late += len(event.ids)
            return
        self._take_results(worker, event)
        if wants_work(worker, self.limits.queue_size):
            self._offer(worker)

    def _take_results(self, worker: Worker, event: events.Results) -> None:
        """Resolve each row that is still waited for. Bytes of rows in a row for one client go on as one slice."""
        ids, attempts, outcomes = event.ids, event.attempts, event.outcomes
        durations, sizes, payload = event.durations, event.sizes, event.payload
        clients, large = event.clients, event.large
        worker_tasks = worker.tasks
        client: Optional[Client] = None
        client_number = -1
        position = 0  # where this row's bytes begin
        begin = 0  # where the bytes begin that have not gone to the outbox yet
        pending: Optional[effects.Resolved] = None  # whose they are
        function: Optional[Function] = None
        spent = 0
        count = 0
        for row in range(len(ids)):
            if clients[row] != client_number:
                client_number = clients[row]
                client = self.clients.by_number.get(client_number)
            size = sizes[row]
            task = None if client is None else client.tasks.get(ids[row])
            if task is None or task.worker is not worker or task.attempt != attempts[row]:
                self.late += 1
                if pending is not None:
                    pending.rows.parts.append(payload[begin:position])
                    pending = None
                position += size
                continue
            assert client is not None
            task.move(RESULT)
            task.worker = None
            del client.tasks[task.id]
            del worker_tasks[task.serial]
            worker.load -= task.cost
            if task.function is not function:
                if function is not None:
                    function.observe(spent, count)
                function = task.function
                spent = count = 0
            spent += durations[row]
            count += 1
            self._finish(function)
            outbox = None if client.is_gone else self._outbox(client)
            if outbox is not pending:
                if pending is not None:
                    pending.rows.parts.append(payload[begin:position])
                pending = outbox
                begin = position
            if outbox is None:
                self._bury(client)
            else:
                if large and row in large:
                    outbox.rows.large_rows.append(len(outbox.ids))
                    outbox.rows.large_frames.append(large[row])
                outbox.ids.append(task.id)
                outbox.outcomes.append(outcomes[row])
                outbox.rows.sizes.append(size)
            position += size
        if pending is not None:
            pending.rows.parts.append(payload[begin:position])
        if function is not None:
            function.observe(spent, count)

    def _outbox(self, client: Client) -> effects.Resolved:
        outbox = client.outbox
        if outbox is None:
            outbox = client.outbox = effects.Resolved(client.route)
            self._outboxes.append(client)
        return outbox

    def _finish(self, function: Function) -> None:
        """One task of this function that a worker held is over."""
        self.dispatched -= 1
        self.resolved += 1
        self._let_go(function)

    def _let_go(self, function: Function) -> None:
        function.tasks -= 1
        if function.is_unused:
            self._dropped_functions.append(function)

    def _resolve(self, client: Client, task_id: int, outcome: int, payload: bytes) -> None:
        """An answer of the scheduler's own."""
        outbox = self._outbox(client)
        outbox.ids.append(task_id)
        outbox.outcomes.append(outcome)
        outbox.rows.append_run([len(payload)], payload)

    def _started(self, event: events.Started, now: float) -> None:
        worker = self._known_worker(event.route)
        if worker is None:
            return
        begun: Dict[int, List[int]] = {}
        for row in range(len(event.ids)):
            client = self.clients.by_number.get(event.clients[row])
            task = None if client is None else client.tasks.get(event.ids[row])
            if client is None or task is None or task.worker is not worker or task.attempt != event.attempts[row]:
                continue
            task.move(START)
            if not client.is_gone:
                begun.setdefault(client.number, []).append(task.id)
        for number, ids in begun.items():
            self._effects.append(effects.Started(self.clients.by_number[number].route, ids))

    # ----------------------------------------------------------------------------------------------------------- cancel

    def _cancel(self, event: events.Cancel, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        refused = array("Q")
        for task_id in event.ids:
            task = client.tasks.get(task_id)
            if task is not None:
                if task.state == WAITING:
                    task.move(CANCEL)
                    del client.tasks[task_id]
                    self._cancelled(client, task_id, task.function)
                else:
                    refused.append(task_id)
                continue
            batch = self._find_batch(client, task_id)
            if batch is not None:
                row = batch.row_of(task_id)
                batch.cancelled.add(row)
                batch.large.pop(row, None)
                self._cancelled(client, task_id, batch.function_at(row))
        # What is cancelled at the front is let go of at once: with no worker there nobody comes to dispatch it.
        self._next_function(client)
        if refused:
            self._effects.append(effects.CancelRefused(event.route, refused))

    def _cancelled(self, client: Client, task_id: int, function: Function) -> None:
        client.waiting -= 1
        self.waiting -= 1
        self.resolved += 1
        self._let_go(function)
        self._resolve(client, task_id, effects.OUTCOME_CANCELLED, b"")

    # ------------------------------------------------------------------------------------------------- when things die

    def _worker_died(self, event: events.WorkerDied, now: float) -> None:
        agent = self.agents.by_route.get(event.route)
        if agent is None:
            self._check_stranger(event.route, "host agent")
            return
        worker = self.workers.find(event.incarnation)
        if worker is None or worker.agent != agent.incarnation:
            return
        running: Optional[Task] = None
        client = self.clients.by_number.get(event.client)
        if event.attempt and client is not None:
            task = client.tasks.get(event.id)
            if task is not None and task.worker is worker and task.attempt == event.attempt:
                running = task
        self._lose_worker(worker, event.cause, event.peak_bytes, running)

    def _likely_running(self, worker: Worker) -> Optional[Task]:
        """What a worker was busy with that can't be asked any more: a task that it said it began, else its oldest."""
        tasks = sorted(worker.tasks.values(), key=lambda task: task.serial)
        for task in tasks:
            if task.state == RUNNING:
                return task
        return tasks[0] if tasks else None

    def _lose_worker(self, worker: Worker, cause: str, peak_bytes: int, running: Optional[Task]) -> None:
        """The worker is gone: what it held waits again. Only the task that was running counts an attempt."""
        self.workers.remove(worker)
        worker.outgoing = None
        if worker.is_ready:
            # What stands in these lists shares the waiting tasks.
            worker.is_ready = False
            if worker in self._partial:
                self._partial.remove(worker)
            else:
                self._idle.remove(worker)
        if running is not None:
            peak = f", peak memory {peak_bytes / 2**20:.0f} MiB" if peak_bytes else ""
            death = f"attempt {running.attempt} on {worker.host} (pid {worker.pid}): {cause}{peak}"
            running.deaths = [*(running.deaths or []), death]
        for serial in sorted(worker.tasks):
            task = worker.tasks[serial]
            task.move(WORKER_LOST)
            task.worker = None
            self.dispatched -= 1
            client = task.client
            if client.is_gone:
                self._forget_task(client, task)
            elif task.deaths is not None and len(task.deaths) > self.limits.task_retries:
                self._give_up(client, task)
            else:
                client.requeued.append(task)
                self._enqueue(client, 1)
        worker.tasks = {}

    def _give_up(self, client: Client, task: Task) -> None:
        assert task.deaths is not None
        task.move(GIVE_UP)
        del client.tasks[task.id]
        self.resolved += 1
        self._let_go(task.function)
        text = f"{task.function.name}: the worker died in each of {len(task.deaths)} attempts: {'; '.join(task.deaths)}"
        self._resolve(client, task.id, effects.OUTCOME_WORKER_DIED, text.encode())

    def _forget_task(self, client: Client, task: Task) -> None:
        """A task of a client that has left, and that no worker holds any more."""
        task.move(CANCEL)
        del client.tasks[task.id]
        self._let_go(task.function)
        self._bury(client)

    def _remove_client(self, client: Client) -> None:
        """The client is gone: nothing of it is dispatched any more; what workers hold is dropped when it comes back."""
        self.clients.leave(client)
        client.outbox = None
        if client.is_queued:
            client.is_queued = False
            self._queue.remove(client)
        for batch in client.batches:
            for row in batch.waiting_rows():
                self._let_go(batch.function_at(row))
        client.batches.clear()
        client.requeued.clear()
        for task in list(client.tasks.values()):
            if task.state == WAITING:
                task.move(CANCEL)
                del client.tasks[task.id]
                self._let_go(task.function)
        self.waiting -= client.waiting
        client.waiting = 0
        for function in client.functions.values():
            function.holders.pop(client.number, None)
            if function.is_unused:
                self._dropped_functions.append(function)
        client.functions = {}
        self._bury(client)

    def _bury(self, client: Client) -> None:
        """Drop the record of a client that has left once no worker holds a task of it."""
        if client.is_gone and not client.tasks:
            self.clients.remove(client)
