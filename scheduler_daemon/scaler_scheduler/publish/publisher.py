"""Timing of what the scheduler publishes: a snapshot a second, history, and all kept history to new subscribers.

Without subscribers nothing is encoded, and no turn of the loop encodes much. History goes out in messages with a pause
between them, in which the loop goes on. A new subscriber gets all rows that are kept. New rows go out once a second, or
sooner if they fill a message. The history keeps the rows of some seconds of a busy scheduler, or of some tenths of a
second in a burst.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from struct import Struct

from ..core.tables import HISTORY_ROWS as KEPT_ROWS
from ..net.monitor_socket import MonitorSocket
from .snapshots import SnapshotWriter

SNAPSHOT_SECONDS = 1.0
CHECK_SECONDS = 0.25
"""How often new subscriptions are read. A new subscriber gets a snapshot at once."""

HISTORY_ROWS = 10_000
"""The most rows of one message."""

PAUSE_SECONDS = 0.02
"""The pause between two messages of history, because a subscriber's queue is short. It allows 500,000 rows a second."""

BUSY_PAUSE_FACTOR = 400
"""While the loop is busy, the pause is this many times the cost of the last message of history. So a subscriber takes
0.25 % of the loop's time (`make bench`, monitor). After a burst, the rows that are still kept are sent."""

SUBSCRIBED_ROWS = 500_000
"""Rows that are kept while history has subscribers. They hold a burst of 160,000 tasks, which may arrive in half a
second and takes a second to go out."""

REPLAY_SECONDS = 1.0
"""The least time between two replays of the kept rows. All subscribers get a replay."""

SNAPSHOT_TOPIC = b"snapshot"
HISTORY_TOPIC = b"history\0"
GRAPHS_TOPIC = b"graphs\0\0"
"""Each message begins with its topic: the name of the union's member in eight bytes."""

TOPICS: tuple[bytes, ...] = (SNAPSHOT_TOPIC, HISTORY_TOPIC, GRAPHS_TOPIC)

STORY_TOPIC = b"story\0\0\0"
"""The prefix of a request for the story of a task. The task's client and id follow."""

STORIES_PER_TURN = 4
"""The most requests that one turn answers. Each request searches all kept rows."""

STORY_REQUESTS = 64
"""The most requests that wait for their answer. Further requests are dropped; a monitor repeats its request."""

_TASK = Struct("<8sQQ")


class Publisher:
    """Publishes at the right times. `next` is the time of its next work, in seconds of the monotonic clock.

    `thread_time` gives the processor time of this thread in seconds.
    """

    def __init__(
        self,
        monitor: MonitorSocket,
        writer: SnapshotWriter,
        now: float,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._monitor = monitor
        self._writer = writer
        self._thread_time = thread_time
        self.next = self._next_check = self._next_snapshot = now
        self._next_row = 0
        """The number of the first row of history that is not published yet."""
        self._send_end = 0
        """Rows with lower numbers are sent now, one message at a time."""
        self._is_replay_wanted = False
        self._next_replay = self._next_history = self._sent_at = now
        self._sent_thread_time = thread_time()
        """The time of the last message of history, in this thread's processor time."""
        self._story_requests: deque[bytes] = deque()

    @property
    def has_urgent_work(self) -> bool:
        """Whether there is work before the loop's usual next turn."""
        return self._is_sending or len(self._story_requests) > 0 or self._monitor.has_more

    def run_due(self, now: float) -> None:
        """Do the work that is due."""
        began = self._thread_time()
        is_due = now >= self._next_snapshot
        if is_due or now >= self._next_check or self._monitor.has_more:
            self._next_check = now + CHECK_SECONDS
            self._serve_subscribers(is_due, now)
        if is_due:
            # Not `now` plus a second: an idle loop wakes up late, and the delays would add up.
            self._next_snapshot = max(self._next_snapshot + SNAPSHOT_SECONDS, now)
        if self._is_sending and now >= self._next_history:
            self._send_history_within_share(now)
        self._answer_stories()
        self.next = min(self._next_check, self._next_snapshot)
        if self.has_urgent_work:
            self.next = min(self.next, now + PAUSE_SECONDS)
        self._writer.monitor_seconds += self._thread_time() - began

    def _serve_subscribers(self, is_due: bool, now: float) -> None:
        """Read subscriptions, publish what is due, and decide which rows of history go out next."""
        has_new_subscriber = False
        for subscription in self._monitor.read_subscriptions(TOPICS, STORY_TOPIC):
            if subscription.startswith(STORY_TOPIC):
                if len(subscription) == _TASK.size and len(self._story_requests) < STORY_REQUESTS:
                    self._story_requests.append(subscription)
                continue
            has_new_subscriber = True
            if HISTORY_TOPIC.startswith(subscription):
                self._is_replay_wanted = True
        if is_due or has_new_subscriber:
            if self._monitor.has_subscribers(SNAPSHOT_TOPIC):
                self._monitor.publish(SNAPSHOT_TOPIC, self._writer.snapshot(now, time.time()))
            if self._monitor.has_subscribers(GRAPHS_TOPIC):
                self._monitor.publish(GRAPHS_TOPIC, self._writer.graphs())
        is_history_wanted = self._monitor.has_subscribers(HISTORY_TOPIC)
        self._writer.set_history_rows(SUBSCRIBED_ROWS if is_history_wanted else KEPT_ROWS)
        if not is_history_wanted:
            self._send_end, self._is_replay_wanted = 0, False
        elif not self._is_sending:
            if self._is_replay_wanted and now >= self._next_replay:
                self._next_replay = now + REPLAY_SECONDS
                self._is_replay_wanted = False
                self._send_end = self._writer.history_end
                self._next_row = min(self._next_row, max(0, self._send_end - KEPT_ROWS))
            elif is_due or self._has_full_message:
                self._send_end = self._writer.history_end

    @property
    def _is_sending(self) -> bool:
        return self._next_row < self._send_end

    @property
    def _has_full_message(self) -> bool:
        return self._writer.history_end - self._next_row >= HISTORY_ROWS

    def _answer_stories(self) -> None:
        for _ in range(min(STORIES_PER_TURN, len(self._story_requests))):
            topic = self._story_requests.popleft()
            _, client, task_id = _TASK.unpack(topic)
            self._monitor.publish(topic, self._writer.story(client, task_id))

    def _send_history_within_share(self, now: float) -> None:
        """Send one message. If the loop is busy, the cost of the message sets the time of the next one."""
        before = self._thread_time()
        self._send_history()
        after = self._thread_time()
        is_busy = before - self._sent_thread_time > (now - self._sent_at) / 2
        self._next_history = now + (
            max(PAUSE_SECONDS, BUSY_PAUSE_FACTOR * (after - before)) if is_busy else PAUSE_SECONDS
        )
        self._sent_at, self._sent_thread_time = now, after

    def _send_history(self) -> None:
        """Send one message. If the rows fill another message, it goes out next.

        The history keeps less than a second of a burst.
        """
        self._next_row, frame = self._writer.history(self._next_row, HISTORY_ROWS)
        if frame:
            self._monitor.publish(HISTORY_TOPIC, frame)
        if not self._is_sending and not self._is_replay_wanted and self._has_full_message:
            self._send_end = self._writer.history_end
