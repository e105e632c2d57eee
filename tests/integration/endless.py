"""Tasks that run until they are stopped. Workers can import this module."""

from __future__ import annotations

import re
import sys
import time

import cloudpickle
from tests.integration.executions import note

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def sleep(log: str) -> None:
    note(log, "began")
    time.sleep(600)


def spin(log: str) -> None:
    note(log, "began")
    while True:
        pass


def hold_the_gil(log: str) -> None:
    """Match a catastrophic regular expression: one call in C that takes years and holds the GIL."""
    note(log, "began")
    re.match("(a+)+$", "a" * 60 + "b")
