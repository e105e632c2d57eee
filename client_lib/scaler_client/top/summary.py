"""The upper part of the screen: the scheduler, its tasks by state, its messages by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..monitor.snapshot_view import SnapshotView
from .number_format import clock, count, percent, rate, size
from .states import outcome_counts
from .text_width import Line, align_left, align_right, join_columns

WIDE = 118
"""From this width on, counts are shown in full."""

MAX_MESSAGES_WIDTH = 42
"""The widest section of messages. Beyond it, names and numbers would be too far apart."""

_RARE = ("blocked", "suspended", "cancelled", "died")

Entry = tuple[str, str, str]
"""A label, a number, and its rate or other addition."""


def summary(view: SnapshotView, width: int, height: int) -> list[Line]:
    """The four sections side by side, with their names above."""
    is_wide = width >= WIDE
    separator = " | " if is_wide else "|"
    first, second = (26, 27) if is_wide else (15, 16)
    further = min(MAX_MESSAGES_WIDTH, (width - first - second - 3 * len(separator)) // 2)
    snapshot = view.snapshot
    aside = 7 if is_wide else 5
    blocks = [
        _section("scheduler", scheduler_entries(view, is_wide), first, height),
        _section("task_manager", task_entries(view, is_wide, height - 1), second, height, 7 if is_wide else 0),
        _section("scheduler_sent", _messages(snapshot.sent, view.sent_rates, is_wide), further, height, aside),
        _section(
            "scheduler_received", _messages(snapshot.received, view.received_rates, is_wide), further, height, aside
        ),
    ]
    return join_columns(blocks, height, separator)


def summary_height(view: SnapshotView, most: int) -> int:
    """The lines needed for all entries and the names above them, `most` at most."""
    snapshot = view.snapshot
    longest = max(len(snapshot.sent), len(snapshot.received), len(task_entries(view, True, 100)), 6)
    return max(4, min(most, 1 + longest))


def scheduler_entries(view: SnapshotView, is_wide: bool) -> list[Entry]:
    snapshot = view.snapshot
    entries = [
        ("cpu", percent(view.cpu_percent), ""),
        ("rss", size(snapshot.process.resident_bytes), ""),
        ("uptime", clock(snapshot.uptime_seconds), ""),
        ("version", snapshot.version, ""),
        ("loop", f"{percent(view.loop_percent)}", ""),
        ("dropped", count(sum(snapshot.dropped.values()), 7), ""),
    ]
    if is_wide:
        entries.append(("python", snapshot.process.interpreter.partition(" (")[0], ""))
    return entries


def task_entries(view: SnapshotView, is_wide: bool, most: int) -> list[Entry]:
    """Rare states without tasks are left out if there is no room for all."""
    snapshot = view.snapshot
    outcomes = outcome_counts(view)
    states = {
        "unassigned": snapshot.waiting,
        "queued": max(0, snapshot.dispatched - snapshot.running - snapshot.suspended),
        "running": snapshot.running,
        "done": outcomes["done"],
        "failed": outcomes["failed"],
        "blocked": snapshot.blocked,
        "suspended": snapshot.suspended,
        "cancelled": outcomes["cancelled"],
        "died": outcomes["died"],
    }
    rates = {"done": rate(view.resolved_rate, 6)} if is_wide else {}
    if len(states) > most:
        states = {name: number for name, number in states.items() if number or name not in _RARE}
    return [(name, count(number, 10 if is_wide else 5), rates.get(name, "")) for name, number in states.items()]


def _messages(totals: Mapping[str, int], rates: Mapping[str, float], is_wide: bool) -> list[Entry]:
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return [
        (
            "".join(part.capitalize() for part in name.split("_")),
            count(totals[name], 11 if is_wide else 4),
            rate(rates.get(name, 0.0), 6 if is_wide else 4),
        )
        for name in ordered
    ]


def _section(name: str, entries: Sequence[Entry], width: int, height: int, aside: int = 0) -> tuple[list[Line], int]:
    """Labels and numbers, right-aligned, as many as fit.

    Args:
        aside: the width of the rates after the numbers; 0 if there are none.
    """
    figure = max([len(entry[1]) for entry in entries] or [0])
    label = max(0, width - figure - aside - 1)
    lines: list[Line] = [[("section", align_left(name, width - aside) + align_right("/s" if aside else "", aside))]]
    room = height - 1
    shown = entries if len(entries) <= room else entries[: room - 1]
    for text, number, behind in shown:
        named = align_right(text, label) if len(text) <= label else align_left(text, label)
        lines.append([("label", named), ("", " " + align_right(number, figure) + align_right(behind, aside))])
    if len(shown) < len(entries):
        lines.append([("label", align_right(f"{len(entries) - len(shown)} more", label))])
    return lines, width
