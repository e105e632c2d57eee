"""The tasks of the measure `hosts`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy


def make(size: int, number: int) -> Any:
    """An array of so many bytes, with this number in each item."""
    return numpy.full(size // 8, float(number))


def number_of(array: Any) -> float:
    """The number with which an array was made. It reads one item of each page."""
    numbers = array[::512]
    if not (numbers == array[0]).all():
        raise RuntimeError("an array is damaged")
    return float(array[0])


def numbers_of(*arrays: Any) -> float:
    """The sum of the numbers with which arrays were made."""
    return sum(map(number_of, arrays))


def add_one(array: Any) -> Any:
    """One step of a chain: an array as large as the one before."""
    return array + 1


def hold_array(array: Any, started: str, gate: str) -> float:
    """Read an array, and hold it until the file `gate` is removed. A file in `started` shows that it was read."""
    number = number_of(array)
    Path(started, str(os.getpid())).touch()
    while os.path.exists(gate):
        time.sleep(0.01)
    return number
