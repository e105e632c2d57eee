"""The state machine: events in, effects out. Which part of the core takes which event.

`handle` takes one event and keeps what follows for later; `collect` returns all effects since the last call, one batch
a peer. Time comes in as an argument, in seconds of a monotonic clock.
"""

from typing import Callable, Container, Dict, List, Optional, Tuple

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.cancellation import Withdrawals, begin
from scaler_scheduler.core.completion.endings import Endings
from scaler_scheduler.core.completion.evacuation import HandingOver
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.results import take_results
from scaler_scheduler.core.completion.suspension import take_resumed, take_suspended
from scaler_scheduler.core.dispatch import work_stealing
from scaler_scheduler.core.dispatch.credit import Credits
from scaler_scheduler.core.dispatch.dispatch_writer import Giver
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.dispatch.prefetch import wants_work
from scaler_scheduler.core.errors import NotAdmittedError, ProtocolError
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.peers.duplicate_hello import Claims
from scaler_scheduler.core.peers.peer_loss import Losses
from scaler_scheduler.core.peers.peers import Peers
from scaler_scheduler.core.peers.quotas import Bounds
from scaler_scheduler.core.peers.reattach import Adoption
from scaler_scheduler.core.peers.restart_hold import Settling
from scaler_scheduler.core.report.outputs import pass_on, tell_dropped
from scaler_scheduler.core.report.slow_consumer import Unreceived
from scaler_scheduler.core.report.unschedulable import Unserved
from scaler_scheduler.core.state.counts import VAIN_MESSAGE, VAIN_ROW, Counts
from scaler_scheduler.core.state.operator_log import Notices
from scaler_scheduler.core.state.records import FORCE, Client, Task, Worker
from scaler_scheduler.core.state.tables import Tables
from scaler_scheduler.core.state.timers import LeaseTimer
from scaler_scheduler.core.state.transitions import DISPATCHED
from scaler_scheduler.core.submissions import Submissions

LONG_TASK_NS = 10_000_000
"""For how long a task runs at least when its worker says that it has begun, unless it was asked to say so."""

CUT_OFF_LINE_SECONDS = 10.0
"""At most one line in this time about workers that can't be reached: those that are cut off come again and again."""


class Scheduler:
    def __init__(
        self,
        limits: Limits,
        protocol_version: int,
        now: float,
        is_connected: Callable[[bytes], bool] = lambda route: False,
        incarnation: int = 0,
    ) -> None:
        """`is_connected` says whether anybody is at the other end of a connection, as far as that is known;
        `incarnation` is the scheduler's own, as its welcomes say it."""
        self.limits = limits
        self.tables = tables = Tables()
        self.outbox = outbox = Outbox()
        giver = Giver(outbox, tables.counts, tables.agents, tables.history)
        self.dispatcher = dispatcher = Dispatcher(outbox, tables.counts, giver, tables.history, limits.queue_size)
        handing_over = HandingOver(tables, outbox, limits.memory_limit_bytes)
        self._graphs = Graphs(tables, dispatcher, giver, outbox, handing_over)
        self._host_results = HostResults(tables, dispatcher, outbox, self._graphs)
        self._endings = Endings(tables, dispatcher, outbox, self._graphs, limits.task_retries)
        self._credits = Credits(tables, dispatcher, outbox, limits.memory_limit_bytes, limits.client_tasks)
        self._bounds = bounds = Bounds(limits, tables)
        self._claims = claims = Claims(tables, is_connected)
        self.settling = Settling(dispatcher, incarnation)
        self._withdrawals = Withdrawals(tables, dispatcher, outbox, self._graphs, self._host_results, self._endings)
        self._adoption = Adoption(tables, dispatcher, giver, self._withdrawals, limits.client_timeout_seconds)
        self._submissions = Submissions(tables, dispatcher, self._graphs, self._adoption, bounds)
        self.notices = Notices()
        self._losses = Losses(
            tables,
            dispatcher,
            self._endings,
            self._graphs,
            self._host_results,
            self._withdrawals,
            self._adoption,
            self.notices,
        )
        self.unserved = Unserved(tables, dispatcher, outbox, self.notices)
        self._unreceived = Unreceived(tables, outbox, self.notices)
        self._peers = Peers(
            tables,
            dispatcher,
            outbox,
            self._losses,
            self._withdrawals,
            self._adoption,
            self._host_results,
            self._credits,
            limits,
            protocol_version,
            self.notices,
            bounds,
            claims,
            self.settling,
            handing_over,
        )
        self._leases = LeaseTimer(now)
        self._next_cut_off_line = now
        self.refusal: Optional[Exception] = None
        """Why the last event that was not taken was not; whoever has told the log of it takes it away."""
        self.is_shut_down = False
        """Whether a client has asked that everything ends."""
        self._handlers: List[Optional[Callable[..., None]]] = [None] * events.KINDS
        self._handlers[events.HELLO] = self._peers.hello
        self._handlers[events.GOODBYE] = self._peers.goodbye
        self._handlers[events.HEARTBEAT] = self._peers.heartbeat
        self._handlers[events.FUNCTION] = self._function
        self._handlers[events.FORGET_FUNCTIONS] = self._forget_functions
        self._handlers[events.SUBMIT] = self._submit
        self._handlers[events.RESULTS] = self._results
        self._handlers[events.STARTED] = self._started
        self._handlers[events.CANCEL] = self._cancel
        self._handlers[events.WORKER_DIED] = self._worker_died
        self._handlers[events.RETRACTED] = self._retracted
        self._handlers[events.SUSPENDED] = self._suspended
        self._handlers[events.RESUMED] = self._resumed
        self._handlers[events.RECEIVED] = self._received
        self._handlers[events.OBJECT] = self._object
        self._handlers[events.FORGET_OBJECTS] = self._forget_objects
        self._handlers[events.SHUTDOWN] = self._shutdown
        self._handlers[events.OUTPUT] = self._output

    @property
    def counts(self) -> Counts:
        return self.tables.counts

    # ------------------------------------------------------------------------------------------------------- in and out

    def handle(self, event: events.Event, now: float) -> None:
        """Take one event. A wrong one changes nothing, and its sender is told.

        Raises:
            InvariantError: the core is broken.
        """
        handler = self._handlers[event.kind]
        assert handler is not None
        self.tables.history.now = now
        if self._claims.contested and event.route in self._claims.contested:
            self._claims.hear(event.route, now)
        try:
            handler(event, now)
        except NotAdmittedError as error:
            self.refusal = error
            self.outbox.add(effects.Refused(event.route, error.reason, str(error)))
        except ProtocolError as error:
            self.refusal = error
            self.counts.refused += 1
            self.counts.vain_microseconds += VAIN_MESSAGE
            self.outbox.add(effects.Error(event.route, str(error), error.tasks))

    def tick(self, now: float) -> None:
        """Do what is due: give up peers whose lease has run out, stop tasks whose time is over."""
        self.tables.history.now = now
        if self._claims.contested:
            self._peers.settle_claims(now)
        if now >= self.tables.timers.next_deadline:
            self._withdrawals.look(now)
        if now >= self.settling.deadline:
            self.settling.let_go()
        if self._leases.is_due(now):
            self._peers.give_up_silent(now, self._leases.stall())
            self._credits.look_at_all()
            self._look_for_silent()
            self.unserved.look(now)
            self._unreceived.look(now)

    def knows(self, route: bytes) -> bool:
        """Whether somebody was welcomed on this connection."""
        tables = self.tables
        return route in tables.clients.by_route or route in tables.workers.by_route or route in tables.agents.by_route

    def name_of(self, route: bytes) -> str:
        """Who speaks on this connection, for people."""
        tables = self.tables
        client = tables.clients.by_route.get(route)
        worker = tables.workers.by_route.get(route)
        agent = tables.agents.by_route.get(route)
        for role, peer in (("client", client), ("worker", worker), ("agent", agent)):
            if peer is not None:
                return f"{role} {peer.name}"
        return "somebody who has not said hello"

    @property
    def next_deadline(self) -> float:
        """When `tick` has something to do at the earliest."""
        return min(self._leases.next_check, self.tables.timers.next_deadline, self.settling.deadline)

    def collect(self) -> List[effects.Effect]:
        """Dispatch what can be, and hand over all effects since the last call."""
        dispatcher = self.dispatcher
        if self._graphs.unneeded:
            self._withdrawals.cancel_unneeded()
        if dispatcher.ranks:
            dispatcher.run()
        if dispatcher.stuck and dispatcher.idle:  # what still waits is not for those that are idle
            self._withdrawals.take_back(work_stealing.choose(dispatcher))
        self._withdrawals.flush()
        self._forget_unused_functions()
        if self.outbox.clients:
            self._credits.settle()
        return self.outbox.take()

    def undelivered(self, effect: effects.Effect) -> None:
        """There is no such connection any more. A worker may be kept by its agent's heartbeats for as long as it lives,
        and never come back: what it was to be given goes to others, and its lease is its own from now on."""
        worker = self.tables.workers.by_route.get(effect.route)
        if worker is None:
            return
        now = self.tables.history.now
        if not worker.is_cut_off and now >= self._next_cut_off_line:
            self._next_cut_off_line = now + CUT_OFF_LINE_SECONDS
            text = f"worker {worker.name} on {worker.host} (process {worker.pid}) can't be reached"
            self.notices.info(f"{text}: it gets nothing before it is back")
        worker.is_cut_off = True
        self.dispatcher.withdraw(worker)
        if isinstance(effect, effects.Dispatch):
            self._withdrawals.take_undelivered(effect, worker)

    def farewell(self, reason: str) -> List[effects.Effect]:
        """What to tell every peer when the scheduler stops on purpose."""
        tables = self.tables
        routes = [*tables.clients.by_route, *tables.workers.by_route, *tables.agents.by_route]
        return [effects.Goodbye(route, reason) for route in routes]

    def cut_off(self, users: Container[str], now: float) -> int:
        """Keys were revoked: whoever has joined with one is lost, and told so. Returns how many peers that were."""
        return self._peers.cut_off(users, now)

    # -------------------------------------------------------------------------------------------------------- functions

    def _function(self, event: events.Function, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        known = client.functions.get(event.number)
        if known is not None:
            if known.digest == event.digest:
                return
            raise ProtocolError(f"function number {event.number} is taken")
        self._bounds.check_function(client, event)
        function = self.tables.functions.add(event.digest, event.name, event.function_kind, event.payload)
        client.functions[event.number] = function
        self.tables.functions.hold(function, client.incarnation)

    def _forget_functions(self, event: events.ForgetFunctions, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        for number in event.numbers:
            function = client.functions.pop(number, None)
            if function is None:
                self.counts.vain_microseconds += VAIN_ROW
            else:
                self.tables.functions.release(function, client.incarnation)

    def _forget_unused_functions(self) -> None:
        removed = self.tables.functions.remove_unused()
        for worker in self.tables.workers if removed else ():
            numbers = [function.number for function in removed if function in worker.functions]
            if numbers:
                worker.functions.difference_update(removed)
                self.outbox.add(effects.ForgetFunctions(worker.route, numbers))

    # ------------------------------------------------------------------------------------------------ tasks and objects

    def _submit(self, event: events.Submit, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            client.deadline = now + self.limits.client_timeout_seconds
            self._bounds.check_rows(len(event.ids))
            self._bounds.count_submit(client, event)
            self._submissions.take(client, event, now)

    def _object(self, event: events.Object, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        if agent is not None:
            self._host_results.take_fetched(agent, event)
            return
        client = self._peers.client(event.route)
        if client is None:
            return
        if event.id not in client.objects:
            self._bounds.check_object(client, event)
        is_taken = event.id in client.objects or self._credits.has_room(client, event)
        if is_taken:
            self._graphs.take_object(client, event)
        self._credits.look_at(client)
        if not is_taken:
            raise self._bounds.no_room(event)

    def _forget_objects(self, event: events.ForgetObjects, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        if agent is not None:
            self._host_results.take_missing(agent, event)
            return
        client = self._peers.client(event.route)
        if client is not None:
            self._graphs.forget(client, event.ids)
            self._credits.look_at(client)

    # ---------------------------------------------------------------------------------------------------------- workers

    def _results(self, event: events.Results, now: float) -> None:
        worker = self._peers.worker(event.route)
        if worker is None:
            self.counts.late += len(event.ids)
            return
        worker.said += 1
        self._bounds.check_rows(len(event.ids))
        late = self.counts.late
        take_results(event, worker, self.tables, self.outbox, self._endings, self._graphs, self._host_results)
        self.counts.vain_microseconds += VAIN_ROW * (self.counts.late - late)
        self._submissions.claim_ready(now)
        self._offer(worker)

    def _offer(self, worker: Worker) -> None:
        if wants_work(worker, self.limits.queue_size):
            self.dispatcher.offer(worker)

    def _started(self, event: events.Started, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        worker = None if agent is not None else self._peers.worker(event.route)
        if worker is not None:
            worker.said += 1
        begun: Dict[Client, List[int]] = {}
        for row in range(len(event.ids)):
            task = self.tables.named(event.clients[row], event.ids[row], event.attempts[row])
            if task is None or task.worker is None:
                self.counts.vain_microseconds += VAIN_ROW
                continue
            if agent is not None:
                # Its word is for workers that can't say so themselves; of the others it is old.
                if task.worker.agent != agent.incarnation or task.state != DISPATCHED:
                    continue
            elif task.worker is not worker:
                continue
            begin(task, now)
            self._has_begun(task, task.worker, now)
            if not task.client.is_gone:
                begun.setdefault(task.client, []).append(task.id)
        for client, ids in begun.items():
            self.outbox.add(effects.Started(client.route, ids))

    def _has_begun(self, task: Task, worker: Worker, now: float) -> None:
        self.dispatcher.stuck[worker] = None
        self.tables.history.started(task, worker)
        limit = task.options.timeout_seconds
        if limit:
            if task.timer is None and task.wish < FORCE:
                self.tables.timers.set(task, now + limit)
        elif task.function.mean_ns < LONG_TASK_NS:
            task.function.observe(LONG_TASK_NS, 1)

    def _retracted(self, event: events.Retracted, now: float) -> None:
        worker = self._peers.worker(event.route)
        if worker is not None:
            worker.said += 1
            self._withdrawals.take_retracted(event, worker, now)
            self._offer(worker)

    def _output(self, event: events.Output, now: float) -> None:
        if self._peers.worker(event.route) is not None:
            pass_on(event, self.tables, self.outbox)

    def _worker_died(self, event: events.WorkerDied, now: float) -> None:
        agent = self._peers.agent(event.route)
        if agent is None:
            return
        worker = self.tables.workers.find(event.incarnation)
        if worker is None:
            agent.gone_workers.append(event.incarnation)
        if worker is None or worker.agent != agent.incarnation:
            return
        running = self.tables.held(worker, event.client, event.id, event.attempt) if event.attempt else None
        self._losses.worker_died(worker, event.cause, event.peak_bytes, running, now)

    # ---------------------------------------------------------------------------------------------------------- clients

    def _cancel(self, event: events.Cancel, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._bounds.check_rows(len(event.ids))
            self._withdrawals.cancel(client, event.ids, event.force, now)

    def _received(self, event: events.Received, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._credits.take_received(client, event.bytes)
            tell_dropped(client, self.outbox)

    def _shutdown(self, event: events.Shutdown, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        if self.limits.is_protected:
            raise ProtocolError("protected: this scheduler is not ended by clients (scaler_scheduler --no-protected)")
        self.is_shut_down = True
        for agent in self.tables.agents:
            self.outbox.add(effects.Shutdown(agent.route))

    def _suspended(self, event: events.Suspended, now: float) -> None:
        nested = self._nested(event.route)
        if nested is not None:
            client, worker = nested
            take_suspended(event, client, worker, self.tables)
            if worker is not None:
                self._offer(worker)

    def _resumed(self, event: events.Resumed, now: float) -> None:
        nested = self._nested(event.route)
        if nested is not None:
            client, worker = nested
            take_resumed(event, client, worker, self.tables, now)
            if worker is not None:
                self.dispatcher.go_on(worker)

    def _nested(self, route: bytes) -> Optional[Tuple[Client, Optional[Worker]]]:
        """The nested client on this connection, and its worker, where that has joined."""
        client = self._peers.client(route)
        if client is None:
            return None
        if not client.worker:
            raise ProtocolError("this message is a nested client's to send")
        return client, self.tables.workers.find(client.worker)

    # ---------------------------------------------------------------------------------------------------------- notices

    def _look_for_silent(self) -> None:
        """Say of workers whose queue is taken away that it is: what they run keeps them from answering."""
        for tasks in work_stealing.choose_at_silent(self.tables.workers, self.dispatcher.idle):
            worker = tasks[0].worker
            assert worker is not None
            text = f"worker {worker.name} on {worker.host} (process {worker.pid}) does not answer while it runs a task"
            self.notices.info(f"{text}: {len(tasks)} task(s) that it has queued run elsewhere")
            self._withdrawals.take_away(tasks)
        for worker in self.tables.workers:
            if work_stealing.may_be_cut_off(worker):
                self.outbox.add(effects.HeartbeatEcho(worker.route, 0))
