"""Artificial snapshots of a scheduler, and a reader that has received them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from scaler_client.monitor.snapshot_view import SnapshotView, build_view, cpu_usages
from scaler_client.protocol.snapshots import (
    AgentColumns,
    ClientColumns,
    FunctionColumns,
    ObjectColumns,
    PoolState,
    SchedulerProcess,
    Share,
    Snapshot,
    TaskLimit,
    WorkerColumns,
)

Table = TypeVar("Table", WorkerColumns, AgentColumns, ClientColumns, FunctionColumns, ObjectColumns)

AGENT = 900
NESTED = 501
FIRST_WORKER = 1000


SHARES = [
    Share("ana", 3.0, 2, 1234000, 30, 900.0, 40, 2000000),
    Share("ben@desk", 1.0, 1, 567, 10, 300.0, 0, 0),
]


def completed(table: Table) -> Table:
    """Fill the columns that have no values with zeros, as the decoder does. All get the length of the first column."""
    rows = len(getattr(table, fields(table)[0].name))
    for field in fields(table):
        if not getattr(table, field.name):
            setattr(table, field.name, ["" if field.type == "list[str]" else 0] * rows)
    return table


def workers(number: int, second: int) -> WorkerColumns:
    """Workers on hosts of 32. Those with an even number run a task."""
    columns = WorkerColumns()
    for row in range(number):
        is_busy = row % 2 == 0
        values: dict[str, Any] = {
            "incarnations": FIRST_WORKER + row,
            "agents": AGENT + row // 32,
            "names": f"node-{row // 32:02}-{4711 + row // 32}-{row}",
            "hosts": f"node-{row // 32:02}",
            "pids": 5000 + row,
            "languages": "python 3.11.7",
            "versions": "0.1.0",
            "capabilities": "gpu=1 linux=1" if row % 5 == 0 else "",
            "states": 3 if is_busy else 1,
            "resident_bytes": (30 + row % 90) << 20,
            "cpu_milliseconds": second * (row * 37 % 100) * 10,
            "free": 1000 - row % 7,
            "held": row % 7 + is_busy,
            "running": int(is_busy),
            "suspended": int(is_busy and row % 7 > 2),
            "sent": 100 * row + 1000 * second,
            "done": 100 * row + (1000 - row) * second,
            "clients": 500,
            "ids": row,
            "attempts": int(is_busy),
            "tasks": "price_options" if row % 4 else "aktualisiere\x1b[2J_größen_数値計算",
            "run_milliseconds": row * 250,
            "environments": "5c1f0a9d2b3e" * 5 if row % 3 == 0 else "",
        }
        for name, value in values.items():
            getattr(columns, name).append(value)
    return columns


def agents(number: int, second: int) -> AgentColumns:
    columns = AgentColumns()
    for row in range((number + 31) // 32):
        values = (AGENT + row, f"node-{row:02}-{4711 + row}", f"node-{row:02}", 4711 + row, "python 3.11.7", "0.1.0")
        number_format = (130 << 20, second * 5, 400 + row * 200, (3600 + second) * 1000 - 300)
        for column, value in zip(vars(columns).values(), (*values, *number_format)):
            column.append(value)
    return columns


def snapshot(workers_: int, second: int, incarnation: int = 7) -> Snapshot:
    return Snapshot(
        version="0.1.0",
        incarnation=incarnation,
        uptime_seconds=float(3600 + second),
        address="tcp://127.0.0.1:2345",
        waiting=1234567,
        dispatched=4 * workers_,
        resolved=1000000 + 2500 * second,
        clients=3,
        workers=workers_,
        agents=(workers_ + 31) // 32,
        received={"heartbeat": 283700 + second, "results": 41000 + 130 * second, "submit": 215, "hello": 9},
        sent={"heartbeat_echo": 283700 + second, "dispatch": 39000 + 120 * second, "credit": 233, "welcome": 9},
        dropped={"malformed": 2},
        sequence=second,
        unix_seconds=1700000000.0 + second,
        blocked=12,
        running=workers_ // 2,
        suspended=workers_ // 4,
        outcomes=[1000000 + 2490 * second, 17, 0, 0, 0, 2, 31],
        functions=3,
        objects=2,
        process=SchedulerProcess(
            "PyPy 7.3.11 (Python 3.9.16)", "head-1", 321, 136_418_099, 377 * second, 90 * second, 123456 * second
        ),
        worker_columns=completed(workers(workers_, second)),
        agent_columns=completed(agents(workers_, second)),
        client_columns=completed(ClientColumns(
            [500, NESTED, 502], ["report.py[77]@desk", "tasks of node-00-4242-0", "notebook"], [0, 1000, 0],
            [1234000, 0, 567], [40, 3, 0], [2, 0, 0], [8 << 20, 0, 0], [900000 + 2500 * second, 12, 3],
        )),
        function_columns=completed(FunctionColumns(
            [1, 2, 3],
            ["price_options", "aktualisiere\x1b[2J_größen_数値計算", "a_function_with_a_name_that_goes_on_and_on"],
            [1230000, 4567, 0], [900000 + 2000 * second, 100000 + 490 * second, 3], [17, 0, 3],
            [10**12, 10**10, 5 * 10**9], [4096, 512, 99], [2, 1, 1], ["", "", "nightly"],
        )),
        shares=SHARES,
        limits=[TaskLimit("api", 0, 0.5, 1, 70), TaskLimit("db", 10, 0.0, 10, 5000)],
        pools=[
            PoolState("big", 3, 1, 2, 0, problem="no route", problem_seconds=90),
            PoolState("spot", 9, 0, 0, 4, failed=12, late=1, is_resting=True),
        ],
        object_columns=completed(ObjectColumns([500, 500], [1, 2], ["numbers", ""], [8 << 20, 300], [1000, 0], [1, 9])),
    )  # fmt: skip


def view(workers_: int = 7) -> SnapshotView:
    """The second of two snapshots, so that there are rates and percentages."""
    before, now = snapshot(workers_, 1), snapshot(workers_, 2)
    return build_view(now, before, cpu_usages(now, cpu_usages(before, {})))


class Reader:
    """The part of a MonitorReader that the screen reads."""

    def __init__(
        self, presence: Any, since: float = 0.0, shown: SnapshotView | None = None, schedulers: int = 1
    ) -> None:
        self.presence = presence
        self.since = since
        self.view = shown
        self.problem = ""
        self.schedulers = schedulers


def text_of(lines: list[Any]) -> list[str]:
    """The lines without styles."""
    return ["".join(text for _, text in line) for line in lines]
