"""Who is there: hello, heartbeat, goodbye, leases."""

from typing import Container, List, Optional, Union

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.completion.evacuation import Evacuation
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import resume_all
from scaler_scheduler.core.dispatch.credit import Credits
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.dispatch.input_delivery import send_object
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.errors import NotAdmittedError, ProtocolError
from scaler_scheduler.core.ids import INCARNATION_LIMIT
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.peers.admission import objection
from scaler_scheduler.core.peers.draining import is_drained, retire
from scaler_scheduler.core.peers.duplicate_hello import DuplicateHellos, duplicate_text
from scaler_scheduler.core.peers.peer_loss import PeerLoss, likely_running
from scaler_scheduler.core.peers.quotas import Quotas
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.peers.restart_hold import RestartHold
from scaler_scheduler.core.state.counts import WASTED_HELLO_US, WASTED_MESSAGE_US, WASTED_ROW_US
from scaler_scheduler.core.state.operator_log import OperatorLog
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.state.tables import Tables


class Peers:
    def __init__(
        self,
        tables: Tables,
        dispatcher: Dispatcher,
        outbox: Outbox,
        peer_loss: PeerLoss,
        cancellation: Cancellation,
        reattach: Reattach,
        host_results: HostResults,
        credits: Credits,
        limits: Limits,
        protocol_version: int,
        operator_log: OperatorLog,
        quotas: Quotas,
        duplicate_hellos: DuplicateHellos,
        restart_hold: RestartHold,
        evacuation: Evacuation,
    ) -> None:
        self._evacuation = evacuation
        self._operator_log = operator_log
        self._quotas = quotas
        self._duplicate_hellos = duplicate_hellos
        self._restart_hold = restart_hold
        self._tables = tables
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._peer_loss = peer_loss
        self._cancellation = cancellation
        self._reattach = reattach
        self._host_results = host_results
        self._credits = credits
        self._limits = limits
        self._protocol_version = protocol_version

    # ------------------------------------------------------------------------------------------------------------ hello

    def hello(self, event: events.Hello, now: float) -> None:
        self._tables.counts.wasted_us += WASTED_HELLO_US
        self._quotas.check_hello(event, now)
        self._check_admission(event)
        if not self._duplicate_hellos.defer(event, now):
            self._accept_hello(event, now)

    def decide_duplicates(self, now: float) -> None:
        """Hellos that have waited until it is clear whose they are."""
        for duplicate in self._duplicate_hellos.pop_decided(now):
            if duplicate.is_old_alive:
                text = duplicate_text(duplicate)
                self._operator_log.warning(f"a hello is refused: {text}")
                self._outbox.add(effects.Error(duplicate.event.route, text))
            else:
                self._accept_hello(duplicate.event, now)

    def _accept_hello(self, event: events.Hello, now: float) -> None:
        self._leave_route(event, now)
        if event.role == events.CLIENT:
            self._welcome_client(event, now)
        elif event.role == events.WORKER:
            agent = self._tables.agents.find(event.agent)
            if agent is None or event.incarnation not in agent.dead_workers:
                self._welcome_worker(event, now)
        else:
            self._welcome_agent(event, now)

    def _check_admission(self, event: events.Hello) -> None:
        """Raises NotAdmittedError."""
        if event.protocol_version != self._protocol_version:
            text = f"protocol version {event.protocol_version} is not {self._protocol_version}"
            raise NotAdmittedError(text, effects.REFUSED_PROTOCOL_VERSION)
        if not 0 < event.incarnation < INCARNATION_LIMIT:
            text = f"incarnation {event.incarnation} is not between 1 and 2^63"
            raise NotAdmittedError(text, effects.REFUSED_MALFORMED_HELLO)
        text = objection(event, self._tables)
        if text:
            raise NotAdmittedError(text, effects.REFUSED_NOT_AUTHORIZED)

    def _leave_route(self, event: events.Hello, now: float) -> None:
        """Whoever else spoke on this connection before has been replaced."""
        tables, route = self._tables, event.route
        client = tables.clients.by_route.get(route)
        if client is not None and (client.incarnation != event.incarnation or event.role != events.CLIENT):
            self._peer_loss.client_left(client, now)
        worker = tables.workers.by_route.get(route)
        if worker is not None and (worker.incarnation != event.incarnation or event.role != events.WORKER):
            self._peer_loss.worker_left(worker, now)
        agent = tables.agents.by_route.get(route)
        if agent is not None and (agent.incarnation != event.incarnation or event.role != events.AGENT):
            self._peer_loss.agent_left(agent)

    def _welcome_client(self, event: events.Hello, now: float) -> None:
        clients = self._tables.clients
        client = clients.find(event.incarnation)
        deadline = now + self._limits.client_timeout_seconds
        if client is None:
            client = Client(event.incarnation, event.route, self._name_of(event), event.worker, deadline, event.user)
            clients.add(client)
            self._restart_hold.hold(client, event.scheduler, now)
        else:
            # A new connection of a known client: it submits again what it has no answer to, which is told apart by id.
            if client.is_gone:
                self._cancellation.restore_abandoned(client)
            clients.reconnect(client, event.route)
            client.deadline = deadline
            if client.outgoing is not None:
                client.outgoing.route = event.route
            self._resume_all(client, now)
        granted, window = self._credits.reset(client)
        self._welcome(event.route, self._limits.client_timeout_seconds, granted, window)

    def _name_of(self, event: events.Hello) -> str:
        """What people see of a client that may have said no name: a nested one is called by its worker."""
        worker = self._tables.workers.find(event.worker) if event.worker else None
        if not event.name and worker is not None:
            return f"tasks of {worker.name}"
        return event.name or f"client[{event.pid}]@{event.host}"

    def _resume_all(self, client: Client, now: float) -> None:
        """A nested client says again which tasks are suspended: what it said last of them may have been lost."""
        worker = self._tables.workers.find(client.worker)
        resume_all(list(client.suspended), client, worker, self._tables, now)
        if worker is not None:
            self._dispatcher.mark_busy(worker)

    def _welcome_worker(self, event: events.Hello, now: float) -> None:
        known = self._tables.workers.find(event.incarnation)
        for client in self._tables.clients.nested_in(event.incarnation):
            if client.user != event.user:  # it came first, and claimed to live there
                self._cut_off_client(client, "it doesn't live in the worker that it has named", now)
        # A new connection of a known worker: what was on its way to it is lost, and nothing says what arrived.
        intents = {} if known is None else self._peer_loss.connection_lost(known, event.running)
        worker = Worker(
            event.incarnation,
            event.agent,
            event.route,
            event.name,
            event.host,
            event.pid,
            event.capabilities,
            event.kinds,
            now + self._limits.worker_timeout_seconds,
            event.user,
        )
        worker.language, worker.version = event.language, event.version
        if known is not None:
            worker.usage = known.usage
        agent = self._tables.agents.find(event.agent)
        worker.is_retiring = agent is not None and agent.is_retiring
        self._tables.workers.add(worker)
        for name in dict.fromkeys(event.running):
            self._reattach.attach(worker, name, now)
        for task, intent in intents.items():
            self._cancellation.repeat_intent(task, intent, now)
        self._dispatcher.add_worker(worker)
        self._welcome(event.route, self._limits.worker_timeout_seconds)

    def _welcome_agent(self, event: events.Hello, now: float) -> None:
        agents = self._tables.agents
        agent = agents.find(event.incarnation)
        deadline = now + self._limits.worker_timeout_seconds
        if agent is None:
            agent = Agent(event.incarnation, event.route, event.name, event.host, deadline, event.user)
            agent.pid, agent.language, agent.version, agent.last_message_at = (
                event.pid,
                event.language,
                event.version,
                now,
            )
            agents.add(agent)
        else:
            agents.reconnect(agent, event.route)
            agent.deadline = deadline
            for stored in self._tables.objects.reconnect_agent(agent):
                if stored.is_remote and (stored.blocked_tasks or stored in agent.evacuated):
                    self._outbox.fetch_object(agent.route, stored.client.incarnation, stored.id)
        self._welcome(event.route, self._limits.worker_timeout_seconds)
        # What was on its way may be lost, and tasks that read it are queued at workers. Behind the welcome, as the
        # agent keeps of what it has no more than comes with it.
        for stored in self._tables.objects.shared_files(agent, self._tables.workers):
            self._tables.objects.add_agent_copy(stored, agent)
            send_object(stored, agent.route, self._outbox)
        self._host_results.reconcile_files(agent, event.running)

    def _welcome(self, route: bytes, lease_seconds: float, credit: int = 0, result_window: int = 0) -> None:
        limit = self._limits.message_size
        self._outbox.add(effects.Welcome(route, int(lease_seconds * 1000), credit, result_window, limit))

    # ----------------------------------------------------------------------------------------------- heartbeat, goodbye

    def heartbeat(self, event: events.Heartbeat, now: float) -> None:
        tables = self._tables
        tables.counts.wasted_us += WASTED_MESSAGE_US
        worker_deadline = now + self._limits.worker_timeout_seconds
        client = tables.clients.by_route.get(event.route)
        agent = tables.agents.by_route.get(event.route)
        worker = tables.workers.by_route.get(event.route)
        if client is not None:
            client.deadline = now + self._limits.client_timeout_seconds
        elif agent is not None:
            agent.deadline = worker_deadline
            agent.last_message_at = now
            agent.usage = event.usage
            agent.lag_us = event.lag_microseconds
            for row, incarnation in enumerate(event.workers):
                named = tables.workers.find(incarnation)
                if named is not None and named.agent == agent.incarnation:
                    if not named.is_unreachable:
                        named.deadline = worker_deadline
                    if event.usages:
                        named.usage = event.usages[row]
                else:
                    tables.counts.wasted_us += WASTED_ROW_US
            if event.is_retiring and not agent.is_retiring:
                retire(agent, tables, self._dispatcher, self._cancellation, self._evacuation)
                self._operator_log.info(f"agent {agent.name} retires: its workers get no more tasks")
        elif worker is not None:
            worker.message_count += 1
            worker.deadline = worker_deadline
        else:
            self._outbox.add(effects.HelloWanted(event.route))
            return
        if agent is None or not agent.is_retiring:
            self._outbox.add(effects.HeartbeatEcho(event.route, event.sequence))
        else:
            # Behind what is asked of it: an agent that ends waits for this echo, and for nothing that comes after it.
            echo = effects.HeartbeatEcho(event.route, event.sequence, is_drained(agent, tables))
            self._outbox.add_last(echo)

    def goodbye(self, event: events.Goodbye, now: float) -> None:
        tables = self._tables
        client = tables.clients.by_route.get(event.route)
        if client is not None:
            if not client.worker:
                self._operator_log.info(f"client {client.name} has left")
            self._peer_loss.client_left(client, now)
        worker = tables.workers.by_route.get(event.route)
        if worker is not None:
            self._peer_loss.worker_left(worker, now)
        agent = tables.agents.by_route.get(event.route)
        if agent is not None:
            self._operator_log.info(f"agent {agent.name} has left")
            self._peer_loss.agent_left(agent)
            for worker in tables.workers:
                if worker.agent == agent.incarnation:
                    self._peer_loss.worker_left(worker, now)

    def revoke(self, users: Container[str], now: float) -> int:
        """These may not be here any more: they are lost, with all that they hold. Returns how many peers that were."""
        tables = self._tables
        peers: List[Union[Client, Worker, Agent]] = [*tables.agents, *tables.workers, *tables.clients]
        routes = [peer.route for peer in peers if peer.user in users]
        for route in routes:
            client = tables.clients.by_route.get(route)
            worker = tables.workers.by_route.get(route)
            agent = tables.agents.by_route.get(route)
            if agent is not None:
                self._peer_loss.agent_left(agent)
            if worker is not None:
                self._peer_loss.worker_left(worker, now)
            if client is not None:
                self._peer_loss.client_left(client, now)
            self._outbox.add(effects.Refused(route, effects.REFUSED_NOT_AUTHORIZED, "its key was revoked"))
        return len(routes)

    def _cut_off_client(self, client: Client, text: str, now: float) -> None:
        self._operator_log.warning(f"client {client.name} is cut off: {text}")
        self._peer_loss.client_left(client, now)
        self._outbox.add(effects.Refused(client.route, effects.REFUSED_NOT_AUTHORIZED, text))

    def expire(self, now: float, stall: float) -> None:
        """Give up those whose lease has run out.

        Args:
            stall: seconds that the scheduler itself was stopped: what peers said meanwhile may still be unread.
        """
        tables = self._tables
        for one in [*tables.clients, *tables.agents, *tables.workers, *tables.unclaimed.values()] if stall else ():
            one.deadline += stall
        for client in tables.clients.expired(now):
            self._operator_log.warning(f"client {client.name} is silent and given up: its tasks are cancelled")
            self._peer_loss.client_left(client, now)
        given_up = set()
        for agent in tables.agents.expired(now):
            given_up.add(agent.incarnation)
            workers = sum(worker.agent == agent.incarnation for worker in tables.workers)
            self._operator_log.warning(
                f"agent {agent.name} on {agent.host}, of {workers} worker(s), is silent and given up"
            )
            self._peer_loss.agent_left(agent)
        for worker in tables.workers.expired(now):
            is_worth_a_line = bool(worker.tasks) or worker.agent not in given_up
            self._peer_loss.worker_died(worker, "lease ran out", 0, likely_running(worker), now, is_worth_a_line)
        self._reattach.expire(now)

    # ----------------------------------------------------------------------------------------------- who said something

    def client(self, route: bytes) -> Optional[Client]:
        """The client on this connection; None when its hello is wanted first."""
        client = self._tables.clients.by_route.get(route)
        if client is None:
            self._check_stranger(route, "client")
        return client

    def worker(self, route: bytes) -> Optional[Worker]:
        """The worker on this connection; None when its hello is wanted first."""
        worker = self._tables.workers.by_route.get(route)
        if worker is None:
            self._check_stranger(route, "worker")
        return worker

    def agent(self, route: bytes) -> Optional[Agent]:
        """The host agent on this connection; None when its hello is wanted first."""
        agent = self._tables.agents.by_route.get(route)
        if agent is None:
            self._check_stranger(route, "host agent")
        return agent

    def _check_stranger(self, route: bytes, wanted: str) -> None:
        tables = self._tables
        if route in tables.clients.by_route or route in tables.workers.by_route or route in tables.agents.by_route:
            raise ProtocolError(f"this message is a {wanted}'s to send")
        tables.counts.wasted_us += WASTED_MESSAGE_US
        self._outbox.add(effects.HelloWanted(route))
