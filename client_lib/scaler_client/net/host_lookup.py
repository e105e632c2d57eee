"""Whether the host of an address can be found: ZeroMQ looks for it at each attempt to connect, and says nothing."""

from __future__ import annotations

import logging
import socket
import threading
import time

from ..commands.addresses import Address
from .file_limit import file_shortage

AGAIN_SECONDS = 5.0
"""How often it is looked for again."""


def host_problem(address: Address) -> str:
    """In one line why the address' host has no address of its own; empty where it has, or the address needs none.

    May take as long as a name server is silent.
    """
    if address.transport != "tcp" or address.is_ipv6:
        return ""
    try:
        socket.getaddrinfo(address.host, address.port, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"the host {address.host} can't be found: {reason}"
    return ""


def warn_if_unresolved(address: Address, log: logging.Logger) -> None:
    """Look for the host beside the caller, and say so once where it is not there: it may come later."""

    def look() -> None:
        problem = file_shortage() or host_problem(address)
        if problem:
            log.warning("%s: %s; it is tried again", address, problem)

    threading.Thread(target=look, name="host name", daemon=True).start()


class HostLookup:
    """What is known of the host of an address, looked up beside whoever asks. For one thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._problem = ""
        self._next = 0.0
        self._thread: threading.Thread | None = None

    def problem(self) -> str:
        """As `host_problem` has said last; empty before it has. What it says next is known at a later call."""
        is_looking = self._thread is not None and self._thread.is_alive()
        if not is_looking and time.monotonic() >= self._next:
            self._next = time.monotonic() + AGAIN_SECONDS
            self._thread = threading.Thread(target=self._look, name="host name", daemon=True)
            self._thread.start()
        return self._problem

    def _look(self) -> None:
        self._problem = host_problem(self._address)
