"""The addresses that the processes of a local cluster bind, and the addresses to reach them."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

from ..commands.addresses import Address, AddressError, parse_bind_address


def checked_bind_address(address: Any) -> Address:
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address must be a string, not {address!r}")
    return _choose_port(parse_bind_address("tcp://127.0.0.1:*" if address is None else address))


def choose_monitor_port(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with a port number in `monitor_address`: if it asks for any free port, one is chosen here."""
    try:
        monitor = parse_bind_address(options["monitor_address"])
    except (KeyError, TypeError, AttributeError, AddressError):  # the scheduler reports the error
        return options
    return {**options, "monitor_address": str(_choose_port(monitor))}


def _choose_port(bind: Address) -> Address:
    return dataclasses.replace(bind, port=free_port()) if bind.transport == "tcp" and bind.port == 0 else bind


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def reachable_address(bind: Address) -> Address:
    """Return the address to connect to from this machine: the loopback interface if the scheduler binds them all."""
    return dataclasses.replace(bind, host="127.0.0.1") if bind.host == "*" else bind


def is_local(bind: Address) -> bool:
    """Return whether only this machine can reach the address, judged by its text."""
    return bind.transport == "ipc" or bind.host in ("127.0.0.1", "::1", "localhost")


def is_listening(address: Address) -> bool:
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
    target: Any = (address.host, address.port)
    if address.transport == "ipc":
        family = socket.AF_UNIX
        target = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(target) == 0
