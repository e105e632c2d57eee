"""The scheduler's process: the real core between the real decoder and encoder, driven as daemon/loop.py drives it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from scaler_scheduler.core import events, invariants
from scaler_scheduler.core.errors import InvariantError
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.encode import PROTOCOL_VERSION, Identity, encode

from .clock import Clock, Process
from .contract import Contract
from .network import Frames, Network
from .plan import LIMITS
from .trace import SimulationError, Trace

DRAIN_SECONDS = 0.005
"""The longest time of a step in which no message has to wait, as in the daemon."""

DRAIN_MESSAGES = 256
"""The most messages that are handled in one step, as in the daemon."""

CHECKED_STEPS = 4
"""All tables are counted again after every so many steps. After each step it took half of the simulation's time, and a
wrong table stays wrong."""

WORKER_USER = f"worker:{1:064x}"

FIRST_KEY_SEED = 4_000_000
"""From this seed on, up to those with gangs, peers have keys."""


class SchedulerHost:
    """Schedulers at one address, one after another."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        trace: Trace,
        chance: random.Random,
        limits: Limits,
        *,
        step_seconds: float,
        message_seconds: float,
    ) -> None:
        """
        Args:
            step_seconds: how long the loop may be busy before it looks at new messages.
            message_seconds: how long the loop is busy with each message.
        """
        self._clock = clock
        self._network = network
        self._trace = trace
        self._chance = chance
        self._limits = limits
        self._step_seconds = step_seconds
        self._message_seconds = message_seconds
        self._process = Process(clock, "scheduler")
        self._process.kill()
        self.taken: Callable[[tuple[int, int]], None] = lambda name: None
        """Called with tasks (client, id) that are taken away from a worker that does not answer."""
        self.core: Scheduler
        self.starts = 0
        self.has_keys = False
        """Whether peers have keys: each client has its own, and all hosts have one."""
        self.checks_messages = False
        """Whether the invariants are checked after each message, and not only after every CHECKED_STEPS-th step. This
        shows which message breaks an invariant."""
        self._steps = 0

    @property
    def is_up(self) -> bool:
        return self._process.is_alive

    def start(self) -> None:
        self.starts += 1
        self._trace.note("scheduler", "starts")
        self._process = Process(self._clock, "scheduler")
        self._inbox: deque[tuple[bytes, Frames]] = deque()
        self._is_stepping = False
        self._identity = Identity(self._chance.getrandbits(62) | 1, "0.0.0")
        self.core = self._new_core()
        has_duplicates = self._network.link_faults.duplicated_share > 0
        self._contract = Contract(
            self.core, self._identity.incarnation, self._trace, self.taken, has_duplicates=has_duplicates
        )
        self._network.listener = self
        self._wake_at = 0.0
        self._watch_deadline()

    def kill(self) -> None:
        self._trace.note("scheduler", "is killed")
        self._process.kill()
        self._network.scheduler_died()

    def stop(self) -> None:
        """Stop in order, as SIGTERM does."""
        self._trace.note("scheduler", "stops")
        for effect in self.core.goodbyes("the scheduler stops"):
            self._network.send(effect.route, encode(effect, self._identity))
        self.kill()

    def freeze(self) -> None:
        self._trace.note("scheduler", "is frozen")
        self._process.freeze()

    def thaw(self) -> None:
        self._trace.note("scheduler", "thaws")
        self._process.thaw()

    def arrived(self, route: bytes, frames: Frames) -> None:
        """A message arrives from the network."""
        self._inbox.append((route, frames))
        if not self._is_stepping:
            self._is_stepping = True
            self._process.later(self._chance.uniform(0.0, self._step_seconds), self._step)

    def _step(self) -> None:
        self._is_stepping = False
        core, contract, now = self.core, self._contract, self._clock.now
        received = min(DRAIN_MESSAGES, len(self._inbox))
        try:
            for _ in range(received):
                route, frames = self._inbox.popleft()
                event = decode(route, frames)
                if self.has_keys and isinstance(event, events.Hello):
                    is_client = event.role == events.CLIENT and not event.worker
                    event.user = f"client:{event.incarnation:064x}" if is_client else WORKER_USER
                self._trace.count("messages to the scheduler")
                contract.before(event)
                core.handle(event, now)
                if self.checks_messages:
                    invariants.check(core)
            if received * self._message_seconds > DRAIN_SECONDS:
                core.restart_hold.extend(now)
            core.tick(now)
            contract.ticked()
            collected = core.collect()
            self._steps += 1
            if self.checks_messages or self._steps % CHECKED_STEPS == 0:
                invariants.check(core)
            invariants.check_collected(core)
        except InvariantError as error:
            raise SimulationError(f"broken invariant: {error}") from error
        contract.after(collected)
        for _, notice in core.operator_log.drain():
            self._trace.note("scheduler logs:", notice)
        for effect in collected:
            self._trace.count("messages from the scheduler")
            if not self._network.send(effect.route, [bytes(frame) for frame in encode(effect, self._identity)]):
                self._trace.count("messages to unreachable peers")
                contract.undelivered(effect)
                core.undelivered(effect)
        busy_seconds = received * self._message_seconds
        if (self._inbox or busy_seconds) and not self._is_stepping:
            self._is_stepping = True
            self._process.later(busy_seconds, self._step)
        self._watch_deadline()

    def _watch_deadline(self) -> None:
        """Step when the core's deadline comes, at the latest."""
        at = self.core.next_deadline
        if self._wake_at <= self._clock.now or at < self._wake_at:
            self._wake_at = at
            process = self._process
            process.later(max(0.0, at - self._clock.now), lambda: self._deadline(at))

    def _deadline(self, at: float) -> None:
        if self._wake_at == at and not self._is_stepping:
            self._is_stepping = True
            self._step()

    # --------------------------------------------------------------------------------------------------------- states

    def fresh_core(self) -> Scheduler:
        """Return a core that no peer has joined."""
        return self._new_core()

    def _new_core(self) -> Scheduler:
        core = Scheduler(self._limits, PROTOCOL_VERSION, self._clock.now, incarnation=self._identity.incarnation)
        core.task_limits.define(LIMITS)
        return core

    def peers(self) -> int:
        tables = self.core.tables
        return len(tables.workers) + len(tables.agents) + len(tables.clients)

    def work(self) -> int:
        """The number of tasks that a client waits for."""
        return self.core.counts.waiting + self.core.counts.dispatched

    def client_traces(self) -> int:
        """The number of records that must be removed when all clients have left. Nested clients stay as long as their
        worker."""
        tables = self.core.tables
        clients = sum(1 for client in tables.clients.by_incarnation.values() if not client.worker)
        return clients + len(tables.unclaimed) + self.work()

    def unschedulable(self) -> int:
        """The number of waiting tasks that no worker can run."""
        workers = list(self.core.tables.workers)
        lanes = list(self.core.core_state.queues.lanes())
        choice = self.core.core_state.hosts
        unschedulable = [
            lane
            for lane in lanes
            if not any(worker.can_serve(lane.capabilities, lane.kind) for worker in workers)
            or (lane.resources and not any(choice.able_hosts(lane, 1)))
        ]
        return sum(lane.waiting for lane in unschedulable)

    def summary(self) -> str:
        tables, counts = self.core.tables, self.core.counts
        return (
            f"{counts.waiting} waiting, {counts.dispatched} dispatched, {len(tables.clients.by_incarnation)} clients, "
            f"{len(tables.workers)} workers, {len(tables.agents)} agents, {len(tables.functions)} functions, "
            f"{len(tables.timers)} timers, {len(tables.unclaimed)} unclaimed"
        )
