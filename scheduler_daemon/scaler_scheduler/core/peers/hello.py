"""Hellos: a peer joins, or joins again on another connection."""

from collections.abc import Container

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.peers.admission import Admission
from scaler_scheduler.core.peers.duplicate_hello import DuplicateHellos, duplicate_text
from scaler_scheduler.core.peers.nested_hello import NestedHellos, missing_worker_text
from scaler_scheduler.core.peers.peer_loss import PeerLoss
from scaler_scheduler.core.peers.welcome import Welcomes
from scaler_scheduler.core.state.counts import WASTED_HELLO_US


class Hellos:
    """Handles hellos."""

    def __init__(
        self,
        core: CoreState,
        admission: Admission,
        duplicate_hellos: DuplicateHellos,
        nested_hellos: NestedHellos,
        peer_loss: PeerLoss,
        welcomes: Welcomes,
    ) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._admission = admission
        self._duplicate_hellos = duplicate_hellos
        self._nested_hellos = nested_hellos
        self._peer_loss = peer_loss
        self._welcomes = welcomes

    def hello(self, event: events.Hello, now: float) -> None:
        """Handle a hello: check it, and welcome the peer. The hello waits if its incarnation has another connection, or
        if it is of a nested client whose worker is not there yet."""
        self._tables.counts.wasted_us += WASTED_HELLO_US
        self._admission.check(event, now)
        if not self._duplicate_hellos.defer(event, now) and not self._nested_hellos.defer(event, now):
            self._accept_hello(event, now)

    def decide_waiting(self, now: float) -> None:
        """Accept or reject the waiting hellos that are decided."""
        for duplicate in self._duplicate_hellos.pop_decided(now):
            if duplicate.is_old_alive:
                self._reject(duplicate.event, duplicate_text(duplicate))
            elif not self._nested_hellos.defer(duplicate.event, now):
                self._accept_waiting(duplicate.event, now)
        for event, is_worker_there in self._nested_hellos.pop_decided(now):
            if is_worker_there:
                self._accept_waiting(event, now)
            else:
                self._reject(event, missing_worker_text(event))

    def drop_waiting(self, users: Container[str]) -> None:
        """Forget the waiting hellos of revoked keys."""
        self._duplicate_hellos.drop(users)
        self._nested_hellos.drop(users)

    def _reject(self, event: events.Hello, text: str) -> None:
        self._operator_log.warning(f"a hello is rejected: {text}")
        self._outbox.add(effects.Error(event.route, text))

    def _accept_waiting(self, event: events.Hello, now: float) -> None:
        """Accept a hello that has waited, unless another key has taken its incarnation meanwhile."""
        text = self._admission.refusal_text(event)
        if text:
            self._outbox.add(effects.Refused(event.route, effects.REFUSED_NOT_AUTHORIZED, text))
        else:
            self._accept_hello(event, now)

    def _accept_hello(self, event: events.Hello, now: float) -> None:
        self._leave_route(event, now)
        if event.role == events.CLIENT:
            self._welcomes.welcome_client(event, now)
        elif event.role == events.WORKER:
            agent = self._tables.agents.find(event.agent)
            if agent is None or event.incarnation not in agent.dead_workers:
                self._welcomes.welcome_worker(event, now)
        else:
            self._welcomes.welcome_agent(event, now)

    def _leave_route(self, event: events.Hello, now: float) -> None:
        """Remove other peers that used this connection before."""
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
