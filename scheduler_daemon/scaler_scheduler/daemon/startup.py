"""Before the loop starts: when PyPy compiles, and the checks that span several options."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from ..auth.bind_policy import insecure_address_error, insecure_monitor_error, is_local
from ..commands.key_files import KeyAccessError, KeyFileError
from ..commands.options import GivenValue
from ..config.config import COMMAND

JIT_PARAMETERS = "threshold=200,function_threshold=300,trace_eagerness=20"
"""When PyPy's JIT compiles: after so many turns of a loop, calls of a function, and failures of a guard. With the
defaults (1039, 1619, 200), a program that submits one task at a time gets fast after 3,500 tasks; so after 500 to 1,000
(decision 61)."""


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
