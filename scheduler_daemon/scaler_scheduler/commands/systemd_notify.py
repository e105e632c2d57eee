"""Messages to systemd from a daemon: it is ready, its status, its loop runs, it stops.

systemd's protocol (sd_notify(3)) is a datagram of lines to the socket in $NOTIFY_SOCKET. Without this variable nothing
is sent. scaler_client has a link to this file.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping, MutableMapping

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PROCESS_VARIABLE = "WATCHDOG_PID"
PINGS_PER_WATCHDOG_INTERVAL = 3
"""Three, so that a loop that is busy for a while does not look like a loop that hangs."""

_log = logging.getLogger(__name__)


def pop_variables(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Remove the service manager's variables from the environment and return them. Child processes do not get them."""
    names = (SOCKET_VARIABLE, WATCHDOG_VARIABLE, WATCHDOG_PROCESS_VARIABLE)
    return {name: environ.pop(name) for name in names if name in environ}


class SystemdNotifier:
    """Sends messages to the service manager. Without a socket in `environ` it sends nothing.

    Args:
        environ: the environment of the process, or the result of `pop_variables`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = _address(environ.get(SOCKET_VARIABLE, ""))
        self._socket: socket.socket | None = None
        self._status = ""
        self.watchdog_seconds = 0.0
        """How often to call `watchdog`; 0: never."""
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)  # the loop must not wait
            self.watchdog_seconds = _watchdog_seconds(environ) / PINGS_PER_WATCHDOG_INTERVAL

    @property
    def is_connected(self) -> bool:
        """Whether there is a service manager to send to."""
        return self._socket is not None

    def ready(self) -> None:
        """The service has started: a scheduler is bound, or a host agent starts its workers."""
        self._send("READY=1")

    def watchdog(self) -> None:
        """The loop runs. Without this message systemd restarts the service."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for the output of `systemctl status`."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def stopping(self) -> None:
        """The service begins to stop."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Close the socket. Further messages are not sent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, line: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(line.encode(), self._address)
        except OSError as error:
            _log.debug("cannot send %s to the service manager: %s", line, error)


def _address(named: str) -> str:
    """The name of the socket for the operating system; empty if it cannot be used."""
    if named.startswith("@"):
        return "\0" + named[1:]
    return named if named.startswith("/") else ""


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """The interval of systemd's watchdog; 0: the process has none."""
    if environ.get(WATCHDOG_PROCESS_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return 0.0
    try:
        return max(0.0, int(environ.get(WATCHDOG_VARIABLE, "0")) / 1e6)
    except ValueError:
        return 0.0
