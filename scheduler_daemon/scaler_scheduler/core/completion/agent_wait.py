"""Answers that wait for the agent of their host.

A worker may join before the agent of its host: when a cluster starts, and after a restart of the scheduler. Its tasks
may keep large results on the host at once (`host_results.py`), although only the agent can send and remove these files.
If such a result is there before the agent, its row waits here, as if it were still on its way. If the agent does not
join in time (`Worker.agent_until`), the task runs again, and its worker keeps no more results.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Callable

from scaler_scheduler.core.effects import OUTCOME_STORED
from scaler_scheduler.core.events import Results
from scaler_scheduler.core.state.records import Worker
from scaler_scheduler.core.tables import Tables

MAX_ROWS = 10_000
"""So many rows of one worker may wait: it bounds the memory that a bad worker can take."""

_NEVER = float("inf")


class AgentWait:
    """The rows of results that wait for a host agent."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._waiting: list[tuple[Worker, Results]] = []
        self.deadline = _NEVER
        """When the first of these rows stops waiting, in seconds of the monotonic clock."""

    def __len__(self) -> int:
        return len(self._waiting)

    def hold(self, event: Results, worker: Worker, now: float) -> Results | None:
        """Hold rows that must wait for the worker's agent.

        Args:
            event: what the worker has sent.
            worker: a worker that has joined before its agent.
            now: seconds of the monotonic clock.

        Returns:
            The other rows; None: there are no others.
        """
        if self._tables.agents.find(worker.agent) is not None:
            worker.agent_until = 0.0
        if now >= worker.agent_until:
            return event
        held = [row for row, outcome in enumerate(event.outcomes) if outcome == OUTCOME_STORED]
        before = sum(len(waiting.ids) for each, waiting in self._waiting if each is worker)
        if not held or before + len(held) > MAX_ROWS:
            return event
        self._waiting.append((worker, _rows_of(event, held)))
        self.deadline = min(self.deadline, worker.agent_until)
        if len(held) == len(event.ids):
            return None
        taken = set(held)
        return _rows_of(event, [row for row in range(len(event.ids)) if row not in taken])

    def pop_joined(self, agent: int) -> list[tuple[Worker, Results]]:
        """Return the rows that have waited for the agent with this incarnation. Their worker may be lost meanwhile."""
        return self._pop(lambda worker: worker.agent == agent)

    def pop_late(self, now: float) -> list[tuple[Worker, Results]]:
        """Return the rows whose agent has not joined in time. Their worker may be lost meanwhile."""
        return self._pop(lambda worker: now >= worker.agent_until)

    def _pop(self, is_chosen: Callable[[Worker], bool]) -> list[tuple[Worker, Results]]:
        chosen = [each for each in self._waiting if is_chosen(each[0])]
        self._waiting = [each for each in self._waiting if not is_chosen(each[0])]
        self.deadline = min((worker.agent_until for worker, _ in self._waiting), default=_NEVER)
        return chosen


def _rows_of(event: Results, rows: Iterable[int]) -> Results:
    """Return a message with only these rows of a message, in their order."""
    chosen = list(rows)
    ends = list(accumulate(event.sizes))
    taken = Results(
        event.route,
        array("q", [event.clients[row] for row in chosen]),
        array("q", [event.ids[row] for row in chosen]),
        array("I", [event.attempts[row] for row in chosen]),
        array("B", [event.outcomes[row] for row in chosen]),
        array("q", [event.durations[row] for row in chosen]),
        array("I", [event.sizes[row] for row in chosen]),
        b"".join([event.payload[ends[row] - event.sizes[row] : ends[row]] for row in chosen]),
        {place: event.large[row] for place, row in enumerate(chosen) if row in event.large},
    )
    if event.cpu_times:
        taken.cpu_times = [event.cpu_times[row] for row in chosen]
        taken.peaks = [event.peaks[row] for row in chosen]
    if event.errors:
        taken.errors = [event.errors[row] for row in chosen]
    if event.tracebacks:
        taken.tracebacks = [event.tracebacks[row] for row in chosen]
    if event.calls:
        taken.calls = [event.calls[row] for row in chosen]
    return taken
