"""Paths of ipc sockets that are not ours to take."""

from __future__ import annotations

import os
import socket
import stat

from ..commands.addresses import Address


class BindError(Exception):
    """The address can't be bound; the text is one line that says why."""


def refuse_taken_path(address: Address) -> None:
    """ZeroMQ takes an ipc path away from whoever listens there, and removes any file that is there, without a word."""
    if address.transport != "ipc":
        return
    if not address.path.startswith("@") and os.path.lexists(address.path):
        if not stat.S_ISSOCK(os.lstat(address.path).st_mode):
            raise BindError(f"can't bind {address}: the path exists and is not a socket")
    path = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
    raise BindError(f"can't bind {address}: Address already in use")
