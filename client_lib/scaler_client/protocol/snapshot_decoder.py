"""Topics of published messages, and the decoder of snapshots.

A snapshot comes once a second and may have thousands of rows. So it is decoded column by column, without an object per
row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate
from struct import Struct
from typing import Any, TypeVar

from .snapshots import (
    AgentColumns,
    ClientColumns,
    FunctionColumns,
    HostPool,
    Need,
    ObjectColumns,
    PoolState,
    SchedulerProcess,
    Share,
    Snapshot,
    TaskLimit,
    WorkerColumns,
)

TOPIC_BYTES = 8
SNAPSHOT_TOPIC = b"snapshot"
HISTORY_TOPIC = b"history\0"
GRAPHS_TOPIC = b"graphs\0\0"
"""A published frame begins with the kind of its message: the name of the union's member, in eight bytes."""

STORY_TOPIC = b"story\0\0\0"
"""The topic of the answer about a single task begins with this, see `story_topic`."""

ANY_CLIENT = 0
"""In a question about a task: the tasks of all clients with this id. Incarnations begin at 1."""

_TASK = Struct("<8sQQ")

_Table = TypeVar("_Table", WorkerColumns, AgentColumns, ClientColumns, FunctionColumns, ObjectColumns)


def story_topic(client: int, task_id: int) -> bytes:
    """Return the topic for a question about one task. A subscription to it gets one History of this task.

    Args:
        client: the incarnation of the task's client, or ANY_CLIENT.
    """
    return _TASK.pack(STORY_TOPIC, client, task_id)


def split_topic(frame: bytes) -> tuple[bytes, bytes]:
    """Split a published frame into its topic and the message."""
    size = _TASK.size if frame.startswith(STORY_TOPIC) else TOPIC_BYTES
    return frame[:size], frame[size:]


def task_of(topic: bytes) -> tuple[int, int]:
    """Return client and id of the task in a topic of `story_topic`."""
    _, client, task_id = _TASK.unpack(topic)
    return client, task_id


def read_snapshot(snapshot: Any) -> Snapshot:
    """Decode a Snapshot.

    Args:
        snapshot: the struct of the schema, from pycapnp.

    Raises:
        ValueError: columns contradict each other.
    """
    texts = split_texts(bytes(snapshot.texts.text), list(snapshot.texts.sizes))
    process = snapshot.process
    return Snapshot(
        version=snapshot.version,
        incarnation=snapshot.incarnation,
        uptime_seconds=snapshot.uptimeMilliseconds / 1000,
        address=snapshot.address,
        waiting=snapshot.waiting,
        dispatched=snapshot.dispatched,
        resolved=snapshot.resolved,
        clients=snapshot.clients,
        workers=snapshot.workers,
        agents=snapshot.agents,
        received=_counters(snapshot.received),
        sent=_counters(snapshot.sent),
        dropped=_counters(snapshot.dropped),
        dropped_times=_times(snapshot.dropped),
        sequence=snapshot.sequence,
        unix_seconds=snapshot.unixMilliseconds / 1000,
        blocked=snapshot.blocked,
        running=snapshot.running,
        suspended=snapshot.suspended,
        outcomes=list(snapshot.outcomes),
        functions=snapshot.functions,
        objects=snapshot.objects,
        process=SchedulerProcess(
            process.interpreter,
            process.host,
            process.pid,
            process.residentBytes,
            process.cpuMilliseconds,
            process.loopTurns,
            process.loopMicroseconds,
            list(process.loopDurations),
            process.monitorMicroseconds,
        ),
        worker_columns=_table(WorkerColumns, "incarnations", snapshot.workerColumns, texts),
        agent_columns=_table(AgentColumns, "incarnations", snapshot.agentColumns, texts),
        client_columns=_table(ClientColumns, "incarnations", snapshot.clientColumns, texts),
        function_columns=_table(FunctionColumns, "numbers", snapshot.functionColumns, texts),
        object_columns=_table(ObjectColumns, "ids", snapshot.objectColumns, texts),
        deaths=_counters(snapshot.deaths),
        death_times=_times(snapshot.deaths),
        retries=snapshot.retries,
        dispatch_latencies=list(snapshot.dispatchLatencies),
        dispatch_latency_microseconds=snapshot.dispatchLatencyMicroseconds,
        waiting_bytes=snapshot.waitingBytes,
        object_bytes=snapshot.objectBytes,
        memory_limit_bytes=snapshot.memoryLimitBytes,
        unschedulable=snapshot.unschedulable,
        unreachable_hosts=_counters(snapshot.unreachableHosts),
        shares=[
            Share(
                row.name,
                row.weight,
                row.clients,
                row.waiting,
                row.running,
                row.usedMilliseconds / 1000,
                row.maxRunning,
                row.maxWaiting,
            )
            for row in snapshot.shares
        ],
        limits=[TaskLimit(row.name, row.most, row.perSecond, row.running, row.waiting) for row in snapshot.limits],
        resources=[
            HostPool(row.host, row.name, row.total, row.booked, row.reserved, row.free, row.agent)
            for row in snapshot.resources
        ],
        resources_waiting=snapshot.resourcesWaiting,
        reservation_seconds=snapshot.reservationMilliseconds / 1000,
        needs=[
            Need(
                row.capabilities,
                row.kind,
                list(row.limits),
                row.waiting,
                row.unknown,
                row.milliseconds / 1000,
                {each.name: each.amount for each in row.resources},
                row.held,
            )
            for row in snapshot.needs
        ],
        pools=[
            PoolState(
                row.name,
                row.wanted,
                row.booting,
                row.there,
                row.draining,
                row.failed,
                row.late,
                row.left,
                row.isResting,
                row.problem,
                row.problemSeconds,
            )
            for row in snapshot.pools
        ],
    )


def _counters(entries: Any) -> dict[str, int]:
    return {entry.name: entry.count for entry in entries}


def _times(entries: Any) -> dict[str, float]:
    return {entry.name: entry.lastMilliseconds / 1000 for entry in entries if entry.lastMilliseconds}


def split_texts(text: bytes, sizes: Sequence[int]) -> list[str]:
    """Split concatenated UTF-8 texts.

    Args:
        text: the concatenation.
        sizes: the bytes of each text.

    Raises:
        ValueError: the sizes do not add up to the length of `text`.
    """
    if sum(sizes) != len(text):
        raise ValueError(f"texts of {len(text)} bytes, but {sum(sizes)} are announced")
    ends = accumulate(sizes)
    return [text[end - size : end].decode("utf-8", "replace") for end, size in zip(ends, sizes)]


def _table(kind: type[_Table], key: str, struct: Any, texts: Sequence[str]) -> _Table:
    """Return a table with texts in place of their numbers. All columns get the length of the column `key`."""
    table = kind()
    rows = len(getattr(struct, key))
    for attribute, name, is_text in _COLUMNS[kind]:
        column = list(getattr(struct, name))
        if not column:  # a column that an older scheduler does not have
            setattr(table, attribute, ([""] if is_text else [0]) * rows)
            continue
        if len(column) == 1:
            column *= rows
        elif len(column) != rows:
            raise ValueError(f"column {name} has {len(column)} elements for {rows} rows")
        if is_text:
            if column and max(column) >= len(texts):
                raise ValueError(f"column {name} names text {max(column)} of {len(texts)}")
            column = [texts[number] for number in column]
        setattr(table, attribute, column)
    return table


def _camel_case(name: str) -> str:
    return re.sub("_([a-z])", lambda letter: letter.group(1).upper(), name)


_COLUMNS = {
    kind: [(field.name, _camel_case(field.name), field.type == "list[str]") for field in fields(kind)]
    for kind in (WorkerColumns, AgentColumns, ClientColumns, FunctionColumns, ObjectColumns)
}
"""For each table, by column: the attribute, the name in the schema, and whether it holds texts."""
