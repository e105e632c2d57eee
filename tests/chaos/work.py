"""The tasks of the chaos' clients. Each function notes its begin and its end."""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import cloudpickle
from tests.integration.executions import note

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FLAKINESS = 0.3
"""How often a flaky task raises OSError before it begins."""


def work(log: str, task: str, seconds: float, value: int) -> int:
    note(log, "begin", task)
    if seconds:
        time.sleep(seconds)
    note(log, "end", task)
    return answer_to(value)


def flaky(log: str, task: str, seconds: float, value: int) -> int:
    if random.random() < FLAKINESS:  # before it notes its begin: this repeat is asked for
        raise OSError("once more, please")
    return work(log, task, seconds, value)


def endless(log: str, task: str) -> None:
    note(log, "begin", task)
    while True:
        time.sleep(0.001)


def parent(log: str, task: str, client: Any, children: int, value: int) -> int:
    """Submit children and wait for them."""
    note(log, "begin", task)
    futures = [client.submit(work, log, f"{task}.{number}", 0.0, value + number) for number in range(children)]
    total: int = sum(future.result() for future in futures)
    note(log, "end", task)
    return total


def total_of(log: str, task: str, array: Any) -> int:
    """Sum up an object."""
    note(log, "begin", task)
    total = int(array.sum())
    note(log, "end", task)
    return total


def answer_to(value: int) -> int:
    return 3 * value + 1


def parents_answer(children: int, value: int) -> int:
    return sum(answer_to(value + number) for number in range(children))
