"""The last answers that a worker has sent: they may be lost with a scheduler or a connection.

A scheduler that is killed loses the answers that it has not read, and those that its clients have not read. Nobody
says when a client has read an answer. So an answer stays here until the scheduler has echoed two later heartbeats, or
until newer answers need its room. When the worker joins again, it names these tasks as finished and sends their
answers once more. The scheduler takes the answers that it still needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields

from scaler_client.protocol.messages import Outcome, Results, TaskAttempt

MOST_ROWS = 4096
"""The most answers. Every one is named in a hello. A worker has at most about 1,000 tasks at once, and the client
reads what a scheduler sends within a fraction of a second."""

MOST_BYTES = 16 << 20
"""The most bytes of these answers. The tasks of larger ones run again if the scheduler is killed."""

LATER_HEARTBEATS = 2
"""So many later heartbeats are echoed before an answer, or a report of a death, is dropped: seconds, in which its
client has read it."""

VALUES = (Outcome.VALUE, Outcome.STORED, Outcome.FILE)
"""The outcomes of tasks that have returned a value."""


class SentAnswers:
    """The last sent answers, oldest first."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int, Results]] = deque()
        """The number of the last heartbeat before it, its bytes, and the message."""
        self._rows = 0
        self._bytes = 0

    def add(self, results: Results, heartbeat: int, stopped: Collection[TaskAttempt]) -> None:
        """Keep a message that is sent now.

        Args:
            results: the answers.
            heartbeat: the number of the last heartbeat.
            stopped: the tasks that were stopped. A new scheduler must not get the failures of these tasks: it does not
            know that they were stopped.
        """
        if stopped:
            names = zip(results.clients, results.ids, results.attempts)
            results = _rows_of(
                results,
                [row for row, name in enumerate(names) if name not in stopped or results.outcomes[row] in VALUES],
            )
        size = sum(map(len, results.payloads))
        self._sent.append((heartbeat, size, results))
        self._rows += len(results.ids)
        self._bytes += size
        while self._rows > MOST_ROWS or self._bytes > MOST_BYTES:
            self._drop_first()

    def confirm(self, echoed: int) -> None:
        """Drop the answers whose clients have read them, as the echo of this heartbeat shows."""
        while self._sent and self._sent[0][0] + LATER_HEARTBEATS <= echoed:
            self._drop_first()

    def names(self) -> Iterator[TaskAttempt]:
        """The tasks whose answers can be sent again."""
        for _, _, results in self._sent:
            names = zip(results.clients, results.ids, results.attempts)
            yield from (name for name, outcome in zip(names, results.outcomes) if is_final(outcome))

    def pop_final(self) -> list[Results]:
        """Take out the messages to send again, with the rows that `names` names."""
        sent, self._sent = self._sent, deque()
        self._rows = self._bytes = 0
        parts = [
            _rows_of(results, [row for row, outcome in enumerate(results.outcomes) if is_final(outcome)])
            for _, _, results in sent
        ]
        return [part for part in parts if part.ids]

    def _drop_first(self) -> None:
        _, size, results = self._sent.popleft()
        self._rows -= len(results.ids)
        self._bytes -= size


def is_final(outcome: int) -> bool:
    """Whether a task with this outcome has ended, and its answer is in the message."""
    return outcome < Outcome.RETRYABLE or outcome in VALUES


def _rows_of(results: Results, rows: Sequence[int]) -> Results:
    if len(rows) == len(results.ids):
        return results
    columns = [getattr(results, field.name) for field in fields(Results)]
    return Results(*[[column[row] for row in rows] if column else [] for column in columns])
