"""The options that all programs have which watch a scheduler: where it publishes what it says of itself, by which keys.

A program's table begins with MONITOR_OPTIONS; `resolve_monitor_options` gives their values, `monitor_address` the
address to connect to among them, `keys` for the MonitorSocket.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..commands.addresses import ADDRESS_VARIABLE, Address, AddressError, parse_bind_address, parse_connect_address
from ..commands.command_line import Arguments, resolve
from ..commands.key_files import KEYS_VARIABLE
from ..commands.options import Command, Kind, Option, OptionError, text
from ..commands.toml_file import read_file
from .default_address import SERVICE_MONITOR, find_monitor_address

MONITOR_VARIABLE = "SCALER_MONITOR_ADDRESS"
SCHEDULER_FILE = "/etc/scaler/scheduler.toml"
MONITOR_OPTIONS = (
    Option(
        "monitor-address",
        Kind("ADDRESS", parse_connect_address, (str,)),
        None,
        "where the scheduler publishes its state, as in ipc:///tmp/127.0.0.1_2345_monitor",
        positional=True,
        environment=MONITOR_VARIABLE,
        default_text=f"that of the scheduler at --scheduler-address, else of the one that {SCHEDULER_FILE} is for",
    ),
    Option(
        "scheduler-address",
        Kind("ADDRESS", parse_bind_address, (str,)),
        None,
        "the scheduler's own address, where it runs on this machine and publishes where it does unless told otherwise",
        environment=ADDRESS_VARIABLE,
    ),
    Option(
        "keys",
        text("DIR", is_file=True),
        None,
        "the folder with server.key, monitor.key and monitor.secret, for a monitor address of tcp that wants keys",
        environment=KEYS_VARIABLE,
        default_text="none",
    ),
)

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


def resolve_monitor_options(command: Command, arguments: Arguments, environ: Mapping[str, str]) -> dict[str, Any]:
    """A program's values by key, of arguments, environment and file. Raises OptionError naming what is wrong first."""
    values = resolve(command, arguments, environ)
    values["monitor_address"] = monitor_address(values)
    del values["scheduler_address"]
    return values


def monitor_address(values: Mapping[str, Any], scheduler_file: str = SCHEDULER_FILE) -> Address:
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
