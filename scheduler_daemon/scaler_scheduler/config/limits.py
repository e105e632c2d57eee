"""Options that bound what one peer may ask of the scheduler. Beyond each its sender gets one clear error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

from ..commands import options
from ..commands.machine import usable_memory
from ..commands.options import Option

MOST = 1 << 40
"""Of anything that is counted: more than there will be."""

LEAST_ROWS = 4096
"""What our own clients send in one message."""

MOST_ROWS = 1 << 28
MOST_HELLOS = 1_000_000


@dataclass(frozen=True)
class PeerLimits:
    """What one peer may ask of the scheduler, with units."""

    message_size_limit: int
    """Bytes of one frame; a connection that announces more is cut."""
    batch_limit: int
    """Rows of one message."""
    client_task_limit: int
    """Tasks that a client may have open."""
    client_object_limit: int
    """Objects that a client may have, kept results among them."""
    client_object_size_limit: int
    """Bytes of the objects that one client has sent."""
    client_function_limit: int
    """Functions that a client may name."""
    peer_limit: int
    """Clients, workers and host agents at one time."""
    hello_rate_limit: int
    """Hellos a second, of all together."""
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
    _size("message-size-limit", "the longest frame that a peer may send; who announces more is disconnected"),
    _count("batch-limit", 1 << 20, MOST_ROWS, "the most rows of one message", "rows", LEAST_ROWS),
    _count(
        "client-task-limit",
        1_000_000_000,
        MOST,
        "the most tasks that a client may have open; past it the client keeps them until some are done",
        "tasks",
    ),
    _count("client-object-limit", 1_000_000, MOST, "the most objects that a client may have", "objects"),
    _size("client-object-size-limit", "the most that the objects of one client may take"),
    _count("client-function-limit", 100_000, MOST, "the most functions that a client may have", "functions"),
    _count("peer-limit", 100_000, MOST, "the most clients, workers and host agents at one time", "peers"),
    _count(
        "hello-rate-limit", 10_000, MOST_HELLOS, "the most hellos a second, of all; others are to try again", "hellos"
    ),
    _count(
        "connection-limit",
        100_000,
        MOST,
        "the most connections at one time, of anybody, never more than the system lets the process have files open; "
        "others are cut at once",
        "connections",
    ),
    _count(
        "address-connection-limit",
        100_000,
        MOST,
        "the most connections at one time from one address (of IPv6 one network of 64 bits); others are cut at once",
        "connections",
    ),
    _count(
        "connection-rate-limit",
        1000,
        MOST_HELLOS,
        "the most new connections a second from one address; others have to wait",
        "connections",
    ),
    _count(
        "waste-limit",
        2,
        100,
        "how much of the scheduler's time a connection may waste by what changes nothing; past it the connection is "
        "not listened to for a second",
        "percent",
    ),
)


def complete(values: Dict[str, Any]) -> None:
    """Work out the defaults that depend on the machine."""
    for option in LIMIT_OPTIONS:
        if values[option.key] is None:
            values[option.key] = usable_memory() or options.MOST_MEMORY_BYTES
