"""The protocol's messages: one dataclass each, named like the schema's struct.

Columns are plain lists. Payloads of a batch are a list with one bytes-like object a row.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

PROTOCOL_VERSION = 1
"""The schema's `protocolVersion`."""

Payload = Union[bytes, bytearray, memoryview]
Frames = list[Payload]


class Role(enum.IntEnum):
    CLIENT = 0
    WORKER = 1
    AGENT = 2


class Outcome(enum.IntEnum):
    """How a task ended; the schema says what the payload is."""

    VALUE = 0
    EXCEPTION = 1
    FUNCTION_FAILED = 2
    RESULT_FAILED = 3
    WORKER_DIED = 4
    CANCELLED = 5


@dataclass
class Hello:
    role: Role
    incarnation: int
    language_version: str
    version: str
    host: str
    pid: int
    name: str = ""
    agent: int = 0
    language: str = "python"
    protocol_version: int = PROTOCOL_VERSION


@dataclass
class Welcome:
    protocol_version: int
    version: str
    incarnation: int
    peer: int
    lease_seconds: float


@dataclass
class Refused:
    reason: str
    text: str
    protocol_version: int
    version: str


@dataclass
class HelloWanted:
    pass


@dataclass
class Goodbye:
    reason: str = ""


@dataclass
class WorkerHeartbeat:
    incarnation: int
    resident_bytes: int
    cpu_milliseconds: int


@dataclass
class Heartbeat:
    sequence: int
    resident_bytes: int = 0
    cpu_milliseconds: int = 0
    workers: list[WorkerHeartbeat] = field(default_factory=list)


@dataclass
class HeartbeatEcho:
    sequence: int


@dataclass
class Function:
    number: int
    name: str
    serializer: str
    payload: Payload


@dataclass
class ForgetFunctions:
    numbers: list[int]


@dataclass
class Submit:
    ids: Sequence[int]
    functions: Sequence[int]
    payloads: Sequence[Payload]


@dataclass
class Dispatch:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    functions: list[int]
    payloads: list[Payload]


@dataclass
class Results:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    outcomes: list[int]
    durations: list[int]
    payloads: list[Payload]


@dataclass
class Resolved:
    ids: list[int]
    outcomes: list[int]
    payloads: list[Payload]


@dataclass
class Started:
    ids: list[int]
    clients: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


@dataclass
class Cancel:
    ids: list[int]


@dataclass
class CancelRefused:
    ids: list[int]


@dataclass
class WorkerDied:
    incarnation: int
    pid: int
    cause: str
    peak_bytes: int = 0
    client: int = 0
    id: int = 0
    attempt: int = 0


@dataclass
class Error:
    text: str


@dataclass
class Snapshot:
    version: str
    incarnation: int
    uptime_seconds: float
    address: str
    waiting: int
    dispatched: int
    resolved: int
    clients: int
    workers: int
    agents: int
    received: dict[str, int]
    sent: dict[str, int]
    dropped: dict[str, int]


Message = Union[
    Hello, Welcome, Refused, HelloWanted, Goodbye, Heartbeat, HeartbeatEcho, Function, ForgetFunctions, Submit,
    Dispatch, Results, Resolved, Started, Cancel, CancelRefused, WorkerDied, Error, Snapshot,
]  # fmt: skip
