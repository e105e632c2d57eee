"""The problems that a snapshot shows, one line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..protocol.snapshots import WorkerState
from .snapshot_view import AgentRow, SnapshotView
from .text_layout import clean, duration, moment, plural, size

SILENT_AGENT_SECONDS = 10.0
NEARLY_FULL = 0.9
"""Share of the memory limit, and of what the values of a host may take."""
BUSY_LOOP_PERCENT = 90.0
SLOW_LAG_SECONDS = 1.0
MAX_LISTED = 3
LAST_IN_LOG = "the scheduler's log names the last one"
LACK = "`scaler_client why` says what the workers lack"
DROP_REASONS = {
    "malformed": "the sender does not speak this protocol",
    "refused": "beyond a limit, or not for this peer; the scheduler's log has details",
    "ignored": "the sender floods the scheduler",
}
"""Why the scheduler drops messages, and what each reason means. A message to a peer that has left (`unreachable`) is
usual: it is no problem."""
INTENDED_DEATHS = ("cancelled", "time limit")
"""Causes of intended deaths, which are not problems."""


def problems(view: SnapshotView) -> list[str]:
    """The problems, the worst first."""
    return [*_worker_problems(view), *_host_problems(view), *_scheduler_problems(view), *_version_problems(view)]


def _worker_problems(view: SnapshotView) -> Iterator[str]:
    snapshot = view.snapshot
    waiting = plural(snapshot.waiting, "task waits", "tasks wait")
    booting = sum(pool.booting for pool in snapshot.pools)
    if not snapshot.workers and snapshot.waiting and booting:
        yield f"{waiting} and there is no worker: {plural(booting, 'host boots', 'hosts boot')}"
    elif not snapshot.workers and snapshot.waiting:
        yield f"{waiting} and there is no worker: start scaler_cluster"
    elif snapshot.unschedulable:
        waiting = plural(snapshot.unschedulable, "task waits", "tasks wait")
        yield f"{waiting}, and no connected worker can run {'it' if snapshot.unschedulable == 1 else 'them'}: {LACK}"
    elif snapshot.waiting and all(row.state & WorkerState.RETIRING for row in view.workers):
        yield f"{waiting} and all workers retire"
    silent = [row.name for row in view.workers if row.state & WorkerState.DOES_NOT_ANSWER]
    if silent:
        do = plural(len(silent), "worker does", "workers do")
        yield f"{do} not answer while a task holds them: {_listed(silent)}"
    for cause, number in sorted(snapshot.deaths.items(), key=lambda item: -item[1]):
        if cause in INTENDED_DEATHS:
            continue
        died = plural(number, "worker has", "workers have")
        yield f"{died} died since the start: {clean(cause)}{_last(snapshot.death_times, cause)}"


def _host_problems(view: SnapshotView) -> Iterator[str]:
    for pool in view.snapshot.pools:
        name, problem = clean(pool.name), f"for {duration(pool.problem_seconds)}: {clean(pool.problem)}"
        if pool.is_resting:
            why = f"; {problem}" if pool.problem else ", scaler_autoscaler's log says why"
            yield f"pool {name} starts no hosts for now: {plural(pool.failed, 'host has', 'hosts have')} failed{why}"
        elif pool.problem:
            yield f"pool {name} fails {problem}"
    silent = [row for row in view.agents if row.silent_seconds >= SILENT_AGENT_SECONDS]
    if silent:
        longest = max(row.silent_seconds for row in silent)
        hosts = _listed([row.host for row in silent])
        are = plural(len(silent), "host agent is", "host agents are")
        yield f"{are} silent, for up to {duration(longest)}: {hosts}"
    slow = [row for row in view.agents if row.lag_seconds >= SLOW_LAG_SECONDS]
    if slow:
        longest = max(row.lag_seconds for row in slow)
        yield f"heartbeats take up to {duration(longest)}: {_listed([row.host for row in slow])}"
    full = [row for row in view.agents if is_nearly_full(row)]
    if full:
        rooms = _listed([f"{row.host} (agent {row.name}) has {size(row.room_bytes)}" for row in full])
        yield f"little room for further values (--object-memory, --spill-limit): {rooms}"
    if view.snapshot.unreachable_hosts:
        pairs = _listed(sorted(view.snapshot.unreachable_hosts))
        yield f"values go through the scheduler, because hosts can't reach others (--data-address): {pairs}"


def is_nearly_full(row: AgentRow) -> bool:
    """Whether the values of a host have nearly reached its limits."""
    used = row.memory_bytes + row.disk_bytes
    return used > 0 and used > NEARLY_FULL * (used + row.room_bytes)


def _scheduler_problems(view: SnapshotView) -> Iterator[str]:
    snapshot = view.snapshot
    used, limit = snapshot.waiting_bytes + snapshot.object_bytes, snapshot.memory_limit_bytes
    if limit and used > NEARLY_FULL * limit:
        yield f"tasks and objects fill {size(used)} of {size(limit)}: clients keep further tasks back"
    if view.loop_percent > BUSY_LOOP_PERCENT:
        yield f"the scheduler's loop is busy {view.loop_percent:.0f}% of the time"
    for reason, meaning in DROP_REASONS.items():
        if snapshot.dropped.get(reason):
            dropped = plural(snapshot.dropped[reason], "message")
            yield f"{dropped} dropped since the start: {reason} ({meaning}){_last(snapshot.dropped_times, reason)}"
    if snapshot.dropped.get("connections"):
        cut, last = plural(snapshot.dropped["connections"], "connection"), _last(snapshot.dropped_times, "connections")
        yield f"{cut} cut since the start: too many, or silent{last}"
    if snapshot.dropped.get("unauthorized"):
        counted, last = f"{snapshot.dropped['unauthorized']:,}", _last(snapshot.dropped_times, "unauthorized")
        yield f"{counted} connections and messages without an authorized key since the start{last}: {LAST_IN_LOG}"


def _version_problems(view: SnapshotView) -> Iterator[str]:
    version = view.snapshot.version
    others = sorted({row.version for row in view.workers if row.version and row.version != version})
    if others:
        yield f"workers have version {_listed(others)}, the scheduler {clean(version)}"
    pythons = sorted({".".join(row.language.split(".")[:2]) for row in view.workers})
    if len(pythons) > 1:
        yield f"workers have different languages or versions of them: {_listed(pythons)}"


def _last(times: Mapping[str, float], name: str) -> str:
    """ ", last at TIME" if the time is known; else empty."""
    return f", last at {moment(times[name])}" if name in times else ""


def _listed(names: list[str]) -> str:
    different = list(dict.fromkeys(map(clean, names)))
    more = len(different) - MAX_LISTED
    return ", ".join(different[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")
