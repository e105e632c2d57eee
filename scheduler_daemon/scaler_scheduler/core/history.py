"""What has happened to tasks lately, for whoever watches or asks: the newest rows, always kept.

It is noted in runs, as it happens: rows of one message or dispatch with the same function, by reference to columns that
are there anyway, so that a task of a long batch costs next to nothing. Short runs are packed into columns that grow, as
an object each would be ten times their size.
"""

from array import array
from collections import deque
from typing import Deque, List, Optional, Sequence, Tuple, TypeVar

from scaler_scheduler.core.effects import (
    OUTCOME_CANCELLED,
    OUTCOME_INPUT_LOST,
    OUTCOME_TIMED_OUT,
    OUTCOME_VALUE,
    OUTCOME_WORKER_DIED,
)
from scaler_scheduler.core.events import Results
from scaler_scheduler.core.functions import Function
from scaler_scheduler.core.lines import as_line
from scaler_scheduler.core.records import Client, Task, Worker

SUBMITTED = 0
DISPATCHED = 1
STARTED = 2  # it is known to run
ENDED = 3
RETURNED = 4  # it has left its worker without an end

NO_WORKER = 0

SHORT = 16
"""Runs of fewer rows are packed."""

PACKED_ROWS = 1024
"""Rows that are packed together."""

_RUNS = 10_000
"""Most runs that are kept, of however few rows: each is an object or ten."""

_ZERO = (0,)

_TEXTS = (OUTCOME_WORKER_DIED, OUTCOME_TIMED_OUT, OUTCOME_INPUT_LOST)
"""Outcomes whose payload is a text."""


class Rows:
    """Rows by column; columns have one element that holds for all, or one a row. `ids` have one a row, `errors` may be
    empty. `seconds` are of the monotonic clock."""

    __slots__ = (
        "attempts",
        "clients",
        "durations",
        "errors",
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
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.outcomes = outcomes
        self.durations = durations
        self.errors = errors

    def part(self, begin: int, end: int) -> "Rows":
        """Those from `begin` up to `end`."""
        rows = len(self.ids)
        if end - begin == rows:
            return self
        return Rows(
            _cut(self.kinds, rows, begin, end),
            _cut(self.seconds, rows, begin, end),
            _cut(self.workers, rows, begin, end),
            _cut(self.names, rows, begin, end),
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


def _compact(ids: Sequence[int]) -> Sequence[int]:
    """The same ids, which ascend: most often they are those from one to another, and nothing more need be kept."""
    first, rows = ids[0], len(ids)
    return range(first, first + rows) if ids[-1] - first == rows - 1 else ids


def _line(outcome: int, payload: bytes) -> str:
    """Of what a task failed that the scheduler has answered."""
    if outcome in _TEXTS:
        return as_line(payload)
    return "cancelled" if outcome == OUTCOME_CANCELLED else "what it reads has failed"


class _Packing:
    """Rows that short runs are added to."""

    __slots__ = (
        "_attempts",
        "_clients",
        "_durations",
        "_errors",
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
        self._names: List[str] = []
        self._errors: List[str] = []
        self.rows = Rows(
            self._kinds,
            self._seconds,
            self._workers,
            self._names,
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
        clients: Sequence[int],
        ids: Sequence[int],
        attempts: Sequence[int],
        outcomes: Sequence[int],
        durations: Sequence[int],
        errors: Sequence[str],
    ) -> None:
        for row in range(len(ids)):
            self._kinds.append(kind)
            self._seconds.append(seconds)
            self._workers.append(worker)
            self._names.append(name)
            self._clients.append(clients[row] if len(clients) > 1 else clients[0])
            self._ids.append(ids[row])
            self._attempts.append(attempts[row] if len(attempts) > 1 else attempts[0])
            self._outcomes.append(outcomes[row] if len(outcomes) > 1 else outcomes[0])
            self._durations.append(durations[row] if len(durations) > 1 else durations[0])
            self._errors.append(errors[row] if errors else "")


class History:
    def __init__(self, limit: int) -> None:
        """`limit`: so many of the newest rows are kept at least, in long runs."""
        self.now = 0.0
        """The time of what happens, in seconds of the monotonic clock."""
        self.first = 0
        """The number of the oldest row that is kept; rows are counted since the scheduler's start."""
        self.end = 0
        """The number of the next row."""
        self._limit = limit
        self._runs: Deque[Rows] = deque()
        self._packing: Optional[_Packing] = None
        """What the last short run was added to, if no long one has come since."""

    def rows(self, begin: int, limit: int) -> Tuple[int, List[Rows]]:
        """At most `limit` rows from the one of this number on, and the number of the first of them: what is not kept
        any more is left out."""
        begin = max(begin, self.first)
        end = min(begin + limit, self.end)
        found: List[Rows] = []
        at = self.first
        for run in self._runs:
            if at >= end:
                break
            following = at + len(run.ids)
            if following > begin:
                found.append(run.part(max(begin - at, 0), min(end, following) - at))
            at = following
        return begin, found

    def of_task(self, client: int, task_id: int) -> List[Rows]:
        """The rows of one task, one by one."""
        found: List[Rows] = []
        for run in self._runs:
            ids, clients = run.ids, run.clients
            if len(clients) == 1 and clients[0] != client:
                continue
            if isinstance(ids, range):
                if task_id in ids:
                    found.append(run.part(ids.index(task_id), ids.index(task_id) + 1))
                continue
            for row in range(len(ids)):
                if ids[row] == task_id and (len(clients) == 1 or clients[row] == client):
                    found.append(run.part(row, row + 1))
        return found

    def submitted(self, client: Client, ids: Sequence[int], functions: Sequence[Function]) -> None:
        """`functions` has one for all rows, or one a row."""
        clients = (client.incarnation,)
        if len(functions) == 1:
            self._add(SUBMITTED, NO_WORKER, functions[0].name, clients, _compact(ids), _ZERO)
            return
        begin = 0
        for row in range(1, len(functions) + 1):
            if row == len(functions) or functions[row] is not functions[begin]:
                self._add(SUBMITTED, NO_WORKER, functions[begin].name, clients, ids[begin:row], _ZERO)
                begin = row

    def dispatched(self, worker: Worker, client: Client, name: str, ids: Sequence[int], attempt: int) -> None:
        """`ids` ascend."""
        self._add(DISPATCHED, worker.incarnation, name, (client.incarnation,), _compact(ids), (attempt,))

    def started(self, task: Task, worker: Worker) -> None:
        self._add(STARTED, worker.incarnation, task.name, (task.client.incarnation,), (task.id,), (task.attempt,))

    def returned(self, task: Task) -> None:
        self._add(RETURNED, NO_WORKER, task.name, (task.client.incarnation,), (task.id,), (task.attempt,))

    def ended(self, client: Client, task_id: int, attempt: int, name: str, outcome: int, payload: bytes) -> None:
        """The scheduler itself has this answer to the task."""
        error = "" if outcome == OUTCOME_VALUE else _line(outcome, payload)
        self._add(ENDED, NO_WORKER, name, (client.incarnation,), (task_id,), (attempt,), (outcome,), _ZERO, (error,))

    def results(
        self, event: Results, worker: Worker, function: Function, begin: int, end: int, skipped: List[int]
    ) -> None:
        """Results of this function, in these rows, have come; rows in `skipped`, which is emptied, are none."""
        if not skipped and end - begin == len(event.ids):
            clients, attempts, outcomes = event.short
            columns = clients, event.ids, attempts, outcomes, event.durations, event.errors
            self._add(ENDED, worker.incarnation, function.name, *columns)
            return
        for row in (*skipped, end):
            if begin < row:
                self._add(
                    ENDED,
                    worker.incarnation,
                    function.name,
                    event.clients[begin:row],
                    event.ids[begin:row],
                    event.attempts[begin:row],
                    event.outcomes[begin:row],
                    event.durations[begin:row],
                    event.errors[begin:row],
                )
            begin = row + 1
        skipped.clear()

    def _add(
        self,
        kind: int,
        worker: int,
        name: str,
        clients: Sequence[int],
        ids: Sequence[int],
        attempts: Sequence[int],
        outcomes: Sequence[int] = _ZERO,
        durations: Sequence[int] = _ZERO,
        errors: Sequence[str] = (),
    ) -> None:
        count = len(ids)
        columns = clients, ids, attempts, outcomes, durations, errors
        runs = self._runs
        if count >= SHORT:
            self._packing = None
            runs.append(Rows((kind,), (self.now,), (worker,), (name,), *columns))
        else:
            packing = self._packing
            if packing is None or len(packing.rows.ids) >= PACKED_ROWS:
                packing = self._packing = _Packing()
                runs.append(packing.rows)
            packing.add(kind, self.now, worker, name, *columns)
        self.end += count
        while self.end - self.first - len(runs[0].ids) >= self._limit or len(runs) > _RUNS:
            self.first += len(runs.popleft().ids)
        if count > self._limit:  # and so it is the only one
            runs[0] = runs[0].part(count - self._limit, count)
            self.first = self.end - self._limit
