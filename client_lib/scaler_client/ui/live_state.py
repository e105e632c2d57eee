"""The known state of a scheduler, and every message about it. A message is encoded once for all pages.

It has no socket. The process that feeds the reader calls `refresh`, and page sessions (page_session.py) read the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..monitor.reader import MonitorReader, Presence
from ..monitor.snapshot_view import SnapshotView
from ..protocol.snapshots import Graphs
from . import tables
from .chunks import MICROSECONDS
from .contract import CONTRACT, MIN_INTERVAL_SECONDS, OUTCOMES, PRESENCES, RETURNED, TOPICS, encode, outcome_kind
from .executions import Executions
from .series import Series

MAX_POINTS_PER_SECOND = 2
"""An upper bound: a snapshot comes once a second, and whenever a program subscribes."""
CLOCK_STEP = MICROSECONDS // 20
"""A larger difference means that the scheduler's clock was changed. Smaller ones come from rounding in snapshots."""


@dataclass(frozen=True)
class Limits:
    """The limits of the kept data: the most executions, and for how many seconds."""

    tasks: int
    window: float


class LiveState:
    """Everything that pages can be sent.

    Args:
        reader: follows the scheduler.
        version: the version of this program.
        address: the monitor address.
        limits: how much is kept.
        unix_offset: seconds to add to the reader's clock to get unix time.
    """

    def __init__(self, reader: MonitorReader, version: str, address: str, limits: Limits, unix_offset: float) -> None:
        self.reader = reader
        self.limits = limits
        self.series = Series(round(limits.window * MAX_POINTS_PER_SECOND))
        self.executions = Executions(limits.tasks)
        self._graphs: Graphs | None = None
        self.graph_changes = 0
        """How often the message `graphs` has changed."""
        self.updates = 0
        """The number of snapshots so far."""
        self.updated_at = 0.0
        """When the last snapshot came, by the reader's clock."""
        self._version = version
        self._address = address
        self._unix_offset = unix_offset
        self._current_view: SnapshotView | None = None
        self._incarnation = 0
        self._started = 0
        """The scheduler's start by its own clock, unix time in microseconds."""
        self._missed_history = 0
        self._worker_names: dict[int, str] = {}
        self._client_names: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._connection_problem = ""
        self._presence = ""
        self.presence_changes = 0
        """How often the message `presence` has changed."""
        self._update_presence()

    @property
    def view(self) -> SnapshotView | None:
        return self.reader.view

    def refresh(self, now: float) -> None:
        """Process the reader's new data. `now` is the time of the reader's clock."""
        view = self.reader.view
        if view is not None and view is not self._current_view:
            self._current_view = view
            self._apply_view(view)
            self.updates += 1
            self.updated_at = now
        if self.reader.presence is Presence.DOWN:
            self.series.add_gap()
        if self.reader.graphs != self._graphs:
            self._graphs = self.reader.graphs
            self.graph_changes += 1
            self._texts.pop("graphs", None)
        self._update_presence()

    def clear_graphs(self) -> None:
        """Drop the graphs when they are no longer subscribed to, because they become outdated."""
        self.reader.graphs = None

    def set_connection_problem(self, problem: str) -> bool:
        """Note why no message can arrive. Returns whether the reason is new."""
        before, self._connection_problem = self._connection_problem, problem
        return problem != before

    def hello(self) -> str:
        numbers = [*range(len(OUTCOMES)), RETURNED]
        names = [*OUTCOMES, "returned"]
        return encode(
            {
                "type": "hello",
                "contract": CONTRACT,
                "version": self._version,
                "address": self._address,
                "topics": TOPICS,
                "limits": {
                    "tasks": self.limits.tasks,
                    "window": self.limits.window,
                    "interval": MIN_INTERVAL_SECONDS,
                },
                "defaults": {"interval": MIN_INTERVAL_SECONDS, "window": self.limits.window},
                "outcomes": [[number, name, outcome_kind(number)] for number, name in zip(numbers, names)],
            }
        )

    def presence(self) -> str:
        return self._presence

    def text(self, kind: str) -> str:
        """The message `snapshot`, or of a topic that is sent whole. There must be a snapshot."""
        text = self._texts.get(kind)
        if text is None:
            assert self.view is not None
            text = self._texts[kind] = encode(self._message(kind, self.view))
        return text

    def points(self, begin: int) -> str:
        """The message `series` from a point on."""
        key = f"series {begin}"
        if key not in self._texts:
            self._texts[key] = encode(self.series.message(begin))
        return self._texts[key]

    def chunk(self, number: int) -> str:
        """The message `tasks` of this number, which must be kept."""
        chunks = self.executions.chunks
        return chunks[number - chunks[0].number].text(self._worker_names, self._client_names)

    def story(self, client: int, task_id: int) -> str:
        """The message `story` with the scheduler's answer."""
        story = self.reader.stories[client, task_id]
        return encode(tables.story_message(story, client, task_id, self._started / MICROSECONDS, self._worker_names))

    def _message(self, kind: str, view: SnapshotView) -> dict[str, Any]:
        if kind == "graphs":
            # There are none if the subscription has ended, or the scheduler was replaced.
            graphs = self._graphs or Graphs(0, 0, *([] for _ in range(8)))
            return tables.graphs_message(graphs, view.snapshot.unix_seconds, self._started / MICROSECONDS)
        if kind == "functions":
            return tables.functions_message(view, self.executions.durations)
        return _MESSAGES[kind](view)

    def _apply_view(self, view: SnapshotView) -> None:
        snapshot = view.snapshot
        started = round((snapshot.unix_seconds - snapshot.uptime_seconds) * MICROSECONDS)
        if snapshot.incarnation != self._incarnation:
            self._incarnation, self._started, self._missed_history = snapshot.incarnation, started, 0
            self.series.add_gap()
            self.executions.clear_open_tasks()
        elif abs(started - self._started) > CLOCK_STEP:
            self._started = started
        _update_names(self._worker_names, snapshot.worker_columns.incarnations, snapshot.worker_columns.names)
        _update_names(self._client_names, snapshot.client_columns.incarnations, snapshot.client_columns.names)
        self.executions.add_missed(self.reader.missed_history - self._missed_history)
        self._missed_history = self.reader.missed_history
        # Kept history of the scheduler may arrive after new history.
        for history in sorted(self.reader.drain_history(), key=lambda history: history.first):
            self.executions.add_history(history, self._started)
        self.series.add(view)
        oldest = snapshot.unix_seconds - self.limits.window
        self.executions.drop_before(oldest)
        self.series.drop_before(oldest)
        self._texts.clear()

    def _update_presence(self) -> None:
        reader = self.reader
        message = encode(
            {
                "type": "presence",
                "presence": PRESENCES[reader.presence],
                "since": round(reader.since + self._unix_offset, 3),
                "problem": self._connection_problem if reader.presence is Presence.UNKNOWN else reader.problem,
                "schedulers": reader.schedulers,
                "missed_snapshots": reader.missed_snapshots,
                "missed_history": reader.missed_history,
                "malformed": reader.malformed,
            }
        )
        if message != self._presence:
            self._presence = message
            self.presence_changes += 1


NAMES_PER_IDENTITY = 4
"""The table of names is cleared when it has this many times as many names as are present."""
MIN_KEPT_NAMES = 10_000


def _update_names(names: dict[int, str], identities: list[int], now: list[str]) -> None:
    """Add names. A disconnected peer keeps its name until the table has become too large."""
    if len(names) > max(MIN_KEPT_NAMES, NAMES_PER_IDENTITY * len(identities)):
        names.clear()
    names.update(zip(identities, now))


_MESSAGES: dict[str, Callable[[SnapshotView], dict[str, Any]]] = {
    "snapshot": tables.snapshot_message,
    "running": tables.running_message,
    "workers": tables.workers_message,
    "agents": tables.agents_message,
    "clients": tables.clients_message,
    "objects": tables.objects_message,
}
