"""Frames as a scheduler publishes them, for readers under test."""

from __future__ import annotations

from typing import Any

from tests.schema_messages import message_of

INCARNATION = 5


def snapshot_frame(sequence: int, seconds: float, **fields: Any) -> bytes:
    """A snapshot at this uptime. For the tables see `table`."""
    fields = {"protocolVersion": 1, "version": "1.0.0", "incarnation": INCARNATION, **fields}
    return b"snapshot" + message_of("snapshot", sequence=sequence, uptimeMilliseconds=round(seconds * 1000), **fields)


class Texts:
    """The texts of one snapshot, by number. 0 is the empty text."""

    def __init__(self) -> None:
        self._known = [""]

    def __call__(self, text: str) -> int:
        if text not in self._known:
            self._known.append(text)
        return self._known.index(text)

    def field(self) -> dict[str, Any]:
        encoded = [text.encode() for text in self._known]
        return {"text": b"".join(encoded), "sizes": list(map(len, encoded))}


COLUMNS = {
    "workerColumns": (
        "incarnations agents names hosts pids languages versions capabilities states residentBytes cpuMilliseconds "
        "free held running suspended sent done clients ids attempts tasks runMilliseconds functions "
        "environments"
    ).split(),
    "agentColumns": (
        "incarnations names hosts pids languages versions residentBytes cpuMilliseconds lagMicroseconds "
        "lastHeartbeatMilliseconds memoryBytes diskBytes movedBytes receivedBytes sentBytes comingBytes "
        "roomBytes"
    ).split(),
    "clientColumns": "incarnations names workers waiting notWaiting objects objectBytes done".split(),
    "functionColumns": "numbers names tasks done failed runNanoseconds bytes clients taskNames".split(),
}


def table(kind: str, *rows: dict[str, int]) -> dict[str, Any]:
    """The field of a table with these rows. Columns that a row does not have are 0."""
    return {kind: {column: [row.get(column, 0) for row in rows] for column in COLUMNS[kind]}} if rows else {}


def history_frame(first: int, rows: list[dict[str, Any]], incarnation: int = INCARNATION, topic: bytes = b"") -> bytes:
    """Rows of history. `name`, `function`, `error`, `traceback`, `wait_reasons` are texts, others numbers."""
    texts = Texts()
    numbers = ("kinds", "times", "clients", "ids", "attempts", "workers", "outcomes", "durations")
    columns = {column: [row.get(column, 0) for row in rows] for column in numbers}
    columns |= {"names": [texts(row.get("name", "")) for row in rows]}
    if any("function" in row for row in rows):
        columns |= {"functions": [texts(row.get("function", row.get("name", ""))) for row in rows]}
    columns |= {"errors": [texts(row.get("error", "")) for row in rows]}
    if any("traceback" in row for row in rows):
        columns |= {"tracebacks": [texts(row.get("traceback", "")) for row in rows]}
    columns |= {"incarnation": [incarnation], "first": [first]}
    if any("wait_reasons" in row for row in rows):
        columns |= {"waitReasons": [texts(row.get("wait_reasons", "")) for row in rows]}
    field = texts.field()
    return (topic or b"history\0") + message_of("history", text=field["text"], sizes=field["sizes"], **columns)


POOLS = [
    {"name": "large", "wanted": 12, "booting": 3, "there": 8, "draining": 1, "failed": 5, "late": 2, "left": 1,
     "isResting": True, "problem": "hosts could not be started: no route", "problemSeconds": 90},
    {"name": "here", "wanted": 1, "there": 1},
]  # fmt: skip
"""Pools of an autoscaler, for the field `pools`."""


def busy(sequence: int = 1, seconds: float = 60.0, **fields: Any) -> bytes:
    """A snapshot with an example of everything."""
    texts = Texts()
    worker = {"agents": 33, "hosts": texts("node-7"), "free": 90, "held": 10, "residentBytes": 1000}
    worker |= {"versions": texts("1.0.0"), "languages": texts("python 3.11.7")}
    runs = {"running": 1, "clients": 11, "ids": 17, "attempts": 2, "tasks": texts("fit"), "runMilliseconds": 2500}
    workers = [
        {**worker, "incarnations": 1, "names": texts("node-7-a"), "states": 1, "held": 0, "free": 100},
        {**worker, "incarnations": 2, "names": texts("node-7-b"), "states": 1 | 2, "residentBytes": 3 << 20},
        {
            **worker,
            "incarnations": 3,
            "names": texts("node-8-a"),
            "states": 1 | 2 | 4,
            "hosts": texts("node-8"),
            **runs,
        },
        {**worker, "incarnations": 4, "names": texts("node-7-\x1b[31m"), "states": 2 | 8, "done": 3},
    ]
    agent = {"incarnations": 33, "hosts": texts("node-7"), "residentBytes": 24, "lagMicroseconds": 350}
    agent |= {"memoryBytes": 1 << 20, "diskBytes": 1 << 21, "movedBytes": 1 << 22}
    agent |= {"receivedBytes": 1 << 23, "sentBytes": 1 << 24, "comingBytes": 1 << 25, "roomBytes": 1 << 62}
    agent |= {"lastHeartbeatMilliseconds": round((seconds - 1) * 1000)}
    clients = [
        {"incarnations": 11, "names": texts("fit.py[47]@node-1"), "waiting": 3},
        {"incarnations": 12, "names": texts("nested"), "workers": 2},
    ]
    functions = [
        {"numbers": 1, "names": texts("fit"), "tasks": 4, "done": 10, "failed": 1, "runNanoseconds": 2_500_000_000},
        {"numbers": 2, "names": texts('a "b"\\\n{c}'), "tasks": 1},
        {"numbers": 3, "names": texts("fit"), "tasks": 1, "done": 5},
    ]
    return snapshot_frame(
        sequence,
        seconds,
        unixMilliseconds=round((1_700_000_000 + seconds) * 1000),
        address="tcp://127.0.0.1:2345",
        waiting=3, dispatched=40, blocked=2, running=5, suspended=1, resolved=115,
        outcomes=[100, 10, 0, 0, 0, 5], functions=3, objects=7, clients=2, workers=4, agents=1,
        received=[{"name": "results", "count": 10}], sent=[{"name": "dispatch", "count": 8}],
        dropped=[{"name": "late", "count": 2}],
        deaths=[{"name": "signal 9", "count": 2}, {"name": "lease", "count": 1}], retries=4,
        shares=[
            {"name": "ada", "weight": 3.0, "clients": 2, "waiting": 3, "running": 5, "usedMilliseconds": 2500},
            {"name": "bob@node-1", "weight": 1.0, "clients": 1},
        ],
        limits=[{"name": "db", "most": 10, "running": 4, "waiting": 2}],
        resources=[
            {"host": "node-7", "name": "gpu", "total": 4000, "booked": 1500, "reserved": 1000, "free": 2500},
            {"host": "node-7", "name": "gpu", "total": 1000, "booked": 0, "reserved": 0, "free": 1000},
        ],
        resourcesWaiting=3, reservationMilliseconds=2500,
        waitingBytes=1 << 20, objectBytes=1 << 21, memoryLimitBytes=1 << 30,
        dispatchLatencies=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1], dispatchLatencyMicroseconds=4000,
        process={
            "interpreter": "PyPy 7.3.11", "host": "node-1", "residentBytes": 9 << 20, "cpuMilliseconds": 12_345,
            "loopTurns": 7, "loopMicroseconds": 1500, "loopDurations": [1, 0, 2, 0, 0, 3, *[0] * 25, 1],
            "monitorMicroseconds": 5000,
        },
        **table("workerColumns", *workers), **table("agentColumns", agent), **table("functionColumns", *functions),
        **table("clientColumns", *clients),
        texts=texts.field(),
        **fields,
    )  # fmt: skip
