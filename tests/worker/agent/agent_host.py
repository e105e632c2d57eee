"""An agent's session with a clock and a fork server that the test drives."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TypeVar

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import ChangeWorker, HeartbeatEcho, Hello, Message, Role, TaskAttempt, Welcome
from scaler_worker.agent.effects import Effect, Exit, Log, Send, SendHeartbeat, StartWorker
from scaler_worker.agent.session import AgentSession, AgentSettings, HostAccess
from scaler_worker.fork_server.process_events import ProcessEnded
from scaler_worker.fork_server.state_page import WorkerState

HELLO = Hello(Role.AGENT, 77, "3.12.1", "0.1.0", "host", 1234, "host-1234")
AGAIN = replace(HELLO, scheduler=5000)
"""The hello to a scheduler that follows the one of WELCOME."""
WELCOME = Welcome(1, "0.9", 5000, 60.0)
IDLE = WorkerState(ready=True)
UNREADY = WorkerState()
BUSY = WorkerState(4, 55, 2, ready=True)
TASK: TaskAttempt = (4, 55, 2)
MIB = 1 << 20
T = TypeVar("T")


def only(kind: type[T], effects: list[Effect]) -> list[T]:
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(effects: list[Effect]) -> list[Message]:
    return [effect.message for effect in only(Send, effects)]


def lines(effects: list[Effect], level: int) -> list[str]:
    return [effect.text for effect in only(Log, effects) if effect.level == level]


class Host:
    """A session, its clock, and a fork server that the test drives. Incarnations are 101, 102, ...; pids are 10 times
    that."""

    def __init__(
        self,
        workers: int = 2,
        interval: float = 2.0,
        death_timeout: float = 300.0,
        welcomed: bool = True,
        memory_limit: int = 0,
        retire_seconds: float = 0.0,
        environments: str = "modules",
    ) -> None:
        self.now = 1000.0
        self.is_sending = False
        """Whether objects are on their way to the scheduler."""
        numbers = itertools.count(101)
        self.states = [IDLE] * workers
        """The state page, by slot."""
        self.files: list[ObjectName] = []
        """The object files of the host."""
        self.missing: list[str] = []
        """Contents of environments that the host does not have."""
        self.started: list[StartWorker] = []
        self.session = AgentSession(
            HELLO,
            AgentSettings(
                "tcp://s:1",
                [f"w{slot}" for slot in range(workers)],
                interval,
                death_timeout,
                memory_limit,
                retire_seconds,
                environments,
            ),
            HostAccess(
                lambda: next(numbers),
                self.states.__getitem__,
                is_sending=lambda: self.is_sending,
                list_files=lambda: self.files,
                missing_contents=lambda names: [name for name in names if name in self.missing],
            ),
            self.now,
        )
        self.slots: dict[int, int] = {}
        self.start_effects = self.follow(self.session.start(self.now))
        if welcomed:
            self.receive(WELCOME)
            self.first_beat = self.at(0.0)
            """What the agent does right after the welcome: it sends its first heartbeat."""

    def follow(self, effects: list[Effect]) -> list[Effect]:
        """Start the workers of these effects. Returns the effects, and the effects of the starts."""
        seen = list(effects)
        for start in only(StartWorker, effects):
            self.slots[start.incarnation] = start.slot
            self.started.append(start)
            seen += self.session.worker_started(start.incarnation, 10 * start.incarnation, self.now)
        return seen

    def receive(self, message: Message) -> list[Effect]:
        return self.follow(self.session.received(message, self.now))

    def at(self, seconds: float) -> list[Effect]:
        """Advance the clock to this many seconds after the start, with a tick at every deadline."""
        effects: list[Effect] = []
        until = 1000.0 + seconds
        while (deadline := self.session.deadline()) <= until:
            assert deadline >= self.now
            self.now = deadline
            ticked = self.follow(self.session.tick(self.now))
            assert ticked or self.session.deadline() > deadline, "a deadline at which nothing is done: busy polling"
            effects += ticked
            if only(Exit, ticked):
                return effects
        self.now = until
        return effects

    def echo(self) -> list[Effect]:
        """Answer the last heartbeat. The scheduler knows of no task that the agent's workers hold."""
        return self.receive(HeartbeatEcho(1 << 20, is_drained=True))

    def with_echoes_until(self, seconds: float) -> list[Effect]:
        """Advance the clock as `at` does, with a scheduler that answers every heartbeat."""
        effects: list[Effect] = []
        while self.session.deadline() <= 1000.0 + seconds:
            ticked = self.at(self.session.deadline() - 1000.0)
            for beat in only(SendHeartbeat, ticked):
                ticked += self.receive(HeartbeatEcho(beat.sequence, beat.is_retiring and not beat.workers))
            effects += ticked
        self.now = 1000.0 + seconds
        return effects

    def ends(
        self, incarnation: int, status: int = 0, state: WorkerState = IDLE, peak: int = 0, error: str = ""
    ) -> list[Effect]:
        pid = 0 if error else 10 * incarnation
        slot = self.slots[incarnation]
        self.states[slot] = state
        effects = self.session.worker_ended(ProcessEnded(slot, incarnation, pid, status, peak, error), self.now)
        self.states[slot] = IDLE
        return self.follow(effects)

    def change(self, incarnation: int, environment: str) -> list[Effect]:
        """Change a worker to a prepared environment."""
        return self.receive(ChangeWorker(incarnation, environment)) + self.ends(incarnation)

    def measure(self, *sizes: tuple[int, int]) -> list[Effect]:
        return self.follow(self.session.measured(dict(sizes)))
