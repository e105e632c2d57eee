"""Options that limit what one peer may use, and the named limits of tasks. A peer that exceeds a limit gets one error
that names the limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..commands import options
from ..commands.machine import usable_memory
from ..commands.options import Kind, Option
from ..core.limits import LimitSettings

MAX_COUNT = 1 << 40
"""The highest value of a limit that counts something. No installation reaches it."""

MIN_ROWS = 4096
"""The lowest `--batch-limit`: scaler_client sends this many rows in one message."""

MAX_ROWS = 1 << 28
MAX_LIMIT_NAME_LENGTH = 64  # characters
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
    environment_limit: int
    """Bytes of the modules and packages of all clients."""
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
    Option(
        "environment-limit",
        options.memory_size(usable_memory),
        1 << 30,
        "the most memory for the modules and packages that all clients together bring for their tasks. Modules and "
        "packages that no client uses any more are removed first",
        default_text="1G",
        sample="1G",
    ),
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


_SECONDS = {"s": 1, "min": 60, "h": 3600}


def task_limits() -> Kind:
    """Limits of tasks across the cluster, by name: a number of tasks that run at once, or a rate such as 50/s."""

    def parse(given: str) -> tuple[str, LimitSettings]:
        name, _, amount = (part.strip() for part in given.partition("="))
        found = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?(?:/(s|min|h))?", amount)
        if not name or len(name) > MAX_LIMIT_NAME_LENGTH or not name.isprintable() or re.search(r"[\s,=]", name):
            wanted = f"NAME=TASKS or NAME=RATE, with a name of 1 to {MAX_LIMIT_NAME_LENGTH} characters without blanks"
            raise ValueError(f"{options.quoted(given)} is not {wanted}")
        value = 0.0 if found is None else float(f"{found.group(1)}.{found.group(2) or 0}")
        if found is None or not value or (found.group(2) and not found.group(3)):
            wanted = "a number of tasks from 1 to 999,999,999 as in db=10, or a rate as in api=50/s, /min or /h"
            raise ValueError(f"{options.quoted(given)} is not {wanted}")
        if found.group(3):
            return name, LimitSettings(per_second=value / _SECONDS[found.group(3)])
        return name, LimitSettings(most=int(value))

    def combine(parts: tuple[tuple[str, LimitSettings], ...]) -> dict[str, LimitSettings]:
        limits: dict[str, LimitSettings] = {}
        for name, settings in parts:
            if name in limits:
                raise ValueError(f"{options.quoted(name)} is there more than once")
            limits[name] = settings
        return limits

    return Kind("NAME=LIMIT", parse, (str, dict), is_list=True, combine=combine)
