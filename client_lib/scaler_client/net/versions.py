"""What commands print for --version."""

from __future__ import annotations

from ..commands.options import interpreter
from ..protocol.messages import PROTOCOL_VERSION


def versions_text(version: str) -> str:
    """Return the versions of a command, of the interpreter, of ZeroMQ and of the protocol, on one line.

    Args:
        version: that of the command's package.
    """
    import zmq  # not at the top: it takes 30 ms

    return f"{version}, {interpreter()}, ZeroMQ {zmq.zmq_version()}, protocol version {PROTOCOL_VERSION}"
