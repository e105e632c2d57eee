"""The last answers that were sent to a client: they may be lost with its connection.

When the client joins again, it submits all tasks again whose answers it has not read. Those that were answered must not
run again: their answers are sent once more if they were sent before the welcome, and are on their way if they were sent
since. An answer stays here until the client has acknowledged it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from scaler_scheduler.core.effects import OUTCOME_INPUT_LOST, OUTCOME_KEPT, Resolved

MOST_ROWS = 100_000
"""The most answers. A client acknowledges with each heartbeat, and reads up to about so many small ones a second."""

MOST_BYTES = 16 << 20
"""The most bytes of these answers. Tasks with more bytes of results on their way run again, if these are lost."""

RUN_AGAIN = OUTCOME_KEPT, OUTCOME_INPUT_LOST
"""After such an answer the client may submit the task again, and means it."""


class UnreadAnswers:
    """The last answers, oldest first."""

    __slots__ = ("_begin", "_ids", "_rows", "_sent")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, Resolved]] = deque()
        """Each message, after the bytes that its client has got with it: of answers and output, since the welcome."""
        self._begin = 0
        """The bytes that the client has got before the first of them."""
        self._rows = 0
        self._ids: set[int] | None = None
        """The tasks that `ids` returns. None: nobody has asked since the client last had nothing to acknowledge."""

    def add(self, batch: Resolved, sent_bytes: int) -> None:
        """Add a message that is sent now. `sent_bytes`: all bytes since the welcome, with this message."""
        self._sent.append((sent_bytes, batch))
        self._rows += len(batch.ids)
        if self._ids is not None:
            self._ids.update(_ended(batch))
        while self._rows > MOST_ROWS or sent_bytes - self._begin > MOST_BYTES:
            self._drop_first()

    def acknowledge(self, received_bytes: int) -> None:
        """Drop the answers that the client has read, as it has acknowledged so many bytes since the welcome."""
        sent = self._sent
        while sent and sent[0][0] <= received_bytes:
            self._drop_first()

    def ids(self, outgoing: Resolved | None) -> Set[int]:
        """Return the tasks that have ended for good and whose answers the client may not have read.

        The set is made only now: most clients never submit a task again.

        Args:
            outgoing: the answers that are about to be sent.
        """
        if self._ids is None:
            self._ids = {task_id for _, batch in self._sent for task_id in _ended(batch)}
        if outgoing is not None:
            self._ids.update(_ended(outgoing))
        return self._ids

    def repeat(self, route: bytes) -> list[Resolved]:
        """Take out the messages, and return them for this route."""
        again: list[Resolved] = []
        for _, batch in self._sent:
            other = Resolved(route)
            other.ids, other.outcomes = batch.ids, batch.outcomes
            other.rows, other.profiles = batch.rows, batch.profiles
            again.append(other)
        self._sent.clear()
        self._ids = None
        self._begin = self._rows = 0
        return again

    def _drop_first(self) -> None:
        self._begin, batch = self._sent.popleft()
        self._rows -= len(batch.ids)
        if not self._sent:
            self._ids = None


def _ended(batch: Resolved) -> list[int]:
    """Return the tasks of these answers that no client submits again once it has read its answer."""
    return [task_id for task_id, outcome in zip(batch.ids, batch.outcomes) if outcome not in RUN_AGAIN]
