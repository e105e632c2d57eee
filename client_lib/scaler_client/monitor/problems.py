"""What looks wrong in a picture, in a line each."""

from __future__ import annotations

from collections.abc import Iterator

from ..protocol.snapshots import WorkerState
from .snapshot_view import Picture
from .text_layout import clean, many, size, span

SILENT_AGENT_SECONDS = 10.0
NEARLY_FULL = 0.9
"""Of the memory limit."""
BUSY_LOOP_PERCENT = 90.0
SLOW_LAG_SECONDS = 1.0
MOST_NAMED = 3
DROPPED = {
    "malformed": "the sender does not speak this protocol",
    "refused": "beyond a limit, or not for this peer: the scheduler's log says which",
    "ignored": "the sender floods the scheduler",
    "unreachable": "the receiver was not connected any more; tasks in it are given out again",
}
"""Why the scheduler drops messages, and what that means."""
ASKED_FOR = ("cancelled", "time limit")
"""Causes of deaths that are no accidents."""


def problems(picture: Picture) -> list[str]:
    """The worst first."""
    return [*_of_workers(picture), *_of_hosts(picture), *_of_scheduler(picture), *_of_versions(picture)]


def _of_workers(picture: Picture) -> Iterator[str]:
    snapshot = picture.snapshot
    waiting = many(snapshot.waiting, "task waits", "tasks wait")
    if not snapshot.workers and snapshot.waiting:
        yield f"{waiting} and there is no worker: start scaler_cluster"
    elif snapshot.unserved:
        waiting = many(snapshot.unserved, "task waits", "tasks wait")
        yield f"{waiting} for a worker that could run them, and there is none: the scheduler's log says what it lacks"
    elif snapshot.waiting and all(row.state & WorkerState.RETIRES for row in picture.workers):
        yield f"{waiting} and all workers retire"
    silent = [row.name for row in picture.workers if row.state & WorkerState.DOES_NOT_ANSWER]
    if silent:
        yield f"{many(len(silent), 'worker does', 'workers do')} not answer while a task holds them: {_named(silent)}"
    for cause, number in sorted(snapshot.deaths.items(), key=lambda item: -item[1]):
        if cause in ASKED_FOR:
            continue
        yield f"{many(number, 'worker has', 'workers have')} died since the start: {clean(cause)}"


def _of_hosts(picture: Picture) -> Iterator[str]:
    silent = [row for row in picture.agents if row.silent_seconds >= SILENT_AGENT_SECONDS]
    if silent:
        longest = max(row.silent_seconds for row in silent)
        hosts = _named([row.host for row in silent])
        yield f"{many(len(silent), 'host agent is', 'host agents are')} silent, for up to {span(longest)}: {hosts}"
    slow = [row for row in picture.agents if row.lag_seconds >= SLOW_LAG_SECONDS]
    if slow:
        longest = max(row.lag_seconds for row in slow)
        yield f"heartbeats take up to {span(longest)}: {_named([row.host for row in slow])}"


def _of_scheduler(picture: Picture) -> Iterator[str]:
    snapshot = picture.snapshot
    used, limit = snapshot.waiting_bytes + snapshot.object_bytes, snapshot.memory_limit_bytes
    if limit and used > NEARLY_FULL * limit:
        yield f"tasks and objects fill {size(used)} of {size(limit)}: clients keep further tasks back"
    if picture.loop_percent > BUSY_LOOP_PERCENT:
        yield f"the scheduler's loop is busy {picture.loop_percent:.0f}% of the time"
    for reason, meaning in DROPPED.items():
        if snapshot.dropped.get(reason):
            dropped = many(snapshot.dropped[reason], "message")
            yield f"{dropped} dropped since the start: {reason} ({meaning})"
    if snapshot.dropped.get("connections"):
        yield f"{many(snapshot.dropped['connections'], 'connection')} cut since the start: too many, or silent"
    if snapshot.dropped.get("unauthorized"):
        times = many(snapshot.dropped["unauthorized"], "time")
        yield f"{times} since the start a key was not authorized: the scheduler's log names the last one"


def _of_versions(picture: Picture) -> Iterator[str]:
    version = picture.snapshot.version
    others = sorted({row.version for row in picture.workers if row.version and row.version != version})
    if others:
        yield f"workers have version {_named(others)}, the scheduler {clean(version)}"
    pythons = sorted({".".join(row.language.split(".")[:2]) for row in picture.workers})
    if len(pythons) > 1:
        yield f"workers have different languages or versions of them: {_named(pythons)}"


def _named(names: list[str]) -> str:
    different = list(dict.fromkeys(map(clean, names)))
    more = len(different) - MOST_NAMED
    return ", ".join(different[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
