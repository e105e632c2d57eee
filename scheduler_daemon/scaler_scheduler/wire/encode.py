"""Effects -> frames."""

from typing import Any, Callable, Dict, List

from scaler_scheduler.core import effects
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, columns_message, shrunk
from scaler_scheduler.wire.schema import (
    Error,
    Function,
    Goodbye,
    HeartbeatEcho,
    Message,
    Refused,
    RefusedReason,
    Welcome,
)

PROTOCOL_VERSION = 1
"""The schema's `protocolVersion`: capnpy's compiler leaves constants out, a test compares them."""


class Identity:
    """What the scheduler says of itself in a Welcome or a Refused."""

    __slots__ = ("incarnation", "version")

    def __init__(self, incarnation: int, version: str) -> None:
        self.incarnation = incarnation
        self.version = version


def encode(effect: effects.Effect, identity: Identity) -> List[bytes]:
    """The frames of an effect's message, the route's not among them."""
    return _ENCODERS[effect.kind](effect, identity)


def _welcome(effect: Any, identity: Identity) -> List[bytes]:
    welcome = Welcome(
        protocol_version=PROTOCOL_VERSION,
        version=identity.version,
        incarnation=identity.incarnation,
        peer=effect.peer,
        lease_milliseconds=effect.lease_milliseconds,
    )
    return [Message.new_welcome(welcome).dumps()]


def _refused(effect: Any, identity: Identity) -> List[bytes]:
    refused = Refused(
        reason=RefusedReason(effect.reason),
        text=effect.text,
        protocol_version=PROTOCOL_VERSION,
        version=identity.version,
    )
    return [Message.new_refused(refused).dumps()]


def _hello_wanted(effect: Any, identity: Identity) -> List[bytes]:
    return [Message.new_hello_wanted().dumps()]


def _goodbye(effect: Any, identity: Identity) -> List[bytes]:
    return [Message.new_goodbye(Goodbye(reason=effect.reason)).dumps()]


def _heartbeat_echo(effect: Any, identity: Identity) -> List[bytes]:
    return [Message.new_heartbeat_echo(HeartbeatEcho(sequence=effect.sequence)).dumps()]


def _function(effect: Any, identity: Identity) -> List[bytes]:
    function = Function(number=effect.number, name=effect.name, serializer=effect.serializer)
    return [Message.new_function(function).dumps(), effect.payload]


def _forget_functions(effect: Any, identity: Identity) -> List[bytes]:
    return [columns_message(effects.FORGET_FUNCTIONS, ((UINT32, effect.numbers),))]


def _joined(rows: effects.Rows) -> bytes:
    parts = rows.parts
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _dispatch(effect: Any, identity: Identity) -> List[bytes]:
    rows = effect.rows
    frame = columns_message(
        effects.DISPATCH,
        (
            (UINT32, shrunk(effect.clients)),
            (UINT64, effect.ids),
            (UINT32, shrunk(effect.attempts)),
            (UINT32, shrunk(effect.functions)),
            (UINT32, shrunk(rows.sizes)),
            (UINT32, rows.large_rows),
            (UINT8, _joined(rows)),
        ),
    )
    return [frame, *rows.large_frames]


def _resolved(effect: Any, identity: Identity) -> List[bytes]:
    rows = effect.rows
    frame = columns_message(
        effects.RESOLVED,
        (
            (UINT64, effect.ids),
            (UINT8, shrunk(effect.outcomes)),
            (UINT32, shrunk(rows.sizes)),
            (UINT32, rows.large_rows),
            (UINT8, _joined(rows)),
        ),
    )
    return [frame, *rows.large_frames]


def _started(effect: Any, identity: Identity) -> List[bytes]:
    return [columns_message(effects.STARTED, ((UINT32, ()), (UINT64, effect.ids), (UINT32, ())))]


def _cancel_refused(effect: Any, identity: Identity) -> List[bytes]:
    return [columns_message(effects.CANCEL_REFUSED, ((UINT64, effect.ids),))]


def _error(effect: Any, identity: Identity) -> List[bytes]:
    return [Message.new_error(Error(text=effect.text)).dumps()]


_ENCODERS: Dict[int, Callable[[Any, Identity], List[bytes]]] = {
    effects.WELCOME: _welcome,
    effects.REFUSED: _refused,
    effects.HELLO_WANTED: _hello_wanted,
    effects.GOODBYE: _goodbye,
    effects.HEARTBEAT_ECHO: _heartbeat_echo,
    effects.FUNCTION: _function,
    effects.FORGET_FUNCTIONS: _forget_functions,
    effects.DISPATCH: _dispatch,
    effects.RESOLVED: _resolved,
    effects.STARTED: _started,
    effects.CANCEL_REFUSED: _cancel_refused,
    effects.ERROR: _error,
}
