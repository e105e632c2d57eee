"""The parameters of PyPy's garbage collector. This module imports little, as PyPy starts again to read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

NURSERY_VARIABLE = "PYPY_GC_NURSERY"
NURSERY = "32M"
"""PyPy's space for young objects. The default follows the size of the processor's cache and is a fraction of this. With
the default, the tasks of a batch outlive the space and are copied. This doubles the cost of a task: 1.7 us instead of
0.85 us with 10 workers (`make bench`, map)."""

GROWTH_VARIABLE = "PYPY_GC_MAJOR_COLLECT"
GROWTH = "1.4"
"""PyPy collects old garbage when the heap is this many times what the last collection left (the default is 1.82). With
the default, a graph takes a quarter more memory (decision 92)."""


def restart_with_collector_parameters(arguments: Sequence[str]) -> None:
    """Under PyPy, execute the scheduler again with the collector's parameters in the environment. PyPy reads them only
    there.

    Whatever is imported before this call is imported twice.

    Args:
        arguments: the command line without the program's name.
    """
    if sys.implementation.name != "pypy" or NURSERY_VARIABLE in os.environ:
        return
    os.environ[NURSERY_VARIABLE] = NURSERY
    os.environ.setdefault(GROWTH_VARIABLE, GROWTH)
    os.execv(sys.executable, [sys.executable, "-m", __name__.partition(".")[0], *arguments])
