"""The effect of each golden message for a peer. Runs under PyPy and CPython."""

from __future__ import annotations

from typing import Any, Callable

from tests.wire.vectors import BY_NAME, Vector

from scaler_scheduler.core import effects
from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.wire.encode import Identity

ROUTE = b"route"


def identity() -> Identity:
    """The scheduler of the golden messages."""
    fields, clock = BY_NAME["welcome"].fields, BY_NAME["heartbeat-echo-hosts"].fields["unixMilliseconds"]
    return Identity(fields["incarnation"], fields["version"], lambda: clock)


def batch(effect: Any, vector: Vector) -> Any:
    rows = len(vector.fields["ids"])
    for field in {"clients", "ids", "attempts", "functions", "outcomes"} & set(vector.fields):
        setattr(effect, field, vector.column(field, rows))
    for row, (size, payload) in enumerate(zip(vector.column("sizes", rows), vector.payloads())):
        if row in vector.fields.get("large", []):
            effect.rows.append_large(payload)
        else:
            effect.rows.append_run([size], payload)
    special = [vector.column(field, rows) for field in ("flags", "depths", "priorities") if field in vector.fields]
    if special:
        flags, depths, priorities = special
        numbers = enumerate(zip(flags, depths, map(signed, priorities)))
        effect.row_options = {row: of_row for row, of_row in numbers if any(of_row)}
    profiles = [vector.column(field, rows) for field in ("durations", "cpuTimes", "peaks") if field in vector.fields]
    if profiles:
        effect.profiles = {row: of_row for row, of_row in enumerate(zip(*profiles)) if any(of_row)}
    if "names" in vector.fields:
        effect.names = {row: name for row, name in enumerate(vector.names()) if name}
    if "bookings" in vector.fields:
        effect.bookings = [(row, row + 1, text) for row, text in enumerate(vector.bookings()) if text]
    inputs = vector.inputs()
    if inputs:
        effect.inputs, effect.input_sources = inputs["inputs"], inputs["inputSources"]
        effect.inline_sizes = inputs.get("inlineSizes", [0] * len(effect.inputs))
        effect.input_counts = {row: count for row, count in enumerate(inputs["inputCounts"]) if count}
    return effect


def signed(number: int) -> int:
    """The signed value of a 32-bit two's complement."""
    return number - (number >> 31 << 32)


def _output(vector: Vector) -> effects.Output:
    effect = effects.Output(ROUTE, sum(vector.fields.get("dropped", [])))
    effect.ids = vector.fields.get("ids", [])
    rows = len(effect.ids)
    effect.streams, effect.labels, effect.sizes = (vector.column(name, rows) for name in ("streams", "labels", "sizes"))
    effect.texts = [label + lines for label, lines in vector.printed()]
    return effect


def _refused(fields: dict[str, Any]) -> effects.Effect:
    reason = {"protocolVersion": effects.REFUSED_PROTOCOL_VERSION, "malformedHello": effects.REFUSED_MALFORMED_HELLO}
    return effects.Refused(ROUTE, reason[fields["reason"]], fields["text"])


_BY_MESSAGE: dict[str, Callable[[dict[str, Any]], effects.Effect]] = {
    "welcome": lambda fields: effects.Welcome(
        ROUTE,
        fields["leaseMilliseconds"],
        fields.get("credit", 0),
        fields.get("resultWindow", 0),
        fields.get("messageSizeLimit", 0),
        fields.get("workers", 0),
        fields.get("takesFiles", False),
    ),
    "refused": _refused,
    "helloWanted": lambda fields: effects.HelloWanted(ROUTE),
    "shutdown": lambda fields: effects.Shutdown(ROUTE),
    "goodbye": lambda fields: effects.Goodbye(ROUTE, fields["reason"]),
    "heartbeatEcho": lambda fields: effects.HeartbeatEcho(
        ROUTE,
        fields["sequence"],
        fields.get("isDrained", False),
        fields.get("workers", 0),
        [effects.Host(*host.values()) for host in fields.get("hosts", [])],
        fields.get("packages", []),
        fields.get("ticket", ""),
    ),
    "forgetFunctions": lambda fields: effects.ForgetFunctions(ROUTE, fields["numbers"]),
    "started": lambda fields: effects.Started(ROUTE, fields["ids"]),
    "cancelRefused": lambda fields: effects.CancelRefused(ROUTE, fields["ids"]),
    "error": lambda fields: effects.Error(ROUTE, fields["text"], fields.get("tasks", ())),
    "notice": lambda fields: effects.Notice(ROUTE, fields["text"]),
    "endWorker": lambda fields: effects.EndWorker(
        ROUTE, fields["incarnation"], fields["client"], fields["id"], fields["attempt"], fields["reason"]
    ),
    "contentsWanted": lambda fields: effects.ContentsWanted(ROUTE, fields["names"]),
    "changeWorker": lambda fields: effects.ChangeWorker(ROUTE, fields["worker"], fields["environment"], fields["mode"]),
    "credit": lambda fields: effects.Credit(ROUTE, fields["bytes"]),
}


def _name(fields: dict[str, Any]) -> dict[str, int]:
    return {"client": fields["client"], "task_id": fields["id"], "attempt": fields["attempt"]}


def effect_of(vector: Vector) -> effects.Effect:
    fields = vector.fields
    if vector.message == "dispatch":
        return batch(effects.Dispatch(ROUTE), vector)
    if vector.message == "resolved":
        return batch(effects.Resolved(ROUTE), vector)
    if vector.message in ("retract", "stop"):
        kind = effects.Retract if vector.message == "retract" else effects.Stop
        return kind(ROUTE, *(vector.column(name, len(fields["ids"])) for name in ("clients", "ids", "attempts")))
    if vector.message == "function":
        return effects.Function(ROUTE, fields["number"], fields["name"], fields["kind"], vector.frames[1])
    if vector.message == "object":
        return effects.Object(ROUTE, fields["client"], fields["id"], fields["name"], vector.frames[1:])
    if vector.message == "forgetObjects":
        return effects.ForgetObjects(ROUTE, vector.column("clients", len(fields["ids"])), fields["ids"])
    if vector.message == "output":
        return _output(vector)
    if vector.message == "transferObjects":
        transfer = effects.TransferObjects(ROUTE, fields["source"], DataAddress(*fields["data"].values()))
        transfer.ids = fields["ids"]
        transfer.clients, transfer.bytes = (vector.column(name, len(transfer.ids)) for name in ("clients", "bytes"))
        return transfer
    if vector.message == "environment":
        about = fields["name"], fields["contents"], fields["bytes"], fields["level"], fields["platform"]
        return effects.Environment(ROUTE, *about, vector.frames[1])
    if vector.message == "contents":
        return effects.Contents(ROUTE, vector.frames[1:])
    if vector.message == "gangMember":
        return effects.GangMember(ROUTE, **_name(fields), rank=fields["rank"], hosts=fields["hosts"])
    if vector.message == "exchange":
        begin, values = 0, []
        for size in fields["sizes"]:
            values.append(fields["payload"][begin : begin + size])
            begin += size
        ended = fields.get("ended", 0)
        return effects.Exchange(ROUTE, **_name(fields), round_number=fields["round"], values=values, ended=ended)
    if vector.message == "fetchObjects":
        return effects.FetchObjects(ROUTE, vector.column("clients", len(fields["ids"])), fields["ids"])
    return _BY_MESSAGE[vector.message](fields)
