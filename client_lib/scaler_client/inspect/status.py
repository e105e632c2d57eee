"""`scaler_client status`: the scheduler on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..monitor.problems import problems
from ..monitor.resource_text import UNIT, host_texts, waiting_text
from ..monitor.snapshot_view import SHORT_NAME_LENGTH, FunctionRow, SnapshotView
from ..monitor.text_layout import (
    BAD,
    GOOD,
    OutputFormat,
    clean,
    count,
    duration,
    labelled_lines,
    moment,
    percent,
    plural,
    rate,
    size,
    truncate,
)
from ..protocol.messages import Outcome
from ..protocol.snapshots import HostPool, PoolState, Share, Snapshot, TaskLimit
from .workers import state_of

MAX_FUNCTIONS = 5
MAX_FUNCTION_LENGTH = 30
MAX_SHARES = 5
"""The most shares in the text."""


def status_text(output: OutputFormat, view: SnapshotView, address: str) -> list[str]:
    """The lines of the screen: at most 24, unless there are many problems."""
    snapshot, process = view.snapshot, view.snapshot.process
    started = snapshot.unix_seconds - snapshot.uptime_seconds
    rows = [
        ("scheduler", f"{snapshot.address} on {clean(process.host)} (process {process.pid})"),
        ("", f"version {clean(snapshot.version)}, {clean(process.interpreter)}, monitor {address}"),
        ("since", f"{moment(started)}, for {duration(snapshot.uptime_seconds)}"),
        ("tasks", _tasks(view)),
        ("ended", _ended(view)),
        ("rates", _rates(view)),
        ("workers", _workers(view)),
        *_environments(view),
        ("clients", _clients(view)),
        *_shares(view.snapshot.shares),
        *_limits(view.snapshot.limits),
        *_resources(view.snapshot),
        *_pools(view.snapshot.pools),
        ("memory", _memory(view)),
        *_values(view),
        *_transfers(view),
        *_functions(view.functions),
    ]
    wrong = problems(view)
    rows += [("problems" if not at else "", line) for at, line in enumerate(wrong or ["none"])]
    lines = labelled_lines(output, rows)
    style = BAD if wrong else GOOD
    first = len(lines) - sum(len(labelled_lines(output, [("problems", line)])) for line in wrong or ["none"])
    return lines[:first] + [output.styled(line, style) for line in lines[first:]]


def _tasks(view: SnapshotView) -> str:
    snapshot = view.snapshot
    text = f"{count(snapshot.waiting)} waiting, {count(snapshot.blocked)} blocked"
    with_workers = f"{text}, {count(snapshot.dispatched)} with workers"
    return f"{with_workers} ({count(snapshot.running)} known to run, {count(snapshot.suspended)} suspended)"


def outcome_counts(outcomes: Iterable[int]) -> dict[str, int]:
    """The counts by outcome name, without zeros."""
    known = {int(outcome): outcome.name.lower() for outcome in Outcome}
    return {known.get(number, f"outcome_{number}"): total for number, total in enumerate(outcomes) if total}


def _ended(view: SnapshotView) -> str:
    counts = outcome_counts(view.snapshot.outcomes)
    parts = [f"{count(total)} {name.replace('_', ' ')}" for name, total in counts.items()]
    retries = view.snapshot.retries
    again = f"; {plural(retries, 'retry', 'retries')}" if retries else ""
    return f"{count(view.snapshot.resolved)}" + (f": {', '.join(parts)}" if parts else "") + again


def _rates(view: SnapshotView) -> str:
    if not view.seconds:
        return "not known yet"
    busy = f"loop busy {percent(view.loop_percent)}, cpu {percent(view.cpu_percent)} of a core"
    return f"{rate(view.resolved_rate)} tasks/s; {busy}"


def _workers(view: SnapshotView) -> str:
    states: dict[str, int] = {}
    for row in view.workers:
        states[state_of(row)] = states.get(state_of(row), 0) + 1
    hosts = plural(len({row.host for row in view.workers}), "host")
    text = f"{count(view.snapshot.workers)} on {hosts}"
    return text + (": " + ", ".join(f"{count(states[state])} {state}" for state in sorted(states)) if states else "")


def environment_counts(view: SnapshotView) -> dict[str, int]:
    """The number of workers of each environment, the largest number first. The empty name means none."""
    counts: dict[str, int] = {}
    for row in view.workers:
        counts[row.environment] = counts.get(row.environment, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _environments(view: SnapshotView) -> list[tuple[str, str]]:
    """The environments with the most workers, if a worker has one."""
    counts = environment_counts(view)
    if not any(counts):
        return []
    texts = [f"{name[:SHORT_NAME_LENGTH] or 'none'}: {plural(number, 'worker')}" for name, number in counts.items()]
    left = len(texts) - MAX_SHARES
    return [("environments", ", ".join(texts[:MAX_SHARES]) + (f", and {left} more" if left > 0 else ""))]


def _clients(view: SnapshotView) -> str:
    nested = sum(bool(row.worker) for row in view.clients)
    text = count(view.snapshot.clients) + (f", {count(nested)} of them in tasks" if nested else "")
    return f"{text}; {plural(view.snapshot.functions, 'function')}, {plural(view.snapshot.objects, 'object')}"


def _shares(shares: list[Share]) -> list[tuple[str, str]]:
    """The shares with the most open tasks, if there are several or one has a limit."""
    if len(shares) < 2 and not any(share.max_running or share.max_waiting for share in shares):
        return []
    total = sum(share.used_seconds for share in shares)
    return [("shares" if not at else "", _share(share, total)) for at, share in enumerate(shares[:MAX_SHARES])]


def _limits(limits: list[TaskLimit]) -> list[tuple[str, str]]:
    """The limits of tasks with the most waiting ones."""
    shown = sorted(limits, key=lambda limit: -limit.waiting)[:MAX_SHARES]
    return [("limits" if not at else "", _limit(limit)) for at, limit in enumerate(shown)]


def _pools(pools: list[PoolState]) -> list[tuple[str, str]]:
    """The pools of autoscalers with the most hosts."""
    shown = sorted(pools, key=lambda pool: -(pool.wanted + pool.booting + pool.there + pool.draining))[:MAX_SHARES]
    return [("pools" if not at else "", _pool(pool)) for at, pool in enumerate(shown)]


def _pool(pool: PoolState) -> str:
    hosts = f"{count(pool.there)} hosts there, {count(pool.wanted)} wanted, {count(pool.booting)} booting"
    failed = f", {count(pool.failed)} failed" if pool.failed else ""
    state = ", resting" if pool.is_resting else ", failing" if pool.problem else ""
    return f"{clean(pool.name)}: {hosts}, {count(pool.draining)} draining{failed}{state}"


def _limit(limit: TaskLimit) -> str:
    text = f"{clean(limit.name)}: {count(limit.waiting)} waiting, {count(limit.running)} running"
    if limit.most:
        return f"{text} (at most {count(limit.most)})"
    for seconds, unit in ((1, "a second"), (60, "a minute")):
        if limit.per_second * seconds >= 1:
            return f"{text}, {limit.per_second * seconds:g} begin in {unit}"
    return f"{text}, {limit.per_second * 3600:g} begin in an hour"


def _resources(snapshot: Snapshot) -> list[tuple[str, str]]:
    """What is booked of the hosts' resources, and what waits for them."""
    lines = [f"{clean(host)}: {text}" for host, text in host_texts(snapshot.resources).items()][:MAX_SHARES]
    waiting = waiting_text(snapshot)
    return [("resources" if not at else "", line) for at, line in enumerate([*lines, *([waiting] if waiting else [])])]


def _share(share: Share, total_seconds: float) -> str:
    part = f", {percent(100 * share.used_seconds / total_seconds)} of the time" if total_seconds else ""
    waiting = f"{count(share.waiting)} waiting" + (
        f" (at most {count(share.max_waiting)})" if share.max_waiting else ""
    )
    running = f"{count(share.running)} running" + (
        f" (at most {count(share.max_running)})" if share.max_running else ""
    )
    weight = f", weight {share.weight:g}" if share.weight != 1 else ""
    return f"{clean(share.name)}: {waiting}, {running}{part}{weight}, {plural(share.clients, 'client')}"


def _memory(view: SnapshotView) -> str:
    snapshot = view.snapshot
    used, limit = snapshot.waiting_bytes + snapshot.object_bytes, snapshot.memory_limit_bytes
    workers = sum(row.resident_bytes for row in view.workers)
    of = f" of {size(limit)} ({percent(100 * used / limit)})" if limit else ""
    own = size(snapshot.process.resident_bytes)
    return f"scheduler {own}; tasks and objects {size(used)}{of}; workers {size(workers)}"


def _values(view: SnapshotView) -> list[tuple[str, str]]:
    """The objects and large results that hosts have, if there are some."""
    total = _host_bytes(view)
    if not total["memory_bytes"] + total["disk_bytes"]:
        return []
    held = f"{size(total['memory_bytes'])} in memory and {size(total['disk_bytes'])} on disk"
    text = f"{held} of {plural(len(view.agents), 'host')}"
    most = max(view.agents, key=lambda agent: agent.memory_bytes + agent.disk_bytes)
    if len(view.agents) > 1:
        text += f", most on {clean(most.host)}: {size(most.memory_bytes)} and {size(most.disk_bytes)}"
    return [("values", text)]


def _transfers(view: SnapshotView) -> list[tuple[str, str]]:
    """The values that hosts got from other hosts and from clients, if there are some."""
    total = _host_bytes(view)
    received, sent, coming = (size(total[f"{each}_bytes"]) for each in ("received", "sent", "coming"))
    if not total["received_bytes"] + total["coming_bytes"]:
        return []
    return [("transfers", f"hosts received {received} and sent {sent}; {coming} on the way")]


def _host_bytes(view: SnapshotView) -> dict[str, int]:
    """The bytes of values that all hosts together hold, have received and sent, and wait for."""
    names = ("memory_bytes", "disk_bytes", "received_bytes", "sent_bytes", "coming_bytes")
    return {name: sum(getattr(agent, name) for agent in view.agents) for name in names}


def _functions(rows: list[FunctionRow]) -> list[tuple[str, str]]:
    """The functions with the most open tasks, by name."""
    totals: dict[str, _Function] = {}
    for row in rows:
        totals.setdefault(row.name, _Function(row.name)).add(row)
    busiest = sorted(totals.values(), key=lambda each: (-each.tasks, -each.rate, -each.done, each.name))
    lines: list[tuple[str, str]] = []
    for each in busiest[:MAX_FUNCTIONS]:
        mean = f", mean {duration(each.seconds / each.done)}" if each.done else ""
        failed = f", {count(each.failed)} failed" if each.failed else ""
        name = truncate(clean(each.name), MAX_FUNCTION_LENGTH)
        text = f"{name}: {count(each.tasks)} open, {count(each.done)} done{mean}{failed}"
        lines.append(("functions" if not lines else "", text))
    return lines


@dataclass(slots=True)
class _Function:
    """The sums over all functions of one name."""

    name: str
    tasks: int = 0
    done: int = 0
    rate: float = 0.0
    failed: int = 0
    seconds: float = 0.0

    def add(self, row: FunctionRow) -> None:
        self.tasks += row.tasks
        self.done += row.done
        self.rate += row.done_rate
        self.failed += row.failed
        self.seconds += row.mean_seconds * row.done


def status_json(view: SnapshotView, address: str) -> dict[str, Any]:
    """The status as JSON. Its keys are stable."""
    snapshot, process = view.snapshot, view.snapshot.process
    states: dict[str, int] = {}
    for row in view.workers:
        states[state_of(row)] = states.get(state_of(row), 0) + 1
    return {
        "monitor_address": address,
        "scheduler": {
            "address": snapshot.address,
            "host": process.host,
            "pid": process.pid,
            "version": snapshot.version,
            "interpreter": process.interpreter,
            "incarnation": str(snapshot.incarnation),
            "started_unix_seconds": snapshot.unix_seconds - snapshot.uptime_seconds,
            "uptime_seconds": snapshot.uptime_seconds,
            "resident_bytes": process.resident_bytes,
            "cpu_percent": view.cpu_percent,
            "loop_percent": view.loop_percent,
        },
        "tasks": {
            "waiting": snapshot.waiting,
            "blocked": snapshot.blocked,
            "with_workers": snapshot.dispatched,
            "running": snapshot.running,
            "suspended": snapshot.suspended,
            "ended": snapshot.resolved,
            "ended_per_second": view.resolved_rate,
            "outcomes": outcome_counts(snapshot.outcomes),
            "retries": snapshot.retries,
        },
        "rates_seconds": view.seconds,
        "workers": {"there": snapshot.workers, "states": states, "deaths": snapshot.deaths},
        "environments": environment_counts(view),
        "hosts": len({row.host for row in view.workers}),
        "agents": snapshot.agents,
        "clients": snapshot.clients,
        "limits": [asdict(limit) for limit in snapshot.limits],
        "resources": [_pool_json(pool) for pool in snapshot.resources],
        "resources_waiting": snapshot.resources_waiting,
        "reservation_seconds": snapshot.reservation_seconds,
        "pools": [asdict(pool) for pool in snapshot.pools],
        "shares": [asdict(share) for share in snapshot.shares],
        "functions": snapshot.functions,
        "objects": snapshot.objects,
        "memory": {
            "waiting_bytes": snapshot.waiting_bytes,
            "object_bytes": snapshot.object_bytes,
            "limit_bytes": snapshot.memory_limit_bytes,
            **{f"host_{name}": total for name, total in _host_bytes(view).items()},
        },
        "messages": {"received": snapshot.received, "sent": snapshot.sent, "dropped": snapshot.dropped},
        "problems": problems(view),
    }


def _pool_json(pool: HostPool) -> dict[str, Any]:
    """A resource with its amounts in units."""
    amounts = {name: getattr(pool, name) / UNIT for name in ("total", "booked", "reserved", "free")}
    return {"host": pool.host, "name": pool.name, **amounts}
