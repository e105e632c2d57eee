"""Welcomes admitted peers: makes their records, and restores the state of peers that join again."""

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.completion.suspension import resume_all
from scaler_scheduler.core.completion.takeover import Takeover
from scaler_scheduler.core.data.input_delivery import send_object
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import Credits
from scaler_scheduler.core.environments.worker_changes import WorkerChanges
from scaler_scheduler.core.peers.leases import give_ticket
from scaler_scheduler.core.peers.nested_hello import PARENT_SECONDS
from scaler_scheduler.core.peers.peer_loss import PeerLoss
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.peers.restart_hold import RestartHold
from scaler_scheduler.core.peers.successors import Successors
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.state.value_states import SEND
from scaler_scheduler.core.values.copies import move

JOIN_SECONDS = 5.0
"""How long a host agent is expected to join after a worker. It tries to connect every 100 ms."""


class Welcomes:
    """Welcomes clients, workers and host agents."""

    def __init__(
        self,
        core: CoreState,
        credits: Credits,
        restart_hold: RestartHold,
        *,
        cancellation: Cancellation,
        takeover: Takeover,
        peer_loss: PeerLoss,
        reattach: Reattach,
        changes: WorkerChanges,
        successors: Successors,
    ) -> None:
        self._changes = changes
        self._successors = successors
        self._incarnation = core.incarnation
        self._limits = core.limits
        self._tables = core.tables
        self._task_limits = core.task_limits
        self._bookings = core.bookings
        self._holdings = core.holdings
        self._outbox = core.outbox
        self._pool = core.pool
        self._transfers = core.transfers
        self._operator_log = core.operator_log
        self._credits = credits
        self._restart_hold = restart_hold
        self._cancellation = cancellation
        self._takeover = takeover
        self._peer_loss = peer_loss
        self._reattach = reattach

    def welcome_client(self, event: events.Hello, now: float) -> None:
        """Add or reconnect a client, and start its credit count."""
        self._task_limits.note_peer(event.scheduler)
        clients = self._tables.clients
        client = clients.find(event.incarnation)
        deadline = now + self._limits.client_timeout_seconds
        if client is None:
            client = Client(
                event.incarnation,
                event.route,
                name=self._name_of(event),
                worker=event.worker,
                deadline=deadline,
                share=self._share_of(event),
                user=event.user,
                host=event.host,
            )
            client.is_returning = event.scheduler not in (0, self._incarnation)
            clients.add(client)
            self._restart_hold.hold(client, event.scheduler, now)
        else:
            # A known client has a new connection. It submits its open tasks again; known ids are left out.
            if client.is_gone:
                self._cancellation.restore_abandoned(client)
            clients.reconnect(client, event.route)
            client.deadline = deadline
            if client.place is not None:
                client.place.route = event.route
            if client.outgoing is not None:
                client.outgoing.route = event.route
            self._resume_all(client, now)
        client.parent_until = now + PARENT_SECONDS
        granted, window = self._credits.reset(client)
        self._welcome(event.route, self._limits.client_timeout_seconds, granted, window)
        for batch in client.unread.repeat(client.route):
            self._outbox.add(batch)
            client.sent_bytes += batch.rows.byte_count
            client.unread.add(batch, client.sent_bytes)
        if client.outgoing is not None:  # it goes behind them, and was counted before the welcome
            client.sent_bytes += client.outgoing.rows.byte_count
        self._credits.pause_slow(client)
        if client.place is not None:
            give_ticket(client.place, self._tables, self._outbox)  # the last message with it may be lost
        for stored in client.objects.values():
            # the answer may be lost with the connection
            if stored.is_awaited or (client.place is not None and stored.fetched_from is client.place):
                self._outbox.fetch_object(client.route, client.incarnation, stored.id)

    def _share_of(self, event: events.Hello) -> Share:
        """Return the share of a new client. A nested client belongs to the client whose task its worker runs: with
        keys there is one (`NestedHellos`)."""
        shares = self._tables.clients.shares
        worker = self._tables.workers.find(event.worker) if event.worker else None
        parent = None if worker is None else worker.parent_client
        if parent is None:
            return shares.add_client(event.user, event.account, event.host)
        parent.share.client_count += 1
        return parent.share

    def _name_of(self, event: events.Hello) -> str:
        """Return the name of a client for people. A nested client without a name is named by its worker."""
        worker = self._tables.workers.find(event.worker) if event.worker else None
        if not event.name and worker is not None:
            return f"tasks of {worker.name}"
        return event.name or f"client[{event.pid}]@{event.host}"

    def _resume_all(self, client: Client, now: float) -> None:
        """Resume a nested client's tasks. Its new connection reports again which tasks are suspended, because the last
        report may be lost."""
        worker = self._tables.workers.find(client.worker)
        resume_all(list(client.suspended), client, worker, self._tables, self._holdings, now)
        if worker is not None:
            self._pool.mark_busy(worker)

    def welcome_worker(self, event: events.Hello, now: float) -> None:
        """Add a worker, and attach the tasks that it runs."""
        self._task_limits.note_peer(event.scheduler)
        known = self._tables.workers.find(event.incarnation)
        if known is not None and known.route == event.route and event.scheduler not in (0, self._incarnation):
            # One more hello that it sent before it got the welcome of this scheduler. It may have begun tasks since,
            # which this hello does not name.
            return
        # A known worker has a new connection. Messages on their way to it are lost, and the scheduler does not know
        # which ones arrived.
        intents = {} if known is None else self._peer_loss.remove_worker(known, event.running)
        worker = Worker(
            event.incarnation,
            event.agent,
            event.route,
            name=event.name,
            host=event.host,
            pid=event.pid,
            capabilities=event.capabilities,
            kinds=event.kinds,
            deadline=now + self._limits.worker_timeout_seconds,
            user=event.user,
            takes_followers=event.takes_followers,
            environment=event.environment,
        )
        worker.language, worker.version = event.language, event.version
        if known is not None:
            worker.usage = known.usage
            worker.is_holder = known.is_holder
        agent = self._tables.agents.find(event.agent)
        if agent is None and event.agent:
            worker.agent_until = now + JOIN_SECONDS
        worker.is_retiring = agent is not None and agent.is_retiring
        worker.is_changing = worker.incarnation in self._changes.pending()
        self._tables.workers.add(worker)
        self._holdings.restore(worker, event.bookings)
        running = len(event.running) - event.finished
        for name in dict.fromkeys(event.running[:running]):
            self._reattach.attach(worker, name, now)
        for name in dict.fromkeys(event.running[running:]):
            self._reattach.attach(worker, name, now, is_finished=True)
        for task, intent in intents.items():
            self._cancellation.repeat_intent(task, intent, now)
        self._pool.add(worker)
        self._changes.worker_joined(worker)
        self._successors.worker_joined(worker)
        self._welcome(event.route, self._limits.worker_timeout_seconds)

    def welcome_agent(self, event: events.Hello, now: float) -> None:
        """Add or reconnect a host agent, and send the files that its workers expect."""
        self._task_limits.note_peer(event.scheduler)
        agents = self._tables.agents
        agent = agents.find(event.incarnation)
        deadline = now + self._limits.worker_timeout_seconds
        if agent is None:
            agent = Agent(
                event.incarnation, event.route, name=event.name, host=event.host, deadline=deadline, user=event.user
            )
            agent.pid, agent.language, agent.version, agent.last_heartbeat_at = (
                event.pid,
                event.language,
                event.version,
                now,
            )
            agents.add(agent)
            for worker in self._tables.workers.of_agent(agent.incarnation):
                worker.deadline = max(worker.deadline, deadline)  # the agent's first heartbeat says which ones live
        else:
            agents.reconnect(agent, event.route)
            agent.deadline = deadline
            for stored in self._tables.objects.reconnect_agent(agent):
                if stored.fetched_from is agent:
                    self._outbox.fetch_object(agent.route, stored.client.incarnation, stored.file_id)
        agent.set_data(event.data)
        agent.packages = event.packages
        changed = self._bookings.define(agent, event.resources, event.slots)
        if changed:
            self._operator_log.warning(changed)
        agent.level, agent.platform, agent.slots = event.environments, event.platform, event.slots
        self._welcome(event.route, self._limits.worker_timeout_seconds)
        give_ticket(agent, self._tables, self._outbox)  # the last message with it may be lost
        # Files on their way may be lost, and queued tasks read them. They are sent directly behind the welcome, at
        # which the agent drops its other files.
        self._transfers.repeat(agent)
        for stored in self._tables.objects.shared_files(agent, self._tables.workers):
            move(stored, agent, SEND)
            send_object(stored, agent.route, self._outbox)
        self._takeover.agent_joined(agent, event.running)
        self._changes.repeat(agent)

    def _welcome(self, route: bytes, lease_seconds: float, credit: int = 0, result_window: int = 0) -> None:
        limit = self._limits.message_size
        workers = len(self._tables.workers) if credit else 0
        lease = int(lease_seconds * 1000)
        self._outbox.add(effects.Welcome(route, lease, credit, result_window, limit, workers, takes_files=credit > 0))
