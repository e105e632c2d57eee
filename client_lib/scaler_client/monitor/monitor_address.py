"""Which monitor address to connect to: given, found by the scheduler's address, or from the scheduler's file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from ..commands.addresses import ADDRESS_VARIABLE, Address, AddressError, default_monitor_address, parse_bind_address
from ..commands.options import Command, Kind, Option, OptionError
from ..commands.toml_file import read_file

MONITOR_VARIABLE = "SCALER_MONITOR_ADDRESS"
SCHEDULER_FILE = "/etc/scaler/scheduler.toml"
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


_SCHEDULER = Command(
    description="",
    environment_prefix="SCALER_SCHEDULER",
    default_file=SCHEDULER_FILE,
    options=(
        Option("address", Kind("ADDRESS", parse_bind_address, (str,)), None, ""),
        Option("monitor-address", Kind("ADDRESS", parse_bind_address, (str,)), None, ""),
    ),
)
"""Of the scheduler's options those that say where it publishes."""


def resolve_monitor_address(values: Mapping[str, Any], scheduler_file: str = SCHEDULER_FILE) -> Address:
    """Where to connect to.

    Args:
        values: of MONITOR_OPTIONS, by key, as `command_line.resolve` gives them.
        scheduler_file: the scheduler's configuration, where it is on this machine and may be read.

    Raises:
        OptionError: nothing says where.
    """
    given: Address | None = values["monitor_address"]
    if given is not None:
        return given
    address: Address | None = values["scheduler_address"]
    if address is not None:
        return _find(address)
    configured = _scheduler_file_addresses(scheduler_file)
    if "monitor_address" in configured:
        return _on_loopback(configured["monitor_address"])
    if "address" not in configured:
        raise OptionError(
            f"no monitor address: give it as an argument, in {MONITOR_VARIABLE} or in the configuration file, "
            f"or the scheduler's address by --scheduler-address or in {ADDRESS_VARIABLE}"
        )
    # That file is the service's. It may be started after this program, which then waits for it there.
    return _find(configured["address"], SERVICE_MONITOR)


def _find(address: Address, otherwise: Address | None = None) -> Address:
    try:
        return find_monitor_address(address, otherwise, has_service=True)
    except AddressError as error:
        raise OptionError(f"the monitor address of {address}: {error}") from None


def _scheduler_file_addresses(path: str) -> dict[str, Address]:
    """What the scheduler's file says of the two; nothing where there is none, or it is not for us to read."""
    try:
        found, _ = read_file(_SCHEDULER, path)  # its other keys are unknown here, and none of our business
    except OptionError:
        return {}
    return {key: one.value for key, one in found.items()}


def _on_loopback(bound: Address) -> Address:
    """Where on its own machine an address is reached that is bound on all interfaces."""
    loopback = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
    return dataclasses.replace(bound, host=loopback.get(bound.host, bound.host))
