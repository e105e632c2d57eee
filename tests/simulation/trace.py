"""The events of a run as text, and the error of a run that goes wrong."""

from __future__ import annotations

import enum
from collections import Counter, deque
from typing import Any

from .clock import Clock

LAST_EVENTS = 60
_SHOWN_ROWS = 4
_SHOWN_BYTES = 24


class SimulationError(Exception):
    """Something happened that must never happen."""


class Trace:
    """Keeps the last events, or all of them to compare two runs. The text is made when it is read."""

    def __init__(self, clock: Clock, keeps_all: bool = False) -> None:
        self.figures: Counter[str] = Counter()
        self._clock = clock
        self._events: deque[tuple[Any, ...]] = deque(maxlen=None if keeps_all else LAST_EVENTS)

    @property
    def now(self) -> float:
        return self._clock.now

    def note(self, *what: object) -> None:
        """Note an event: strings, numbers, and messages, which are described; nothing that changes later."""
        self._events.append((self._clock.now, *what))

    def count(self, name: str, number: int = 1) -> None:
        """Count for the figures at the end."""
        self.figures[name] += number

    def lines(self) -> list[str]:
        return [
            f"{event[0] - 1000:10.6f}  {' '.join(part if type(part) is str else describe(part) for part in event[1:])}"
            for event in self._events
        ]


def describe(value: Any) -> str:
    if isinstance(value, enum.IntEnum):
        return value.name
    if isinstance(value, (bytes, bytearray, memoryview)):
        shown = bytes(value[:_SHOWN_BYTES]).decode("utf-8", "backslashreplace")
        return f"'{shown}'" if len(value) <= _SHOWN_BYTES else f"'{shown}'..{len(value)}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, range, deque)):
        rows = [describe(row) for row in list(value)[:_SHOWN_ROWS]]
        return f"[{' '.join(rows)}{f' ..{len(value)}' if len(value) > _SHOWN_ROWS else ''}]"
    if isinstance(value, (tuple, set, frozenset)):
        rows = [describe(row) for row in (value if isinstance(value, tuple) else sorted(value))]
        return f"({','.join(rows)})"
    if hasattr(value, "__dataclass_fields__"):
        told = [name for name in value.__dataclass_fields__ if _is_told(value, name)]
        return f"{type(value).__name__}({' '.join(f'{name}={describe(vars(value)[name])}' for name in told)})"
    return str(value)


def _is_told(message: Any, name: str) -> bool:
    """Whether a field is shown. Fields with their usual value are left out."""
    return vars(message)[name] not in (0, "", [], {}, None, ()) and name not in (
        "language", "language_version", "version", "protocol_version", "host", "resident_bytes", "cpu_milliseconds",
    )  # fmt: skip
