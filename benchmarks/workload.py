"""The functions of the benchmarks' tasks. Workers import this module: they start in the same folder."""

from __future__ import annotations

import time
from typing import TypeVar

T = TypeVar("T")


def noop() -> None:
    pass


def identity(value: T) -> T:
    return value


def first(value: T, *_: object) -> T:
    return value


# Two functions: the scheduler learns the run time of each, and the runs must not mislead each other.


def sleep_fixed(seconds: float) -> None:
    time.sleep(seconds)


def sleep_random(seconds: float) -> None:
    time.sleep(seconds)
