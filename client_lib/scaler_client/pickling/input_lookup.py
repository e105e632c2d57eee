"""What stands in a task's arguments for an object that the scheduler keeps: `take(k)`, the value of its k-th input."""

from __future__ import annotations

import copyreg
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Reading(threading.local):
    values: Callable[[int], Any] | None = None
    """Gives the inputs' values, by position, of the task that the thread runs."""


reading_now = _Reading()


def take(position: int) -> Any:
    """The value of an input; called by the unpickling of a task's arguments, in the thread that runs the task."""
    if reading_now.values is None:
        raise RuntimeError("a reference to an object has a value only among the arguments of a task, on a worker")
    return reading_now.values(position)


@contextmanager
def reading(values: Callable[[int], Any]) -> Iterator[None]:
    """What the calling thread unpickles has these inputs."""
    before, reading_now.values = reading_now.values, values
    try:
        yield
    finally:
        reading_now.values = before


TAKE_CODE = 0x5CA1E501
copyreg.add_extension(__name__, "take", TAKE_CODE)
"""Pickles name `take` by this number: to find it by its name takes longer than all else about a small call."""
