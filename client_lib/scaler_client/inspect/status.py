"""`scaler_client status`: the scheduler on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..monitor.problems import problems
from ..monitor.snapshot_view import FunctionRow, Picture
from ..monitor.text_layout import BAD, GOOD, Page, clean, count, cut, entries, many, moment, percent, rate, size, span
from ..protocol.messages import Outcome
from .workers import state_of

MOST_FUNCTIONS = 5
LONGEST_FUNCTION = 30


def status_text(page: Page, picture: Picture, address: str) -> list[str]:
    """It fits a screen of 24 lines unless much is wrong."""
    snapshot, process = picture.snapshot, picture.snapshot.process
    started = snapshot.unix_seconds - snapshot.uptime_seconds
    rows = [
        ("scheduler", f"{snapshot.address} on {clean(process.host)} (process {process.pid})"),
        ("", f"version {clean(snapshot.version)}, {clean(process.interpreter)}, monitor {address}"),
        ("since", f"{moment(started)}, for {span(snapshot.uptime_seconds)}"),
        ("tasks", _tasks(picture)),
        ("ended", _ended(picture)),
        ("rates", _rates(picture)),
        ("workers", _workers(picture)),
        ("clients", _clients(picture)),
        ("memory", _memory(picture)),
        *_functions(picture.functions),
    ]
    wrong = problems(picture)
    lines = entries(page, rows + [("problems" if not at else "", line) for at, line in enumerate(wrong or ["none"])])
    style = BAD if wrong else GOOD
    first = len(lines) - sum(len(entries(page, [("problems", line)])) for line in wrong or ["none"])
    return lines[:first] + [page.styled(line, style) for line in lines[first:]]


def _tasks(picture: Picture) -> str:
    snapshot = picture.snapshot
    text = f"{count(snapshot.waiting)} waiting, {count(snapshot.blocked)} blocked"
    with_workers = f"{text}, {count(snapshot.dispatched)} with workers"
    return f"{with_workers} ({count(snapshot.running)} known to run, {count(snapshot.suspended)} suspended)"


def outcome_counts(outcomes: Iterable[int]) -> dict[str, int]:
    """By name, those that there are."""
    known = {int(outcome): outcome.name.lower() for outcome in Outcome}
    return {known.get(number, f"outcome_{number}"): total for number, total in enumerate(outcomes) if total}


def _ended(picture: Picture) -> str:
    counts = outcome_counts(picture.snapshot.outcomes)
    parts = [f"{count(total)} {name.replace('_', ' ')}" for name, total in counts.items()]
    retries = picture.snapshot.retries
    again = f"; {many(retries, 'retry', 'retries')}" if retries else ""
    return f"{count(picture.snapshot.resolved)}" + (f": {', '.join(parts)}" if parts else "") + again


def _rates(picture: Picture) -> str:
    if not picture.seconds:
        return "not known yet"
    busy = f"loop busy {percent(picture.loop_percent)}, cpu {percent(picture.cpu_percent)} of a core"
    return f"{rate(picture.resolved_rate)} tasks/s; {busy}"


def _workers(picture: Picture) -> str:
    states: dict[str, int] = {}
    for row in picture.workers:
        states[state_of(row)] = states.get(state_of(row), 0) + 1
    hosts = many(len({row.host for row in picture.workers}), "host")
    text = f"{count(picture.snapshot.workers)} on {hosts}"
    return text + (": " + ", ".join(f"{count(states[state])} {state}" for state in sorted(states)) if states else "")


def _clients(picture: Picture) -> str:
    nested = sum(bool(row.worker) for row in picture.clients)
    text = count(picture.snapshot.clients) + (f", {count(nested)} of them in tasks" if nested else "")
    return f"{text}; {many(picture.snapshot.functions, 'function')}, {many(picture.snapshot.objects, 'object')}"


def _memory(picture: Picture) -> str:
    snapshot = picture.snapshot
    used, limit = snapshot.waiting_bytes + snapshot.object_bytes, snapshot.memory_limit_bytes
    workers = sum(row.resident_bytes for row in picture.workers)
    of = f" of {size(limit)} ({percent(100 * used / limit)})" if limit else ""
    own = size(snapshot.process.resident_bytes)
    return f"scheduler {own}; tasks and objects {size(used)}{of}; workers {size(workers)}"


def _functions(rows: list[FunctionRow]) -> list[tuple[str, str]]:
    """Those with most to do, by name."""
    totals: dict[str, _Function] = {}
    for row in rows:
        totals.setdefault(row.name, _Function(row.name)).add(row)
    busiest = sorted(totals.values(), key=lambda each: (-each.tasks, -each.rate, -each.done, each.name))
    lines: list[tuple[str, str]] = []
    for each in busiest[:MOST_FUNCTIONS]:
        mean = f", mean {span(each.seconds / each.done)}" if each.done else ""
        failed = f", {count(each.failed)} failed" if each.failed else ""
        name = cut(clean(each.name), LONGEST_FUNCTION)
        text = f"{name}: {count(each.tasks)} open, {count(each.done)} done{mean}{failed}"
        lines.append(("functions" if not lines else "", text))
    return lines


@dataclass(slots=True)
class _Function:
    """What all functions of a name come to."""

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


def status_json(picture: Picture, address: str) -> dict[str, Any]:
    """The same and somewhat more; keys stay as they are."""
    snapshot, process = picture.snapshot, picture.snapshot.process
    states: dict[str, int] = {}
    for row in picture.workers:
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
            "cpu_percent": picture.cpu_percent,
            "loop_percent": picture.loop_percent,
        },
        "tasks": {
            "waiting": snapshot.waiting,
            "blocked": snapshot.blocked,
            "with_workers": snapshot.dispatched,
            "running": snapshot.running,
            "suspended": snapshot.suspended,
            "ended": snapshot.resolved,
            "ended_per_second": picture.resolved_rate,
            "outcomes": outcome_counts(snapshot.outcomes),
            "retries": snapshot.retries,
        },
        "rates_seconds": picture.seconds,
        "workers": {"there": snapshot.workers, "states": states, "deaths": snapshot.deaths},
        "hosts": len({row.host for row in picture.workers}),
        "agents": snapshot.agents,
        "clients": snapshot.clients,
        "functions": snapshot.functions,
        "objects": snapshot.objects,
        "memory": {
            "waiting_bytes": snapshot.waiting_bytes,
            "object_bytes": snapshot.object_bytes,
            "limit_bytes": snapshot.memory_limit_bytes,
        },
        "messages": {"received": snapshot.received, "sent": snapshot.sent, "dropped": snapshot.dropped},
        "problems": problems(picture),
    }
