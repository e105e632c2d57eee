"""The tasks of the chaos' clients. Each function notes its begin and its end."""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Any

import cloudpickle
from tests.integration.executions import note

from scaler_client import TaskTimeoutError, WorkerDiedError, current_task

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


def deaf(log: str, task: str) -> None:
    """Sleep far beyond any time limit, in one call that nothing but the end of the process stops."""
    note(log, "begin", task)
    time.sleep(600.0)


def deadly(log: str, task: str) -> None:
    """End the own process."""
    note(log, "begin", task)
    note(log, "exit", task)
    os._exit(1)


def troubled(log: str, task: str, client: Any, depth: int, value: int) -> int:
    """Wait for children that end their processes, among them parents like this one."""
    note(log, "begin", task)
    mortal = client.options(retries=0)
    dying = mortal.submit(deadly, log, f"{task}.deadly")
    stopped = mortal.options(timeout=0.1).submit(deaf, log, f"{task}.deaf")
    call = (
        (troubled, log, f"{task}.troubled", client, depth - 1, value) if depth else (work, log, f"{task}.0", 0.0, value)
    )
    answer: int = client.submit(*call).result()
    for future, expected in ((dying, WorkerDiedError), (stopped, (TaskTimeoutError, WorkerDiedError))):
        try:
            future.result()
        except expected:
            continue
        raise AssertionError(f"{future!r} did not fail")
    note(log, "end", task)
    return answer


def member(log: str, task: str, value: int) -> int:
    """Sum up the ranks of a gang, and add the value."""
    gang = current_task().gang
    assert gang is not None
    note(log, "begin", f"{task}.rank{gang.rank}")
    total: int = sum(gang.all_gather(gang.rank))
    note(log, "end", f"{task}.rank{gang.rank}")
    return total + value


def total_of(log: str, task: str, array: Any) -> int:
    """Sum up an object."""
    note(log, "begin", task)
    total = int(array.sum())
    note(log, "end", task)
    return total


MODULE = '''
"""A module of one client of the chaos. Its workers change to it, and back."""

HALF = 0.5


def answer(note, log, task, value):
    note(log, "begin", task)
    found = int(3 * value + 2 * HALF)
    note(log, "end", task)
    return found
'''


def answer_to(value: int) -> int:
    return 3 * value + 1


def parents_answer(children: int, value: int) -> int:
    return sum(answer_to(value + number) for number in range(children))
