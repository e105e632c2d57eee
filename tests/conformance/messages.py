"""Reads messages by the schema alone, and checks what holds for each message in every conversation."""

from __future__ import annotations

from typing import Any, NamedTuple

import capnp
from tests.conformance.findings import must
from tests.schema_messages import SCHEMA

NUMBER_LIMIT = 1 << 63
MAX_PAYLOAD_BYTES = 1 << 28
BATCHES = ("submit", "dispatch", "results", "resolved", "objects")
FULL = (
    "ids", "inputs", "keepEarlier", "payload", "large", "names", "options", "numbers",
    "text", "dropped", "force", "bookings",
)  # fmt: skip
"""Fields of batches that are not constant columns."""
MAY_BE_EMPTY = (
    "inputCounts", "keep", "flags", "depths", "priorities", "inputSources", "inlineSizes", "nameSizes", "cpuTimes",
    "peaks", "errorSizes", "tracebackSizes", "calls", "rowBookings",
)  # fmt: skip

Name = tuple[int, int, int]
"""A dispatched task: the incarnation of its client, its id, its attempt."""


class Received(NamedTuple):
    kind: str
    fields: dict[str, Any]
    frames: list[bytes]

    def column(self, field: str) -> list[int]:
        """Return a column at full length."""
        values: list[int] = self.fields[field]
        return values * len(self.fields["ids"]) if len(values) == 1 else values

    def payloads(self) -> list[bytes]:
        """Return the payload of each row."""
        alone = dict(zip(self.fields["large"], self.frames))
        joined, taken = self.fields["payload"], []
        for row, size in enumerate(self.column("sizes")):
            taken.append(alone.get(row, joined[:size]))
            joined = joined[size:]
        return taken

    def names(self) -> list[Name]:
        return list(zip(self.column("clients"), self.fields["ids"], self.column("attempts")))


def read(frames: list[bytes]) -> Received:
    """Read the message in these frames, and check it.

    Raises:
        WrongError: the frames are not a message, or the message contradicts itself.
    """
    try:
        with SCHEMA.Message.from_bytes(frames[0], traversal_limit_in_words=1 << 27) as message:
            kind = message.which()
            body = getattr(message, str(kind))
            fields = {} if body is None else {name: _plain(getattr(body, name)) for name in body.schema.fieldnames}
    except (capnp.KjException, RuntimeError, ValueError) as error:
        must(False, f"{frames[0][:60]!r} is not a Message: {error}")
    received = Received(str(kind), fields, frames[1:])
    _check_columns(received)
    return received


def _plain(value: Any) -> Any:
    if isinstance(value, (capnp.lib.capnp._DynamicListReader, list)):
        return [_plain(each) for each in value]
    if isinstance(value, capnp.lib.capnp._DynamicStructReader):
        return {name: _plain(getattr(value, name)) for name in value.schema.fieldnames}
    if isinstance(value, capnp.lib.capnp._DynamicEnum):
        return str(value)
    return value


def _check_columns(received: Received) -> None:
    if received.kind in ("snapshot", "history", "graphs"):  # peers never send these
        return
    fields = received.fields
    if received.kind in BATCHES:
        must(fields["ids"], f"{received.kind} without rows")
    rows = len(fields.get("ids", ()))
    for name, values in fields.items():
        if not isinstance(values, list) or "ids" not in fields or name in FULL:
            continue
        wanted = len(fields["inputs"]) if name in ("inputSources", "inlineSizes") else rows
        may_be_empty = name in MAY_BE_EMPTY or received.kind not in BATCHES
        is_left_out = not values and (may_be_empty or (received.kind, name) == ("resolved", "durations"))
        must(len(values) in (1, wanted) or is_left_out, f"column {name} has {len(values)} elements for {wanted} rows")
        must(all(value < NUMBER_LIMIT for value in values), f"column {name} has a number of 2^63 or more")
    if received.kind in BATCHES:
        _check_payloads(received)
    elif received.kind not in ("function", "object", "objectChunk"):
        told = {"environment": 1, "contents": fields.get("count", 0)}.get(received.kind, 0)
        must(len(received.frames) == told, f"{received.kind} has {len(received.frames)} further frames, not {told}")


def _check_payloads(received: Received) -> None:
    fields, sizes = received.fields, received.column("sizes")
    must(
        sum(sizes) == len(fields["payload"]),
        f"`sizes` add up to {sum(sizes)} bytes, `payload` has {len(fields['payload'])}",
    )
    if received.kind == "results":
        for texts, sizes_of in (("errors", "errorSizes"), ("tracebacks", "tracebackSizes")):
            there, told = len(fields[texts]), sum(received.column(sizes_of))
            must(there == told, f"{sizes_of} add up to {told} bytes, {texts} has {there}")
    must(len(fields["payload"]) <= MAX_PAYLOAD_BYTES, "a payload of more than 2^28 bytes")
    large = fields["large"]
    must(len(large) == len(received.frames), f"{len(received.frames)} frames where `large` has {len(large)} rows")
    must(large == sorted(set(large)) and all(row < len(sizes) for row in large), f"`large` is {large}")
    must(not any(sizes[row] for row in large), "a row of `large` has a size other than 0")
