"""Before the loop starts: the checks that span several options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..auth.bind_policy import insecure_address_error, insecure_monitor_error, is_local
from ..commands.key_files import KeyAccessError, KeyFileError
from ..commands.options import GivenValue
from ..config.config import COMMAND


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
