"""Inputs of a task: the worker replaces `load_input(k)` in the arguments by the value of the k-th input."""

from __future__ import annotations

import copyreg
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _CurrentInputs(threading.local):
    values: Callable[[int], Any] | None = None
    """Gives the inputs' values, by position, of the task that the thread runs."""


current_inputs = _CurrentInputs()


def load_input(position: int) -> Any:
    """The value of an input; called by the unpickling of a task's arguments, in the thread that runs the task."""
    if current_inputs.values is None:
        raise RuntimeError("a reference to an object has a value only among the arguments of a task, on a worker")
    return current_inputs.values(position)


@contextmanager
def with_inputs(values: Callable[[int], Any]) -> Iterator[None]:
    """What the calling thread unpickles has these inputs."""
    before, current_inputs.values = current_inputs.values, values
    try:
        yield
    finally:
        current_inputs.values = before


LOAD_INPUT_CODE = 0x5CA1E501
copyreg.add_extension(__name__, "load_input", LOAD_INPUT_CODE)
"""Pickles name `load_input` by this number: to find it by its name takes longer than all else about a small call."""
