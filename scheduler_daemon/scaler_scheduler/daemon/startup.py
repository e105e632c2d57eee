"""Before the loop starts: PyPy's nursery size, and the checks that span several options."""

from __future__ import annotations

import os
import sys
from typing import Iterator, Mapping, Sequence

from ..auth.bind_policy import insecure_address_error, insecure_monitor_error, is_local
from ..commands.key_files import KeyAccessError, KeyFileError
from ..commands.options import GivenValue
from ..config.config import COMMAND

NURSERY_VARIABLE = "PYPY_GC_NURSERY"
NURSERY = "32M"
"""PyPy's space for young objects. The default follows the size of the processor's cache and is a fraction of this. With
the default the tasks of a batch outlive the space and are moved, which doubles the cost of a task: 1.7 us instead of
0.85 with 10 workers (`make bench`, map)."""


def restart_with_nursery(arguments: Sequence[str]) -> None:
    """Under PyPy, execute the scheduler again with the nursery size in the environment. PyPy reads it only there.

    Args:
        arguments: the command line without the program's name.
    """
    if sys.implementation.name != "pypy" or NURSERY_VARIABLE in os.environ:
        return
    os.environ[NURSERY_VARIABLE] = NURSERY
    os.execv(sys.executable, [sys.executable, "-m", __name__.partition(".")[0], *arguments])


def start_errors(found: Mapping[str, GivenValue]) -> Iterator[str]:
    """Reasons why the scheduler does not start with these options, although each option is right by itself.

    Key files that only another user can read are assumed to be right: `--check-config` may run as another user than the
    scheduler.

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
