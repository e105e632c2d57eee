"""Writes the last part of PROTOCOL.md, a table of every field, from the schema: what it says of each is its comment.

make schema calls it; tests/wire/test_protocol_document.py compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PROTOCOL = Path(__file__).resolve().parents[1] / "scheduler_daemon" / "protocol"
BEGIN, END = "<!-- generated from scaler.capnp by make schema -->\n", "<!-- end of what is generated -->\n"


DEFAULT_MEANINGS = {
    "address": "that it is bound to",
    "agents": "how many there are",
    "attempt": "of the task",
    "attempts": "of the tasks, a row each",
    "bytes": "of its content",
    "clients": "incarnations of the clients whose they are, a row each",
    "cpuMilliseconds": "user and system time since the process started",
    "count": "since the start",
    "failed": "of those, ended without a value",
    "host": "its name, for people",
    "id": "of the task",
    "ids": "of the tasks or objects, a row each",
    "incarnation": "whose",
    "incarnations": "theirs",
    "inputCounts": "how many inputs each row has; empty: none has any",
    "large": "rows whose payloads travel in frames of their own, ascending",
    "name": "what is counted",
    "numbers": "the functions'",
    "objects": "how many there are",
    "outcomes": "Outcome's ordinals",
    "payload": "the rows' payloads, behind one another",
    "peaks": "bytes",
    "cpuTimes": "nanoseconds",
    "pid": "of its process",
    "pids": "of their processes",
    "process": "the scheduler's own",
    "protocolVersion": "the sender's",
    "reason": "why, for people",
    "residentBytes": "of the process; 0: not known",
    "runMilliseconds": "for how long it runs",
    "sent": "likewise, those that the scheduler has sent",
    "sequence": "that of the heartbeat",
    "sizes": "bytes of each row's payload",
    "suspended": "of these, suspended",
    "text": "for people, and logs",
    "texts": "which the columns name by numbers",
    "uptimeMilliseconds": "since its start",
    "version": "of the sender's software, for people",
    "workers": "how many there are",
    **{f"{each}Columns": "a row each" for each in ("agent", "client", "function", "object", "worker")},
    "client": "submits tasks",
    "worker": "runs them",
    "agent": "minds the workers of a host",
    "role": "fixed for the connection",
    "malformedHello": "an incarnation of 0, or of 2^63 and more",
    "notAuthorized": "the connection's key is not for that, or no longer",
    "dispatched": "to a worker",
    "ended": "over, or tried again",
}
"""What fields mean of which the schema's comments say nothing."""


class Field(NamedTuple):
    name: str
    type: str
    """None of an enum's members."""
    meaning: str


class Definition(NamedTuple):
    kind: str
    """struct or enum."""
    name: str
    meaning: str
    fields: list[Field]


def definitions(schema: str) -> list[Definition]:
    """What the schema defines, in its order."""
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
            field._replace(meaning=field.meaning or DEFAULT_MEANINGS.get(field.name, "")) for field in definition.fields
        ]
    return [definition for definition in found if definition.name != "Message"]


def message_names(schema: str) -> list[str]:
    """Of the union of messages."""
    union = schema[schema.index("union {") : schema.index("}\n}")]
    return re.findall(r"^\s+(\w+) @\d+", union, re.MULTILINE)


def tables(schema: str) -> str:
    """The part of the document, between its marks."""
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
    """The document with what is generated made anew."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + tables(schema) + after


if __name__ == "__main__":
    document = PROTOCOL / "PROTOCOL.md"
    schema = (PROTOCOL / "scaler.capnp").read_text("utf-8")
    document.write_text(with_field_tables(document.read_text("utf-8"), schema), "utf-8")
