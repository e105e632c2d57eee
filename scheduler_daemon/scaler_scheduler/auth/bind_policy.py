"""Which addresses need keys: the addresses that other machines can reach."""

from __future__ import annotations

import ipaddress
import socket

from ..commands.addresses import Address

_MONITOR_ACCESS = "can read the names of functions, tasks, hosts and clients, and the errors of tasks"


def is_local(address: Address) -> bool:
    """Whether only this machine can reach the address, as far as the address itself shows this."""
    if address.transport != "tcp":
        return True
    if address.host == "*":
        return False
    try:
        found = socket.getaddrinfo(address.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return address.host == "lo"  # ZeroMQ also accepts the names of interfaces
    return all(_is_loopback(str(each[4][0])) for each in found)


def insecure_bind_error(address: Address, monitor_address: Address | None) -> str:
    """An error, in one line, that these addresses must not be bound without keys, with what to do. Empty if both are
    local."""
    if not is_local(address):
        return insecure_address_error(address)
    if monitor_address is not None and not is_local(monitor_address):
        return f"--monitor-address: {insecure_monitor_error(monitor_address, str(address))}"
    return ""


def insecure_address_error(address: Address) -> str:
    """The error for an address of clients and workers that other machines reach."""
    return (
        f"{address} can be reached from other machines, which could then run code on the workers: make keys "
        f"with `scaler_scheduler keygen DIR`, start `scaler_scheduler --keys DIR {address}`, and the workers with "
        "`scaler_cluster --keys DIR ADDRESS` (clients: SCALER_KEYS=DIR); or give --insecure"
    )


def insecure_monitor_error(monitor_address: Address, address: str) -> str:
    """The error for a monitor address that other machines reach. `address` is the address of clients and workers."""
    return (
        f"{monitor_address} can be reached from other machines, and programs there {_MONITOR_ACCESS}: make "
        f"keys with `scaler_scheduler keygen DIR`, start `scaler_scheduler --keys DIR {address} --monitor-address "
        f"{monitor_address}`, and monitors, workers and clients with these keys too (`scaler_top --keys DIR`, "
        "`scaler_cluster --keys DIR`, SCALER_KEYS=DIR); or give --insecure"
    )


def insecure_warning(address: Address, monitor_address: Address | None) -> str:
    """The warning in the log if both addresses are bound without keys. Empty if both are local."""
    if not is_local(address):
        return (
            f"INSECURE: {address} is bound without keys (--insecure): programs that reach it can run code on the "
            "workers and read the data of other clients"
        )
    if monitor_address is not None and not is_local(monitor_address):
        return (
            f"INSECURE: --monitor-address {monitor_address} is bound without keys: programs that reach it "
            f"{_MONITOR_ACCESS}"
        )
    return ""


def local_users_text(address: Address) -> str:
    """Return the warning about an address of this machine that is bound without keys. Empty for an ipc socket, which
    only its owner may use."""
    if address.transport != "tcp":
        return ""
    return (
        f"{address} is bound without keys: every user of this machine can run code on the workers; to keep others out, "
        "bind an ipc:// address, which only this user can reach, or use --keys"
    )


def _is_loopback(number: str) -> bool:
    try:
        return ipaddress.ip_address(number.partition("%")[0]).is_loopback
    except ValueError:
        return False
