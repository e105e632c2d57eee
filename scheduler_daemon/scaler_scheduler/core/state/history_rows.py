"""History rows by column: one run, and packed rows.

Short runs are packed into growing columns. An object for each would be ten times as large.
"""

from array import array
from collections.abc import Sequence
from typing import TypeVar

PACKED_ROWS = 1024
"""The most rows that are packed together."""

_ZERO = (0,)


class Rows:
    """Rows by column.

    A column has one element for all rows, or one a row. `ids` always has one a row, and `errors` may be empty.
    `seconds` are of the monotonic clock. `names` are the user-given names of the tasks, or those of their `functions`.
    """

    __slots__ = (
        "attempts",
        "clients",
        "durations",
        "errors",
        "functions",
        "ids",
        "kinds",
        "names",
        "outcomes",
        "seconds",
        "workers",
    )

    def __init__(
        self,
        kinds: Sequence[int],
        seconds: Sequence[float],
        workers: Sequence[int],
        names: Sequence[str],
        functions: Sequence[str],
        clients: Sequence[int],
        ids: Sequence[int],
        attempts: Sequence[int],
        outcomes: Sequence[int] = _ZERO,
        durations: Sequence[int] = _ZERO,
        errors: Sequence[str] = (),
    ) -> None:
        self.kinds = kinds
        self.seconds = seconds
        self.workers = workers
        self.names = names
        self.functions = functions
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.outcomes = outcomes
        self.durations = durations
        self.errors = errors

    def slice(self, begin: int, end: int) -> "Rows":
        """Return the rows from `begin` up to `end`."""
        rows = len(self.ids)
        if end - begin == rows:
            return self
        return Rows(
            _cut(self.kinds, rows, begin, end),
            _cut(self.seconds, rows, begin, end),
            _cut(self.workers, rows, begin, end),
            _cut(self.names, rows, begin, end),
            _cut(self.functions, rows, begin, end),
            _cut(self.clients, rows, begin, end),
            self.ids[begin:end],
            _cut(self.attempts, rows, begin, end),
            _cut(self.outcomes, rows, begin, end),
            _cut(self.durations, rows, begin, end),
            _cut(self.errors, rows, begin, end),
        )


_T = TypeVar("_T")


def _cut(column: Sequence[_T], rows: int, begin: int, end: int) -> Sequence[_T]:
    return column[begin:end] if len(column) == rows else column


class PackedRows:
    """Columns that short runs are appended to."""

    __slots__ = (
        "_attempts",
        "_clients",
        "_durations",
        "_errors",
        "_functions",
        "_ids",
        "_kinds",
        "_names",
        "_outcomes",
        "_seconds",
        "_workers",
        "rows",
    )

    def __init__(self) -> None:
        self._kinds, self._seconds, self._workers = array("B"), array("d"), array("q")
        self._clients, self._ids, self._attempts = array("q"), array("q"), array("I")
        self._outcomes, self._durations = array("B"), array("q")
        self._names: list[str] = []
        self._functions: list[str] = []
        self._errors: list[str] = []
        self.rows = Rows(
            self._kinds,
            self._seconds,
            self._workers,
            self._names,
            self._functions,
            self._clients,
            self._ids,
            self._attempts,
            self._outcomes,
            self._durations,
            self._errors,
        )

    def add(
        self,
        kind: int,
        seconds: float,
        worker: int,
        name: str,
        function: str,
        clients: Sequence[int],
        ids: Sequence[int],
        attempts: Sequence[int],
        outcomes: Sequence[int],
        durations: Sequence[int],
        errors: Sequence[str],
    ) -> None:
        """Append a short run. Its columns have one element, or one a row."""
        if self._names and self._names[-1] == name:
            name = self._names[-1]  # each submit brings a new object for the same name: keep one of them
        for row in range(len(ids)):
            self._kinds.append(kind)
            self._seconds.append(seconds)
            self._workers.append(worker)
            self._names.append(name)
            self._functions.append(function)
            self._clients.append(clients[row] if len(clients) > 1 else clients[0])
            self._ids.append(ids[row])
            self._attempts.append(attempts[row] if len(attempts) > 1 else attempts[0])
            self._outcomes.append(outcomes[row] if len(outcomes) > 1 else outcomes[0])
            self._durations.append(durations[row] if len(durations) > 1 else durations[0])
            self._errors.append(errors[row] if errors else "")
