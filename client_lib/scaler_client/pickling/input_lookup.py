"""Inputs of a task: the worker replaces `load_input(k)` in the arguments by the value of the k-th input.

Each task gets its own value. `load_shared_input(k)` gives all tasks of a worker the same one (`shared=True`).
"""

from __future__ import annotations

import copyreg
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

FindInput = Callable[..., Any]
"""Returns the value of an input of a task, by its position. A second argument, True: the value that tasks share."""


MOST_PARTS = 10_000
"""At most so many parts of a value are looked at."""

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
    value = pickle.loads(data)
    if "numpy" in sys.modules:
        make_read_only(value)
    return value


def make_read_only(value: Any) -> None:
    """Make a NumPy array read-only, and arrays in lists, tuples and dicts, as deep as they are.

    The memory of large arrays is shared by tasks, so it is read-only. If small ones were not, a task that changes its
    input would work in tests and fail with the data of production.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    kinds = (numpy.ndarray, list, tuple, dict)
    found = deque([value])
    left = MOST_PARTS
    while found:
        each = found.popleft()
        if isinstance(each, numpy.ndarray):
            each.flags.writeable = False
        elif isinstance(each, (list, tuple, dict)):
            parts = list(islice(each.values() if isinstance(each, dict) else each, left))
            left -= len(parts)
            found.extend(part for part in parts if isinstance(part, kinds))


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
