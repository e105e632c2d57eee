"""Which addresses others than this machine's users reach: those are not bound without keys."""

from __future__ import annotations

import ipaddress
import socket
from typing import Optional

from ..commands.addresses import Address

_MONITOR_ACCESS = "sees names of functions, tasks, hosts and clients, and the errors of tasks"


def is_local(address: Address) -> bool:
    """Whether the address is reached from this machine alone, as far as can be told before it is bound."""
    if address.transport != "tcp":
        return True
    if address.host == "*":
        return False
    try:
        found = socket.getaddrinfo(address.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return address.host == "lo"  # ZeroMQ also takes the names of interfaces
    return all(_is_loopback(str(each[4][0])) for each in found)


def insecure_bind_error(address: Address, monitor_address: Optional[Address]) -> str:
    """Why these are not bound without keys, and what to do instead, in a line; empty where nobody else reaches them."""
    if not is_local(address):
        return insecure_address_error(address)
    if monitor_address is not None and not is_local(monitor_address):
        return f"--monitor-address: {insecure_monitor_error(monitor_address, str(address))}"
    return ""


def insecure_address_error(address: Address) -> str:
    """Of the address where clients and workers connect, which others reach."""
    return (
        f"{address} can be reached from other machines, and whoever reaches it can run code on the workers: make keys "
        f"with `scaler_scheduler keygen DIR`, start `scaler_scheduler --keys DIR {address}`, and the workers with "
        "`scaler_cluster --keys DIR ADDRESS` (clients: SCALER_KEYS=DIR); or give --insecure"
    )


def insecure_monitor_error(monitor_address: Address, address: str) -> str:
    """Of the monitor's address, which others reach; `address` is where clients and workers connect."""
    return (
        f"{monitor_address} can be reached from other machines, and whoever reaches it {_MONITOR_ACCESS}: make "
        f"keys with `scaler_scheduler keygen DIR`, start `scaler_scheduler --keys DIR {address} --monitor-address "
        f"{monitor_address}`, and who watches, workers and clients with these keys too (`scaler_top --keys DIR`, "
        "`scaler_cluster --keys DIR`, SCALER_KEYS=DIR); or give --insecure"
    )


def insecure_warning(address: Address, monitor_address: Optional[Address]) -> str:
    """What the log says where both are bound without keys all the same; empty where nobody else reaches them."""
    if not is_local(address):
        return (
            f"INSECURE: {address} is bound without keys (--insecure): whoever reaches it can run code on the workers, "
            "and reads what others send"
        )
    if monitor_address is not None and not is_local(monitor_address):
        return (
            f"INSECURE: --monitor-address {monitor_address} is bound without keys: whoever reaches it {_MONITOR_ACCESS}"
        )
    return ""


def _is_loopback(number: str) -> bool:
    try:
        return ipaddress.ip_address(number.partition("%")[0]).is_loopback
    except ValueError:
        return False
