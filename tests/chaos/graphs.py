"""Random graphs of arrays with known values. Some results are so large that they stay on their host."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy
from tests.integration.executions import note

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SMALL = (10, 20_000)
LARGE = (40_000, 120_000)
"""Elements of an array, 8 bytes each. A kept result of 64 KiB or more stays on its host."""


def make(log: str, task: str, seconds: float, size: int, value: int) -> Any:
    return _noted(log, task, seconds, lambda: numpy.full(size, value))


def add(log: str, task: str, seconds: float, one: Any, other: Any) -> Any:
    return _noted(log, task, seconds, lambda: one + other)


def total(log: str, task: str, seconds: float, *arrays: Any) -> Any:
    return _noted(log, task, seconds, lambda: int(sum(int(array.sum()) for array in arrays)))


def wait_without_end(log: str, task: str, _: Any) -> None:
    note(log, "begin", task)
    while True:
        time.sleep(0.001)


def _noted(log: str, task: str, seconds: float, compute: Any) -> Any:
    note(log, "begin", task)
    if seconds:
        time.sleep(seconds)
    value = compute()
    note(log, "end", task)
    return value


@dataclass(frozen=True)
class Stored:
    """An object of a client: an array whose elements are all the same."""

    reference: Any
    size: int
    value: int


def random_size(chance: random.Random) -> int:
    return chance.randint(*(LARGE if chance.random() < 0.6 else SMALL))


def random_graph(
    chance: random.Random, log: str, name: str, stored: Stored | None
) -> tuple[dict[str, Any], dict[str, int]]:
    """A graph, and the right values of its wanted keys. The graph reads the object, if it is given."""
    size = random_size(chance) if stored is None else stored.size
    slow = chance.choice([0.0, 0.0, 0.02])
    graph: dict[str, Any] = {}
    values: dict[str, int] = {}

    def node(kind: str, number: int, function: Any, *arguments: Any) -> str:
        key = f"{kind}{number}"
        graph[key] = (function, log, f"{name}-{key}", chance.uniform(0.0, slow), *arguments)
        return key

    for number in range(chance.randint(2, 6)):
        value = chance.randrange(10)
        values[node("make", number, make, size, value)] = value
    if stored is not None:
        read = chance.choice(list(values))
        values[node("read", 0, add, read, stored.reference)] = values[read] + stored.value
    for number in range(chance.randint(4, 24)):
        one, other = chance.choice(list(values)), chance.choice(list(values)[-6:])
        values[node("add", number, add, one, other)] = values[one] + values[other]
    expected = {}
    for number in range(chance.randint(1, 4)):
        summed = chance.sample(list(values), 2)
        expected[node("total", number, total, *summed)] = size * sum(values[each] for each in summed)
    return graph, expected
