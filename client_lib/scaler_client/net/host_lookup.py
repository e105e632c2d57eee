"""Looks up the host of an address. ZeroMQ does so at each attempt to connect, but does not report a failure."""

from __future__ import annotations

import logging
import socket
import threading
import time

from ..commands.addresses import Address
from .file_limit import file_shortage

AGAIN_SECONDS = 5.0
"""The pause between two lookups of a host."""


def host_problem(address: Address) -> str:
    """Return why the host of an address can't be found, in one line; empty: it is found, or needs no lookup.

    Blocks while the name server is silent.
    """
    if address.transport != "tcp" or address.is_ipv6:
        return ""
    try:
        socket.getaddrinfo(address.host, address.port, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"the host {address.host} can't be found: {reason}"
    return ""


def interface_to(scheduler: Address) -> str:
    """The address of the interface by which this host reaches the scheduler; empty: there is none that others could
    use."""
    if scheduler.transport != "tcp":
        return ""
    try:
        found = socket.getaddrinfo(scheduler.host, scheduler.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)  # sends nothing: the system only chooses the interface
            host = str(probe.getsockname()[0])
    except (OSError, UnicodeError):
        return ""
    return "" if "%" in host or host.startswith("fe80:") else host  # a link-local address needs the other side's zone


def warn_if_unresolved(address: Address, log: logging.Logger) -> None:
    """Look up the host in a thread, and log one warning if it is not found."""

    def look() -> None:
        problem = file_shortage() or host_problem(address)
        if problem:
            log.warning("%s: %s; the lookup is repeated", address, problem)

    threading.Thread(target=look, name="host name", daemon=True).start()


class HostLookup:
    """Looks up the host of an address in a separate thread. For use by one thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._problem = ""
        self._next = 0.0
        self._thread: threading.Thread | None = None

    def problem(self) -> str:
        """Return the result of the last `host_problem`, empty before the first; start a new lookup if one is due."""
        is_looking = self._thread is not None and self._thread.is_alive()
        if not is_looking and time.monotonic() >= self._next:
            self._next = time.monotonic() + AGAIN_SECONDS
            self._thread = threading.Thread(target=self._look, name="host name", daemon=True)
            self._thread.start()
        return self._problem

    def _look(self) -> None:
        self._problem = host_problem(self._address)
