"""What the scheduler refuses to start with though each option is right by itself: for `--check-config`."""

from __future__ import annotations

from typing import Iterator, Mapping

from ..auth.bind_policy import address_refusal, is_local, monitor_refusal
from ..commands.key_files import KeyAccessError, KeyFileError
from ..commands.options import Found
from ..config.config import COMMAND


def start_complaints(found: Mapping[str, Found]) -> Iterator[str]:
    """A line for each complaint, as of `Command.check`. What only another user may read is taken to be right: the file
    may be looked at by somebody else than the scheduler's user."""
    yield from COMMAND.check(found)
    keys = found.get("keys")
    if keys is not None and keys.value:
        from ..auth.keyring import Gate  # here and not above: most starts check no file

        try:
            Gate(keys.value)
        except KeyAccessError:
            pass
        except KeyFileError as error:
            yield f"{keys.source}: {error}"
        return
    if "insecure" in found and found["insecure"].value:
        return
    address, monitor = found.get("address"), found.get("monitor_address")
    if address is not None and not is_local(address.value):
        yield f"{address.source}: {address_refusal(address.value)}"
    if monitor is not None and not is_local(monitor.value):
        yield f"{monitor.source}: {monitor_refusal(monitor.value, str(address.value) if address else 'ADDRESS')}"
