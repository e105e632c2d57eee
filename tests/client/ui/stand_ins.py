"""Published messages made by hand for scaler_ui's state, and what pages were sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.schema_messages import message_of

from scaler_client.monitor.reader import MonitorReader
from scaler_client.protocol.snapshots import History, HistoryKind
from scaler_client.ui.chunks import Chunk
from scaler_client.ui.live_state import Limits, LiveState
from scaler_client.ui.page_session import PageSession

SUBMITTED, DISPATCHED, STARTED, ENDED, RETURNED, REATTACHED = HistoryKind
CLIENT, WORKER, OTHER_WORKER = 2**63 - 25, 2**63 - 59, 2**63 - 165
"""Larger than a JavaScript number can hold."""
BEGAN = 1_700_000_000.0
"""The scheduler's start in unix time."""
SECOND = 1_000_000

Row = tuple[HistoryKind, float, int, int, int, str, int, float]


def row(
    kind: HistoryKind,
    seconds: float,
    task: int,
    *,
    attempt: int = 1,
    worker: int = 0,
    name: str = "square",
    outcome: int = 0,
    took: float = 0.0,
) -> Row:
    """A row of history at `seconds` of uptime. The task ran for `took` seconds."""
    return kind, seconds, task, attempt, worker, name, outcome, took


def history(*rows: Row, errors: list[str] | None = None, function: str = "") -> History:
    """History of these rows. `function` is the function of all rows if their names are their own."""
    kinds, seconds, tasks, attempts, workers, names, outcomes, took = (list(column) for column in zip(*rows))
    return History(
        5,
        0,
        kinds=[int(kind) for kind in kinds],
        times=[round(at * SECOND) for at in seconds],
        clients=[CLIENT] * len(rows),
        ids=tasks,
        attempts=attempts,
        workers=workers,
        names=names,
        outcomes=outcomes,
        durations=[round(each * 1e9) for each in took],
        errors=errors or [""] * len(rows),
        functions=[function] * len(rows) if function else names,
        tracebacks=[""] * len(rows),
        wait_reasons=[],
    )


def executions_of(chunk: Chunk) -> list[dict[str, Any]]:
    """A chunk as a page sees it, with its dictionaries resolved. Times are seconds of the scheduler's uptime."""
    message = json.loads(chunk.text({WORKER: "node-0"}, {CLIENT: "notebook"}))
    columns = message["columns"]
    found = []
    for number in range(len(columns["id"])):
        one = {name: column[number] for name, column in columns.items()}
        for name in ("submitted", "start", "end"):
            if one[name] is not None:
                one[name] = round(message["base"] + one[name] / SECOND - BEGAN, 6)
        one["worker"] = None if one["worker"] < 0 else message["workers"][one["worker"]]
        one["error"] = "" if one["error"] < 0 else message["errors"][one["error"]]
        one["client"] = message["clients"][one["client"]]
        found.append(one | {name: message["names"][one[name]] for name in ("function", "name")})
    return found


def snapshot(sequence: int, uptime: float, **fields: Any) -> bytes:
    """A snapshot as it comes from the monitor address."""
    payload = {"protocolVersion": 1, "version": "1.0.0", "incarnation": 5, "sequence": sequence, **fields}
    clocks = {"uptimeMilliseconds": round(uptime * 1000), "unixMilliseconds": round((BEGAN + uptime) * 1000)}
    return b"snapshot" + message_of("snapshot", **(clocks | payload))


def ended(first: int, uptime: float, ids: Sequence[int], function: str = "square", **fields: Any) -> bytes:
    """History of tasks that ended, each after a millisecond."""
    many = len(ids)
    payload: dict[str, Any] = {
        "incarnation": [5], "first": [first], "kinds": [3], "times": [round(uptime * SECOND)], "clients": [CLIENT],
        "ids": list(ids), "attempts": [1], "workers": [WORKER], "names": [0], "outcomes": [0],
        "durations": [1_000_000] * many, "text": function.encode(), "sizes": [len(function.encode())],
    }  # fmt: skip
    return b"history\0" + message_of("history", **(payload | fields))


class FakeScheduler:
    """A scheduler controlled by the test, and the server's state of it."""

    def __init__(self, tasks: int = 100_000, window: float = 600.0) -> None:
        self.now = 50.0
        self.reader = MonitorReader(self.now)
        self.live = LiveState(self.reader, "0.1.0", "ipc:///tmp/s_monitor", Limits(tasks, window), BEGAN)
        self.sequence = 0
        self.rows = 0

    def second(self, *ids: int, function: str = "square", **fields: Any) -> None:
        """Let a second pass in which these tasks end."""
        self.now += 1.0
        self.sequence += 1
        if ids:
            self.reader.feed(ended(self.rows, self.sequence, ids, function), self.now)
            self.rows += len(ids)
        self.reader.feed(snapshot(self.sequence, self.sequence, **fields), self.now)
        self.live.refresh(self.now)

    def silence(self, seconds: float) -> None:
        self.now += seconds
        self.reader.tick(self.now)
        self.live.refresh(self.now)

    def sent(self, page: PageSession) -> list[dict[str, Any]]:
        return [json.loads(text) for text in page.pending_messages()]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [message["type"] for message in messages]
