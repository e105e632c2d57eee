"""The parameters of PyPy's garbage collector and of its compiler. This module imports little, because it runs first."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..commands.module_command import module_command

NURSERY_VARIABLE = "PYPY_GC_NURSERY"
NURSERY = "32M"
"""PyPy's space for young objects. The default follows the size of the processor's cache and is a fraction of this. With
the default, the tasks of a batch outlive the space and are copied. This doubles the cost of a task: 1.7 us instead of
0.85 us with 10 workers (`make bench`, map). PyPy 7.3.11 also ended with a segmentation fault in 8 of 43 runs of
`tests/scheduler/core/storm.py` with the default, and in none of 20 with this."""

GROWTH_VARIABLE = "PYPY_GC_MAJOR_COLLECT"
GROWTH = "1.4"
"""PyPy collects old garbage when the heap is this many times what the last collection left (the default is 1.82). With
the default, a graph takes a quarter more memory (decision 92)."""

JIT_PARAMETERS = "threshold=200,function_threshold=300,trace_eagerness=20"
"""When PyPy's JIT compiles: after so many turns of a loop, calls of a function, and failures of a guard. With the
defaults (1039, 1619, 200), a program that submits one task at a time gets fast after 3,500 tasks; so after 500 to 1,000
(decision 61)."""


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
    os.execv(sys.executable, [*module_command(sys.executable, __name__.partition(".")[0]), *arguments])


def compile_nothing() -> None:
    """Under PyPy, have the JIT compile nothing until `compile_early` is called.

    What runs often in the imports does not run again. Its compilation took a quarter of the processor time of a start.
    """
    if sys.implementation.name == "pypy":
        import pypyjit  # type: ignore[import-not-found]

        pypyjit.set_param("off")


def compile_early() -> None:
    """Under PyPy, have the JIT compile a loop or function after a fifth of the usual repetitions."""
    if sys.implementation.name == "pypy":
        import pypyjit

        pypyjit.set_param("default")  # ends `compile_nothing`
        pypyjit.set_param(JIT_PARAMETERS)
