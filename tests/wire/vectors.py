"""The golden messages in scheduler_daemon/protocol/vectors. Runs under PyPy and CPython."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "scheduler_daemon" / "protocol" / "vectors"

TO_SCHEDULER = {
    "hello", "goodbye", "heartbeat", "function", "forgetFunctions", "submit", "results", "started", "cancel",
    "workerDied", "retracted", "suspended", "resumed", "received", "object", "forgetObjects", "fetchObjects",
    "shutdown", "output", "transferred", "objects", "environment", "contentsWanted", "contents", "environmentReady",
    "exchange", "heldResults",
}  # fmt: skip
TO_PEERS = {
    "welcome", "refused", "helloWanted", "goodbye", "heartbeatEcho", "function", "forgetFunctions", "dispatch",
    "resolved", "started", "cancelRefused", "error", "notice", "snapshot", "retract", "stop", "endWorker", "credit",
    "object", "forgetObjects", "fetchObjects", "shutdown", "output", "history", "graphs",
    "transferObjects", "readObject", "objectChunk", "noObject", "environment", "contentsWanted", "contents",
    "changeWorker", "gangMember", "exchange",
}  # fmt: skip
BETWEEN_AGENTS = {"readObject", "objectChunk", "noObject"}
"""Messages of TO_PEERS that the scheduler does not send."""

DATA = {
    ("objects", "payload"),
    *((batch, "payload") for batch in ("submit", "dispatch", "results", "resolved")),
    ("exchange", "payload"),
    ("output", "text"),
    ("history", "text"),
    ("graphs", "text"),
    ("results", "errors"),
    ("results", "tracebacks"),
    ("dispatch", "names"),
    ("dispatch", "bookings"),
}
"""Fields of type Data, which are hex in JSON."""


class Vector:
    def __init__(self, name: str) -> None:
        described = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
        self.name = name
        self.message: str = described["message"]
        """The name of the union's member."""
        self.fields: dict[str, Any] = {
            field: bytes.fromhex(value) if (self.message, field) in DATA else value
            for field, value in described["fields"].items()
        }
        """Fields by the schema's names. Missing fields have the schema's default."""
        if "texts" in self.fields:
            self.fields["texts"]["text"] = bytes.fromhex(self.fields["texts"]["text"])
        payloads = [(FOLDER / f"{name}.{number + 1}.bin").read_bytes() for number in range(len(described["frames"]))]
        assert [payload.hex() for payload in payloads] == described["frames"]
        self.frames: list[bytes] = [(FOLDER / f"{name}.bin").read_bytes(), *payloads]

    def column(self, field: str, rows: int) -> list[int]:
        """A column at full length."""
        values: list[int] = self.fields.get(field, [])
        return values * rows if len(values) == 1 else values

    def inputs(self) -> dict[str, list[int]]:
        """The columns about inputs and kept results, at full length, without missing ones."""
        lengths = {"inputCounts": len(self.fields["ids"]), "keep": len(self.fields["ids"])}
        lengths["keepEarlier"] = len(self.fields.get("keepEarlier", []))
        every = len(self.fields.get("inputs", []))
        names = [
            name
            for name in ("inputs", "inputCounts", "keep", "keepEarlier", "inputSources", "inlineSizes")
            if name in self.fields
        ]
        return {name: self.column(name, lengths.get(name, every)) for name in names}

    def printed(self) -> list[tuple[bytes, bytes]]:
        """The label and lines of each row."""
        text, rows = self.fields.get("text", b""), len(self.fields.get("ids", []))
        printed = []
        for label, size in zip(self.column("labels", rows), self.column("sizes", rows)):
            printed.append((text[:label], text[label:size]))
            text = text[size:]
        assert not text
        return printed

    def names(self) -> list[str]:
        """The given name of each row. Empty if no row has one."""
        names = self.fields.get("names", b"")
        given = []
        for size in self.column("nameSizes", len(self.fields["ids"])):
            given.append(names[:size].decode())
            names = names[size:]
        assert not names
        return given

    def bookings(self) -> list[str]:
        """The booking of each row; empty: it has none."""
        lines = ["", *self.fields.get("bookings", b"").decode().split("\n")]
        return [lines[line] for line in self.column("rowBookings", len(self.fields["ids"]))]

    def lines(self) -> list[str]:
        """The error of each row of results."""
        return self._texts("errors", "errorSizes")

    def tracebacks(self) -> list[str]:
        """The traceback of each row of results. Empty if no row has one."""
        return self._texts("tracebacks", "tracebackSizes") if "tracebacks" in self.fields else []

    def _texts(self, field: str, sizes: str) -> list[str]:
        text, texts = self.fields[field], []
        for size in self.column(sizes, len(self.fields["ids"])):
            texts.append(text[:size].decode())
            text = text[size:]
        assert not text
        return texts

    def payloads(self) -> list[bytes]:
        """The payload of each row."""
        rows = len(self.fields["ids"])
        large = dict(zip(self.fields.get("large", []), self.frames[1:]))
        joined = self.fields.get("payload", b"")
        payloads = []
        for row, size in enumerate(self.column("sizes", rows)):
            payloads.append(large.get(row, joined[:size]))
            joined = joined[size:]
        assert not joined
        return payloads


ALL = [Vector(path.stem) for path in sorted(FOLDER.glob("*.json"))]
BY_NAME = {vector.name: vector for vector in ALL}


def is_for_scheduler(vector: Vector) -> bool:
    return vector.message in TO_SCHEDULER and vector.name not in _TO_PEERS


def is_for_peers(vector: Vector) -> bool:
    return vector.message in TO_PEERS and vector.name not in (*_FROM_CLIENT, "snapshot-other-version")


_FROM_CLIENT = (
    "forget-objects-from-client",
    "fetch-objects-from-client",
    "object-file-from-client",
    "object-file-of-this-host",
)
_TO_PEERS = {"started-to-client", "output-to-client", "output-nothing-but-dropped"}
"""Numbers of messages that the scheduler forwards."""
