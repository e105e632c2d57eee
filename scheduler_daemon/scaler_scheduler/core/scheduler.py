"""The state machine: events in, effects out. The only file that knows all tables.

`handle` takes one event and keeps what follows for later; `collect` returns all effects since the last call, one batch
a peer. Time comes in as an argument, in seconds of a monotonic clock.
"""

from array import array
from typing import Callable, Dict, List, Optional

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.batches import Batch
from scaler_scheduler.core.clients import ClientTable
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.dispatch import wants_work
from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.ids import INCARNATION_LIMIT
from scaler_scheduler.core.losses import Losses, likely_running
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Agent, Client, Function, Task, Worker
from scaler_scheduler.core.results import take_results
from scaler_scheduler.core.states import CANCEL, START, WAITING
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
        self.counts = Counts()
        self._outbox = Outbox()
        self.dispatcher = Dispatcher(self._outbox, self.counts, limits.queue_size)
        self._losses = Losses(
            self.clients,
            self.workers,
            self.functions,
            self.dispatcher,
            self._outbox,
            self.counts,
            limits.task_retries,
        )
        self._protocol_version = protocol_version
        self._leases = LeaseTimer(now)
        self._next_peer = 1
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
            self._outbox.add(effects.Error(event.route, str(error)))

    def tick(self, now: float) -> None:
        """Give up peers whose lease has run out."""
        if not self._leases.is_due(now):
            return
        stall = self._leases.stall()
        for peer in [*self.clients, *self.agents, *self.workers] if stall else ():
            # The scheduler itself did not look for that long: what peers said meanwhile may still be unread.
            peer.deadline += stall
        for client in self.clients.overdue(now):
            self._losses.remove_client(client)
        for agent in self.agents.overdue(now):
            self.agents.remove(agent)
        for worker in self.workers.overdue(now):
            self._losses.lose_worker(worker, "lease ran out", 0, likely_running(worker))

    @property
    def next_deadline(self) -> float:
        """When `tick` has something to do at the earliest."""
        return self._leases.next_check

    def collect(self) -> List[effects.Effect]:
        """Dispatch what can be, and hand over all effects since the last call."""
        if self.dispatcher.queue:
            self.dispatcher.run()
        self._forget_unused_functions()
        return self._outbox.take()

    def farewell(self, reason: str) -> List[effects.Effect]:
        """What to tell every peer when the scheduler stops on purpose."""
        routes = [*self.clients.by_route, *self.workers.by_route, *self.agents.by_route]
        return [effects.Goodbye(route, reason) for route in routes]

    # ------------------------------------------------------------------------------------------------------------ peers

    def _hello(self, event: events.Hello, now: float) -> None:
        refusal = self._refusal(event)
        if refusal is not None:
            self._outbox.add(refusal)
            return
        self._leave_route(event.route, event.role, event.incarnation)
        if event.role == events.CLIENT:
            number = self._welcome_client(event, now)
        elif event.role == events.WORKER:
            agent = self.agents.find(event.agent)
            if agent is not None and event.incarnation in agent.gone_workers:
                return
            number = self._welcome_worker(event, now)
        else:
            number = self._welcome_agent(event, now)
        limits = self.limits
        lease = limits.client_timeout_seconds if event.role == events.CLIENT else limits.worker_timeout_seconds
        self._outbox.add(effects.Welcome(event.route, number, int(lease * 1000)))

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
            self._losses.remove_client(client)
        worker = self.workers.by_route.get(route)
        if worker is not None and (worker.incarnation != incarnation or role != events.WORKER):
            self._losses.lose_worker(worker, "", 0, None)
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
            self._losses.lose_worker(known, "", 0, None)
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
        self.dispatcher.offer(worker)
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
            self._losses.remove_client(client)
        worker = self.workers.by_route.get(event.route)
        if worker is not None:
            self._losses.lose_worker(worker, "", 0, None)
        agent = self.agents.by_route.get(event.route)
        if agent is not None:
            self.agents.remove(agent)
            for worker in self.workers:
                if worker.agent == agent.incarnation:
                    self._losses.lose_worker(worker, "", 0, None)

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
            self._outbox.add(effects.HelloWanted(event.route))
            return
        self._outbox.add(effects.HeartbeatEcho(event.route, event.sequence))

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
        self._outbox.add(effects.HelloWanted(route))

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
        self.functions.hold(function, client)

    def _forget_functions(self, event: events.ForgetFunctions, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        for number in event.numbers:
            function = client.functions.pop(number, None)
            if function is not None:
                self.functions.release(function, client)

    def _forget_unused_functions(self) -> None:
        removed = self.functions.remove_unused()
        for worker in self.workers if removed else ():
            numbers = [function.number for function in removed if function in worker.functions]
            if numbers:
                worker.functions.difference_update(removed)
                self._outbox.add(effects.ForgetFunctions(worker.route, numbers))

    # ----------------------------------------------------------------------------------------------------------- submit

    def _submit(self, event: events.Submit, now: float) -> None:
        client = self._known_client(event.route)
        if client is None:
            return
        client.deadline = now + self.limits.client_timeout_seconds
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
        self.dispatcher.enqueue(client, rows)

    def _drop_known_rows(self, client: Client, batch: Batch) -> None:
        """A client that says again what it has no answer to: what is here already is not taken twice."""
        for row, task_id in enumerate(batch.ids):
            if task_id in client.tasks or client.batches.find(task_id) is not None:
                batch.cancelled.add(row)

    # ---------------------------------------------------------------------------------------------------------- results

    def _results(self, event: events.Results, now: float) -> None:
        worker = self._known_worker(event.route)
        if worker is None:
            self.counts.late += len(event.ids)
            return
        take_results(event, worker, self.clients, self.functions, self._outbox, self.counts)
        if wants_work(worker, self.limits.queue_size):
            self.dispatcher.offer(worker)

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
            self._outbox.add(effects.Started(self.clients.by_number[number].route, ids))

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
            found = client.batches.find(task_id)
            if found is not None:
                batch, row = found
                batch.cancelled.add(row)
                batch.large.pop(row, None)
                self._cancelled(client, task_id, batch.function_at(row))
        # What is cancelled at the front is let go of at once: with no worker there nobody comes to dispatch it.
        self.dispatcher.next_function(client)
        if refused:
            self._outbox.add(effects.CancelRefused(event.route, refused))

    def _cancelled(self, client: Client, task_id: int, function: Function) -> None:
        client.waiting -= 1
        self.counts.waiting -= 1
        self.counts.resolved += 1
        self.functions.let_go(function)
        self._outbox.answer(client, task_id, effects.OUTCOME_CANCELLED, b"")

    # ------------------------------------------------------------------------------------------------- when things die

    def _worker_died(self, event: events.WorkerDied, now: float) -> None:
        agent = self.agents.by_route.get(event.route)
        if agent is None:
            self._check_stranger(event.route, "host agent")
            return
        worker = self.workers.find(event.incarnation)
        if worker is None:
            agent.gone_workers.append(event.incarnation)
        if worker is None or worker.agent != agent.incarnation:
            return
        running: Optional[Task] = None
        client = self.clients.by_number.get(event.client)
        if event.attempt and client is not None:
            task = client.tasks.get(event.id)
            if task is not None and task.worker is worker and task.attempt == event.attempt:
                running = task
        self._losses.lose_worker(worker, event.cause, event.peak_bytes, running)
