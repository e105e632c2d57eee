"""Which addresses others than this machine's users reach: those are not bound without keys."""

from __future__ import annotations

import ipaddress
import socket
from typing import Optional

from .addresses import Address

INSECURE_WARNING = (
    "INSECURE: %s is bound without keys (--insecure): whoever reaches it can run code on the workers, and reads what "
    "others send"
)


def exposed(address: Address, monitor_address: Optional[Address]) -> Optional[Address]:
    """The first of the addresses that can be reached from other machines."""
    for one in (address, monitor_address):
        if one is not None and not is_local(one):
            return one
    return None


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


def refusal(address: Address) -> str:
    """What to do instead, in a line."""
    return (
        f"{address} can be reached from other machines, and whoever reaches it can run code on the workers: make keys "
        f"with `scaler_scheduler keygen DIR`, start `scaler_scheduler --keys DIR {address}`, and the workers with "
        "`scaler_cluster --keys DIR ADDRESS` (clients: SCALER_KEYS=DIR); or give --insecure"
    )


def _is_loopback(number: str) -> bool:
    try:
        return ipaddress.ip_address(number.partition("%")[0]).is_loopback
    except ValueError:
        return False
