"""The last answers that were sent to a client: they may be lost with its connection.

When the client joins again, it submits all tasks again whose answers it does not have. Those that were answered must
not run again, so it gets their answers once more. An answer stays here until the client has acknowledged it.
"""

from __future__ import annotations

from collections import deque

from scaler_scheduler.core.effects import OUTCOME_INPUT_LOST, OUTCOME_KEPT, Resolved

MOST_ROWS = 100_000
"""The most answers. A client acknowledges with each heartbeat, and reads up to about so many small ones a second."""

MOST_BYTES = 16 << 20
"""The most bytes of these answers. Tasks with more bytes of results on their way run again, if these are lost."""

RUN_AGAIN = OUTCOME_KEPT, OUTCOME_INPUT_LOST
"""After such an answer the client may submit the task again, and means it."""


class UnreadAnswers:
    """The last answers, oldest first."""

    __slots__ = ("_begin", "_rows", "_sent", "repeated")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, Resolved]] = deque()
        """Each message, after the bytes that its client has got with it: of answers and output, since the welcome."""
        self._begin = 0
        """The bytes that the client has got before the first of them."""
        self._rows = 0
        self.repeated: set[int] = set()
        """The tasks whose answers were sent once more, until the client has acknowledged them."""

    def add(self, batch: Resolved, sent_bytes: int) -> None:
        """Add a message that is sent now. `sent_bytes`: all bytes since the welcome, with this message."""
        self._sent.append((sent_bytes, batch))
        self._rows += len(batch.ids)
        while self._rows > MOST_ROWS or sent_bytes - self._begin > MOST_BYTES:
            self._drop_first()

    def acknowledge(self, received_bytes: int) -> None:
        """Drop the answers that the client has read, as it has acknowledged so many bytes since the welcome."""
        sent = self._sent
        while sent and sent[0][0] <= received_bytes:
            self._drop_first()

    def repeat(self, route: bytes) -> list[Resolved]:
        """Take out the messages, and return them for this route."""
        again: list[Resolved] = []
        self.repeated = set()
        for _, batch in self._sent:
            other = Resolved(route)
            other.ids, other.outcomes = batch.ids, batch.outcomes
            other.rows, other.profiles = batch.rows, batch.profiles
            again.append(other)
            rows = zip(batch.ids, batch.outcomes)
            self.repeated.update(task_id for task_id, outcome in rows if outcome not in RUN_AGAIN)
        self._sent.clear()
        self._begin = self._rows = 0
        return again

    def _drop_first(self) -> None:
        self._begin, batch = self._sent.popleft()
        self._rows -= len(batch.ids)
        if not self._sent:
            self.repeated = set()
