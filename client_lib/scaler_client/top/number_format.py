"""Formats numbers in few characters."""

from __future__ import annotations

MAX_FULL_COUNT = 10_000_000
"""From this number on, counts are shortened even if there is room."""


def count(number: int, width: int = 10) -> str:
    """For example 283,701; shortened to 283k or 1.2M if it is longer than `width` (at least 4)."""
    full = f"{number:,}"
    return full if len(full) <= width and number < MAX_FULL_COUNT else _scaled(number, 1000.0, "kMGTPE")


def size(number: int) -> str:
    """Bytes in units of 1024, for example 130.1m."""
    return "0" if not number else f"{number}b" if number < 1024 else _scaled(number, 1024.0, "kmgtpe", 1)


def percent(share: float) -> str:
    return f"{share:.1f}%" if share < 999.95 else f"{share:.0f}%"


def rate(a_second: float, width: int = 8) -> str:
    """A number per second, for example 1,234; empty for 0."""
    if a_second < 0.05:
        return ""
    return f"{a_second:.1f}" if a_second < 9.95 else count(round(a_second), width)


def duration(seconds: float) -> str:
    """A short duration: 0.7ms, 35ms, 1.5s, 2:03, 1:02:03, 3d04h."""
    if not seconds:
        return "0"
    if seconds < 0.0000995:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 0.00995:
        return f"{seconds * 1e3:.1f}ms"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 59.95 else clock(seconds)


def clock(seconds: float) -> str:
    """A long duration: 0:12, 1:02:03, 3d04h."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24:02}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _scaled(number: float, base: float, units: str, decimals: int = 0) -> str:
    for unit in units:
        number /= base
        if number < 999.5 or unit == units[-1]:  # 1000 of a unit is shown as 1.0 of the next one
            break
    if number < 9.95 or (decimals and number < 999.95):
        return f"{number:.1f}{unit}"
    return f"{number:.0f}{unit}"
