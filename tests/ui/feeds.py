"""Artificial messages of the page's contract, for example of a thousand workers."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from playwright.sync_api import Page, WebSocketRoute

Message = dict[str, Any]

FIRST_WORKER = 9_000_000_000_000_000_000
CLIENT = "8123456789012345678"
FUNCTIONS = ("resize", "parse", "train", "fetch", "score", "merge")


def hello(tasks: int = 100_000, window: float = 3600.0) -> Message:
    return {
        "type": "hello",
        "contract": 1,
        "version": "0",
        "address": "ipc:///tmp/127.0.0.1_2345_monitor",
        "topics": [],
        "limits": {"tasks": tasks, "window": window, "interval": 1},
        "defaults": {"interval": 1, "window": 300},
        "outcomes": [[0, "value", "good"], [1, "exception", "failed"], [6, "cancelled", "neutral"]],
    }


def presence(kind: str = "up", since: float | None = None) -> Message:
    return {
        "type": "presence", "presence": kind, "since": since or time.time(), "problem": "", "schedulers": 1,
        "missed_snapshots": 0, "missed_history": 0, "malformed": 0,
    }  # fmt: skip


def worker_name(number: int) -> str:
    return f"host{number // 40:02}-{number % 40}"


def workers(number: int) -> Message:
    rows = range(number)
    constant = {
        "pid": 4242, "language": "python", "version": "3.11.7", "capabilities": "gpu=1", "environment": "5c1f0a9d2b3e",
        "resources": "gpu 1 of 2 booked", "agent": "1", "flags": 3,
        "agent_cpu": 0.5, "agent_rss": 30 << 20, "lag": 0.0004, "free": 1, "held": 1, "queued": 0, "running": 1,
        "suspended": 0, "sent": 100, "sent_rate": 1.0, "task": "resize", "task_client": CLIENT, "task_id": "7",
        "task_seconds": 0.5,
    }  # fmt: skip
    columns: dict[str, list[Any]] = {name: [value] * number for name, value in constant.items()}
    columns["id"] = [str(FIRST_WORKER + row) for row in rows]
    columns["name"] = [worker_name(row) for row in rows]
    columns["host"] = [worker_name(row).partition("-")[0] for row in rows]
    columns["cpu"] = [float(row % 100) for row in rows]
    columns["rss"] = [(50 + row % 37) << 20 for row in rows]
    columns["done"] = [row * 7 % 1000 for row in rows]
    columns["done_rate"] = [row % 13 + 0.5 for row in rows]
    return {"type": "workers", "now": time.time(), "columns": columns}


def tasks(executions: int, number_of_workers: int, begin_ago: float, seconds: float, first: int = 0) -> Message:
    """A chunk with as many executions on each worker, one after the other. One in a hundred has failed.
    They fill `seconds` from `begin_ago` seconds before now.
    """
    chance = random.Random(first)
    base = int(time.time() - begin_ago)
    each = int(seconds * 1e6 * number_of_workers / executions)
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "id", "client", "attempt", "worker", "function", "name", "submitted", "start", "end", "outcome", "error"
        )
    }  # fmt: skip
    for row in range(executions):
        begin = row // number_of_workers * each
        end = begin + max(1, int(each * chance.uniform(0.2, 0.98)))
        function = chance.randrange(len(FUNCTIONS))
        failed = chance.random() < 0.01
        row_values = (
            str(first + row), 0, 1, row % number_of_workers, function, function, begin - 2000, begin, end, int(failed),
            0 if failed else -1,
        )  # fmt: skip
        for column, value in zip(columns.values(), row_values):
            column.append(value)
    return {
        "type": "tasks", "chunk": 1, "base": base, "missed": 0, "names": list(FUNCTIONS),
        "errors": ["ValueError: no such curve"], "clients": [CLIENT], "client_names": ["a program"],
        "workers": [str(FIRST_WORKER + row) for row in range(number_of_workers)],
        "worker_names": [worker_name(row) for row in range(number_of_workers)],
        "columns": columns,
    }  # fmt: skip


def graphs(states: list[str], edges: list[tuple[int, int]], names: list[str], first: int = 0) -> Message:
    """Nodes with ids from `first`. Edges go from row to row."""
    number = len(states)
    return {
        "type": "graphs",
        "now": time.time(),
        "total": number,
        "columns": {
            "client": [CLIENT] * number,
            "id": [str(first + row) for row in range(number)],
            "name": names,
            "state": states,
        },
        "edges": {"from": [edge[0] for edge in edges], "to": [edge[1] for edge in edges]},
    }


def layered_graph(widths: list[int], names: list[str]) -> tuple[list[str], list[tuple[int, int]], list[str]]:
    """States, edges and names of a graph in layers. Each node reads three nodes of the layer before."""
    states: list[str] = []
    edges: list[tuple[int, int]] = []
    called: list[str] = []
    before: list[int] = []
    kinds = ["done", "done", "running", "waiting", "blocked", "failed"]
    for layer, width in enumerate(widths):
        rows = list(range(len(states), len(states) + width))
        for place, row in enumerate(rows):
            states.append(kinds[min(layer, len(kinds) - 2)] if place else kinds[min(layer + 1, len(kinds) - 1)])
            called.append(names[layer])
            if before:
                edges += [(before[(place * 3 + step) % len(before)], row) for step in range(min(3, len(before)))]
        before = rows
    return states, edges, called


def encoded(message: Message) -> str:
    return json.dumps(message)


class PageServer:
    """The messages between the page and the test, which acts as its server."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self._route: WebSocketRoute | None = None

    def serve(self, route: WebSocketRoute) -> None:
        self._route = route
        route.on_message(lambda message: self.heard.append(json.loads(message)))

    def send(self, *messages: Message) -> None:
        assert self._route is not None
        for message in messages:
            self._route.send(encoded(message))

    def wait_for(self, page: Page, message: Message) -> None:
        """Wait until the page has sent this message."""
        deadline = time.monotonic() + 20
        while message not in self.heard:
            assert time.monotonic() < deadline, f"{message} is not among {self.heard}"
            page.evaluate("new Promise(requestAnimationFrame)")


def snapshot() -> Message:
    now = time.time()
    return {
        "type": "snapshot", "now": now, "uptime": 100.0, "started": now - 100, "version": "0", "incarnation": "1",
        "address": "tcp://127.0.0.1:2345", "host": "here", "pid": 1, "interpreter": "PyPy",
        "process": {"cpu": 3.0, "rss": 1 << 27, "loop": 5.0, "loop_mean": 0.0001, "loop_durations": []},
        "tasks": {
            "waiting": 1, "blocked": 0, "queued": 0, "running": 2, "suspended": 0, "resolved": 9, "resolved_rate": 1,
        },
        "outcomes": [["value", 8], ["exception", 1]], "peers": {"clients": 1, "workers": 1, "agents": 1},
        "functions": 1, "objects": 0, "left_out": [], "memory": {"limit": 1 << 30, "tasks": 0, "objects": 0},
        "values": {"memory": 1 << 33, "disk": 1 << 35, "moved": 1 << 36, "received": 1 << 34, "coming": 1 << 28},
        "deaths": [], "retries": 0, "dispatch_latencies": [0, 1],
        "problems": ["2 workers have died since the start: signal 9"],
        "pools": [], "shares": [["ana", 3, 30, 1234, 900, 40], ["ben@desk", 1, 10, 5, 300, 0]],
        "limits": [["db", 10, 0, 10, 5000], ["api", 0, 0.5, 1, 70]],
        "messages": {"received": [], "sent": [], "dropped": []},
    }  # fmt: skip


def clients() -> Message:
    columns = {
        "id": [CLIENT, "7"], "name": ["report.py[4711]@node-1", "tasks of host00-1"], "worker": ["", str(FIRST_WORKER)],
        "waiting": [3, 0], "not_waiting": [1, 0], "objects": [2, 0], "object_bytes": [1 << 20, 0], "done": [120, 4],
        "share": ["ada@node-1", "bob@node-2"],
        "done_rate": [1.5, 0],
    }  # fmt: skip
    return {"type": "clients", "now": time.time(), "columns": columns}


def functions() -> Message:
    constant = {
        "open": 1, "done": 20, "failed": 0, "rate": 1.5, "mean": 0.1, "clients": 1, "bytes": 400, "recent": 20,
        "recent_failed": 0, "p50": 0.1, "p99": 0.4, "longest": 0.5, "task_names": "",
    }  # fmt: skip
    columns: dict[str, list[Any]] = {name: [value] * len(FUNCTIONS) for name, value in constant.items()}
    return {"type": "functions", "now": time.time(), "columns": {"name": list(FUNCTIONS), **columns}}


def ended(number: str, name: str, failed: bool = False) -> Message:
    """A chunk of one execution."""
    message = tasks(1, 1, 2, 1)
    message["names"], message["columns"]["id"] = [name], [number]
    message["columns"].update(function=[0], name=[0], outcome=[int(failed)], error=[0 if failed else -1])
    return message


def story(number: str) -> Message:
    now = time.time()
    columns = {
        "kind": ["submitted", "dispatched", "returned", "dispatched", "ended"],
        "time": [now - 4, now - 3, now - 2, now - 2, now],
        "attempt": [0, 1, 1, 2, 2],
        "worker": ["", *[str(FIRST_WORKER)] * 4],
        "worker_name": ["", *[worker_name(0)] * 4],
        "name": ["price"] * 5,
        "outcome": [None, None, 1, None, 1],
        "duration": [0, 0, 0.2, 0, 1.5],
        "error": ["", "", "OSError: not yet", "", "ValueError: no such curve"],
        "traceback": ["", "", "Traceback 1\nOSError: not yet", "", "Traceback 2\n  \u202eenil\nValueError: no curve"],
    }
    return {"type": "story", "client": CLIENT, "id": number, "columns": columns}
