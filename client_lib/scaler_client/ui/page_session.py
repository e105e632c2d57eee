"""The state of one page: the data that it was sent, and its next messages. It has no socket.

There is no queue. A page that reads slowly misses snapshots, and is then sent the newest state.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..protocol.snapshot_decoder import GRAPHS_TOPIC, story_topic
from ..protocol.snapshots import History
from .contract import MIN_INTERVAL_SECONDS, PageRequest, PauseRequest, SettingsRequest, WatchRequest, encode
from .live_state import LiveState

SLACK_SECONDS = 0.5
"""A snapshot may come this much before a page's interval is over: snapshots come about once a second."""


class PageSession:
    def __init__(self, live: LiveState) -> None:
        self._live = live
        self._watched: frozenset[str] = frozenset()
        self._new_topics: set[str] = set()
        self._interval = MIN_INTERVAL_SECONDS
        self._window = live.limits.window
        self._is_paused = False
        self._has_sent_hello = False
        self._problem = ""
        self._presence_changes = 0
        self._updates = 0
        self._updated_at = 0.0
        self._graph_changes: int | None = None
        self._story: tuple[int, int] | None = None
        """The task whose story the page has requested, until there is an answer."""
        self._previous_story: History | None = None
        """The answer to an earlier request for the same task."""
        self._next_point: int | None = None
        """The next point to send; None sends all of them."""
        self._next_chunk: int | None = None

    def handle(self, message: PageRequest) -> None:
        """Handle a message from the page."""
        if isinstance(message, WatchRequest):
            self._new_topics |= message.topics - self._watched
            self._watched = message.topics
            if "series" in self._new_topics:
                self._next_point = None
            if "tasks" in self._new_topics:
                self._next_chunk = None
            if "graphs" in self._new_topics:
                self._graph_changes = None
        elif isinstance(message, SettingsRequest):
            self._interval = message.interval or self._interval
            if message.window is not None and message.window > self._window:
                self._next_point = self._next_chunk = None
                self._new_topics |= self._watched & {"series", "tasks"}
            self._window = message.window or self._window
        elif isinstance(message, PauseRequest):
            self._is_paused = message.is_on
        else:
            self._story = message.client, message.id
            self._previous_story = self._live.reader.stories.get(self._story)

    def topics(self) -> set[bytes]:
        """Topics that the page needs and that are not always subscribed to."""
        needed = {GRAPHS_TOPIC} if "graphs" in self._watched and not self._is_paused else set()
        if self._story is not None:
            needed.add(story_topic(*self._story))
        return needed

    def reject(self, problem: str) -> None:
        """Tell the page that its message was wrong."""
        self._problem = problem

    def pending_messages(self) -> Iterator[str]:
        """The messages that the page should get now, one by one. The caller may take its time between two."""
        if not self._has_sent_hello:
            self._has_sent_hello = True
            yield self._live.hello()
        if self._presence_changes != self._live.presence_changes:
            self._presence_changes = self._live.presence_changes
            yield self._live.presence()
        if self._problem:
            problem, self._problem = self._problem, ""
            yield encode({"type": "refused", "problem": problem})
        if self._story is not None and self._is_answered(self._story):
            story, self._story, self._previous_story = self._story, None, None
            yield self._live.story(*story)
        live = self._live
        if self._is_paused or live.view is None:
            return
        is_due = live.updates != self._updates and live.updated_at >= self._updated_at + self._interval - SLACK_SECONDS
        if is_due:
            self._updates, self._updated_at = live.updates, live.updated_at
            yield live.text("snapshot")
        topics = self._watched if is_due else self._watched & self._new_topics
        self._new_topics -= topics
        for topic in sorted(topics):
            if topic == "series":
                yield from self._points()
            elif topic == "tasks":
                yield from self._chunks()
            elif topic != "graphs" or self._has_new_graphs():
                yield live.text(topic)

    def _is_answered(self, story: tuple[int, int]) -> bool:
        answer = self._live.reader.stories.get(story)
        return answer is not None and answer is not self._previous_story

    def _has_new_graphs(self) -> bool:
        """Whether the graphs have changed since the page was sent them."""
        before, self._graph_changes = self._graph_changes, self._live.graph_changes
        return before != self._graph_changes

    def _points(self) -> Iterator[str]:
        series = self._live.series
        if self._next_point is None or self._next_point < series.first:
            yield _reset("series")
            self._next_point = series.number_at(self._oldest())
        if self._next_point < series.next_number:
            begin, self._next_point = self._next_point, series.next_number
            yield self._live.points(begin)

    def _chunks(self) -> Iterator[str]:
        executions = self._live.executions
        while self._next_chunk is None or self._next_chunk < executions.next_number:
            first = executions.next_number - len(executions.chunks)
            if self._next_chunk is None or self._next_chunk < first:
                yield _reset("tasks")
                self._next_chunk = executions.number_at(self._oldest())
            else:
                self._next_chunk += 1
                yield self._live.chunk(self._next_chunk - 1)

    def _oldest(self) -> float:
        """Unix time of the oldest data that the page wants."""
        view = self._live.view
        return 0.0 if view is None else view.snapshot.unix_seconds - self._window


def _reset(topic: str) -> str:
    return encode({"type": "reset", "topic": topic})
