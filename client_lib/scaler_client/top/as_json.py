"""The state of a scheduler as one JSON object, for scripts. The man page documents its keys.

Identities and ids are strings of digits, because JavaScript has no integers of 64 bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..monitor.snapshot_view import SnapshotView
from ..protocol.snapshots import ObjectState
from .states import outcome_counts, state_letters


def as_json(view: SnapshotView) -> dict[str, Any]:
    """The object for `json.dumps`."""
    snapshot = view.snapshot
    process = snapshot.process
    return {
        "scheduler": {
            "address": snapshot.address,
            "version": snapshot.version,
            "interpreter": process.interpreter,
            "host": process.host,
            "pid": process.pid,
            "incarnation": str(snapshot.incarnation),
            "unix_seconds": snapshot.unix_seconds,
            "uptime_seconds": snapshot.uptime_seconds,
            "cpu_percent": view.cpu_percent,
            "resident_bytes": process.resident_bytes,
            "loop_percent": view.loop_percent,
            "loop_mean_seconds": view.loop_mean_seconds,
            "waiting_bytes": snapshot.waiting_bytes,
            "object_bytes": snapshot.object_bytes,
            "memory_limit_bytes": snapshot.memory_limit_bytes,
        },
        "rates_seconds": view.seconds,
        "tasks": {
            "waiting": snapshot.waiting,
            "blocked": snapshot.blocked,
            "dispatched": snapshot.dispatched,
            "running": snapshot.running,
            "suspended": snapshot.suspended,
            "resolved": snapshot.resolved,
            "resolved_rate": view.resolved_rate,
            **outcome_counts(view),
            "retries": snapshot.retries,
            "deaths": dict(snapshot.deaths),
        },
        "sent": _messages(snapshot.sent, view.sent_rates),
        "received": _messages(snapshot.received, view.received_rates),
        "dropped": dict(snapshot.dropped),
        "workers": [{**row, "state": state_letters(row["state"])} for row in _rows(view.workers)],
        "agents": _rows(view.agents),
        "functions": _rows(view.functions),
        "objects": [{**row, "state": _object_state(row["state"])} for row in _rows(view.objects)],
        "clients": _rows(view.clients),
        "shares": _rows(snapshot.shares),
        "limits": _rows(snapshot.limits),
        "pools": _rows(snapshot.pools),
    }


_IDENTITIES = ("incarnation", "agent", "client", "worker", "id")


def _rows(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [_with_string_ids(dataclasses.asdict(row)) for row in rows]


def _with_string_ids(row: dict[str, Any]) -> dict[str, Any]:
    result = {key: str(value) if key in _IDENTITIES else value for key, value in row.items()}
    if row.get("task"):
        result["task"] = _with_string_ids(row["task"])
    return result


def _messages(totals: Mapping[str, int], rates: Mapping[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"total": total, "rate": rates.get(name, 0.0)} for name, total in sorted(totals.items())}


def _object_state(state: Any) -> str:
    return state.name.lower() if isinstance(state, ObjectState) else str(state)
