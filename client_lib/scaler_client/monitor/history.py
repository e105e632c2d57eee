"""The history of one scheduler as its messages come: each row once, whoever it was sent for."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ..protocol.snapshots import History

HISTORY_BATCHES = 600
"""Of history that nobody takes so many messages are kept, one of which comes a second."""


class HistoryFeed:
    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        """The scheduler's."""
        self.missed = 0
        """Rows that did not come, or that nobody has taken."""
        self._batches: deque[History] = deque()
        self._first_number: int | None = None
        """The number of the first row of the first message."""
        self._next_number = 0
        """The number of the row behind the last one."""
        self._backfilled_until = 0
        """Of the rows before the first message those up to this one are known or not to be had."""

    def add(self, history: History) -> bool:
        """Take a message; returns whether any of it is new.

        To each new subscriber the scheduler sends all that it keeps, and all others get that as well.
        """
        begin = history.first
        end = begin + len(history.ids)
        if self._first_number is None:
            self._first_number = self._next_number = begin
        # What is kept comes in several messages, and one of what has just happened may come before them.
        is_new = self._append(history, max(begin, self._backfilled_until), min(end, self._first_number))
        if is_new:
            self._backfilled_until = min(end, self._first_number)
        self.missed += max(0, begin - self._next_number)
        if self._append(history, max(begin, self._next_number), end):
            self._next_number = end
            is_new = True
        return is_new

    def drain(self) -> list[History]:
        """What has come since the last call."""
        drained = list(self._batches)
        self._batches.clear()
        return drained

    def _append(self, history: History, begin: int, end: int) -> bool:
        """Keep the rows with these numbers, if there are any."""
        if begin >= end:
            return False
        if len(self._batches) == HISTORY_BATCHES:
            self.missed += len(self._batches.popleft().ids)
        self._batches.append(_slice(history, begin - history.first, end - history.first))
        return True


def _slice(history: History, begin: int, end: int) -> History:
    if end - begin == len(history.ids):
        return history
    return replace(
        history,
        first=history.first + begin,
        **{name: getattr(history, name)[begin:end] for name in _COLUMNS},
    )


_COLUMNS = (
    "kinds",
    "times",
    "clients",
    "ids",
    "attempts",
    "workers",
    "names",
    "outcomes",
    "durations",
    "errors",
    "functions",
    "tracebacks",
)
