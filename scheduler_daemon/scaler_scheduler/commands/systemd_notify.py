"""What systemd is told of a daemon: that it is ready, what it does, that its loop turns, that it stops.

systemd's protocol (sd_notify(3)): a datagram of lines to the socket in $NOTIFY_SOCKET. Without that variable nothing
is told to anybody. scaler_client has a link to this file.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import Dict, Mapping, MutableMapping, Optional

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PROCESS_VARIABLE = "WATCHDOG_PID"
PINGS_PER_WATCHDOG_INTERVAL = 3
"""A loop that turns is not to be taken for a hung one because it was busy for a while."""

_log = logging.getLogger(__name__)


def pop_variables(environ: MutableMapping[str, str]) -> Dict[str, str]:
    """What the service manager has left for this process, and only for it: those that it starts don't see it."""
    names = (SOCKET_VARIABLE, WATCHDOG_VARIABLE, WATCHDOG_PROCESS_VARIABLE)
    return {name: environ.pop(name) for name in names if name in environ}


class SystemdNotifier:
    """Tells nobody anything where `environ` names no socket.

    Args:
        environ: the process's environment, or what was taken of it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = _address(environ.get(SOCKET_VARIABLE, ""))
        self._socket: Optional[socket.socket] = None
        self._status = ""
        self.watchdog_seconds = 0.0
        """How often `beat` wants to be called; 0: never."""
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)  # the loop waits for nobody
            self.watchdog_seconds = _watchdog_seconds(environ) / PINGS_PER_WATCHDOG_INTERVAL

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    def ready(self) -> None:
        """What this process is there for can begin: a scheduler is bound, a host agent starts its workers."""
        self._send("READY=1")

    def watchdog(self) -> None:
        """The loop turns."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """What an operator reads in `systemctl status`: one line."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, line: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(line.encode(), self._address)
        except OSError as error:
            _log.debug("the service manager can't be told %s: %s", line, error)


def _address(named: str) -> str:
    """The socket's, as the operating system takes it; empty: none that can be used."""
    if named.startswith("@"):
        return "\0" + named[1:]
    return named if named.startswith("/") else ""


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """After which silence this process is taken for hung; 0: it is not watched."""
    if environ.get(WATCHDOG_PROCESS_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return 0.0
    try:
        return max(0.0, int(environ.get(WATCHDOG_VARIABLE, "0")) / 1e6)
    except ValueError:
        return 0.0
