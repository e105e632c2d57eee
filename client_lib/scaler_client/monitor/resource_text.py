"""The counted resources of hosts, for people."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.snapshots import HostPool, Snapshot
from .text_layout import clean

UNIT = 1000
"""Amounts are thousandths of a unit."""

_SIZES = ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"))


def amount_text(thousandths: int) -> str:
    """Return an amount, for example `1.5` or `12G`. Multiples of a mebibyte are sizes."""
    for size, letter in _SIZES:
        if thousandths >= size * UNIT:
            return f"{thousandths / UNIT / size:.4g}{letter}"
    return f"{thousandths / UNIT:.12g}"


def pool_text(pool: HostPool) -> str:
    """Return a resource, for example `gpu 1.5 of 4 booked, 1 reserved`."""
    text = f"{clean(pool.name)} {amount_text(pool.booked)} of {amount_text(pool.total)} booked"
    return f"{text}, {amount_text(pool.reserved)} reserved" if pool.reserved else text


def host_texts(pools: Iterable[HostPool]) -> dict[str, str]:
    """Return the resources of each host, separated by semicolons."""
    texts: dict[str, list[str]] = {}
    for pool in pools:
        texts.setdefault(pool.host, []).append(pool_text(pool))
    return {host: "; ".join(of_host) for host, of_host in texts.items()}


def waiting_text(snapshot: Snapshot) -> str:
    """Return how many tasks wait for resources, and for how long the first reservation has waited. Empty: none."""
    if not snapshot.resources_waiting:
        return ""
    text = f"{snapshot.resources_waiting:,} waiting"
    seconds = snapshot.reservation_seconds
    return f"{text}, {seconds:.1f} s since the oldest reservation" if seconds else text
