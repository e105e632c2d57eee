"""The agent's protocol with the scheduler: hello, heartbeats, reports of deaths, silence. Sans-IO."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import Error, Goodbye, HeartbeatEcho, Hello, HelloWanted, Welcome, WorkerDied

from ..sent_answers import LATER_HEARTBEATS
from .effects import Effect, Log, Send, SendHeartbeat, TakeTicket

ROOM_GAP_SECONDS = 0.05
"""A heartbeat that `tell_room` asks for comes at least so long after the last one."""

HELLO_GAP_SECONDS = 0.1
"""The least time between two hellos. Several heartbeats may each be answered with a HelloWanted; one Hello answers
all."""

SILENT_INTERVALS = 3
"""After so many heartbeat intervals without an answer, the agent logs that the scheduler is silent."""

RETIRING_INTERVAL_SECONDS = 0.5
"""The longest interval between two heartbeats of a retiring agent."""

LEASE_HEARTBEATS = 3
"""A lease lasts for so many heartbeats at least, so that it outlasts lost ones."""


@dataclass
class _Report:
    """A reported death that the scheduler, or a client, may not have heard of."""

    died: WorkerDied
    confirmed_by: int
    """When this heartbeat is echoed, the scheduler has handled the report, and the clients have read its answers."""
    is_requested: bool
    """Whether the scheduler had asked for the end of the task. Another scheduler does not know that, and is not told
    which task the worker ran."""


class SchedulerLink:
    """The conversation of one agent with the scheduler. It continues when the scheduler restarts."""

    def __init__(
        self,
        hello: Hello,
        address: str,
        heartbeat_interval_seconds: float,
        death_timeout_seconds: float,
        now: float,
        *,
        list_files: Callable[[], Iterable[ObjectName]],
        has_limits: bool = True,
    ) -> None:
        """`list_files` returns the results that workers have written to files of this host. `has_limits`: whether the
        values of this host have limits, which heartbeats tell the scheduler."""
        self._list_files = list_files
        self._has_limits = has_limits
        self.address = address
        """The scheduler's, for the log only."""
        self.death_timeout_seconds = death_timeout_seconds
        self._hello = hello
        self._interval = heartbeat_interval_seconds
        self._is_retiring = False
        self._welcomed = False
        self._rejection = ""
        """Why the scheduler has not welcomed the agent, by its last message; empty: no reason is known."""
        self._scheduler = 0
        self._answered_at = now
        self._paced_at = now
        """When the heartbeat interval was set. A silence before counts by the interval of that time."""
        self._silent = False
        self._hello_at = now
        self._heartbeat_at = now
        self._checked_at = now
        self._sequence = 0
        self._echoed = 0
        self._last_heartbeat_at = now
        self._lag_seconds = 0.0
        self._welcomed_behind = 0
        """The number of the last heartbeat before the welcome."""
        self._unconfirmed: list[_Report] = []

    # ------------------------------------------------------------------------------------------------------------ time

    def send_hello(self, now: float) -> list[Effect]:
        self._hello_at = now
        self._heartbeat_at = now + self._interval
        return [Send(replace(self._hello, running=[(client, task_id, 0) for client, task_id in self._list_files()]))]

    def heartbeat_if_due(self, workers: tuple[tuple[int, int], ...], now: float) -> list[Effect]:
        """Send a heartbeat for these workers (incarnation, pid) if one is due. Before the Welcome, send a Hello
        instead."""
        self._discount_standstill(now)
        if now < self._heartbeat_at:
            return []
        return self.send_heartbeat(workers, now) if self._welcomed else self.send_hello(now)

    def send_heartbeat(self, workers: tuple[tuple[int, int], ...], now: float) -> list[Effect]:
        """Send a heartbeat now."""
        self._heartbeat_at = now + self._interval
        self._sequence += 1
        self._last_heartbeat_at = now
        return [SendHeartbeat(self._sequence, workers, round(self._lag_seconds * 1e6), self._is_retiring)]

    def tell_room(self, now: float) -> None:
        """Send a heartbeat soon: it says how much room the host has for values."""
        if self._welcomed:
            self._heartbeat_at = min(self._heartbeat_at, max(now, self._last_heartbeat_at + ROOM_GAP_SECONDS))

    def retire(self, now: float) -> None:
        """From now on, the heartbeats say that the agent retires.

        They are sent more often, because an echo says when no task runs any more.
        """
        self._is_retiring = True
        if self._interval > RETIRING_INTERVAL_SECONDS:
            self._interval = RETIRING_INTERVAL_SECONDS
            self._paced_at = now
        if self._welcomed:
            self._heartbeat_at = now

    def connected(self, now: float) -> None:
        """Handle a new connection, perhaps to a restarted scheduler: send a heartbeat soon."""
        soonest = now if self._welcomed else max(now, self._hello_at + HELLO_GAP_SECONDS)
        self._heartbeat_at = min(self._heartbeat_at, soonest)

    def check_silence(self, now: float) -> list[Effect]:
        """Log once that the scheduler is silent."""
        silence = now - self._answered_at
        if self._silent or now - max(self._answered_at, self._paced_at) < SILENT_INTERVALS * self._interval:
            return []
        self._silent = True
        left = self.death_timeout_seconds - silence
        return [Log(logging.WARNING, f"no answer from a scheduler at {self.address}; giving up in {left:.0f} s")]

    def is_lost(self, now: float) -> bool:
        """Whether no scheduler has answered for the death timeout."""
        return now - self._answered_at >= self.death_timeout_seconds

    def deadline(self) -> float:
        return min(self._heartbeat_at, self._answered_at + self.death_timeout_seconds)

    @property
    def scheduler(self) -> int:
        """The incarnation of the last scheduler that has welcomed this agent; 0: none has."""
        return self._scheduler

    @property
    def next_heartbeat(self) -> float:
        return self._heartbeat_at

    @property
    def is_answered(self) -> bool:
        """Whether a scheduler has welcomed this agent and answers."""
        return self._welcomed and not self._silent

    @property
    def is_echoed(self) -> bool:
        """Whether the last heartbeat is echoed."""
        return self._echoed >= self._sequence

    @property
    def is_caught_up(self) -> bool:
        """Whether a heartbeat after the last welcome is echoed: so the messages right after the welcome have
        arrived."""
        return self._echoed > self._welcomed_behind

    def _discount_standstill(self, now: float) -> None:
        """Do not count the time in which this process was stopped as silence of the scheduler."""
        gap = now - self._checked_at - self._interval
        if gap > self._interval:
            self._answered_at = min(now, self._answered_at + gap)
        self._checked_at = now

    # ------------------------------------------------------------------------------------------------------- messages

    def report(self, died: WorkerDied, is_requested: bool = False) -> list[Effect]:
        """Report a death now, and after each Welcome until LATER_HEARTBEATS later heartbeats are echoed.

        Args:
            died: the report.
            is_requested: whether the scheduler had asked for the end of the task that the worker ran.
        """
        self._unconfirmed.append(_Report(died, self._sequence + LATER_HEARTBEATS, is_requested))
        return [Send(died)] if self._welcomed else []

    def on_welcome(self, welcome: Welcome, now: float) -> list[Effect]:
        effects = self._answered(now)
        is_other = self._scheduler != welcome.incarnation
        if not self._scheduler:
            effects.append(Log(logging.INFO, f"welcomed by the scheduler {welcome.version} at {self.address}"))
        elif is_other:
            effects.append(Log(logging.WARNING, f"the scheduler at {self.address} is a new one: the agent continues"))
        elif self._rejection:
            effects.append(Log(logging.WARNING, f"the scheduler at {self.address} accepts this agent now"))
        if is_other and self._has_limits:
            self._heartbeat_at = now  # it says how much room the host has for values
        self._rejection = ""
        self._welcomed = True
        self._welcomed_behind = self._sequence
        self._scheduler = welcome.incarnation
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        longest = welcome.lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._interval:
            self._interval = longest
            self._heartbeat_at = min(self._heartbeat_at, now + longest)
            text = f"one heartbeat every {longest:g} s, because the scheduler's lease is {welcome.lease_seconds:g} s"
            effects.append(Log(logging.INFO, text))
        for report in self._unconfirmed if is_other else ():
            if report.is_requested:
                report.died = replace(report.died, client=0, id=0, attempt=0)
        return effects + [Send(report.died) for report in self._unconfirmed]

    def on_hello_wanted(self, _: HelloWanted, now: float) -> list[Effect]:
        effects = self._answered(now)
        self._welcomed = False
        if now - self._hello_at >= HELLO_GAP_SECONDS:
            effects += self.send_hello(now)
        return effects

    def on_heartbeat_echo(self, echo: HeartbeatEcho, now: float) -> list[Effect]:
        self._echoed = max(self._echoed, echo.sequence)
        if echo.sequence == self._sequence:
            self._lag_seconds = now - self._last_heartbeat_at
        self._unconfirmed = [report for report in self._unconfirmed if echo.sequence < report.confirmed_by]
        if not echo.ticket:
            return self._answered(now)
        self._hello = replace(self._hello, data=replace(self._hello.data, ticket=echo.ticket))
        return [*self._answered(now), TakeTicket(echo.ticket)]

    def on_goodbye(self, goodbye: Goodbye, now: float) -> list[Effect]:
        self._welcomed = False
        reason = f" ({goodbye.reason})" if goodbye.reason else ""
        wait = f"waiting {self.death_timeout_seconds:g} s for another"
        text = f"the scheduler at {self.address} says goodbye{reason}; {wait}"
        return [*self._answered(now), Log(logging.WARNING, text)]

    def on_error(self, error: Error, now: float) -> list[Effect]:
        if self._welcomed:
            text = f"the scheduler dropped a message of this agent: {error.text}"
        elif error.text != self._rejection:
            self._rejection = error.text
            text = f"the scheduler does not accept this agent yet; the agent keeps trying: {error.text}"
        else:
            return self._answered(now)
        return [*self._answered(now), Log(logging.WARNING, text)]

    def _answered(self, now: float) -> list[Effect]:
        self._answered_at = now
        if not self._silent:
            return []
        self._silent = False
        return [Log(logging.WARNING, f"the scheduler at {self.address} answers again")]
