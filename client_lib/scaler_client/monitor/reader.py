"""Following a scheduler by what it publishes, without a socket or a clock of its own.

Frames and the time (seconds of any monotonic clock) go in; what there is to show can be read at any time: the newest
picture, whether the scheduler is there, since when, and what was missed.
"""

from __future__ import annotations

import enum
from collections import deque

from ..protocol import wire
from ..protocol.snapshot_decoder import STORY_TOPIC, split_topic, task_of
from ..protocol.snapshots import Graphs, History, Snapshot
from .function_totals import FunctionTotals
from .history import HistoryFeed
from .snapshot_view import CounterTimes, CpuUsages, SnapshotView, build_view, counter_times, cpu_usages

SILENCE_SECONDS = 3.5
"""Without a snapshot, of which one comes each second: then the scheduler is gone."""

RATE_SECONDS = 0.5
"""What rates are of, at least: a snapshot that comes at once because somebody else subscribes is too close for them."""


MAX_STORIES = 100
"""Of so many tasks that were asked for the stories are kept."""


class Presence(enum.Enum):
    UNHEARD = "not heard of yet"
    THERE = "there"
    GONE = "gone"
    OTHER_VERSION = "of another version"


class MonitorReader:
    """What is known of the scheduler at a monitor address."""

    def __init__(self, now: float) -> None:
        self.presence = Presence.UNHEARD
        self.since = now
        """When that began: of one that is gone, when it was heard last."""
        self.problem = ""
        """Why nothing can be shown, for people, where it is of another version."""
        self.view: SnapshotView | None = None
        """The newest one; it stays when the scheduler is gone."""
        self.graphs: Graphs | None = None
        """The newest ones of this scheduler, where they are subscribed to."""
        self.stories: dict[tuple[int, int], History] = {}
        """By client and id: what was answered last to whoever has asked for this task."""
        self.missed_snapshots = 0
        """Of this scheduler, which came too late for this reader or while it did not read."""
        self.malformed = 0
        """Frames that were no messages, or none that is published."""
        self.schedulers = 0
        """How many were there one after the other: each start of the scheduler's is a new one."""
        self.function_totals = FunctionTotals()
        """Of this scheduler; each picture counts, also those that nobody looks at."""
        self._heard_at = now
        self._recent: deque[Snapshot] = deque()
        """Of this scheduler: the newest one, and before it the one that rates are taken from, and what is between."""
        self._cpu_usages: CpuUsages = {}
        self._counter_times: CounterTimes = {}
        self._history = HistoryFeed(0)
        self._pending_history = HistoryFeed(0)
        """Of a scheduler that has not shown itself yet."""

    def feed(self, frame: bytes, now: float) -> bool:
        """Take a frame that has come from the monitor address, topic and all.

        Returns:
            Whether there is something new to show.
        """
        try:
            message = wire.decode_published(frame)
        except wire.OtherVersionError as error:
            self.problem = str(error)
            self._set_presence(Presence.OTHER_VERSION, now)
            return True
        except wire.WireError:
            self.malformed += 1
            return False
        if isinstance(message, Snapshot):
            self._set_presence(Presence.THERE, now)
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
        """What has happened since the last call, as far as it came, the oldest first."""
        return self._history.drain()

    @property
    def missed_history(self) -> int:
        """Rows of this scheduler's history: too many at once, or they came too late for this reader."""
        return self._history.missed

    def tick(self, now: float) -> bool:
        """Notice silence. Feed what has come before, or time in which nobody read is taken for it.

        Returns:
            Whether there is something new to show.
        """
        if self.presence in (Presence.UNHEARD, Presence.GONE) or now < self.deadline:
            return False
        self.presence = Presence.GONE
        self.since = self._heard_at
        return True

    @property
    def heard_at(self) -> float:
        """When something was heard last, by the clock of what was fed; the beginning, where nothing was."""
        return self._heard_at

    @property
    def deadline(self) -> float:
        """When `tick` is to be called next, at the latest, if nothing comes before."""
        return self._heard_at + SILENCE_SECONDS

    def _set_presence(self, presence: Presence, now: float) -> None:
        self._heard_at = now
        if presence is not self.presence:
            self.presence = presence
            self.since = now
        if presence is Presence.THERE:
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
        """Of any scheduler that answers: who asks for a story may not have waited for a picture."""
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
            return  # an old one that has waited in a queue, or the same again
        else:
            self.missed_snapshots += snapshot.sequence - newest.sequence - 1
        is_same = newest is not None and newest.incarnation == snapshot.incarnation
        self._counter_times = counter_times(snapshot, newest if is_same else None, self._counter_times)
        self._recent.append(snapshot)
        while len(self._recent) > 1 and _seconds_between(self._recent[1], snapshot) >= RATE_SECONDS:
            self._recent.popleft()
        oldest = self._recent[0]
        base = oldest if _seconds_between(oldest, snapshot) >= RATE_SECONDS else None
        self._cpu_usages = cpu_usages(snapshot, self._cpu_usages)
        self.view = build_view(snapshot, base, self._cpu_usages, self._counter_times)
        self.function_totals.update(snapshot)


def _seconds_between(earlier: Snapshot, later: Snapshot) -> float:
    return later.uptime_seconds - earlier.uptime_seconds
