"""Ended executions in chunks. A chunk is made, sent and dropped as a whole."""

from __future__ import annotations

from typing import Any

from .contract import encode, outcome_kind
from .durations import FunctionDurations

MICROSECONDS = 1_000_000
NO_INDEX = -1
"""The index of an execution without a worker or without an error."""


class _ValueTable:
    """Assigns a number to each distinct value."""

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
        number: the chunk's number. Chunks are numbered consecutively.
        base: unix time in whole seconds, from which the chunk's times are counted.
        missed: rows of history that were lost since the previous chunk.
    """

    def __init__(self, number: int, base: int, missed: int) -> None:
        self.number = number
        self.missed = missed
        self.newest = 0.0
        """When its last execution ended, in unix time."""
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
        """Add an execution.

        Args:
            worker: its worker's incarnation; 0 for none.
            submitted: unix time in microseconds; None if it is not known.
            start: unix time in microseconds; None if it never ran.
            end: unix time in microseconds.
            duration: nanoseconds; 0 if it is not known.
        """
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
        """The chunk as a message of the contract.

        It is made at the first call, which looks the names up and frees the rows.

        Args:
            worker_names: names by incarnation.
            client_names: names by incarnation.
        """
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
