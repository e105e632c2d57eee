"""Before the loop starts: PyPy's parameters, and the checks that span several options."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from ..auth.bind_policy import insecure_address_error, insecure_monitor_error, is_local
from ..commands.key_files import KeyAccessError, KeyFileError
from ..commands.options import GivenValue
from ..config.config import COMMAND

NURSERY_VARIABLE = "PYPY_GC_NURSERY"
NURSERY = "32M"
"""PyPy's space for young objects. The default follows the size of the processor's cache and is a fraction of this. With
the default, the tasks of a batch outlive the space and are copied. This doubles the cost of a task: 1.7 us instead of
0.85 us with 10 workers (`make bench`, map)."""

GROWTH_VARIABLE = "PYPY_GC_MAJOR_COLLECT"
GROWTH = "1.4"
"""PyPy collects old garbage when the heap is this many times what the last collection left (the default is 1.82). With
the default, a graph takes a quarter more memory (decision 92)."""

JIT_PARAMETERS = "threshold=200,function_threshold=300,trace_eagerness=20"
"""When PyPy's JIT compiles: after so many turns of a loop, calls of a function, and failures of a guard. With the
defaults (1039, 1619, 200), a program that submits one task at a time gets fast after 3,500 tasks; so after 500 to 1,000
(decision 61)."""


def restart_with_nursery(arguments: Sequence[str]) -> None:
    """Under PyPy, execute the scheduler again with the collector's parameters in the environment. PyPy reads them only
    there.

    Args:
        arguments: the command line without the program's name.
    """
    if sys.implementation.name != "pypy" or NURSERY_VARIABLE in os.environ:
        return
    os.environ[NURSERY_VARIABLE] = NURSERY
    os.environ.setdefault(GROWTH_VARIABLE, GROWTH)
    os.execv(sys.executable, [sys.executable, "-m", __name__.partition(".")[0], *arguments])


def compile_early() -> None:
    """Under PyPy, have the JIT compile a loop or function after a fifth of the usual repetitions."""
    if sys.implementation.name == "pypy":
        import pypyjit  # type: ignore[import-not-found]

        pypyjit.set_param(JIT_PARAMETERS)


def start_errors(found: Mapping[str, GivenValue]) -> Iterator[str]:
    """The reasons why the scheduler does not start with these options, although each single option is right.

    Key files that this user cannot read count as right: `--check-config` may run as another user than the scheduler.

    Args:
        found: the options that are set, by key.

    Returns:
        One line for each reason.
    """
    yield from COMMAND.check(found)
    keys = found.get("keys")
    if keys is not None and keys.value:
        from ..auth.keyring import Keyring  # not at the top: most starts check no file

        try:
            Keyring(keys.value)
        except KeyAccessError:
            pass
        except KeyFileError as error:
            yield f"{keys.source}: {error}"
        return
    if "insecure" in found and found["insecure"].value:
        return
    address, monitor = found.get("address"), found.get("monitor_address")
    if address is not None and not is_local(address.value):
        yield f"{address.source}: {insecure_address_error(address.value)}"
    if monitor is not None and not is_local(monitor.value):
        yield f"{monitor.source}: {insecure_monitor_error(monitor.value, str(address.value) if address else 'ADDRESS')}"
