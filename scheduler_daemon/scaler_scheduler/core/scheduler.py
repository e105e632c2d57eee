"""The state machine: events in, effects out. This module maps each event to the part of the core that handles it.

`handle` takes one event and gathers its effects. `collect` returns all effects since the last call, one batch for each
peer. The time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Callable

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.agent_wait import AgentWait
from scaler_scheduler.core.completion.attempt_end import AttemptEnd
from scaler_scheduler.core.completion.cancellation import Cancellation, mark_started
from scaler_scheduler.core.completion.evacuation import Evacuation
from scaler_scheduler.core.completion.gangs import Gangs
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.results import ResultHandler
from scaler_scheduler.core.completion.suspension import resume_named, suspend_named
from scaler_scheduler.core.completion.takeover import Takeover
from scaler_scheduler.core.completion.transfer_end import TransferEnd
from scaler_scheduler.core.dispatch import work_stealing
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import Credits
from scaler_scheduler.core.environments.supply import EnvironmentSupply
from scaler_scheduler.core.environments.worker_changes import WorkerChanges
from scaler_scheduler.core.errors import NotAdmittedError, ProtocolError
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.peers.admission import Admission
from scaler_scheduler.core.peers.duplicate_hello import DuplicateHellos
from scaler_scheduler.core.peers.hello import Hellos
from scaler_scheduler.core.peers.leases import Leases
from scaler_scheduler.core.peers.nested_hello import NestedHellos
from scaler_scheduler.core.peers.peer_loss import PeerLoss
from scaler_scheduler.core.peers.peers import Peers
from scaler_scheduler.core.peers.quotas import Quotas
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.peers.restart_hold import RestartHold
from scaler_scheduler.core.peers.successors import Successors
from scaler_scheduler.core.peers.welcome import Welcomes
from scaler_scheduler.core.placement.prefetch import wants_work
from scaler_scheduler.core.placement.share_queue import note_late_tasks
from scaler_scheduler.core.placement.wait import INFINITY
from scaler_scheduler.core.report.outputs import forward_output, report_dropped
from scaler_scheduler.core.report.slow_consumer import SlowConsumer
from scaler_scheduler.core.report.unschedulable import Unschedulable
from scaler_scheduler.core.report.wait_reasons import WaitReasons
from scaler_scheduler.core.state.counts import WASTED_MESSAGE_US, WASTED_ROW_US, Counts
from scaler_scheduler.core.state.environments import kind_in
from scaler_scheduler.core.state.records import Client, Task, Worker
from scaler_scheduler.core.state.shares import ShareLimits
from scaler_scheduler.core.state.timers import LeaseTimer
from scaler_scheduler.core.state.transitions import DISPATCHED, INTENT_FORCE
from scaler_scheduler.core.submissions import Submissions

LONG_TASK_NS = 10_000_000
"""A worker that reports a started task without a request has run it for at least this long."""

UNREACHABLE_LOG_SECONDS = 10.0
"""The least time between two log lines about unreachable workers. Such workers may disconnect again and again."""


class Scheduler:
    """The state machine of one scheduler."""

    def __init__(
        self,
        limits: Limits,
        protocol_version: int,
        now: float,
        is_connected: Callable[[bytes], bool] = lambda route: False,
        incarnation: int = 0,
    ) -> None:
        """Make an empty scheduler.

        Args:
            limits: the operator's settings.
            protocol_version: the version that peers must speak.
            now: seconds of the monotonic clock.
            is_connected: whether the connection of this route still exists, as far as ZeroMQ knows.
            incarnation: the scheduler's own, as in its welcomes.
        """
        core = CoreState(limits, now, incarnation)
        self.limits = limits
        self.tables = tables = core.tables
        self.outbox = core.outbox
        self.dispatcher = core.dispatcher
        self.operator_log = core.operator_log
        self.task_limits = core.task_limits
        self.holdings = core.holdings
        self.bookings = core.bookings
        self._clock = tables.clock
        self.successors = Successors(core)
        self._supply = supply = EnvironmentSupply(core)
        self.changes = changes = WorkerChanges(core, supply)
        evacuation = Evacuation(core)
        self._graphs = graphs = Graphs(core, evacuation)
        self._host_results = host_results = HostResults(core, graphs)
        self._transfer_end = transfer_end = TransferEnd(core, graphs, host_results)
        self._gangs = gangs = Gangs(core, graphs)
        attempt_end = AttemptEnd(core, graphs, gangs)
        self.agent_wait = AgentWait(tables)
        self._results_handler = ResultHandler(core, attempt_end, graphs, host_results, gangs)
        self._cancellation = cancellation = Cancellation(core, graphs, host_results, attempt_end, gangs)
        self._credits = credits = Credits(core)
        self._quotas = quotas = Quotas(limits, tables)
        self._duplicate_hellos = duplicate_hellos = DuplicateHellos(tables, is_connected)
        self.restart_hold = RestartHold(core.queues, core.tables, incarnation)
        self._reattach = reattach = Reattach(core, cancellation, host_results)
        self._takeover = Takeover(core, host_results)
        self._submissions = Submissions(core, graphs, reattach, quotas)
        self._peer_loss = peer_loss = PeerLoss(
            core,
            attempt_end=attempt_end,
            cancellation=cancellation,
            gangs=gangs,
            graphs=graphs,
            host_results=host_results,
            reattach=reattach,
            takeover=self._takeover,
            transfer_end=transfer_end,
            changes=changes,
        )
        self.transfers = core.transfers
        self.unschedulable = Unschedulable(core, changes.may_serve)
        self.wait_reasons = WaitReasons(core, changes.may_serve)
        self._slow_consumer = SlowConsumer(core)
        self._peers = Peers(core)
        welcomes = Welcomes(
            core,
            credits,
            self.restart_hold,
            cancellation=cancellation,
            takeover=self._takeover,
            peer_loss=peer_loss,
            reattach=reattach,
            changes=changes,
            successors=self.successors,
        )
        admission = Admission(core, quotas, protocol_version)
        self._nested_hellos = nested_hellos = NestedHellos(tables)
        self._hellos = Hellos(core, admission, duplicate_hellos, nested_hellos, peer_loss, welcomes)
        self._leases = Leases(core, nested_hellos, peer_loss, cancellation, reattach, evacuation)
        self._lease_timer = LeaseTimer(now)
        self._next_unreachable_log = now
        self.last_rejection: Exception | None = None
        """Why the last event was rejected. The daemon logs it and sets it to None."""
        self.is_shut_down = False
        """Whether a client has asked the scheduler and all clusters to end."""
        self._handlers: list[Callable[..., None] | None] = [None] * events.KINDS
        self._handlers[events.HELLO] = self._hello
        self._handlers[events.GOODBYE] = self._leases.goodbye
        self._handlers[events.HEARTBEAT] = self._leases.heartbeat
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
        self._handlers[events.OBJECTS] = self._objects
        self._handlers[events.FORGET_OBJECTS] = self._forget_objects
        self._handlers[events.FETCH_OBJECTS] = self._fetch_objects
        self._handlers[events.SHUTDOWN] = self._shutdown
        self._handlers[events.OUTPUT] = self._output
        self._handlers[events.TRANSFERRED] = self._transferred
        self._handlers[events.ENVIRONMENT] = self._environment
        self._handlers[events.CONTENTS_WANTED] = self._contents_wanted
        self._handlers[events.CONTENTS] = self._contents
        self._handlers[events.ENVIRONMENT_READY] = self._environment_ready
        self.core_state = core
        """For invariants and snapshots."""
        self._handlers[events.EXCHANGE] = self._exchange
        self._handlers[events.HELD_RESULTS] = self._held_results

    @property
    def counts(self) -> Counts:
        return self.tables.counts

    # ------------------------------------------------------------------------------------------------------- in and out

    def handle(self, event: events.Event, now: float) -> None:
        """Handle one event. A wrong event changes nothing, and its sender gets an error.

        Args:
            event: what a peer sent.
            now: seconds of the monotonic clock.

        Raises:
            InvariantError: the core contradicts itself.
        """
        handler = self._handlers[event.kind]
        assert handler is not None
        self._clock.now = now
        if self._duplicate_hellos.contested and event.route in self._duplicate_hellos.contested:
            self._duplicate_hellos.note_message(event.route, now)
        try:
            handler(event, now)
        except NotAdmittedError as error:
            self.last_rejection = error
            self.outbox.add(effects.Refused(event.route, error.reason, str(error)))
        except ProtocolError as error:
            self.last_rejection = error
            self.counts.rejected_messages += 1
            self.counts.wasted_us += WASTED_MESSAGE_US
            self.outbox.add(effects.Error(event.route, str(error), error.tasks))
        if self._reattach.answered:
            self._take_early(now)

    def tick(self, now: float) -> None:
        """Do the work that is due: remove peers whose lease has run out, stop tasks whose time limit is over."""
        self._clock.now = now
        if self._duplicate_hellos.contested or self._nested_hellos.waiting:
            self._hellos.decide_waiting(now)
        if now >= self.tables.timers.next_deadline:
            self._cancellation.check_timers(now)
        if now >= self.dispatcher.next_wait_at:
            self.dispatcher.next_wait_at = INFINITY  # the dispatcher's run sets it again
        if now >= self.restart_hold.deadline:
            self.restart_hold.release(now)
        if now >= self.agent_wait.deadline:
            self._take_held_results(self.agent_wait.pop_late(now), now)
        if self._lease_timer.is_due(now):
            self._leases.expire(now, self._lease_timer.stall_seconds())
            note_late_tasks(self.tables)
            self.core_state.queues.has_news = True  # shares have used more time, and rates have let tasks through
            self._credits.update_all()
            self._cancellation.reassign_silent()
            self._transfer_end.check(now)
            self._takeover.check(now, self.restart_hold.is_holding)
            self.core_state.gangs.check(now)
            self.core_state.near_data.forget_ended()
            self.core_state.spare_copies.forget_ended()
            self.changes.return_unused(now)
            self.successors.check(now)
            self.unschedulable.check(now)
            self._slow_consumer.check(now)
        if self._reattach.answered:
            self._take_early(now)

    def has_peer(self, route: bytes) -> bool:
        """Whether a peer was welcomed on this connection."""
        return self._peers.is_known(route)

    def peer_name(self, route: bytes) -> str:
        """The role and name of the peer on this connection, for people."""
        return self._peers.name(route)

    @property
    def next_deadline(self) -> float:
        """When `tick` has something to do next, in seconds of the monotonic clock."""
        return min(self._lease_timer.next_check, self.next_timer)

    @property
    def next_timer(self) -> float:
        """The same without the check of leases, which may be late."""
        return min(
            self.tables.timers.next_deadline,
            self.restart_hold.deadline,
            self.agent_wait.deadline,
            self.outbox.next_deadline,
            self.dispatcher.next_wait_at,
            self.changes.next_look_at,
        )

    def collect(self) -> list[effects.Effect]:
        """Dispatch waiting tasks, and return all effects since the last call."""
        queues, pool = self.core_state.queues, self.core_state.pool
        if self._graphs.ready:  # by an object or a file that has come
            self._submissions.match_ready(self._clock.now)
            self._take_early(self._clock.now)
        if self._graphs.unneeded:
            self._cancellation.cancel_unneeded()
        if self.bookings.unsettled or self.bookings.reservations:
            self.core_state.hosts.settle()
        has_environments = self.changes.is_active or self.changes.next_look_at <= self._clock.now
        if has_environments:
            self.changes.advance(self._clock.now)
        if self._gangs.broken:
            self._cancellation.stop_broken_gangs(self._clock.now)
        if queues:
            self.dispatcher.run()
        if has_environments:
            self.changes.look(self._clock.now, self._cancellation)
        if self._graphs.raised:
            self._cancellation.rebalance(self._graphs.pop_raised())
        if pool.long_running and queues.has_news and queues:
            self._cancellation.rebalance(work_stealing.tasks_to_overtake(self.core_state))
        if pool.long_running and len(pool.idle) > self.core_state.gangs.kept_count():
            # The idle workers cannot run the tasks that still wait.
            self._cancellation.rebalance(work_stealing.tasks_to_steal(self.core_state))
        self._cancellation.flush()
        self._forget_unused_functions()
        if self.outbox.clients:
            self._credits.update_answered()
        return self.outbox.drain(self._clock.now)

    def undelivered(self, effect: effects.Effect) -> None:
        """Take back an effect whose connection no longer exists.

        The tasks of such a worker go to other workers. Its agent's heartbeats no longer renew its lease, because the
        worker may live on and never reconnect.
        """
        worker = self.tables.workers.by_route.get(effect.route)
        if worker is None:
            return
        now = self._clock.now
        if not worker.is_unreachable and now >= self._next_unreachable_log:
            self._next_unreachable_log = now + UNREACHABLE_LOG_SECONDS
            text = f"worker {worker.name} on {worker.host} (process {worker.pid}) is unreachable"
            self.operator_log.info(f"{text}: it gets no tasks until it reconnects")
        worker.is_unreachable = True
        self.core_state.pool.remove(worker)
        if isinstance(effect, effects.Dispatch):
            self.holdings.give_back(worker, effect.clients, effect.ids, effect.attempts)
            self._cancellation.return_undelivered(effect, worker)

    def goodbyes(self, reason: str) -> list[effects.Effect]:
        """Return a goodbye for every peer, for a scheduler that stops on purpose."""
        tables = self.tables
        routes = [*tables.clients.by_route, *tables.workers.by_route, *tables.agents.by_route]
        return [effects.Goodbye(route, reason) for route in routes]

    def set_share_limits(self, limits: Mapping[str, ShareLimits]) -> None:
        """Set what the operator allows keys, by the user of each."""
        self.tables.clients.shares.set_limits(limits)

    def revoke(self, users: Container[str], now: float, new_ticket: Callable[[], str]) -> int:
        """Remove the peers that joined with a revoked key, and send them `refused`. Returns their number."""
        self._hellos.drop_waiting(users)
        return self._leases.revoke(users, now, new_ticket)

    # ------------------------------------------------------------------------------------------------------------ peers

    def _hello(self, event: events.Hello, now: float) -> None:
        self._hellos.hello(event, now)
        agent = self.tables.agents.by_route.get(event.route)
        if agent is not None and len(self.agent_wait):
            self._take_held_results(self.agent_wait.pop_joined(agent.incarnation), now)

    # -------------------------------------------------------------------------------------------------------- functions

    def _function(self, event: events.Function, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        known = client.functions.get(event.number)
        if known is not None:
            if known.digest == event.digest:
                return
            raise ProtocolError(f"function number {event.number} already names another function")
        self._quotas.check_function(client, event)
        environment = event.environment
        if environment and self.tables.functions.find(event.digest) is None:
            self.tables.environments.add_function(environment)
        kind = kind_in(environment, event.function_kind)
        function = self.tables.functions.add(event.digest, event.name, kind, event.payload, environment)
        client.functions[event.number] = function
        self.tables.functions.add_client(function, client.incarnation)

    def _forget_functions(self, event: events.ForgetFunctions, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        for number in event.numbers:
            function = client.functions.pop(number, None)
            if function is None:
                self.counts.wasted_us += WASTED_ROW_US
            else:
                self.tables.functions.remove_client(function, client.incarnation)

    def _forget_unused_functions(self) -> None:
        removed = self.tables.functions.remove_unused()
        if removed and len(self.tables.environments):
            self.tables.environments.remove_functions([each.environment for each in removed if each.environment])
        for worker in self.tables.workers if removed else ():
            numbers = [function.number for function in removed if function in worker.functions]
            if numbers:
                worker.functions.difference_update(removed)
                worker.kept_functions.difference_update(removed)
                self.outbox.add(effects.ForgetFunctions(worker.route, numbers))

    # ----------------------------------------------------------------------------------------------------- environments

    def _environment(self, event: events.Environment, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._supply.declare(client, event)

    def _contents(self, event: events.Contents, now: float) -> None:
        if self._peers.client(event.route) is not None:
            self._supply.receive(event)

    def _contents_wanted(self, event: events.ContentsWanted, now: float) -> None:
        agent = self._peers.agent(event.route)
        if agent is not None:
            self._supply.send_contents(agent, event)

    def _environment_ready(self, event: events.EnvironmentReady, now: float) -> None:
        agent = self._peers.agent(event.route)
        if agent is not None:
            self.changes.environment_ready(agent, event, now)

    # ------------------------------------------------------------------------------------------------ tasks and objects

    def _submit(self, event: events.Submit, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            client.deadline = now + self.limits.client_timeout_seconds
            self._quotas.check_rows(max(len(event.ids), len(event.keep_earlier)))
            if client.worker:
                self._nested_hellos.check_submit(client, event, now)
            self._quotas.count_submit(client, event)
            if client.worker:
                self._join_share_of_parent(client)
            self._submissions.submit(client, event, now)

    def _join_share_of_parent(self, client: Client) -> None:
        """Let a nested client without open tasks share the workers as the client of the task that its worker runs."""
        if client.tasks or client.lanes:
            return
        worker = self.tables.workers.find(client.worker)
        parent = None if worker is None else worker.parent_client
        if parent is not None and parent.share is not client.share:
            self.tables.clients.shares.move_client(client.share, parent.share)
            client.share = parent.share

    def _object(self, event: events.Object, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        if agent is not None:
            if event.file_bytes:
                raise ProtocolError("an object as a file, from a peer that is no client")
            self._host_results.receive_object(agent, event)
            return
        client = self._peers.client(event.route)
        if client is not None:
            try:
                self._add_object(client, event)
            finally:
                self._credits.update(client)

    def _objects(self, event: events.Objects, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        self._quotas.check_rows(len(event.ids))
        error: ProtocolError | None = None
        for object_id, value in zip(event.ids, event.values):
            try:
                self._add_object(client, events.Object(event.route, object_id, "", [value]))
            except ProtocolError as each:
                error = error or each
        self._credits.update(client)
        if error is not None:
            raise error

    def _add_object(self, client: Client, event: events.Object) -> None:
        """Add an object that a client has sent. Raises ProtocolError."""
        stored = client.objects.get(event.id)
        if stored is not None and stored.is_remote and stored.is_from_client:
            self._host_results.receive_from_client(client, stored, event)
            return
        is_known = stored is not None and not stored.is_awaited
        if stored is not None and is_known and event.file_bytes and not stored.is_known_to(client.place):
            self.outbox.forget_object(client.route, client.incarnation, event.id)  # it has the bytes of the result
        try:
            if not is_known:
                self._quotas.check_object(client, event)
                if not self._credits.has_room(client, event):
                    raise self._quotas.object_refusal(event)
            self._graphs.add_object(client, event)
        except ProtocolError:
            self._graphs.release_objects(client, [event.id])  # tasks may wait for it
            if event.file_bytes:
                self.outbox.forget_object(client.route, client.incarnation, event.id)
            raise

    def _forget_objects(self, event: events.ForgetObjects, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        if agent is not None:
            self._host_results.report_missing(agent, event)
            return
        client = self._peers.client(event.route)
        if client is not None:
            self._graphs.release_objects(client, event.ids)
            self._credits.update(client)

    def _fetch_objects(self, event: events.FetchObjects, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._quotas.check_rows(len(event.ids))
            self._host_results.send_to_client(client, event.ids)

    def _held_results(self, event: events.HeldResults, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._quotas.check_rows(len(event.ids))
            self._takeover.claim(client, event, now)

    # ---------------------------------------------------------------------------------------------------------- workers

    def _results(self, event: events.Results, now: float) -> None:
        worker = self._peers.worker(event.route)
        if worker is None:
            self.counts.late_results += len(event.ids)
            return
        worker.message_count += 1
        worker.heard_at = now
        self._quotas.check_rows(len(event.ids))
        rest: events.Results | None = event
        if worker.agent_until:
            rest = self.agent_wait.hold(event, worker, now)
        if rest is not None:
            self._take_results(rest, worker, now)

    def _take_results(self, event: events.Results, worker: Worker, now: float) -> None:
        late = self.counts.late_results
        if self.holdings.held:
            clients, attempts, _ = event.short
            self.holdings.give_back(worker, clients, event.ids, attempts)
        self._results_handler.handle(event, worker)
        self.counts.wasted_us += WASTED_ROW_US * (self.counts.late_results - late)
        self._submissions.match_ready(now)
        self._add_if_ready(worker)

    def _take_held_results(self, held: list[tuple[Worker, events.Results]], now: float) -> None:
        """Take results that have waited for their host agent or their client. Those of clients may wait for the agent
        now."""
        for worker, event in held:
            if self.tables.workers.find(worker.incarnation) is not worker:
                self._results_handler.handle(event, worker)
                continue
            rest = self.agent_wait.hold(event, worker, now) if worker.agent_until else event
            if rest is not None:
                self._take_results(rest, worker, now)

    def _take_early(self, now: float) -> None:
        """Let the answers count that have come before their clients, and whose tasks are there now."""
        while self._reattach.answered:
            early, task = self._reattach.answered.popleft()
            if early.results is not None:
                self._take_held_results([(early.worker, early.results)], now)
            elif task.worker is early.worker:
                if early.ends_workers:
                    self.tables.functions.note_end_of_worker(task.function)
                self._peer_loss.end_attempt(task, early.worker, early.death)
            self._submissions.match_ready(now)

    def _add_if_ready(self, worker: Worker) -> None:
        if wants_work(worker, self.limits.queue_size):
            self.core_state.pool.add(worker)

    def _started(self, event: events.Started, now: float) -> None:
        agent = self.tables.agents.by_route.get(event.route)
        worker = None if agent is not None else self._peers.worker(event.route)
        if worker is not None:
            worker.message_count += 1
        begun: dict[Client, list[int]] = {}
        awaited: set[tuple[int, int]] = set()
        for row in range(len(event.ids)):
            task = self.tables.find_task(event.clients[row], event.ids[row], event.attempts[row])
            if task is None or task.worker is None:
                self.counts.wasted_us += WASTED_ROW_US
                if agent is not None:
                    awaited.add((event.clients[row], event.ids[row]))
                continue
            if agent is not None:
                # The agent's report counts only for workers that cannot report themselves. For other workers it is
                # outdated.
                if task.worker.agent != agent.incarnation or task.state != DISPATCHED:
                    continue
            elif task.worker is not worker:
                continue
            mark_started(task, now)
            self._record_start(task, task.worker, now)
            if not task.client.is_gone and (task.gang is None or task is task.gang.lead):
                begun.setdefault(task.client, []).append(task.id)
        if agent is not None:
            agent.awaited = awaited
        for client, ids in begun.items():
            self.outbox.add(effects.Started(client.route, ids))

    def _record_start(self, task: Task, worker: Worker, now: float) -> None:
        self.core_state.pool.note_long(worker)
        self.tables.history.record_started(task, worker)
        limit = task.options.timeout_seconds
        if limit:
            if task.timer is None and task.intent < INTENT_FORCE:
                self.tables.timers.set(task, now + limit)
        elif task.function.mean_ns * task.options.weight < LONG_TASK_NS:
            task.function.observe(LONG_TASK_NS, task.options.weight)

    def _retracted(self, event: events.Retracted, now: float) -> None:
        worker = self._peers.worker(event.route)
        if worker is not None:
            worker.message_count += 1
            self._cancellation.process_retracted(event, worker, now)
            if self.holdings.held:
                self._give_back_returned(event, worker)
            self._add_if_ready(worker)

    def _give_back_returned(self, event: events.Retracted, worker: Worker) -> None:
        """Take back what tasks hold that a worker has given back, asked or not."""
        for row, returned in enumerate(event.returned):
            name = event.clients[row], event.ids[row], event.attempts[row]
            if returned and self.tables.find_held(worker, *name) is None:
                self.holdings.give_back(worker, (name[0],), (name[1],), (name[2],))

    def _output(self, event: events.Output, now: float) -> None:
        if self._peers.worker(event.route) is not None:
            forward_output(event, self.tables, self.outbox)

    def _worker_died(self, event: events.WorkerDied, now: float) -> None:
        agent = self._peers.agent(event.route)
        if agent is None:
            return
        agent.awaited.discard((event.client, event.id))
        worker = self.tables.workers.find(event.incarnation)
        ran = event.client, event.id, event.attempt
        if worker is None:
            agent.dead_workers.append(event.incarnation)
            self._reattach.note_death(agent.gone_worker(event.incarnation, event.pid), ran, event.cause, now, ran)
            return
        if worker.agent != agent.incarnation:
            return
        running = self.tables.find_held(worker, event.client, event.id, event.attempt) if event.attempt else None
        if running is not None:
            self.tables.functions.note_end_of_worker(running.function)
        self._peer_loss.worker_died(worker, event.cause, now=now, running=running, ran=ran, peak_bytes=event.peak_bytes)

    def _transferred(self, event: events.Transferred, now: float) -> None:
        agent = self._peers.agent(event.route)
        if agent is not None:
            self._takeover.take(agent, self._transfer_end.transferred(agent, event))

    def _exchange(self, event: events.Exchange, now: float) -> None:
        worker = self._peers.worker(event.route)
        if worker is not None:
            worker.message_count += 1
            worker.heard_at = now
            if not self._gangs.exchange(event, worker):
                self.counts.wasted_us += WASTED_ROW_US
                self._cancellation.stop_copy(worker, (event.client, event.id, event.attempt))

    # ---------------------------------------------------------------------------------------------------------- clients

    def _cancel(self, event: events.Cancel, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._quotas.check_rows(len(event.ids))
            self._cancellation.cancel(client, event.ids, event.force, now)

    def _received(self, event: events.Received, now: float) -> None:
        client = self._peers.client(event.route)
        if client is not None:
            self._credits.acknowledge(client, event.bytes)
            report_dropped(client, self.outbox)

    def _shutdown(self, event: events.Shutdown, now: float) -> None:
        client = self._peers.client(event.route)
        if client is None:
            return
        if self.limits.is_protected:
            raise ProtocolError("protected: clients may not end this scheduler (scaler_scheduler --no-protected)")
        self.is_shut_down = True
        for agent in self.tables.agents:
            self.outbox.add(effects.Shutdown(agent.route))

    def _suspended(self, event: events.Suspended, now: float) -> None:
        nested = self._nested(event.route)
        if nested is not None:
            client, worker = nested
            begun = suspend_named(event, client, worker, self.tables, self.holdings)
            for parent, ids in begun.items():
                self.outbox.add(effects.Started(parent.route, ids))
            if worker is not None:
                self._add_if_ready(worker)

    def _resumed(self, event: events.Resumed, now: float) -> None:
        nested = self._nested(event.route)
        if nested is not None:
            client, worker = nested
            resume_named(event, client, worker, self.tables, self.holdings, now)
            if worker is not None:
                self.core_state.pool.mark_busy(worker)

    def _nested(self, route: bytes) -> tuple[Client, Worker | None] | None:
        """Return the nested client on this connection, and its worker if the worker has joined."""
        client = self._peers.client(route)
        if client is None:
            return None
        if not client.worker:
            raise ProtocolError("only a nested client may send this message")
        return client, self.tables.workers.find(client.worker)
