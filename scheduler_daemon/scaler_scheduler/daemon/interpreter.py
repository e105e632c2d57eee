"""Getting the best out of the interpreter that runs the scheduler."""

from __future__ import annotations

import os
import sys
from typing import Sequence

NURSERY_VARIABLE = "PYPY_GC_NURSERY"
NURSERY = "32M"
"""PyPy's space for young objects. Its default follows the processor's cache and is a fraction of this; a batch's tasks
then outlive it and are moved, which doubles what a task costs (1.7 us to 0.85 with 10 workers; `make bench`, map)."""


def restart_with_nursery(arguments: Sequence[str]) -> None:
    """Under PyPy, start again in this process with the nursery set: it can be set only by the environment."""
    if sys.implementation.name != "pypy" or NURSERY_VARIABLE in os.environ:
        return
    os.environ[NURSERY_VARIABLE] = NURSERY
    os.execv(sys.executable, [sys.executable, "-m", __name__.partition(".")[0], *arguments])
