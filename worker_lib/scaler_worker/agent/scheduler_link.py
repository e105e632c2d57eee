"""The agent's side of its conversation with the scheduler: hello, heartbeats, reports of deaths, silence. Sans-IO."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scaler_client.protocol.messages import Error, Goodbye, HeartbeatEcho, Hello, HelloWanted, Welcome, WorkerDied

from ..task_rows import ObjectName
from .effects import Effect, Log, Send, SendHeartbeat

HELLO_GAP_SECONDS = 0.1
"""Several heartbeats may each be answered with a HelloWanted; one Hello answers them all."""

SILENT_INTERVALS = 3
"""So many heartbeat intervals without an answer are worth a line in the log."""

RETIRING_INTERVAL_SECONDS = 0.5
"""The longest between two heartbeats of an agent that retires."""

LEASE_HEARTBEATS = 3
"""A lease must outlast a few lost heartbeats, whatever interval was asked for."""


@dataclass
class _Report:
    died: WorkerDied
    confirmed_by: int
    """The first heartbeat sent after it: its echo says that the scheduler has the report too."""


class SchedulerLink:
    def __init__(
        self,
        hello: Hello,
        address: str,
        heartbeat_interval_seconds: float,
        death_timeout_seconds: float,
        now: float,
        *,
        list_files: Callable[[], Iterable[ObjectName]],
    ) -> None:
        """`list_files` tells which files of results this host has."""
        self._list_files = list_files
        self.address = address
        """For the log only."""
        self.death_timeout_seconds = death_timeout_seconds
        self._hello = hello
        self._interval = heartbeat_interval_seconds
        self._is_retiring = False
        self._welcomed = False
        self._rejection = ""
        """Why it is not welcomed, as the scheduler has said last."""
        self._scheduler = 0
        self._answered_at = now
        self._silent = False
        self._hello_at = now
        self._heartbeat_at = now
        self._checked_at = now
        self._sequence = 0
        self._echoed = 0
        self._last_heartbeat_at = now
        self._lag_seconds = 0.0
        self._welcomed_behind = 0
        """The last heartbeat that was sent before the welcome."""
        self._unconfirmed: list[_Report] = []

    # ------------------------------------------------------------------------------------------------------------ time

    def send_hello(self, now: float) -> list[Effect]:
        self._hello_at = now
        self._heartbeat_at = now + self._interval
        return [Send(replace(self._hello, running=[(client, task_id, 0) for client, task_id in self._list_files()]))]

    def heartbeat_if_due(self, workers: tuple[tuple[int, int], ...], now: float) -> list[Effect]:
        """A heartbeat that renews the leases of these (incarnation, pid); a Hello as long as there was no Welcome."""
        self._discount_standstill(now)
        if now < self._heartbeat_at:
            return []
        return self.send_heartbeat(workers, now) if self._welcomed else self.send_hello(now)

    def send_heartbeat(self, workers: tuple[tuple[int, int], ...], now: float) -> list[Effect]:
        """A heartbeat, due or not."""
        self._heartbeat_at = now + self._interval
        self._sequence += 1
        self._last_heartbeat_at = now
        return [SendHeartbeat(self._sequence, workers, round(self._lag_seconds * 1e6), self._is_retiring)]

    def retire(self, now: float) -> None:
        """Heartbeats say from now on that the agent retires, and come more often: their echoes say when it is done."""
        self._is_retiring = True
        self._interval = min(self._interval, RETIRING_INTERVAL_SECONDS)
        if self._welcomed:
            self._heartbeat_at = now

    def connected(self, now: float) -> None:
        """A lost connection stands again, perhaps with a scheduler that was started anew."""
        soonest = now if self._welcomed else max(now, self._hello_at + HELLO_GAP_SECONDS)
        self._heartbeat_at = min(self._heartbeat_at, soonest)

    def check_silence(self, now: float) -> list[Effect]:
        """Say so, once, when the scheduler falls silent."""
        silence = now - self._answered_at
        if self._silent or silence < SILENT_INTERVALS * self._interval:
            return []
        self._silent = True
        left = self.death_timeout_seconds - silence
        return [Log(logging.WARNING, f"no answer from a scheduler at {self.address}; giving up in {left:.0f} s")]

    def is_lost(self, now: float) -> bool:
        """No scheduler answered for the death timeout."""
        return now - self._answered_at >= self.death_timeout_seconds

    def deadline(self) -> float:
        return min(self._heartbeat_at, self._answered_at + self.death_timeout_seconds)

    @property
    def next_heartbeat(self) -> float:
        return self._heartbeat_at

    @property
    def is_answered(self) -> bool:
        """A scheduler knows this agent, as far as one can tell, and answers."""
        return self._welcomed and not self._silent

    @property
    def is_echoed(self) -> bool:
        """So far every heartbeat is."""
        return self._echoed >= self._sequence

    @property
    def is_caught_up(self) -> bool:
        """A heartbeat that was sent after the last welcome is echoed: what was sent with the welcome has come."""
        return self._echoed > self._welcomed_behind

    def _discount_standstill(self, now: float) -> None:
        """Time in which this process did not run (stopped, suspended) is no silence of the scheduler's."""
        gap = now - self._checked_at - self._interval
        if gap > self._interval:
            self._answered_at = min(now, self._answered_at + gap)
        self._checked_at = now

    # ------------------------------------------------------------------------------------------------------- messages

    def report(self, died: WorkerDied) -> list[Effect]:
        """Tell of a death, now and after each Welcome until a later heartbeat is echoed."""
        self._unconfirmed.append(_Report(died, confirmed_by=self._sequence + 1))
        return [Send(died)] if self._welcomed else []

    def on_welcome(self, welcome: Welcome, now: float) -> list[Effect]:
        effects = self._answered(now)
        if not self._scheduler:
            effects.append(Log(logging.INFO, f"welcomed by the scheduler {welcome.version} at {self.address}"))
        elif self._scheduler != welcome.incarnation:
            effects.append(Log(logging.WARNING, f"the scheduler at {self.address} is a new one: carrying on with it"))
        elif self._rejection:
            effects.append(Log(logging.WARNING, f"the scheduler at {self.address} takes this agent now"))
        self._rejection = ""
        self._welcomed = True
        self._welcomed_behind = self._sequence
        self._scheduler = welcome.incarnation
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        longest = welcome.lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._interval:
            self._interval = longest
            self._heartbeat_at = min(self._heartbeat_at, now + longest)
            text = f"one heartbeat every {longest:g} s, as the scheduler's lease is {welcome.lease_seconds:g} s"
            effects.append(Log(logging.INFO, text))
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
        return self._answered(now)

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
            text = f"the scheduler does not take this agent for now, which goes on asking: {error.text}"
        else:
            return self._answered(now)
        return [*self._answered(now), Log(logging.WARNING, text)]

    def _answered(self, now: float) -> list[Effect]:
        self._answered_at = now
        if not self._silent:
            return []
        self._silent = False
        return [Log(logging.WARNING, f"the scheduler at {self.address} answers again")]
