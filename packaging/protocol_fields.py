"""Writes the last part of PROTOCOL.md: a table of every field, with its comment in the schema as its meaning.

make schema calls it. tests/wire/test_protocol_document.py checks that the tables fit the schema.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PROTOCOL = Path(__file__).resolve().parents[1] / "scheduler_daemon" / "protocol"
BEGIN, END = "<!-- generated from scaler.capnp by make schema -->\n", "<!-- end of what is generated -->\n"


DEFAULT_MEANINGS = {
    "address": "the scheduler's bound address",
    "agents": "number of host agents",
    "attempt": "the attempt of the task",
    "attempts": "for each row, the attempt of the task",
    "bytes": "size of each object's content",
    "clients": "for each row, the incarnation of the client that owns the task or object",
    "ClientColumns.objects": "number of the client's objects",
    "Snapshot.clients": "number of clients",
    "cpuMilliseconds": "user and system time since the start of the process",
    "count": "count since the start of the scheduler",
    "failed": "how many of these results have no value",
    "GraphState.failed": "ended without a value",
    "host": "name of the host, for people",
    "id": "the task's id",
    "ids": "for each row, the id of the task or object",
    "WorkerColumns.ids": "id of the running task",
    "incarnation": "incarnation of the worker",
    "Snapshot.incarnation": "incarnation of the scheduler",
    "incarnations": "the incarnation of each peer",
    "inputCounts": "number of inputs of each row; empty: no row has inputs",
    "large": "rows with payloads in frames of their own, ascending",
    "Counter.name": "name of the counter",
    "EnvironmentReady.name": "as in Environment",
    "Host.name": "name of the host",
    "HostPool.name": "name of the resource",
    "PoolState.name": "name of the pool",
    "TaskLimit.name": "name of the limit",
    "numbers": "numbers of the functions",
    "objects": "number of objects",
    "outcomes": "ordinals of Outcome",
    "payload": "payloads of the rows, one after the other",
    "peaks": "in bytes",
    "cpuTimes": "in nanoseconds",
    "pid": "id of the process",
    "pids": "ids of the processes",
    "process": "the scheduler's process",
    "protocolVersion": "protocol version of the sender",
    "RefusedReason.protocolVersion": "the scheduler has another protocol version",
    "reason": "the reason, for people",
    "Refused.reason": "why the peer is refused",
    "residentBytes": "resident memory of the process; 0: unknown",
    "runMilliseconds": "how long the task has been running",
    "sent": "messages that the scheduler has sent, by type",
    "sequence": "the sequence of the heartbeat",
    "sizes": "size of each row's payload in bytes",
    "suspended": "of `held`: tasks that are suspended",
    "text": "for people and logs",
    "texts": "the texts that columns refer to by number",
    "uptimeMilliseconds": "time since the start of the scheduler",
    "version": "version of the sender's software, for people",
    "workers": "number of workers",
    **{f"{each}Columns": f"one row for each {each}" for each in ("agent", "client", "function", "object")},
    "client": "submits tasks",
    "worker": "runs tasks",
    "agent": "manages the workers of a host",
    "role": "role of the sender, fixed for the connection",
    "malformedHello": "the incarnation is 0, or 2^63 or more",
    "notAuthorized": "the connection's key is not authorized for this role, or was revoked",
    "dispatched": "sent to a worker",
    "ended": "ended, or will be tried again",
}
"""The meanings of fields without a comment in the schema, by the name of the field or by `Struct.field`."""


class Field(NamedTuple):
    """A field of a struct, or a member of an enum."""

    name: str
    type: str
    """Empty for members of an enum."""
    meaning: str


class Definition(NamedTuple):
    """A struct or an enum of the schema."""

    kind: str
    """struct or enum."""
    name: str
    meaning: str
    fields: list[Field]


def default_meaning(definition: str, field: str) -> str:
    """The meaning of a field without a comment; empty if there is none."""
    return DEFAULT_MEANINGS.get(f"{definition}.{field}") or DEFAULT_MEANINGS.get(field, "")


def definitions(schema: str) -> list[Definition]:
    """The structs and enums of the schema, in its order."""
    found: list[Definition] = []
    last: list[str] | None = None
    for line in schema.splitlines():
        code, _, comment = (each.strip() for each in line.partition("#"))
        opened = re.match(r"(struct|enum) (\w+) \{", code)
        if opened:
            found.append(Definition(opened[1], opened[2], comment, []))
        for name, kind, default in re.findall(r"(\w+) @\d+(?: :([\w()]+))?(?: = ([^;]+))?;", code):
            meaning = f"{comment}; {default} unless set" if default else comment
            found[-1].fields.append(Field(name, kind, meaning))
        if not code and comment and found and found[-1].fields and last is not None:
            field = found[-1].fields.pop()
            found[-1].fields.append(field._replace(meaning=f"{field.meaning} {comment}"))
        last = None if not line.strip() else [code]
    for definition in found:
        definition.fields[:] = [
            field._replace(meaning=field.meaning or default_meaning(definition.name, field.name))
            for field in definition.fields
        ]
    return [definition for definition in found if definition.name != "Message"]


def message_names(schema: str) -> list[str]:
    """The names in the union of messages."""
    union = schema[schema.index("union {") : schema.index("}\n}")]
    return re.findall(r"^\s+(\w+) @\d+", union, re.MULTILINE)


def tables(schema: str) -> str:
    """The generated part of the document, with its marks."""
    lines = [BEGIN]
    for definition in definitions(schema):
        lines.append(f"\n**`{definition.name}`**{f', {definition.meaning}' if definition.meaning else ''}\n")
        if definition.kind == "enum":
            lines.append("\n| member | ordinal | |\n|---|---|---|\n")
            cells = [(field.name, str(number), field.meaning) for number, field in enumerate(definition.fields)]
        else:
            lines.append("\n| field | type | |\n|---|---|---|\n")
            cells = [(field.name, field.type, field.meaning) for field in definition.fields]
        lines += [f"| `{name}` | {kind} | {meaning.replace('|', chr(92) + '|')} |\n" for name, kind, meaning in cells]
    return "".join([*lines, "\n", END])


def with_field_tables(document: str, schema: str) -> str:
    """The document with an updated generated part."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + tables(schema) + after


if __name__ == "__main__":
    document = PROTOCOL / "PROTOCOL.md"
    schema = (PROTOCOL / "scaler.capnp").read_text("utf-8")
    document.write_text(with_field_tables(document.read_text("utf-8"), schema), "utf-8")
