"""Inputs of a task: the worker replaces `load_input(k)` in the arguments by the value of the k-th input.

Each task gets its own value. `load_shared_input(k)` gives all tasks of a worker the same one (`shared=True`).
"""

from __future__ import annotations

import copyreg
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FindInput = Callable[..., Any]
"""Returns the value of an input of a task, by its position. A second argument, True: the value that tasks share."""


_NO_TASK = "a reference to an object has a value only among the arguments of a task, on a worker"


class _CurrentInputs(threading.local):
    values: FindInput | None = None
    """Finds the inputs of the task that this thread runs."""


current_inputs = _CurrentInputs()


def load_input(position: int) -> Any:
    """Return the value of an input, for this task alone. The unpickling of a task's arguments calls this, in the task's
    thread.

    Raises:
        RuntimeError: the thread runs no task.
    """
    values = current_inputs.values
    if values is None:
        raise RuntimeError(_NO_TASK)
    return values(position)


def load_shared_input(position: int) -> Any:
    """Return the value of an input that the tasks of a worker share. The unpickling of a task's arguments calls this.

    Raises:
        RuntimeError: the thread runs no task.
    """
    values = current_inputs.values
    if values is None:
        raise RuntimeError(_NO_TASK)
    return values(position, True)


def load_value(data: bytes) -> Any:
    """Return the value of a future that was done, from its pickle. The unpickling of a task's arguments calls this."""
    return pickle.loads(data)


@contextmanager
def with_inputs(values: FindInput) -> Iterator[None]:
    """Set the inputs for unpickling by the calling thread in this block.

    Args:
        values: finds an input.
    """
    before, current_inputs.values = current_inputs.values, values
    try:
        yield
    finally:
        current_inputs.values = before


LOAD_INPUT_CODE = 0x5CA1E501
LOAD_VALUE_CODE = LOAD_INPUT_CODE + 1
LOAD_SHARED_CODE = LOAD_INPUT_CODE + 2
copyreg.add_extension(__name__, "load_input", LOAD_INPUT_CODE)
copyreg.add_extension(__name__, "load_value", LOAD_VALUE_CODE)
copyreg.add_extension(__name__, "load_shared_input", LOAD_SHARED_CODE)
"""Pickles refer to these by number. Finding one by name would take longer than the rest of a small call."""
