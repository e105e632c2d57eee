"""Executions that are over, in chunks complete in themselves, which come, are sent and are dropped as a whole."""

from __future__ import annotations

from typing import Any

from .contract import encode, outcome_kind
from .durations import FunctionDurations

MICROSECONDS = 1_000_000
NO_INDEX = -1
"""An execution's worker where none had to do with it, or its error where it has none."""


class _ValueTable:
    """Values and the numbers that stand for them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Chunk:
    """Some executions, oldest first.

    Args:
        number: of this chunk; they are counted up.
        base: unix time in whole seconds that its times are counted from.
        missed: rows of history that were lost between the chunk before and this one.
    """

    def __init__(self, number: int, base: int, missed: int) -> None:
        self.number = number
        self.missed = missed
        self.newest = 0.0
        """When its last execution has ended, in unix time."""
        self.durations: dict[str, FunctionDurations] = {}
        self._base = base
        self._names, self._errors = _ValueTable(), _ValueTable()
        self._clients, self._workers = _ValueTable(), _ValueTable()
        self._rows: list[tuple[str, int, int, int, int, int, int | None, int | None, int, int, int]] = []
        self._count = 0
        self._text = ""

    def __len__(self) -> int:
        return self._count

    def add(
        self,
        *,
        client: int,
        task_id: int,
        attempt: int,
        worker: int,
        function: str,
        name: str,
        submitted: int | None,
        start: int | None,
        end: int,
        duration: int,
        outcome: int,
        error: str,
    ) -> None:
        """Times are unix time in microseconds; `worker` 0 is none; `duration` is nanoseconds, 0 if it is not known."""
        base = self._base * MICROSECONDS
        function_number = self._names.number(function)
        self._rows.append(
            (
                str(task_id),
                self._clients.number(client),
                attempt,
                self._workers.number(worker) if worker else NO_INDEX,
                function_number,
                self._names.number(name) if name != function else function_number,
                None if submitted is None else submitted - base,
                None if start is None else start - base,
                end - base,
                outcome,
                self._errors.number(error) if error else NO_INDEX,
            )
        )
        self._count += 1
        self.newest = max(self.newest, end / MICROSECONDS)
        durations = self.durations.get(function)
        if durations is None:
            durations = self.durations[function] = FunctionDurations()
        durations.add(duration, outcome_kind(outcome) == "failed")

    def text(self, worker_names: dict[int, str], client_names: dict[int, str]) -> str:
        """The message, made when somebody first wants it; names are looked up then. What it was made of is let go."""
        if not self._text:
            workers, clients = self._workers.values, self._clients.values
            self._text = encode(
                {
                    "type": "tasks",
                    "chunk": self.number,
                    "base": self._base,
                    "missed": self.missed,
                    "names": self._names.values,
                    "errors": self._errors.values,
                    "clients": [str(client) for client in clients],
                    "client_names": [client_names.get(client, "") for client in clients],
                    "workers": [str(worker) for worker in workers],
                    "worker_names": [worker_names.get(worker, "") for worker in workers],
                    "columns": dict(zip(_COLUMNS, zip(*self._rows))) if self._rows else {name: [] for name in _COLUMNS},
                }
            )
            self._rows.clear()
        return self._text


_COLUMNS = (
    "id", "client", "attempt", "worker", "function", "name", "submitted", "start", "end", "outcome", "error",
)  # fmt: skip
