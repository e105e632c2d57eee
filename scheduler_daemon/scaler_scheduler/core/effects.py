"""What comes out of the core, as plain data: a class for each message that the scheduler sends, named as in the schema.

`kind` is the message's ordinal in the schema; `route` is where it goes. Columns are lists or `array.array`s and have
one element where it holds for every row.
"""

from typing import List, Sequence

WELCOME = 1
REFUSED = 2
HELLO_WANTED = 3
GOODBYE = 4
HEARTBEAT_ECHO = 6
FUNCTION = 7
FORGET_FUNCTIONS = 8
DISPATCH = 10
RESOLVED = 12
STARTED = 13
CANCEL_REFUSED = 15
ERROR = 17

REFUSED_PROTOCOL_VERSION = 0
REFUSED_MALFORMED_HELLO = 1

OUTCOME_VALUE = 0
OUTCOME_WORKER_DIED = 4
OUTCOME_CANCELLED = 5
WORKER_OUTCOMES = 4
"""Outcomes below this one are a worker's to give, the others the scheduler's own."""


class Effect:
    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


class Welcome(Effect):
    __slots__ = ("lease_milliseconds", "peer")
    kind = WELCOME

    def __init__(self, route: bytes, peer: int, lease_milliseconds: int) -> None:
        self.route = route
        self.peer = peer
        self.lease_milliseconds = lease_milliseconds


class Refused(Effect):
    __slots__ = ("reason", "text")
    kind = REFUSED

    def __init__(self, route: bytes, reason: int, text: str) -> None:
        self.route = route
        self.reason = reason
        self.text = text


class HelloWanted(Effect):
    __slots__ = ()
    kind = HELLO_WANTED


class Goodbye(Effect):
    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class HeartbeatEcho(Effect):
    __slots__ = ("sequence",)
    kind = HEARTBEAT_ECHO

    def __init__(self, route: bytes, sequence: int) -> None:
        self.route = route
        self.sequence = sequence


class Function(Effect):
    __slots__ = ("name", "number", "payload", "serializer")
    kind = FUNCTION

    def __init__(self, route: bytes, number: int, name: str, serializer: str, payload: bytes) -> None:
        self.route = route
        self.number = number
        self.name = name
        self.serializer = serializer
        self.payload = payload


class ForgetFunctions(Effect):
    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: List[int]) -> None:
        self.route = route
        self.numbers = numbers


class Rows:
    """Payloads of a batch that grows: sizes and runs of joined bytes for small ones, whole frames for large ones."""

    __slots__ = ("large_frames", "large_rows", "parts", "sizes")

    def __init__(self) -> None:
        self.sizes: List[int] = []
        self.parts: List[bytes] = []
        self.large_rows: List[int] = []
        self.large_frames: List[bytes] = []

    def append_run(self, sizes: Sequence[int], joined: bytes) -> None:
        """Rows whose payloads lie behind one another in `joined`."""
        self.sizes.extend(sizes)
        self.parts.append(joined)

    def append_large(self, frame: bytes) -> None:
        """A row whose payload travels in a frame of its own."""
        self.large_rows.append(len(self.sizes))
        self.large_frames.append(frame)
        self.sizes.append(0)


class Dispatch(Effect):
    __slots__ = ("attempts", "clients", "functions", "ids", "rows")
    kind = DISPATCH

    def __init__(self, route: bytes) -> None:
        self.route = route
        self.clients: List[int] = []
        self.ids: List[int] = []
        self.attempts: List[int] = []
        self.functions: List[int] = []
        self.rows = Rows()


class Resolved(Effect):
    __slots__ = ("ids", "outcomes", "rows")
    kind = RESOLVED

    def __init__(self, route: bytes) -> None:
        self.route = route
        self.ids: List[int] = []
        self.outcomes: List[int] = []
        self.rows = Rows()


class Started(Effect):
    __slots__ = ("ids",)
    kind = STARTED

    def __init__(self, route: bytes, ids: Sequence[int]) -> None:
        self.route = route
        self.ids = ids


class CancelRefused(Effect):
    __slots__ = ("ids",)
    kind = CANCEL_REFUSED

    def __init__(self, route: bytes, ids: Sequence[int]) -> None:
        self.route = route
        self.ids = ids


class Error(Effect):
    __slots__ = ("text",)
    kind = ERROR

    def __init__(self, route: bytes, text: str) -> None:
        self.route = route
        self.text = text
