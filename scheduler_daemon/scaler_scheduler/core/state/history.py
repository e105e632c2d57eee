"""The newest history rows of tasks, for monitors and for requests about one task.

History is recorded in runs: the rows of one message or dispatch that have the same function. A run refers to columns
that exist anyway, so a task in a long batch costs almost nothing. Short runs are packed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from scaler_scheduler.core.effects import (
    OUTCOME_CANCELLED,
    OUTCOME_ENVIRONMENT_FAILED,
    OUTCOME_INPUT_LOST,
    OUTCOME_TIMED_OUT,
    OUTCOME_VALUE,
    OUTCOME_WORKER_DIED,
)
from scaler_scheduler.core.events import Results
from scaler_scheduler.core.lines import printable_line
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.history_rows import PACKED_ROWS, PackedRows, Rows
from scaler_scheduler.core.state.records import Client, Task, Worker
from scaler_scheduler.core.state.timers import Clock
from scaler_scheduler.core.state.tracebacks import Tracebacks

SUBMITTED = 0
DISPATCHED = 1
STARTED = 2  # it is known to run
ENDED = 3
RETURNED = 4  # it has left its worker and has not ended
REATTACHED = 5  # a worker that joined again still holds it

NO_WORKER = 0
ANY_CLIENT = 0
"""In a query: any client. Incarnations begin at 1."""

CLIENT_LEFT = "its client has left"

SHORT_RUN = 16
"""Runs with fewer rows are packed."""

_RUN_LIMIT = 10_000
"""The most runs that are kept, even if they are short. A run is up to ten objects."""

_ZERO = (0,)

_TEXT_OUTCOMES = (OUTCOME_WORKER_DIED, OUTCOME_TIMED_OUT, OUTCOME_INPUT_LOST, OUTCOME_ENVIRONMENT_FAILED)
"""Outcomes whose payload is text."""


def _compact(ids: Sequence[int]) -> Sequence[int]:
    """Return ascending ids as a range if they are consecutive, which needs no list."""
    first, rows = ids[0], len(ids)
    return range(first, first + rows) if ids[-1] - first == rows - 1 else ids


def _line(outcome: int, payload: bytes) -> str:
    """Return the error line of a task that the scheduler itself has answered."""
    if outcome in _TEXT_OUTCOMES:
        return printable_line(payload.partition(b"\nTraceback")[0])
    return "cancelled" if outcome == OUTCOME_CANCELLED else "an input has failed"


class History:
    """The kept rows, in runs."""

    def __init__(self, clock: Clock, limit: int) -> None:
        """Make an empty history.

        Args:
            clock: the time that rows get.
            limit: at least this many of the newest rows are kept, in long runs.
        """
        self._clock = clock
        self.first_row = 0
        """The number of the oldest kept row, counted since the scheduler's start."""
        self.next_row = 0
        """The number of the next row."""
        self.limit = limit
        """The publisher raises it while a monitor subscribes."""
        self._runs: deque[Rows] = deque()
        self.tracebacks = Tracebacks()
        """The tracebacks of failed attempts. They are published only in the story of one task."""
        self._packed: PackedRows | None = None
        """The packed rows to which the next short run is added, unless a long run came since."""

    def rows(self, begin: int, limit: int) -> tuple[int, list[Rows]]:
        """Return at most `limit` rows, beginning with row number `begin`, and the number of the first one returned.

        Rows that are no longer kept are left out.
        """
        begin = max(begin, self.first_row)
        end = min(begin + limit, self.next_row)
        found: list[Rows] = []
        at = self.first_row
        for run in self._runs:
            if at >= end:
                break
            following = at + len(run.ids)
            if following > begin:
                found.append(run.slice(max(begin - at, 0), min(end, following) - at))
            at = following
        return begin, found

    def rows_of_task(self, client: int, task_id: int) -> list[Rows]:
        """Return the rows of one task, one by one. With ANY_CLIENT: of the tasks of all clients with this id."""
        found: list[Rows] = []
        is_any = client == ANY_CLIENT
        for run in self._runs:
            ids, clients = run.ids, run.clients
            if len(clients) == 1 and clients[0] != client and not is_any:
                continue
            if isinstance(ids, range):
                if task_id in ids:
                    found.append(run.slice(ids.index(task_id), ids.index(task_id) + 1))
                continue
            for row in range(len(ids)):
                if ids[row] == task_id and (is_any or len(clients) == 1 or clients[row] == client):
                    found.append(run.slice(row, row + 1))
        return found

    def record_submitted(self, client: Client, ids: Sequence[int], functions: Sequence[Function], name: str) -> None:
        """Record a submit.

        Args:
            client: the client.
            ids: ascending task ids.
            functions: one for all rows, or one a row.
            name: the user-given name of the tasks, or empty.
        """
        clients = (client.incarnation,)
        if len(functions) == 1:
            function = functions[0].name
            self._add(SUBMITTED, NO_WORKER, name or function, function, clients, _compact(ids), _ZERO)
            return
        begin = 0
        for row in range(1, len(functions) + 1):
            if row == len(functions) or functions[row] is not functions[begin]:
                function = functions[begin].name
                self._add(SUBMITTED, NO_WORKER, name or function, function, clients, ids[begin:row], _ZERO)
                begin = row

    def record_dispatched(
        self, worker: Worker, client: Client, function: Function, name: str, ids: Sequence[int], attempt: int
    ) -> None:
        """Record a dispatch. `ids` ascend; `name` is the user-given name of the tasks, or empty."""
        function_name, clients = function.name, (client.incarnation,)
        self._add(
            DISPATCHED, worker.incarnation, name or function_name, function_name, clients, _compact(ids), (attempt,)
        )

    def record_started(self, task: Task, worker: Worker) -> None:
        """Record that the task is known to run."""
        self._add_task(STARTED, worker, task)

    def record_reattached(self, task: Task, worker: Worker) -> None:
        """Record that a worker which joined again runs the task."""
        self._add_task(REATTACHED, worker, task)

    def record_returned(self, task: Task, worker: Worker, outcome: int, duration: int, error: str) -> None:
        """Record that a task left its worker after `duration` nanoseconds and has not ended. `error` is the error line
        of the attempt."""
        self._add_task(RETURNED, worker, task, (outcome,), (duration,), (error,))

    def record_ended(
        self, client: Client, task_id: int, attempt: int, function: Function, name: str, outcome: int, payload: bytes
    ) -> None:
        """Record an answer of the scheduler itself. `name` is the user-given name of the task, or empty."""
        error = "" if outcome == OUTCOME_VALUE else _line(outcome, payload)
        names, clients = (name or function.name, function.name), (client.incarnation,)
        self._add(ENDED, NO_WORKER, *names, clients, (task_id,), (attempt,), (outcome,), _ZERO, (error,))

    def record_client_left(
        self, client: Client, ids: Sequence[int], functions: Sequence[Function], name: str, attempt: int = 0
    ) -> None:
        """Record tasks that are cancelled because their client has left. `functions` has one element a row.

        Each function's rows are one run, so that a million waiting tasks cost no more than their ids.
        """
        clients = (client.incarnation,)
        begin, rows = 0, len(ids)
        for row in range(1, rows + 1):
            if row == rows or functions[row] is not functions[begin]:
                function = functions[begin].name
                of_run = ids[begin:row]
                self._add(
                    ENDED,
                    NO_WORKER,
                    name or function,
                    function,
                    clients,
                    _compact(of_run),
                    (attempt,),
                    (OUTCOME_CANCELLED,),
                    _ZERO,
                    [CLIENT_LEFT] * len(of_run),
                )
                begin = row

    def record_results(
        self, event: Results, worker: Worker, function: Function, name: str, begin: int, end: int, skipped: list[int]
    ) -> None:
        """Record results of one function and one task name, in the rows from `begin` up to `end`.

        Rows in `skipped` are left out, and the list is emptied.
        """
        own, function_name = name or function.name, function.name
        if not skipped and end - begin == len(event.ids):
            clients, attempts, outcomes = event.short
            columns = clients, event.ids, attempts, outcomes, event.durations, event.errors
            self._add(ENDED, worker.incarnation, own, function_name, *columns)
            return
        for row in (*skipped, end):
            if begin < row:
                self._add(
                    ENDED,
                    worker.incarnation,
                    own,
                    function_name,
                    event.clients[begin:row],
                    event.ids[begin:row],
                    event.attempts[begin:row],
                    event.outcomes[begin:row],
                    event.durations[begin:row],
                    event.errors[begin:row],
                )
            begin = row + 1
        skipped.clear()

    def _add_task(
        self,
        kind: int,
        worker: Worker,
        task: Task,
        outcomes: Sequence[int] = _ZERO,
        durations: Sequence[int] = _ZERO,
        errors: Sequence[str] = (),
    ) -> None:
        names, clients, ids = (task.name, task.function.name), (task.client.incarnation,), (task.id,)
        self._add(kind, worker.incarnation, *names, clients, ids, (task.attempt,), outcomes, durations, errors)

    def _add(
        self,
        kind: int,
        worker: int,
        name: str,
        function: str,
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
        if count >= SHORT_RUN:
            self._packed = None
            runs.append(Rows((kind,), (self._clock.now,), (worker,), (name,), (function,), *columns))
        else:
            packing = self._packed
            if packing is None or len(packing.rows.ids) >= PACKED_ROWS:
                packing = self._packed = PackedRows()
                runs.append(packing.rows)
            packing.add(kind, self._clock.now, worker, name, function, *columns)
        self.next_row += count
        while self.next_row - self.first_row - len(runs[0].ids) >= self.limit or len(runs) > _RUN_LIMIT:
            self.first_row += len(runs.popleft().ids)
        if count > self.limit:  # the run is the only one
            runs[0] = runs[0].slice(count - self.limit, count)
            self.first_row = self.next_row - self.limit
