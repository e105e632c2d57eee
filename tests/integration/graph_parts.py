"""Functions of graph nodes in tests. Workers can import this module."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import cloudpickle
from tests.integration.executions import note, notes

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


def inc(x: int) -> int:
    return x + 1


def add(x: Any, y: Any) -> Any:
    return x + y


def minus(x: int, y: int) -> int:
    return x - y


def same(x: Any) -> Any:
    return x


def divide(x: int, y: int) -> float:
    return x / y


GRAPH = {"a": 2, "b": 2, "c": (inc, "a"), "d": (add, "a", "b"), "e": (minus, "d", "c")}


def noting(log: str, name: str, *_: Any) -> str:
    note(log, "ran", name)
    return name


def at_gate(log: str, name: str, gate: str, *_: Any) -> str:
    """Wait until a file exists."""
    note(log, "ran", name)
    while not os.path.exists(gate):
        time.sleep(0.002)
    return name


def ran(log: str) -> list[str]:
    return sorted(each.task for each in notes(log, "ran"))
