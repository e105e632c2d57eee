"""The details of one row, and the page of a worker."""

from __future__ import annotations

from ..monitor.resource_text import pool_text
from ..monitor.snapshot_view import UNKNOWN_ROOM_BYTES, AgentRow, SnapshotView, WorkerRow
from ..protocol.snapshots import HostPool
from .number_format import count, duration, percent, rate, size
from .states import STATE_LETTERS, state_letters
from .text_width import Line, align_right

LABEL = 14


Entries = list[tuple[str, list[tuple[str, str]]]]
"""The sections of a row's page: a title, and lines of a label and a text."""


def detail_lines(entries: Entries) -> list[Line]:
    lines: list[Line] = []
    for title, message in entries:
        lines += [[], [("section", title)]] if lines else [[("section", title)]]
        lines += [[("label", align_right(label, LABEL)), ("", f"  {text}")] for label, text in message]
    return lines


def worker_entries(view: SnapshotView, incarnation: int) -> Entries | None:
    """The details of a worker; None if it is not connected any more."""
    row = next((row for row in view.workers if row.incarnation == incarnation), None)
    if row is None:
        return None
    agent = next((one for one in view.agents if one.incarnation == row.agent), None)
    states = [meaning for bit, _, meaning in STATE_LETTERS if row.state & bit]
    return [
        (
            f"Worker {row.name}",
            [
                ("host", row.host),
                ("pid", str(row.pid)),
                ("version", f"{row.version}, {row.language}"),
                ("capabilities", row.capabilities or "none"),
                ("environment", row.short_environment or "none"),
                ("incarnation", f"{row.incarnation:x}"),
                ("state", f"{state_letters(row.state)}  {', '.join(states) or 'idle, without an agent'}"),
                ("cpu", percent(row.cpu_percent)),
                ("rss", size(row.resident_bytes)),
            ],
        ),
        ("Runs", _running(view, row)),
        (
            "Tasks",
            [
                ("held", f"{count(row.held)}: {row.running} run, {row.queued} queued, {row.suspended} suspended"),
                ("free", f"{count(row.free)} more may be sent"),
                ("sent", total_with_rate(row.sent, row.sent_rate)),
                ("done", total_with_rate(row.done, row.done_rate)),
            ],
        ),
        ("Host agent", _agent(agent, row, view.snapshot.resources)),
    ]


def _running(view: SnapshotView, row: WorkerRow) -> list[tuple[str, str]]:
    if row.task is None:
        return [("task", "none is known: the worker is idle, or its tasks are short")]
    client = next((one.name for one in view.clients if one.incarnation == row.task.client), "")
    return [
        ("task", row.task.name),
        ("for", duration(row.task.seconds)),
        ("id", f"{row.task.id}, attempt {row.task.attempt}"),
        ("client", f"{client or 'unknown'} ({row.task.client:x})"),
    ]


def _agent(agent: AgentRow | None, row: WorkerRow, pools: list[HostPool]) -> list[tuple[str, str]]:
    if agent is None:
        return [("agent", "no host agent is connected" if row.agent else "the worker has no host agent")]
    return [
        ("name", agent.name),
        ("host", agent.host),
        ("pid", str(agent.pid)),
        ("version", f"{agent.version}, {agent.language}"),
        ("cpu", percent(agent.cpu_percent)),
        ("rss", size(agent.resident_bytes)),
        ("lag", duration(agent.lag_seconds)),
        ("heard", f"{duration(agent.silent_seconds)} ago"),
        ("workers", str(agent.workers)),
        ("values", f"{size(agent.memory_bytes)} in memory, {size(agent.disk_bytes)} on disk"),
        *([("room", size(agent.room_bytes))] if agent.room_bytes < UNKNOWN_ROOM_BYTES else []),
        ("moved", f"{size(agent.moved_bytes)} to and from disk"),
        (
            "network",
            f"{size(agent.received_bytes)} received, {size(agent.sent_bytes)} sent, {size(agent.coming_bytes)} coming",
        ),
        *[("resource", pool_text(pool)) for pool in pools if pool.host == agent.host],
    ]


def total_with_rate(total: int, a_second: float) -> str:
    """For example "12,345, 17 a second"."""
    return f"{count(total)}, {rate(a_second) or '0'} a second"
