"""Leases: heartbeats renew them, and peers whose lease runs out are removed.

Peers also leave by a goodbye, by a revoked key, or because their host agent retires. Workers of a retiring agent finish
their running tasks, and their queued tasks go to other workers. The scheduler fetches the kept results that only this
agent's host has.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.completion.evacuation import Evacuation
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.peers.nested_hello import NestedHellos
from scaler_scheduler.core.peers.peer_loss import PeerLoss, likely_running
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.report.hosts import HostReport
from scaler_scheduler.core.state.counts import WASTED_MESSAGE_US, WASTED_ROW_US
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.tables import Tables


class Leases:
    """Handles heartbeats, goodbyes, expired leases and revoked keys."""

    def __init__(
        self,
        core: CoreState,
        nested_hellos: NestedHellos,
        peer_loss: PeerLoss,
        cancellation: Cancellation,
        reattach: Reattach,
        evacuation: Evacuation,
    ) -> None:
        self._limits = core.limits
        self._tables = core.tables
        self._outbox = core.outbox
        self._pool = core.pool
        self._operator_log = core.operator_log
        self._nested_hellos = nested_hellos
        self._peer_loss = peer_loss
        self._cancellation = cancellation
        self._reattach = reattach
        self._spare_copies = core.spare_copies
        self._host_report = HostReport(core.tables)
        self._evacuation = evacuation

    def heartbeat(self, event: events.Heartbeat, now: float) -> None:
        """Renew the leases that the heartbeat names, and answer it."""
        tables = self._tables
        tables.counts.wasted_us += WASTED_MESSAGE_US
        worker_deadline = now + self._limits.worker_timeout_seconds
        client = tables.clients.by_route.get(event.route)
        agent = tables.agents.by_route.get(event.route)
        worker = tables.workers.by_route.get(event.route)
        if client is not None:
            client.deadline = now + self._limits.client_timeout_seconds
            if client.worker:
                self._nested_hellos.note_parent(client, now)
        elif agent is not None:
            agent.deadline = worker_deadline
            agent.last_heartbeat_at = now
            agent.usage = event.usage
            agent.lag_us = event.lag_microseconds
            agent.note_values(event.values, event.limits)
            self._spare_copies.keep_some_free(agent)
            agent.clock_ms = event.clock_ms
            agent.pools = event.pools
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
                self._retire(agent)
                self._operator_log.info(f"agent {agent.name} retires: its workers get no more tasks")
        elif worker is not None:
            worker.message_count += 1
            worker.deadline = worker_deadline
        else:
            self._outbox.add(effects.HelloWanted(event.route))
            return
        if agent is None or not agent.is_retiring:
            workers = 0 if client is None else len(tables.workers)
            echo = effects.HeartbeatEcho(event.route, event.sequence, workers=workers)
            if event.wants_hosts and client is not None:
                echo.hosts, echo.packages = self._host_report.answer(client, now)
            self._outbox.add(echo)
        else:
            # Behind all requests to the agent: a retiring agent waits for this echo, and for no later message.
            echo = effects.HeartbeatEcho(event.route, event.sequence, _is_drained(agent, tables))
            self._outbox.add_last(echo)

    def goodbye(self, event: events.Goodbye, now: float) -> None:
        """Remove the peer that leaves. If it is a host agent, remove its workers too."""
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

    def revoke(self, users: Container[str], now: float, new_ticket: Callable[[], str]) -> int:
        """Remove the peers of these users, and refuse them. Returns their number.

        The tasks and objects of a client end with it. The tasks that a worker holds wait again, and none counts a
        failed attempt. The data addresses of all other peers get new tickets, because a revoked host may know the old
        ones.
        """
        tables = self._tables
        peers: list[Client | Worker | Agent] = [*tables.agents, *tables.workers, *tables.clients]
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
        for place in [*tables.agents, *(client.place for client in tables.clients if client.place is not None)]:
            if place.data is not None:
                place.set_ticket(new_ticket())
                give_ticket(place, tables, self._outbox)
        return len(routes)

    def expire(self, now: float, stall: float) -> None:
        """Remove peers whose lease has run out.

        Args:
            now: seconds of the monotonic clock.
            stall: seconds for which the scheduler's process was stopped. Messages from this time may still be unread,
            so leases are extended.
        """
        tables = self._tables
        peers = [*tables.clients, *tables.agents, *tables.workers]
        for one in [*peers, *tables.unclaimed.values(), *tables.early.values()] if stall else ():
            one.deadline += stall
        for client in tables.clients.expired(now):
            home = tables.workers.find(client.worker) if client.worker else None
            if home is not None:
                # One process has both. A task that holds the GIL keeps this client quiet, but not the worker's agent.
                client.deadline = home.deadline
                continue
            self._operator_log.warning(
                f"client {client.name} sent no heartbeat within its lease: its tasks are cancelled"
            )
            self._peer_loss.client_left(client, now)
        given_up = set()
        for agent in tables.agents.expired(now):
            given_up.add(agent.incarnation)
            workers = sum(worker.agent == agent.incarnation for worker in tables.workers)
            text = f"agent {agent.name} on {agent.host} sent no heartbeat within its lease and is removed"
            self._operator_log.warning(f"{text}{f' with {workers} worker(s)' if workers else ''}")
            self._peer_loss.agent_left(agent)
        for worker in tables.workers.expired(now):
            is_logged = bool(worker.tasks) or worker.agent not in given_up
            self._peer_loss.worker_died(
                worker, "lease ran out", now=now, running=likely_running(worker), is_logged=is_logged
            )
        self._reattach.expire(now)

    def _retire(self, agent: Agent) -> None:
        """Retract the queued tasks of its workers, dispatch no more to them, and fetch the results that only its host
        has."""
        agent.is_retiring = True
        for worker in _workers_of(agent, self._tables):
            self._pool.remove(worker)
            worker.is_retiring = True
            self._cancellation.rebalance(worker.tasks.values())
        self._evacuation.evacuate(agent)


def give_ticket(place: Agent, tables: Tables, outbox: Outbox) -> None:
    """Tell a host agent, or the client that it stands for, which ticket its data address has, if this scheduler has
    made it."""
    if place.ticket:
        workers = len(tables.workers) if place.is_client else 0
        outbox.add(effects.HeartbeatEcho(place.route, 0, workers=workers, ticket=place.ticket))


def _is_drained(agent: Agent, tables: Tables) -> bool:
    """Whether none of the agent's workers holds a task."""
    return not any(worker.tasks or worker.unclaimed for worker in _workers_of(agent, tables))


def _workers_of(agent: Agent, tables: Tables) -> Iterator[Worker]:
    return (worker for worker in tables.workers if worker.agent == agent.incarnation)
