"""Checks that a core that all peers have left is as empty as a new core."""

from __future__ import annotations

from collections import deque
from typing import Any

from scaler_scheduler.core.scheduler import Scheduler

from .trace import SimulationError

_CONTAINERS = (dict, set, frozenset, list, tuple, deque)

_KEPT = (
    "tables.timers._heap",
    "tables.history.",
    "tables.ended_nodes",
    "tables.counts.deaths",
    "tables.functions._deadly",
    "tables.environments._by_name",
    "tables.environments._unused",
    "tables.environments._contents",
    "tables.environments._users",
)
"""Containers that may hold something. Cancelled timers lie in the first one, and the queue's length is checked instead.
The others are bounded records of the past, and environments for the next clients."""


def check_empty(used: Scheduler, fresh: Scheduler) -> None:
    """Compare the sizes of everything that can be reached from the two.

    Raises:
        SimulationError: something in the used core holds more than in the fresh one.
    """
    expected = _sizes(fresh)
    for path, size in _sizes(used).items():
        if size > expected.get(path, 0) and not any(kept in path for kept in _KEPT):
            raise SimulationError(f"{path} holds {size} things after all peers have left")
    if len(used.tables.timers):
        raise SimulationError(f"{len(used.tables.timers)} timers run after all peers have left")


def _sizes(core: Scheduler) -> dict[str, int]:
    sizes: dict[str, int] = {}
    seen: set[int] = set()

    def walk(value: Any, path: str) -> None:
        if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None))) or callable(value):
            return
        seen.add(id(value))
        if isinstance(value, _CONTAINERS):
            sizes[path] = sizes.get(path, 0) + len(value)
            for element in value.values() if isinstance(value, dict) else value:
                walk(element, f"{path}[]")
            return
        for name in _attributes(value):
            walk(getattr(value, name, None), f"{path}.{name}")

    walk(core, "core")
    return sizes


def _attributes(value: Any) -> list[str]:
    """Return the attributes in an order that is the same in every process."""
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return names
