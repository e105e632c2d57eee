"""The effect that each golden message for a peer says. Runs under PyPy and CPython."""

from __future__ import annotations

from typing import Any, Callable, Dict

from tests.wire.vectors import BY_NAME, Vector

from scaler_scheduler.core import effects
from scaler_scheduler.wire.encode import Identity

ROUTE = b"route"


def identity() -> Identity:
    """The scheduler of the golden messages."""
    fields = BY_NAME["welcome"].fields
    return Identity(fields["incarnation"], fields["version"])


def batch(effect: Any, vector: Vector) -> Any:
    rows = len(vector.fields["ids"])
    for field in {"clients", "ids", "attempts", "functions", "outcomes"} & set(vector.fields):
        setattr(effect, field, vector.column(field, rows))
    for row, (size, payload) in enumerate(zip(vector.column("sizes", rows), vector.payloads())):
        if row in vector.fields.get("large", []):
            effect.rows.append_large(payload)
        else:
            effect.rows.append_run([size], payload)
    return effect


def _refused(fields: Dict[str, Any]) -> effects.Effect:
    reason = {"protocolVersion": effects.REFUSED_PROTOCOL_VERSION, "malformedHello": effects.REFUSED_MALFORMED_HELLO}
    return effects.Refused(ROUTE, reason[fields["reason"]], fields["text"])


_BY_MESSAGE: Dict[str, Callable[[Dict[str, Any]], effects.Effect]] = {
    "welcome": lambda fields: effects.Welcome(ROUTE, fields["peer"], fields["leaseMilliseconds"]),
    "refused": _refused,
    "helloWanted": lambda fields: effects.HelloWanted(ROUTE),
    "goodbye": lambda fields: effects.Goodbye(ROUTE, fields["reason"]),
    "heartbeatEcho": lambda fields: effects.HeartbeatEcho(ROUTE, fields["sequence"]),
    "forgetFunctions": lambda fields: effects.ForgetFunctions(ROUTE, fields["numbers"]),
    "started": lambda fields: effects.Started(ROUTE, fields["ids"]),
    "cancelRefused": lambda fields: effects.CancelRefused(ROUTE, fields["ids"]),
    "error": lambda fields: effects.Error(ROUTE, fields["text"]),
}


def effect_of(vector: Vector) -> effects.Effect:
    fields = vector.fields
    if vector.message == "dispatch":
        return batch(effects.Dispatch(ROUTE), vector)
    if vector.message == "resolved":
        return batch(effects.Resolved(ROUTE), vector)
    if vector.message == "function":
        return effects.Function(ROUTE, fields["number"], fields["name"], fields["serializer"], vector.frames[1])
    return _BY_MESSAGE[vector.message](fields)
