"""What goes into the core: one class a message that a peer may send, named like it in the schema.

`kind` is the message's ordinal in the schema, so that one list look-up finds the handler. Columns are `array.array`s of
full length; `route` is the connection that the message came by. Every field is always set: PyPy's JIT compiles one
shape.
"""

from array import array
from typing import Dict, List

HELLO = 0
GOODBYE = 4
HEARTBEAT = 5
FUNCTION = 7
FORGET_FUNCTIONS = 8
SUBMIT = 9
RESULTS = 11
STARTED = 13
CANCEL = 14
WORKER_DIED = 16
KINDS = 19

CLIENT = 0
WORKER = 1
AGENT = 2
ROLE_NAMES = ("client", "worker", "agent")


class Event:
    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


class Hello(Event):
    __slots__ = ("agent", "host", "incarnation", "language", "name", "pid", "protocol_version", "role", "version")
    kind = HELLO

    def __init__(
        self,
        route: bytes,
        protocol_version: int,
        role: int,
        incarnation: int,
        agent: int,
        language: str,
        version: str,
        host: str,
        pid: int,
        name: str,
    ) -> None:
        self.route = route
        self.protocol_version = protocol_version
        self.role = role
        self.incarnation = incarnation
        self.agent = agent
        self.language = language
        self.version = version
        self.host = host
        self.pid = pid
        self.name = name


class Goodbye(Event):
    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class Heartbeat(Event):
    """`workers` holds the incarnations whose leases a host agent renews beside its own."""

    __slots__ = ("sequence", "workers")
    kind = HEARTBEAT

    def __init__(self, route: bytes, sequence: int, workers: List[int]) -> None:
        self.route = route
        self.sequence = sequence
        self.workers = workers


class Function(Event):
    __slots__ = ("digest", "name", "number", "payload", "serializer")
    kind = FUNCTION

    def __init__(self, route: bytes, number: int, name: str, serializer: str, digest: bytes, payload: bytes) -> None:
        self.route = route
        self.number = number
        self.name = name
        self.serializer = serializer
        self.digest = digest
        self.payload = payload


class ForgetFunctions(Event):
    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: "array[int]") -> None:
        self.route = route
        self.numbers = numbers


class Submit(Event):
    """`functions` has one element (all rows the same) or one a row; `large` maps a row to its payload."""

    __slots__ = ("functions", "ids", "large", "payload", "sizes")
    kind = SUBMIT

    def __init__(
        self,
        route: bytes,
        ids: "array[int]",
        functions: "array[int]",
        sizes: "array[int]",
        payload: bytes,
        large: Dict[int, bytes],
    ) -> None:
        self.route = route
        self.ids = ids
        self.functions = functions
        self.sizes = sizes
        self.payload = payload
        self.large = large


class Results(Event):
    """`durations` in nanoseconds."""

    __slots__ = ("attempts", "clients", "durations", "ids", "large", "outcomes", "payload", "sizes")
    kind = RESULTS

    def __init__(
        self,
        route: bytes,
        clients: "array[int]",
        ids: "array[int]",
        attempts: "array[int]",
        outcomes: "array[int]",
        durations: "array[int]",
        sizes: "array[int]",
        payload: bytes,
        large: Dict[int, bytes],
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.outcomes = outcomes
        self.durations = durations
        self.sizes = sizes
        self.payload = payload
        self.large = large


class Started(Event):
    __slots__ = ("attempts", "clients", "ids")
    kind = STARTED

    def __init__(self, route: bytes, clients: "array[int]", ids: "array[int]", attempts: "array[int]") -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts


class Cancel(Event):
    __slots__ = ("ids",)
    kind = CANCEL

    def __init__(self, route: bytes, ids: "array[int]") -> None:
        self.route = route
        self.ids = ids


class WorkerDied(Event):
    """`attempt` is 0 where the process ran nothing; `peak_bytes` is 0 where it is not known."""

    __slots__ = ("attempt", "cause", "client", "id", "incarnation", "peak_bytes", "pid")
    kind = WORKER_DIED

    def __init__(
        self,
        route: bytes,
        incarnation: int,
        pid: int,
        cause: str,
        peak_bytes: int,
        client: int,
        task_id: int,
        attempt: int,
    ) -> None:
        self.route = route
        self.incarnation = incarnation
        self.pid = pid
        self.cause = cause
        self.peak_bytes = peak_bytes
        self.client = client
        self.id = task_id
        self.attempt = attempt
