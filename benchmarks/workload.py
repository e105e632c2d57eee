"""The functions of the benchmarks' tasks. Workers import this module: they start in the same folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def noop() -> None:
    pass


def identity(value: T) -> T:
    return value


def first(value: T, *_: object) -> T:
    return value


def spin(seconds: float, *_: object) -> int:
    """Compute for a number of seconds. Time without a core does not count, because on a busy machine it is no work."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return 1


def total(array: Any) -> float:
    """The sum of a NumPy array: it reads every byte."""
    return float(array.sum())


def read_pages(array: Any, folder: str, readers: int) -> int:
    """Read a byte of each page of a NumPy array of bytes. Then wait until so many processes have done the same.

    Returns:
        The id of this process.
    """
    array[::4096].sum()
    Path(folder, str(os.getpid())).touch()
    while len(os.listdir(folder)) < readers:
        time.sleep(0.001)
    return os.getpid()


def hold(folder: str, number: int) -> None:
    """Occupy a worker until the folder is removed. A file with this number shows that the task has begun."""
    Path(folder, str(number)).touch()
    while Path(folder).exists():
        time.sleep(0.05)


def occupy(gate: str, started: str) -> None:
    """Occupy a worker until the named pipe `gate` has a writer. A file in the folder `started` shows that the task has
    begun."""
    Path(started, str(os.getpid())).touch()
    with open(gate):
        pass


def ones(size: int) -> Any:
    """An array of so many bytes."""
    import numpy

    return numpy.ones(size, numpy.uint8)


# Several functions: scheduler and client learn the run time of each, and the runs must not mislead one another.


def sleep_fixed(seconds: float) -> None:
    time.sleep(seconds)


def sleep_random(seconds: float) -> None:
    time.sleep(seconds)


def sleep_map(seconds: float) -> None:
    time.sleep(seconds)


def work_for(seconds: float) -> None:
    """Take this time: a short one by computing, a long one by sleeping."""
    if seconds >= 0.001:
        time.sleep(seconds)
        return
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
