"""Where a scheduler of this machine publishes what it says of itself, by its own address."""

from __future__ import annotations

import dataclasses
import os

from ..commands.addresses import Address, default_monitor_address

SERVICE_MONITOR = Address("ipc", "", 0, "/run/scaler/monitor")
"""Where the scheduler's unit has it."""


def find_monitor_address(address: Address, otherwise: Address | None = None, has_service: bool = False) -> Address:
    """That of a scheduler at this address which was not told where: wherever its socket is.

    Args:
        address: as the scheduler is bound, or as one connects to it.
        otherwise: what it is where there is no socket yet; None: where that would be.
        has_service: whether it may be that of the unit, which publishes elsewhere.

    Raises:
        AddressError: such a path would be too long for a socket.
    """
    hosts = (address.host, "*", "0.0.0.0", "127.0.0.1") if address.transport == "tcp" else (address.host,)
    candidates = [default_monitor_address(dataclasses.replace(address, host=host)) for host in hosts]
    for candidate in [*candidates, SERVICE_MONITOR] if has_service else candidates:
        if os.path.exists(candidate.path):
            return candidate
    return otherwise or candidates[0]
