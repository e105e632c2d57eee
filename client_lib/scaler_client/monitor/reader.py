"""Follows a scheduler by its published messages. It has no socket and no clock of its own.

The caller feeds frames with the time of any monotonic clock, in seconds. At any time the reader has the newest
snapshot, the state of the scheduler and when it began, and counts of lost messages.
"""

from __future__ import annotations

import enum
from collections import deque

from ..protocol import wire
from ..protocol.snapshot_decoder import STORY_TOPIC, split_topic, task_of
from ..protocol.snapshots import Graphs, History, Snapshot
from .function_totals import FunctionTotals
from .history import HistoryFeed
from .snapshot_view import CpuUsages, SnapshotView, build_view, cpu_usages

SILENCE_SECONDS = 3.5
"""The scheduler counts as down after this time without a snapshot. It sends one each second."""

RATE_SECONDS = 0.5
"""The shortest interval for rates. The scheduler sends an extra snapshot when another program subscribes, and such an
interval would be too short."""


MAX_STORIES = 100
"""The number of tasks whose stories are kept."""


class Presence(enum.Enum):
    UNKNOWN = "not heard of yet"
    UP = "up"
    DOWN = "down"
    INCOMPATIBLE = "of another version"


class MonitorReader:
    """The state of the scheduler at one monitor address."""

    def __init__(self, now: float) -> None:
        self.presence = Presence.UNKNOWN
        self.since = now
        """When the present state began. For a scheduler that is down: when its last message came."""
        self.problem = ""
        """Why nothing can be shown (the scheduler has another version); one line for users."""
        self.view: SnapshotView | None = None
        """The newest snapshot as rows. It is kept while the scheduler is down."""
        self.graphs: Graphs | None = None
        """The newest graphs of this scheduler, if they are subscribed to."""
        self.stories: dict[tuple[int, int], History] = {}
        """The last answer for each task whose story was requested, by client and id."""
        self.missed_snapshots = 0
        """Snapshots of this scheduler that were lost on the way or came too late."""
        self.malformed = 0
        """Frames that could not be decoded, or hold a message that is not published."""
        self.schedulers = 0
        """How many schedulers have published here. Each start of a scheduler counts."""
        self.function_totals = FunctionTotals()
        """Counters by function name. Every snapshot is added, even if no program reads the counters."""
        self._last_message_at = now
        self._recent: deque[Snapshot] = deque()
        """Snapshots of this scheduler: the base of the rates first, the newest one last."""
        self._cpu_usages: CpuUsages = {}
        self._history = HistoryFeed(0)
        self._pending_history = HistoryFeed(0)
        """History of a scheduler whose first snapshot has not arrived yet."""

    def feed(self, frame: bytes, now: float) -> bool:
        """Process a frame from the monitor address. The frame begins with its topic.

        Args:
            frame: the bytes as received.
            now: seconds of the caller's monotonic clock.

        Returns:
            Whether there is something new to show.
        """
        try:
            message = wire.decode_published(frame)
        except wire.OtherVersionError as error:
            self.problem = str(error)
            self._set_presence(Presence.INCOMPATIBLE, now)
            return True
        except wire.WireError:
            self.malformed += 1
            return False
        if isinstance(message, Snapshot):
            self._set_presence(Presence.UP, now)
            self._apply_snapshot(message)
        elif isinstance(message, History):
            topic, _ = split_topic(frame)
            if topic.startswith(STORY_TOPIC):
                return self._apply_story(*task_of(topic), message)
            return self._apply_history(message)
        elif isinstance(message, Graphs):
            return self._apply_graphs(message)
        else:
            self.malformed += 1
            return False
        return True

    def drain_history(self) -> list[History]:
        """The history since the last call, as far as it arrived, oldest first."""
        return self._history.drain()

    @property
    def missed_history(self) -> int:
        """Rows of this scheduler's history that were lost, or dropped because there were too many at once."""
        return self._history.missed

    def tick(self, now: float) -> bool:
        """Detect silence. Feed all waiting frames first: time without reading counts as silence.

        Returns:
            Whether there is something new to show.
        """
        if self.presence in (Presence.UNKNOWN, Presence.DOWN) or now < self.deadline:
            return False
        self.presence = Presence.DOWN
        self.since = self._last_message_at
        return True

    @property
    def last_message_at(self) -> float:
        """When the last message came, by the caller's clock; the reader's start if none has come."""
        return self._last_message_at

    @property
    def deadline(self) -> float:
        """The time by which `tick` must be called if no frame comes before."""
        return self._last_message_at + SILENCE_SECONDS

    def _set_presence(self, presence: Presence, now: float) -> None:
        self._last_message_at = now
        if presence is not self.presence:
            self.presence = presence
            self.since = now
        if presence is Presence.UP:
            self.problem = ""

    def _apply_history(self, history: History) -> bool:
        if history.incarnation == self._history.incarnation:
            return self._history.add(history)
        if history.incarnation != self._pending_history.incarnation:
            self._pending_history = HistoryFeed(history.incarnation)
        self._pending_history.add(history)
        return False

    def _apply_graphs(self, graphs: Graphs) -> bool:
        if self.view is None or graphs.incarnation != self.view.snapshot.incarnation:
            return False
        self.graphs = graphs
        return True

    def _apply_story(self, client: int, task_id: int, story: History) -> bool:
        """Keep a story of any scheduler, because the program may have requested it before the first snapshot."""
        self.stories.pop((client, task_id), None)
        if len(self.stories) == MAX_STORIES:
            del self.stories[next(iter(self.stories))]
        self.stories[client, task_id] = story
        return True

    def _apply_snapshot(self, snapshot: Snapshot) -> None:
        newest = None if self.view is None else self.view.snapshot
        if newest is None or newest.incarnation != snapshot.incarnation:
            self.schedulers += 1
            self.missed_snapshots = 0
            self._history = HistoryFeed(snapshot.incarnation)
            if self._pending_history.incarnation == snapshot.incarnation:
                self._history, self._pending_history = self._pending_history, HistoryFeed(0)
            self.graphs = None
            self.stories = {
                key: story for key, story in self.stories.items() if story.incarnation == snapshot.incarnation
            }
            self._recent.clear()
            self._cpu_usages = {}
        elif snapshot.sequence <= newest.sequence:
            return  # an old one that waited in a queue, or a duplicate
        else:
            self.missed_snapshots += snapshot.sequence - newest.sequence - 1
        self._recent.append(snapshot)
        while len(self._recent) > 1 and _seconds_between(self._recent[1], snapshot) >= RATE_SECONDS:
            self._recent.popleft()
        oldest = self._recent[0]
        base = oldest if _seconds_between(oldest, snapshot) >= RATE_SECONDS else None
        self._cpu_usages = cpu_usages(snapshot, self._cpu_usages)
        self.view = build_view(snapshot, base, self._cpu_usages)
        self.function_totals.update(snapshot)


def _seconds_between(earlier: Snapshot, later: Snapshot) -> float:
    return later.uptime_seconds - earlier.uptime_seconds
