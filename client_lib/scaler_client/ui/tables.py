"""The rows of a snapshot as messages of the contract (contract.py), by column."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from ..monitor.problems import problems
from ..monitor.resource_text import host_texts
from ..monitor.snapshot_view import SnapshotView
from ..protocol.snapshots import Graphs, GraphState, History, HistoryKind, ObjectState
from .contract import OUTCOMES
from .durations import FunctionDurations

Message = dict[str, Any]

MAX_ENDED_FUNCTIONS = 1000
"""The limit of functions without a row in the snapshot, equal to the scheduler's: programs with lambdas have
thousands."""

MAX_LISTED = 20
"""The limit of shares, and of limits of tasks, in a message."""

_OBJECT_STATES = {ObjectState.PENDING: "pending", ObjectState.IN_MEMORY: "in memory", ObjectState.ON_HOST: "on a host"}


def snapshot_message(view: SnapshotView) -> Message:
    snapshot, process = view.snapshot, view.snapshot.process
    return {
        "type": "snapshot",
        "now": snapshot.unix_seconds,
        "uptime": snapshot.uptime_seconds,
        "started": round(snapshot.unix_seconds - snapshot.uptime_seconds, 3),
        "version": snapshot.version,
        "incarnation": str(snapshot.incarnation),
        "address": snapshot.address,
        "host": process.host,
        "pid": process.pid,
        "interpreter": process.interpreter,
        "process": {
            "cpu": _rounded(view.cpu_percent),
            "rss": process.resident_bytes,
            "loop": _rounded(view.loop_percent),
            "loop_mean": view.loop_mean_seconds,
            "loop_durations": process.loop_durations,
        },
        "tasks": {
            "waiting": snapshot.waiting,
            "blocked": snapshot.blocked,
            "queued": queued_tasks(view),
            "running": snapshot.running,
            "suspended": snapshot.suspended,
            "resolved": snapshot.resolved,
            "resolved_rate": _rounded(view.resolved_rate),
        },
        "outcomes": [[_outcome(number), total] for number, total in enumerate(snapshot.outcomes)],
        "peers": {"clients": snapshot.clients, "workers": snapshot.workers, "agents": snapshot.agents},
        "functions": snapshot.functions,
        "objects": snapshot.objects,
        "left_out": [[table, number] for table, number in snapshot.left_out().items() if number > 0],
        "memory": {
            "limit": snapshot.memory_limit_bytes,
            "tasks": snapshot.waiting_bytes,
            "objects": snapshot.object_bytes,
        },
        "values": {
            "memory": sum(row.memory_bytes for row in view.agents),
            "disk": sum(row.disk_bytes for row in view.agents),
            "moved": sum(row.moved_bytes for row in view.agents),
            "received": sum(row.received_bytes for row in view.agents),
            "coming": sum(row.coming_bytes for row in view.agents),
        },
        "deaths": [[cause, total] for cause, total in sorted(snapshot.deaths.items())],
        "retries": snapshot.retries,
        "dispatch_latencies": snapshot.dispatch_latencies,
        "problems": problems(view),
        "pools": [
            [
                pool.name,
                pool.wanted,
                pool.booting,
                pool.there,
                pool.draining,
                pool.failed,
                pool.is_resting,
                pool.problem,
                pool.problem_seconds,
            ]
            for pool in snapshot.pools
        ],
        "shares": [
            [share.name, share.weight, share.running, share.waiting, share.used_seconds, share.max_running]
            for share in snapshot.shares[:MAX_LISTED]
        ],
        "limits": [
            [limit.name, limit.most, limit.per_second, limit.running, limit.waiting]
            for limit in snapshot.limits[:MAX_LISTED]
        ],
        "messages": {
            "received": _counters(snapshot.received, view.received_rates),
            "sent": _counters(snapshot.sent, view.sent_rates),
            "dropped": [[name, total] for name, total in sorted(snapshot.dropped.items())],
        },
    }


def queued_tasks(view: SnapshotView) -> int:
    """Tasks that wait at a worker."""
    snapshot = view.snapshot
    return max(0, snapshot.dispatched - snapshot.running - snapshot.suspended)


def workers_message(view: SnapshotView) -> Message:
    rows = view.workers
    resources = host_texts(view.snapshot.resources)
    return _table(
        "workers",
        view,
        {
            "id": [str(row.incarnation) for row in rows],
            "name": [row.name for row in rows],
            "host": [row.host for row in rows],
            "pid": [row.pid for row in rows],
            "language": [row.language for row in rows],
            "version": [row.version for row in rows],
            "capabilities": [row.capabilities for row in rows],
            "environment": [row.short_environment for row in rows],
            "resources": [resources.get(row.host, "") for row in rows],
            "agent": [str(row.agent) for row in rows],
            "flags": [int(row.state) for row in rows],
            "agent_cpu": [_rounded(row.agent_cpu_percent) for row in rows],
            "agent_rss": [row.agent_resident_bytes for row in rows],
            "lag": [row.lag_seconds for row in rows],
            "cpu": [_rounded(row.cpu_percent) for row in rows],
            "rss": [row.resident_bytes for row in rows],
            "free": [row.free for row in rows],
            "held": [row.held for row in rows],
            "queued": [row.queued for row in rows],
            "running": [row.running for row in rows],
            "suspended": [row.suspended for row in rows],
            "sent": [row.sent for row in rows],
            "sent_rate": [_rounded(row.sent_rate) for row in rows],
            "done": [row.done for row in rows],
            "done_rate": [_rounded(row.done_rate) for row in rows],
            "task": ["" if row.task is None else row.task.name for row in rows],
            "task_client": ["" if row.task is None else str(row.task.client) for row in rows],
            "task_id": ["" if row.task is None else str(row.task.id) for row in rows],
            "task_seconds": [0 if row.task is None else row.task.seconds for row in rows],
        },
    )


def running_message(view: SnapshotView) -> Message:
    now = view.snapshot.unix_seconds
    rows = [(row, row.task) for row in view.workers if row.task is not None]
    clients = {client.incarnation: client.name for client in view.clients}
    return _table(
        "running",
        view,
        {
            "client": [str(task.client) for _, task in rows],
            "client_name": [clients.get(task.client, "") for _, task in rows],
            "id": [str(task.id) for _, task in rows],
            "attempt": [task.attempt for _, task in rows],
            "worker": [str(row.incarnation) for row, _ in rows],
            "worker_name": [row.name for row, _ in rows],
            "name": [task.name for _, task in rows],
            "start": [round(now - task.seconds, 3) for _, task in rows],
        },
    )


def agents_message(view: SnapshotView) -> Message:
    rows = view.agents
    return _table(
        "agents",
        view,
        {
            "id": [str(row.incarnation) for row in rows],
            "name": [row.name for row in rows],
            "host": [row.host for row in rows],
            "pid": [row.pid for row in rows],
            "language": [row.language for row in rows],
            "version": [row.version for row in rows],
            "cpu": [_rounded(row.cpu_percent) for row in rows],
            "rss": [row.resident_bytes for row in rows],
            "lag": [row.lag_seconds for row in rows],
            "silent": [_rounded(row.silent_seconds) for row in rows],
            "workers": [row.workers for row in rows],
            "memory": [row.memory_bytes for row in rows],
            "disk": [row.disk_bytes for row in rows],
            "moved": [row.moved_bytes for row in rows],
            "received": [row.received_bytes for row in rows],
            "sent": [row.sent_bytes for row in rows],
            "coming": [row.coming_bytes for row in rows],
        },
    )


def clients_message(view: SnapshotView) -> Message:
    rows = view.clients
    return _table(
        "clients",
        view,
        {
            "id": [str(row.incarnation) for row in rows],
            "name": [row.name for row in rows],
            "share": [row.share for row in rows],
            "worker": [str(row.worker) if row.worker else "" for row in rows],
            "waiting": [row.waiting for row in rows],
            "not_waiting": [row.not_waiting for row in rows],
            "objects": [row.objects for row in rows],
            "object_bytes": [row.object_bytes for row in rows],
            "done": [row.done for row in rows],
            "done_rate": [_rounded(row.done_rate) for row in rows],
        },
    )


def functions_message(view: SnapshotView, durations: Mapping[str, FunctionDurations]) -> Message:
    """The functions of the snapshot, and those known only from kept executions: the MAX_ENDED_FUNCTIONS with the
    most."""
    rows = view.functions
    known = {row.name for row in rows}
    gone = [name for name in durations if name not in known]
    if len(gone) > MAX_ENDED_FUNCTIONS:
        gone = heapq.nlargest(MAX_ENDED_FUNCTIONS, gone, key=lambda name: durations[name].count)
    names = [*(row.name for row in rows), *gone]
    none = [0] * len(gone)
    recent = [durations.get(name) for name in names]
    return _table(
        "functions",
        view,
        {
            "name": names,
            "open": [*(row.tasks for row in rows), *none],
            "done": [*(row.done for row in rows), *(durations[name].count for name in gone)],
            "failed": [*(row.failed for row in rows), *(durations[name].failed for name in gone)],
            "rate": [*(_rounded(row.done_rate) for row in rows), *none],
            "mean": [*(row.mean_seconds for row in rows), *(durations[name].mean() for name in gone)],
            "clients": [*(row.clients for row in rows), *none],
            "bytes": [*(row.bytes for row in rows), *none],
            "task_names": [*(row.task_names for row in rows), *([""] * len(gone))],
            "recent": [0 if one is None else one.count for one in recent],
            "recent_failed": [0 if one is None else one.failed for one in recent],
            "p50": [None if one is None else one.percentile(50) for one in recent],
            "p99": [None if one is None else one.percentile(99) for one in recent],
            "longest": [None if one is None else one.percentile(100) for one in recent],
        },
    )


def objects_message(view: SnapshotView) -> Message:
    rows = view.objects
    return _table(
        "objects",
        view,
        {
            "client": [str(row.client) for row in rows],
            "id": [str(row.id) for row in rows],
            "name": [row.name for row in rows],
            "bytes": [row.bytes for row in rows],
            "tasks": [row.tasks for row in rows],
            "state": [_OBJECT_STATES.get(ObjectState(row.state), "") if row.state in _KNOWN else "" for row in rows],
        },
    )


_KNOWN = frozenset(ObjectState)


def graphs_message(graphs: Graphs, now: float, started: float) -> Message:
    """The message `graphs`. Edges to nodes without a row are left out.

    `started` is the scheduler's start in unix time.
    """
    rows = {key: number for number, key in enumerate(zip(graphs.clients, graphs.ids))}
    pairs = [
        (giver, reader)
        for reader, (client, inputs) in enumerate(zip(graphs.clients, graphs.inputs))
        for giver in (rows.get((client, each)) for each in inputs)
        if giver is not None
    ]
    return {
        "type": "graphs",
        "now": now,
        "total": graphs.total,
        "columns": {
            "client": [str(client) for client in graphs.clients],
            "id": [str(each) for each in graphs.ids],
            "name": graphs.names,
            "state": [_GRAPH_STATES.get(state, "") for state in graphs.states],
            "graph": [str(number) if number else "" for number in graphs.graphs],
            "keys": graphs.keys,
            "begun": [round(started + begun / 1000, 3) if begun else None for begun in graphs.submit_milliseconds],
        },
        "edges": {"from": [giver for giver, _ in pairs], "to": [reader for _, reader in pairs]},
    }


_GRAPH_STATES = {int(state): state.name.lower() for state in GraphState}


def story_message(
    story: History, client: int, task_id: int, started: float, worker_names: Mapping[int, str]
) -> Message:
    """The message `story`. `started` is the scheduler's start in unix time."""
    return {
        "type": "story",
        "client": str(client),
        "id": str(task_id),
        "columns": {
            "kind": [_HISTORY_KINDS.get(kind, "") for kind in story.kinds],
            "time": [round(started + at / 1e6, 6) for at in story.times],
            "attempt": story.attempts,
            "worker": [str(worker) if worker else "" for worker in story.workers],
            "worker_name": [worker_names.get(worker, "") for worker in story.workers],
            "name": story.names,
            "outcome": [
                outcome if kind == HistoryKind.ENDED or (kind == HistoryKind.RETURNED and outcome) else None
                for kind, outcome in zip(story.kinds, story.outcomes)
            ],
            "duration": [duration / 1e9 for duration in story.durations],
            "error": story.errors,
            "traceback": story.tracebacks,
        },
    }


_HISTORY_KINDS = {int(kind): kind.name.lower() for kind in HistoryKind}


def _table(kind: str, view: SnapshotView, columns: Mapping[str, Sequence[Any]]) -> Message:
    return {"type": kind, "now": view.snapshot.unix_seconds, "columns": columns}


def _counters(totals: Mapping[str, int], rates: Mapping[str, float]) -> list[list[Any]]:
    return [[name, total, _rounded(rates.get(name, 0.0))] for name, total in sorted(totals.items())]


def _outcome(number: int) -> str:
    return OUTCOMES[number] if number < len(OUTCOMES) else str(number)


def _rounded(number: float) -> float:
    """The number with one decimal, which is enough for display."""
    return round(number, 1)
