"""Options that limit what one peer may use. A peer that exceeds a limit gets one error that names the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..commands import options
from ..commands.machine import usable_memory
from ..commands.options import Option

MAX_COUNT = 1 << 40
"""The highest value of a limit that counts something. No installation reaches it."""

MIN_ROWS = 4096
"""The lowest `--batch-limit`: scaler_client sends this many rows in one message."""

MAX_ROWS = 1 << 28
MAX_HELLOS = 1_000_000


@dataclass(frozen=True)
class PeerLimits:
    """The limits of what one peer may use, with units."""

    message_size_limit: int
    """Bytes of one frame. A connection that announces a longer frame is cut."""
    batch_limit: int
    """Rows of one message."""
    client_task_limit: int
    """Open tasks of one client."""
    client_object_limit: int
    """Objects of one client, including kept results."""
    client_object_size_limit: int
    """Bytes of the objects that one client has sent."""
    client_function_limit: int
    """Functions of one client."""
    peer_limit: int
    """Clients, workers and host agents at one time."""
    hello_rate_limit: int
    """Hellos a second from all peers together."""
    connection_limit: int
    """Connections at one time, at both addresses together."""
    address_connection_limit: int
    """Connections at one time from one address."""
    connection_rate_limit: int
    """New connections a second from one address."""
    waste_limit: int
    """Percent of the scheduler's time that one connection may waste."""


def _size(name: str, text: str) -> Option:
    return Option(
        name,
        options.memory_size(usable_memory),
        None,
        f"{text}; {options.SIZE_HELP}",
        default_text="100%",
        sample="100%",
    )


def _count(name: str, default: int, most: int, text: str, unit: str, least: int = 1) -> Option:
    return Option(name, options.integer(least, most), default, text, unit=unit)


LIMIT_OPTIONS = (
    _size("message-size-limit", "the longest frame that a peer may send; a connection that announces more is cut"),
    _count("batch-limit", 1 << 20, MAX_ROWS, "the most rows in one message", "rows", MIN_ROWS),
    _count(
        "client-task-limit",
        1_000_000_000,
        MAX_COUNT,
        "the most open tasks of one client; at the limit the client keeps further tasks until some have ended",
        "tasks",
    ),
    _count("client-object-limit", 1_000_000, MAX_COUNT, "the most objects of one client", "objects"),
    _size("client-object-size-limit", "the most memory for the objects of one client"),
    _count("client-function-limit", 100_000, MAX_COUNT, "the most functions of one client", "functions"),
    _count("peer-limit", 100_000, MAX_COUNT, "the most clients, workers and host agents at one time", "peers"),
    _count(
        "hello-rate-limit",
        10_000,
        MAX_HELLOS,
        "the most hellos a second from all peers together; further peers must try again",
        "hellos",
    ),
    _count(
        "connection-limit",
        100_000,
        MAX_COUNT,
        "the most connections at one time from all addresses together; further connections are cut at once. The "
        "process's limit of open files applies too",
        "connections",
    ),
    _count(
        "address-connection-limit",
        100_000,
        MAX_COUNT,
        "the most connections at one time from one address (IPv6: one /64 network); further connections are cut",
        "connections",
    ),
    _count(
        "connection-rate-limit",
        1000,
        MAX_HELLOS,
        "the most new connections a second from one address; further connections wait",
        "connections",
    ),
    _count(
        "waste-limit",
        2,
        100,
        "the share of the scheduler's time that one connection may waste with messages that change nothing; above it "
        "the messages of the connection are dropped for a second",
        "percent",
    ),
)


def complete(values: dict[str, Any]) -> None:
    """Fill in the defaults that depend on the machine.

    Args:
        values: the options' values by key; a None is replaced by the default.
    """
    for option in LIMIT_OPTIONS:
        if values[option.key] is None:
            values[option.key] = usable_memory() or options.MAX_MEMORY_BYTES
