"""The effects that the agent's session asks for, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import (
    ContentsWanted,
    DataAddress,
    EnvironmentReady,
    Goodbye,
    Hello,
    Payload,
    ReadObject,
    Started,
    Transferred,
    WorkerDied,
)
from scaler_client.protocol.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class Send(Record):
    """Send a message to the scheduler."""

    message: ContentsWanted | EnvironmentReady | Hello | Goodbye | Started | Transferred | WorkerDied


@dataclass(frozen=True, eq=False, repr=False)
class SendHeartbeat(Record):
    """Measure the agent and these workers, and send a Heartbeat with the figures."""

    sequence: int
    workers: tuple[tuple[int, int], ...]
    """Incarnation and pid of each living worker."""
    lag_microseconds: int = 0
    """The time between the last echoed heartbeat and its echo."""
    is_retiring: bool = False
    """Whether the agent retires: its workers get no new tasks."""


@dataclass(frozen=True, eq=False, repr=False)
class MeasureMemory(Record):
    """Measure the resident sizes of these workers, and pass the sizes to `AgentSession.measured`."""

    workers: tuple[tuple[int, int], ...]
    """Incarnation and pid of each."""


@dataclass(frozen=True, eq=False, repr=False)
class StartWorker(Record):
    """Start a worker process in this slot."""

    slot: int
    name: str
    incarnation: int
    environment: str = ""
    """The name of its environment; empty: none."""


@dataclass(frozen=True, eq=False, repr=False)
class StoreContents(Record):
    """Write contents to the cache, and pass their names to `AgentSession.contents_stored`."""

    payloads: tuple[Payload, ...]


@dataclass(frozen=True, eq=False, repr=False)
class PrepareEnvironment(Record):
    """Prepare an environment from the cache, and pass the outcome to `AgentSession.environment_prepared`."""

    name: str
    manifest: bytes


@dataclass(frozen=True, eq=False, repr=False)
class RemoveEnvironment(Record):
    """Remove what was prepared. No worker has this environment."""

    name: str


@dataclass(frozen=True, eq=False, repr=False)
class SignalWorker(Record):
    """Send a signal to a worker's process, if it still lives."""

    incarnation: int
    kill: bool
    """Whether to send SIGKILL instead of SIGTERM."""


@dataclass(frozen=True, eq=False, repr=False)
class WriteObject(Record):
    """Write the object's file, and pass the outcome to `AgentSession.object_written`."""

    name: ObjectName
    frames: Sequence[Payload]


@dataclass(frozen=True, eq=False, repr=False)
class MarkObjectLost(Record):
    """Put the reason in the place of the object's file, for workers that wait for the file."""

    name: ObjectName
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class RemoveObjects(Record):
    """Remove the files of these objects, of the agent and of workers."""

    names: tuple[ObjectName, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LinkFile(Record):
    """Make the file of a client on this host one of the agent too. Pass the outcome to `AgentSession.file_linked`."""

    name: ObjectName


@dataclass(frozen=True, eq=False, repr=False)
class SendObjects(Record):
    """Send the contents of these objects' files to the scheduler, or a ForgetObjects for a missing file."""

    names: tuple[ObjectName, ...]
    frame_limit: int = 0
    """The largest frame that the scheduler takes, in bytes: a larger object counts as missing. 0: no limit."""


@dataclass(frozen=True, eq=False, repr=False)
class AskSource(Record):
    """Ask another agent for a chunk of an object file. Its answers go to `AgentSession.data_received`."""

    source: DataAddress
    message: ReadObject


@dataclass(frozen=True, eq=False, repr=False)
class CloseSource(Record):
    """Close the connection to another agent's data address."""

    source: DataAddress


@dataclass(frozen=True, eq=False, repr=False)
class WritePart(Record):
    """Write a part of an object file that is being fetched. Pass a failure to `AgentSession.part_failed`."""

    name: ObjectName
    offset: int
    payload: Payload
    file_bytes: int
    """The size of the whole file."""


@dataclass(frozen=True, eq=False, repr=False)
class FinishFile(Record):
    """Check a fetched file, give it its name, and send the answer. If this fails, the answer says why."""

    name: ObjectName
    answer: Transferred


@dataclass(frozen=True, eq=False, repr=False)
class DropPart(Record):
    """Remove an object file that is being fetched, if there is one."""

    name: ObjectName


@dataclass(frozen=True, eq=False, repr=False)
class TakeTicket(Record):
    """Give files only to agents with this ticket from now on."""

    ticket: str


@dataclass(frozen=True, eq=False, repr=False)
class Log(Record):
    """Write a line to the log."""

    level: int
    """A level of `logging`."""
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Exit(Record):
    """End the agent's process with this status."""

    status: int


Effect = (
    Send | SendHeartbeat | MeasureMemory | StartWorker | SignalWorker | WriteObject | MarkObjectLost | RemoveObjects
    | StoreContents | PrepareEnvironment | RemoveEnvironment | SendObjects | AskSource | CloseSource | WritePart
    | LinkFile | FinishFile | DropPart | TakeTicket | Log | Exit
)  # fmt: skip
