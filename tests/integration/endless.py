"""Tasks that run until they are stopped, for workers that know nothing of tests."""

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
    """A catastrophic regular expression: one call in C that takes years, and lets no other thread run."""
    note(log, "began")
    re.match("(a+)+$", "a" * 60 + "b")
