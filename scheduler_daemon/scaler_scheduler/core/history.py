"""What happens to tasks, for whoever watches: kept while somebody does, and only the newest of it.

It is noted in runs, as it happens: rows of one message or dispatch with the same function. So it costs nothing a task
while nobody watches, and next to nothing while somebody does; rows are made of what is left when they are asked for.
"""

from collections import deque
from typing import Deque, List, Sequence, Tuple

from scaler_scheduler.core.events import Results
from scaler_scheduler.core.functions import Function
from scaler_scheduler.core.records import Client, Task, Worker

SUBMITTED = 0
DISPATCHED = 1
STARTED = 2  # it is known to run
ENDED = 3
RETURNED = 4  # it has left its worker without an end

NO_WORKER = 0

_ZERO = (0,)


class Run:
    """Rows of one kind, one function and one worker; columns have one element that holds for all, or one a row."""

    __slots__ = ("attempts", "clients", "durations", "ids", "kind", "name", "outcomes", "seconds", "worker")

    def __init__(
        self,
        kind: int,
        seconds: float,
        worker: int,
        name: str,
        clients: Sequence[int],
        ids: Sequence[int],
        attempts: Sequence[int],
        outcomes: Sequence[int] = _ZERO,
        durations: Sequence[int] = _ZERO,
    ) -> None:
        self.kind = kind
        self.seconds = seconds
        self.worker = worker
        self.name = name
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.outcomes = outcomes
        self.durations = durations

    def without(self, count: int) -> "Run":
        """What is left without the first rows."""
        return Run(
            self.kind,
            self.seconds,
            self.worker,
            self.name,
            self.clients if len(self.clients) == 1 else self.clients[count:],
            self.ids[count:],
            self.attempts if len(self.attempts) == 1 else self.attempts[count:],
            self.outcomes if len(self.outcomes) == 1 else self.outcomes[count:],
            self.durations if len(self.durations) == 1 else self.durations[count:],
        )


class History:
    def __init__(self, limit: int) -> None:
        self.is_on = False
        """Whether somebody watches: else nothing may be noted."""
        self.now = 0.0
        """The time of what happens, in seconds of the monotonic clock."""
        self._limit = limit
        self._runs: Deque[Run] = deque()
        self._rows = 0
        self._first = 0
        """The number of the oldest row that is kept; rows are counted since the scheduler's start."""

    def watch(self, is_on: bool) -> None:
        if not is_on and self.is_on:
            self.take()
        self.is_on = is_on

    def take(self) -> Tuple[int, List[Run]]:
        """What has happened since the last call, the newest rows up to the limit, and the number of the first."""
        excess = self._rows - self._limit
        if excess > 0:
            self._runs[0] = self._runs[0].without(excess)  # of all but the oldest run there are fewer than the limit
            self._drop(excess)
        taken = self._first, list(self._runs)
        self._first += self._rows
        self._rows = 0
        self._runs.clear()
        return taken

    def submitted(self, client: Client, ids: Sequence[int], functions: Sequence[Function]) -> None:
        """`functions` has one for all rows, or one a row."""
        begin = 0
        for row in range(1, len(functions) + 1):
            if row == len(functions) or functions[row] is not functions[begin]:
                end = len(ids) if row == len(functions) else row
                self._add(SUBMITTED, NO_WORKER, functions[begin].name, (client.incarnation,), ids[begin:end], _ZERO)
                begin = row

    def dispatched(self, worker: Worker, client: Client, name: str, ids: Sequence[int], attempt: int) -> None:
        self._add(DISPATCHED, worker.incarnation, name, (client.incarnation,), ids, (attempt,))

    def started(self, task: Task, worker: Worker) -> None:
        self._add(STARTED, worker.incarnation, task.name, (task.client.incarnation,), (task.id,), (task.attempt,))

    def returned(self, task: Task) -> None:
        self._add(RETURNED, NO_WORKER, task.name, (task.client.incarnation,), (task.id,), (task.attempt,))

    def ended(self, client: Client, task_id: int, attempt: int, name: str, outcome: int) -> None:
        """The scheduler itself has an answer to the task."""
        self._add(ENDED, NO_WORKER, name, (client.incarnation,), (task_id,), (attempt,), (outcome,))

    def results(
        self, event: Results, worker: Worker, function: Function, begin: int, end: int, skipped: List[int]
    ) -> None:
        """Results of this function, in these rows, have come; rows in `skipped`, which is emptied, are none."""
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
    ) -> None:
        self._runs.append(Run(kind, self.now, worker, name, clients, ids, attempts, outcomes, durations))
        self._rows += len(ids)
        while self._rows - len(self._runs[0].ids) >= self._limit:
            self._drop(len(self._runs.popleft().ids))

    def _drop(self, rows: int) -> None:
        self._rows -= rows
        self._first += rows
