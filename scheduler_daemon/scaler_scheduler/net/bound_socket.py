"""The base class of bound sockets, and ZeroMQ's metadata of the connection that a message comes from."""

from __future__ import annotations

import os
import socket
import stat
from typing import Any, Callable

import zmq
import zmq.backend

from ..commands.addresses import ADDRESS_IN_USE, Address, parse_bind_address

# Plain numbers: pyzmq's enumerations cost as much as the calls that take them.
EVENTS = int(zmq.EVENTS)
POLLIN = int(zmq.POLLIN)
IS_CFFI = not hasattr(zmq.backend.Frame, "get")
"""Whether this is pyzmq's backend for PyPy, which cannot read the metadata of messages."""


def metadata_reader(name: str) -> Callable[[Any], bytes]:
    """A function that reads this metadata of a message from one of its frames; empty bytes if there is none."""
    if not IS_CFFI:
        return lambda frame: frame.get(name).encode()
    import ctypes

    from zmq.backend.cffi import _cffi

    get = ctypes.CDLL(_cffi.__file__).zmq_msg_gets
    get.restype = ctypes.c_char_p
    get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    cast = _cffi.ffi.cast
    wanted = name.encode()
    return lambda frame: get(int(cast("uintptr_t", frame.zmq_msg)), wanted) or b""


class BindError(Exception):
    """The address cannot be bound. The text is one line that says why."""


def check_path_is_free(address: Address) -> None:
    """Raise BindError if another process listens at an ipc path, or if the path is not a socket.

    ZeroMQ itself takes the path away from the other process, and removes any file there, without an error.
    """
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
    raise BindError(f"can't bind {address}: {ADDRESS_IN_USE}")


class BoundSocket:
    """A bound ZeroMQ socket, with the address that it got."""

    def __init__(self, bound: zmq.Socket[bytes]) -> None:
        self._socket = bound
        endpoint: Any = bound.getsockopt(zmq.LAST_ENDPOINT)
        self.address = parse_bind_address(endpoint.rstrip(b"\0").decode())
        """The bound address, with the port that it has."""

    @property
    def fileno(self) -> int:
        """A file descriptor that becomes readable (edge-triggered) when there may be something to receive."""
        descriptor: Any = self._socket.getsockopt(zmq.FD)
        return int(descriptor)

    def close(self, linger_milliseconds: int = 0) -> None:
        """Close the socket, and remove the file of an ipc socket. The linger time is for queued messages."""
        self._socket.close(linger_milliseconds)
        if self.address.transport == "ipc" and not self.address.path.startswith("@"):
            try:
                os.unlink(self.address.path)
            except OSError:
                pass  # ZeroMQ may have removed it already
