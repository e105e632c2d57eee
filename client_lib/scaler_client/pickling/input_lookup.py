"""Inputs of a task: the worker replaces `load_input(k)` in the arguments by the value of the k-th input."""

from __future__ import annotations

import copyreg
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _CurrentInputs(threading.local):
    values: Callable[[int], Any] | None = None
    """Returns the value of an input, by position, of the task that this thread runs."""


current_inputs = _CurrentInputs()


def load_input(position: int) -> Any:
    """Return the value of an input. The unpickling of a task's arguments calls this, in the task's thread.

    Raises:
        RuntimeError: the thread runs no task.
    """
    if current_inputs.values is None:
        raise RuntimeError("a reference to an object has a value only among the arguments of a task, on a worker")
    return current_inputs.values(position)


def load_value(data: bytes) -> Any:
    """Return the value of a future that was done, from its pickle. The unpickling of a task's arguments calls this."""
    return pickle.loads(data)


@contextmanager
def with_inputs(values: Callable[[int], Any]) -> Iterator[None]:
    """Set the inputs for unpickling by the calling thread in this block.

    Args:
        values: returns the value of an input, by position.
    """
    before, current_inputs.values = current_inputs.values, values
    try:
        yield
    finally:
        current_inputs.values = before


LOAD_INPUT_CODE = 0x5CA1E501
LOAD_VALUE_CODE = LOAD_INPUT_CODE + 1
copyreg.add_extension(__name__, "load_input", LOAD_INPUT_CODE)
copyreg.add_extension(__name__, "load_value", LOAD_VALUE_CODE)
"""Pickles refer to these by number. Finding one by name would take longer than the rest of a small call."""
