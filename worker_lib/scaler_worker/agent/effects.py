"""What the agent's session wants done, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from scaler_client.protocol.messages import Goodbye, Hello, Payload, Started, WorkerDied

from ..task_rows import ObjectName


@dataclass(frozen=True)
class Send:
    """To the scheduler."""

    message: Hello | Goodbye | Started | WorkerDied


@dataclass(frozen=True)
class SendHeartbeat:
    """Send a Heartbeat with what the agent and these workers use; measuring that is not the session's."""

    sequence: int
    workers: tuple[tuple[int, int], ...]
    """Each living worker's incarnation and pid."""
    lag_microseconds: int = 0
    """From the last heartbeat that was echoed to its echo."""
    is_retiring: bool = False
    """Whether its workers are to be given nothing new."""


@dataclass(frozen=True)
class MeasureMemory:
    """Tell the session these workers' resident sizes (`AgentSession.measured`)."""

    workers: tuple[tuple[int, int], ...]
    """Each one's incarnation and pid."""


@dataclass(frozen=True)
class StartWorker:
    slot: int
    name: str
    incarnation: int


@dataclass(frozen=True)
class EndWorker:
    """A signal to a worker's process; the scheduler's message of this name is the wish, and looked into first."""

    incarnation: int
    kill: bool
    """SIGKILL instead of SIGTERM."""


@dataclass(frozen=True)
class WriteObject:
    """Make the object's file, and tell the session whether it could be made (`AgentSession.object_written`)."""

    name: ObjectName
    frames: Sequence[Payload]


@dataclass(frozen=True)
class MarkObjectLost:
    """Tell workers that look for the object's file that it will not be there, and why."""

    name: ObjectName
    reason: str


@dataclass(frozen=True)
class RemoveObjects:
    """Remove these objects' files, whoever has made them."""

    names: tuple[ObjectName, ...]
    with_others: bool = False
    """And all other files that are there."""


@dataclass(frozen=True)
class SendObjects:
    """Send the scheduler what is in these objects' files; those that are not there are to be named to it."""

    names: tuple[ObjectName, ...]
    frame_limit: int = 0
    """Bytes of one frame that it takes: what has more is as good as not there. 0: any."""


@dataclass(frozen=True)
class Log:
    level: int
    """One of `logging`'s."""
    text: str


@dataclass(frozen=True)
class Exit:
    """Everything is done: the agent's process ends with this status."""

    status: int


Effect = Union[
    Send, SendHeartbeat, MeasureMemory, StartWorker, EndWorker, WriteObject, MarkObjectLost, RemoveObjects, SendObjects,
    Log, Exit,
]  # fmt: skip
