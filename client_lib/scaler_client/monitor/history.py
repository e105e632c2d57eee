"""The history of one scheduler, put together from its messages. Each row is delivered once."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ..protocol.snapshots import History

HISTORY_BATCHES = 600
"""How many messages are kept while no caller drains them. The scheduler sends about one a second."""


class HistoryFeed:
    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        """The scheduler's incarnation."""
        self.missed = 0
        """Rows that never arrived, or were dropped because no caller drained them."""
        self._batches: deque[History] = deque()
        self._first_number: int | None = None
        """The number of the first row of the first message."""
        self._next_number = 0
        """The number of the row after the last one."""
        self._backfilled_until = 0
        """Of the rows before the first message, those below this number are known or lost."""

    def add(self, history: History) -> bool:
        """Add a message. Returns whether any of its rows is new.

        The scheduler sends all history that it keeps to each new subscriber. All other subscribers receive these
        messages too.
        """
        begin = history.first
        end = begin + len(history.ids)
        if self._first_number is None:
            self._first_number = self._next_number = begin
        # The kept history comes in several messages. A message with new rows may arrive before them.
        is_new = self._append(history, max(begin, self._backfilled_until), min(end, self._first_number))
        if is_new:
            self._backfilled_until = min(end, self._first_number)
        self.missed += max(0, begin - self._next_number)
        if self._append(history, max(begin, self._next_number), end):
            self._next_number = end
            is_new = True
        return is_new

    def drain(self) -> list[History]:
        """The messages since the last call, which are removed."""
        drained = list(self._batches)
        self._batches.clear()
        return drained

    def _append(self, history: History, begin: int, end: int) -> bool:
        """Keep the rows with these numbers. Returns whether there are any."""
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
