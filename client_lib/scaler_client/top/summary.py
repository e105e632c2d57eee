"""The upper part of the screen: the scheduler, its tasks by state, its messages by type."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ..monitor.snapshot_view import SnapshotView
from ..protocol.messages import Outcome
from .number_format import clock, count, percent, rate, size
from .text_width import Line, join_columns, left, right

WIDE = 118
"""Columns from which on counts are shown in full."""

MAX_MESSAGES_WIDTH = 42
"""Columns of a section of messages; beyond it, names and figures would be too far from one another."""

_STORED = 10  # of the schema's: kept on a host, which clients hear as kept
_DONE = (Outcome.VALUE, Outcome.KEPT, _STORED)
_CANCELLED = (Outcome.CANCELLED,)
_DIED = (Outcome.WORKER_DIED,)

_RARE = ("blocked", "suspended", "cancelled", "died")

Entry = Tuple[str, str, str]
"""A label, a figure, and its rate or what else belongs to it."""


def summary(view: SnapshotView, width: int, height: int) -> List[Line]:
    """The four sections, one beside the other, their names above them."""
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
    """Lines that show all there is, the names above counted; no more than given."""
    snapshot = view.snapshot
    longest = max(len(snapshot.sent), len(snapshot.received), len(task_entries(view, True, 100)), 6)
    return max(4, min(most, 1 + longest))


def scheduler_entries(view: SnapshotView, is_wide: bool) -> List[Entry]:
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


def outcome_counts(view: SnapshotView) -> Dict[str, int]:
    """Of the tasks that are over, how many ended how."""
    outcomes = dict(enumerate(view.snapshot.outcomes))
    done = sum(outcomes.get(int(outcome), 0) for outcome in _DONE)
    cancelled = sum(outcomes.get(int(outcome), 0) for outcome in _CANCELLED)
    died = sum(outcomes.get(int(outcome), 0) for outcome in _DIED)
    return {
        "done": done,
        "failed": sum(outcomes.values()) - done - cancelled - died,
        "cancelled": cancelled,
        "died": died,
    }


def task_entries(view: SnapshotView, is_wide: bool, most: int) -> List[Entry]:
    """Where there is not room for all, rare states are left out as long as no task is in them."""
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


def _messages(totals: Mapping[str, int], rates: Mapping[str, float], is_wide: bool) -> List[Entry]:
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return [
        (
            "".join(part.capitalize() for part in name.split("_")),
            count(totals[name], 11 if is_wide else 4),
            rate(rates.get(name, 0.0), 6 if is_wide else 4),
        )
        for name in ordered
    ]


def _section(name: str, entries: Sequence[Entry], width: int, height: int, aside: int = 0) -> Tuple[List[Line], int]:
    """Labels and figures right-aligned, as many as there is room for.

    Args:
        aside: the width of the rates behind the figures; 0: there are none.
    """
    figure = max([len(entry[1]) for entry in entries] or [0])
    label = max(0, width - figure - aside - 1)
    lines: List[Line] = [[("section", left(name, width - aside) + right("/s" if aside else "", aside))]]
    room = height - 1
    shown = entries if len(entries) <= room else entries[: room - 1]
    for text, number, behind in shown:
        named = right(text, label) if len(text) <= label else left(text, label)
        lines.append([("label", named), ("", " " + right(number, figure) + right(behind, aside))])
    if len(shown) < len(entries):
        lines.append([("label", right(f"{len(entries) - len(shown)} more", label))])
    return lines, width
