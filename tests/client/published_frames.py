"""Frames as a scheduler publishes them, for readers under test."""

from __future__ import annotations

from typing import Any

from tests.schema_messages import message_of

INCARNATION = 5


def snapshot_frame(sequence: int, seconds: float, **fields: Any) -> bytes:
    """A snapshot made when the scheduler was up for so long. Tables: see `table`."""
    fields = {"protocolVersion": 1, "version": "1.0.0", "incarnation": INCARNATION, **fields}
    return b"snapshot" + message_of("snapshot", sequence=sequence, uptimeMilliseconds=round(seconds * 1000), **fields)


class Texts:
    """The texts of one snapshot, by number; 0 is the empty one."""

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
        "free held running suspended sent done clients ids attempts tasks runMilliseconds"
    ).split(),
    "agentColumns": (
        "incarnations names hosts pids languages versions residentBytes cpuMilliseconds lagMicroseconds "
        "heardMilliseconds"
    ).split(),
    "clientColumns": "incarnations names workers waiting others objects objectBytes done".split(),
    "functionColumns": "numbers names tasks done failed runNanoseconds bytes clients".split(),
}


def table(kind: str, *rows: dict[str, int]) -> dict[str, Any]:
    """The field of that table with these rows; what a row does not say is 0."""
    return {kind: {column: [row.get(column, 0) for row in rows] for column in COLUMNS[kind]}} if rows else {}


def history_frame(first: int, rows: list[dict[str, Any]], incarnation: int = INCARNATION, topic: bytes = b"") -> bytes:
    """Rows of what has happened; `name` and `error` are texts, the others numbers."""
    texts = Texts()
    numbers = ("kinds", "times", "clients", "ids", "attempts", "workers", "outcomes", "durations")
    columns = {column: [row.get(column, 0) for row in rows] for column in numbers}
    columns |= {"names": [texts(row.get("name", "")) for row in rows]}
    columns |= {"errors": [texts(row.get("error", "")) for row in rows]}
    columns |= {"incarnation": [incarnation], "first": [first]}
    field = texts.field()
    return (topic or b"history\0") + message_of("history", text=field["text"], sizes=field["sizes"], **columns)
