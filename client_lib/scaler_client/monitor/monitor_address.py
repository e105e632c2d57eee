"""Finds the monitor address to connect to: from the options, the scheduler's address or the scheduler's file."""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
from collections.abc import Mapping
from typing import Any

from ..commands.addresses import (
    ADDRESS_VARIABLE,
    Address,
    AddressError,
    default_monitor_address,
    parse_bind_address,
    socket_directories,
)
from ..commands.options import Command, Kind, Option, OptionError
from ..commands.toml_file import read_file

MONITOR_VARIABLE = "SCALER_MONITOR_ADDRESS"
SCHEDULER_FILE = "/etc/scaler/scheduler.toml"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
SERVICE_MONITOR = Address("ipc", "", 0, "/run/scaler/monitor")
"""Where the scheduler's systemd unit publishes."""


def find_monitor_address(address: Address, fallback: Address | None = None, has_service: bool = False) -> Address:
    """The monitor address of a scheduler that uses its default: the first candidate whose socket exists.

    Args:
        address: the scheduler's own address, as it binds it or as clients connect to it.
        fallback: the result if no socket exists yet; None takes the default address.
        has_service: whether the address of the scheduler's systemd unit is a candidate too.

    Raises:
        AddressError: the path is too long for a socket.
    """
    candidates = _default_addresses(address, address.transport == "tcp")
    for candidate in [*candidates, SERVICE_MONITOR] if has_service else candidates:
        if os.path.exists(candidate.path):
            return candidate
    return fallback or candidates[0]


def _default_addresses(address: Address, is_this_machine: bool) -> list[Address]:
    """The default monitor addresses of a scheduler at this address: if it is tcp and of this machine, the scheduler may
    have bound another host."""
    hosts = (address.host, "*", "0.0.0.0", "127.0.0.1") if is_this_machine else (address.host,)
    return [
        default_monitor_address(dataclasses.replace(address, host=host), socket_directory=directory)
        for directory in socket_directories() or [""]
        for host in hosts
    ]


def _monitor_address_of(own: Address) -> Address | None:
    """The monitor address of a scheduler of this machine, if this is its own address.

    Returns:
        The first default monitor address where a scheduler listens; None: there is none, so `own` may itself be a
        monitor address.
    """
    try:
        candidates = _default_addresses(own, own.host in LOOPBACK_HOSTS)
    except AddressError:  # too long: no scheduler can listen there
        return None
    return next(filter(_is_listening, candidates), None)


def _is_listening(address: Address) -> bool:
    """Whether a process listens at an ipc address, even if this user may not connect to it."""
    if not hasattr(socket, "AF_UNIX"):
        return False
    path = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN, errno.EACCES)


_SCHEDULER = Command(
    description="",
    environment_prefix="SCALER_SCHEDULER",
    default_file=SCHEDULER_FILE,
    options=(
        Option("address", Kind("ADDRESS", parse_bind_address, (str,)), None, ""),
        Option("monitor-address", Kind("ADDRESS", parse_bind_address, (str,)), None, ""),
    ),
)
"""The scheduler's options that say where it publishes."""


def resolve_monitor_address(values: Mapping[str, Any], scheduler_file: str = SCHEDULER_FILE) -> Address:
    """The monitor address to connect to.

    A scheduler's own address may stand for its monitor address, if this follows by default.

    Args:
        values: values of MONITOR_OPTIONS by key, from `command_line.resolve`.
        scheduler_file: path of the scheduler's configuration file. It is used if it exists and may be read.

    Raises:
        OptionError: no option and no file names an address.
    """
    given: Address | None = values["monitor_address"]
    if given is not None:
        return _monitor_address_of(given) or given
    address: Address | None = values["scheduler_address"]
    if address is not None:
        return _find_or_fail(address)
    configured = _scheduler_file_addresses(scheduler_file)
    if "monitor_address" in configured:
        return _on_loopback(configured["monitor_address"])
    if "address" not in configured:
        raise OptionError(
            f"no monitor address: give it as an argument, in {MONITOR_VARIABLE} or in the configuration file, "
            f"or give the scheduler's address by --scheduler-address or in {ADDRESS_VARIABLE}"
        )
    # The file belongs to the service. If the service starts later, this program waits for its socket.
    return _find_or_fail(configured["address"], SERVICE_MONITOR)


def _find_or_fail(address: Address, fallback: Address | None = None) -> Address:
    try:
        return find_monitor_address(address, fallback, has_service=True)
    except AddressError as error:
        raise OptionError(f"the monitor address of {address}: {error}") from None


def _scheduler_file_addresses(path: str) -> dict[str, Address]:
    """The addresses in the scheduler's file, by key; empty if the file is absent or may not be read."""
    try:
        found, _ = read_file(_SCHEDULER, path)  # this table has only some of the file's keys: ignore the others
    except OptionError:
        return {}
    return {key: one.value for key, one in found.items()}


def _on_loopback(bound: Address) -> Address:
    """Replaces "all interfaces" in a bound address by the loopback address, to connect on the same machine."""
    loopback = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
    return dataclasses.replace(bound, host=loopback.get(bound.host, bound.host))
