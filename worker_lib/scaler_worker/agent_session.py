"""Everything a host agent decides, without sockets, processes or a clock of its own.

Messages, process events and the time (seconds of any monotonic clock) go in, effects come out. `tick` is to be called
at `deadline()`.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaler_client.messages import (
    Error,
    Goodbye,
    HeartbeatEcho,
    Hello,
    HelloWanted,
    Message,
    Refused,
    Welcome,
    WorkerDied,
)

from .agent_effects import Effect, EndWorker, Exit, Log, Send
from .process_events import SCHEDULER_LOST_STATUS, ProcessEnded
from .scheduler_link import SchedulerLink
from .state_page import WorkerState
from .worker_table import WorkerTable

GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL, when the agent ends its workers."""

GIVE_UP_SECONDS = 1.5
"""From SIGKILL to leaving without them: a process that the kernel does not let die must not keep the agent."""

NURSERY_LOST = "the agent's nursery process died"


class _Phase(enum.Enum):
    SERVING = 1
    ENDING = 2
    ENDED = 3


class AgentSession:
    """The agent of one host's workers, from its start to its end."""

    def __init__(
        self,
        hello: Hello,
        address: str,
        names: Iterable[str],
        heartbeat_interval_seconds: float,
        death_timeout_seconds: float,
        draw_incarnation: Callable[[], int],
        now: float,
    ) -> None:
        """`names`, one a worker; `address` is for the log only; `draw_incarnation` gives new numbers below 2^63."""
        self._hello = hello
        self._link = SchedulerLink(hello, address, heartbeat_interval_seconds, death_timeout_seconds, now)
        self._workers = WorkerTable(names, draw_incarnation)
        self._phase = _Phase.SERVING
        self._exit_status = 0
        self._goodbye_reason = ""
        self._kill_at: float | None = None
        self._give_up_at: float | None = None

    # ---------------------------------------------------------------------------------------------------------- inputs

    def start(self, now: float) -> list[Effect]:
        """Say hello, start every worker."""
        return self._link.say_hello(now) + self._workers.start_all(now)

    def received(self, message: Message, now: float) -> list[Effect]:
        """A message of the scheduler's."""
        handler = self._handlers.get(type(message))
        if handler is None:
            return [Log(logging.DEBUG, f"ignored a message that is not for an agent: {type(message).__name__}")]
        effects: list[Effect] = handler(self, message, now)
        return effects

    def worker_started(self, incarnation: int, pid: int, now: float) -> list[Effect]:
        return self._workers.started(incarnation, pid, now)

    def worker_ended(self, ended: ProcessEnded, state: WorkerState, now: float) -> list[Effect]:
        """A worker process is gone, or could not be made; `state` is what it last wrote to the state page."""
        worker = self._workers.living.pop(ended.incarnation, None)
        if worker is None:
            return []
        if self._phase is not _Phase.SERVING:
            return self._leave_when_empty()
        effects: list[Effect] = []
        if ended.pid and ended.status != SCHEDULER_LOST_STATUS:
            effects += self._link.report(_worker_died(ended, state))
        return effects + self._workers.replace(worker, ended, state, now)

    def nursery_lost(self, states: Mapping[int, WorkerState]) -> list[Effect]:
        """All workers are gone and none can be made any more; `states` is by slot."""
        effects: list[Effect] = []
        if self._phase is _Phase.SERVING:
            self._exit_status = 1
            self._goodbye_reason = NURSERY_LOST
            effects.append(Log(logging.ERROR, f"{NURSERY_LOST}, and the workers with it: exiting"))
            for worker in self._workers.living.values():
                ended = ProcessEnded(worker.slot, worker.incarnation, worker.pid, error=NURSERY_LOST)
                effects += self._link.report(_worker_died(ended, states[worker.slot]))
        self._phase = _Phase.ENDING
        self._workers.living.clear()
        return effects + self._leave_when_empty()

    def stop(self, reason: str, now: float) -> list[Effect]:
        """End the workers and then the agent, with exit status 0; called again: at once."""
        if self._phase is _Phase.SERVING:
            text = f"{reason}: ending {len(self._workers.living)} workers"
            return [Log(logging.INFO, text), *self._end(0, reason, now)]
        return self._kill_all(now)

    def tick(self, now: float) -> list[Effect]:
        """Do what is due."""
        if self._phase is _Phase.ENDED:
            return []
        living = tuple((worker.incarnation, worker.pid) for worker in self._workers.living.values() if worker.pid)
        effects = self._link.beat_if_due(living, now)
        if self._phase is _Phase.SERVING:
            effects += self._serve_on(now)
        if self._kill_at is not None and now >= self._kill_at:
            effects += self._kill_all(now)
        if self._give_up_at is not None and now >= self._give_up_at:
            effects += self._leave_without_them()
        return effects

    def deadline(self) -> float:
        """When `tick` is to be called next, at the latest."""
        times = [at for at in (self._kill_at, self._give_up_at) if at is not None]
        if self._phase is _Phase.SERVING:
            times += [self._link.deadline(), *self._workers.deadlines()]
        return min(times, default=self._link.deadline())

    # -------------------------------------------------------------------------------------------------------- messages

    def _on_refused(self, refused: Refused, now: float) -> list[Effect]:
        if self._phase is not _Phase.SERVING:
            return []
        text = (
            f"refused by the scheduler at {self._link.address}, version {refused.version} with protocol version "
            f"{refused.protocol_version}: this is version {self._hello.version} with protocol version "
            f"{self._hello.protocol_version} ({refused.text or refused.reason})"
        )
        return [Log(logging.ERROR, text), *self._end(1, "refused", now)]

    _handlers: dict[type, Callable[[AgentSession, Any, float], list[Effect]]] = {
        Welcome: lambda self, message, now: self._link.on_welcome(message, now),
        HelloWanted: lambda self, message, now: self._link.on_hello_wanted(message, now),
        HeartbeatEcho: lambda self, message, now: self._link.on_heartbeat_echo(message, now),
        Goodbye: lambda self, message, now: self._link.on_goodbye(message, now),
        Error: lambda self, message, now: self._link.on_error(message, now),
        Refused: _on_refused,
    }

    # --------------------------------------------------------------------------------------------------------- phases

    def _serve_on(self, now: float) -> list[Effect]:
        if self._link.is_lost(now):
            silence = f"no scheduler answered at {self._link.address} for {self._link.death_timeout_seconds:g} s"
            return [Log(logging.ERROR, f"{silence}: giving up"), *self._end(1, "no scheduler answered", now)]
        return self._link.watch(now) + self._workers.start_due(now) + self._workers.settle(now)

    def _end(self, exit_status: int, reason: str, now: float) -> list[Effect]:
        self._phase = _Phase.ENDING
        self._exit_status = exit_status
        self._goodbye_reason = reason
        self._kill_at = now + GRACE_SECONDS
        effects: list[Effect] = [EndWorker(incarnation, kill=False) for incarnation in self._workers.living]
        return effects + self._leave_when_empty()

    def _kill_all(self, now: float) -> list[Effect]:
        if self._phase is not _Phase.ENDING:
            return []
        self._kill_at = None
        if self._give_up_at is None:
            self._give_up_at = now + GIVE_UP_SECONDS
        return [EndWorker(incarnation, kill=True) for incarnation in self._workers.living]

    def _leave_without_them(self) -> list[Effect]:
        if self._phase is not _Phase.ENDING:
            return []
        text = f"{len(self._workers.living)} workers do not die of SIGKILL: leaving without them"
        self._workers.living.clear()
        return [Log(logging.ERROR, text), *self._leave_when_empty()]

    def _leave_when_empty(self) -> list[Effect]:
        if self._phase is not _Phase.ENDING or self._workers.living:
            return []
        self._phase = _Phase.ENDED
        return [Send(Goodbye(self._goodbye_reason)), Exit(self._exit_status)]


def _worker_died(ended: ProcessEnded, state: WorkerState) -> WorkerDied:
    return WorkerDied(
        ended.incarnation, ended.pid, ended.cause(), ended.peak_bytes, state.client, state.id, state.attempt
    )
