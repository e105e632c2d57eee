"""What a client knows and says, without sockets, threads or clock: messages in, messages out.

The session keeps every task until its answer is there, so that whatever dies in between it can be submitted again: to
the same scheduler after a lost connection (which tells by id what it has already), to a new one after a restart.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from . import messages, serializer
from .backlog import BATCH_ROWS, Backlog
from .cancels import Cancels
from .errors import ClientClosedError, SchedulerLostError
from .functions import Function
from .messages import Options, Payload, TaskName
from .open_tasks import OpenTasks
from .owners import CHUNK_BITS, CHUNK_ROWS, ChunkOwner, Owner, SingleOwner

LEASE_HEARTBEATS = 3
"""Heartbeats that fit into the scheduler's lease, at the least."""

RECEIVED_PARTS = 4
"""How often in each window of results the scheduler is told what has come."""

_log = logging.getLogger(__name__)


class State(enum.Enum):
    JOINING = "joining"
    JOINED = "joined"
    CLOSED = "closed"


_JOINED = State.JOINED  # looked up once a task


class Session:
    def __init__(
        self, hello: messages.Hello, address: str, heartbeat_interval_seconds: float, timeout_seconds: float, now: float
    ) -> None:
        self.state = State.JOINING
        self.address = address
        self.scheduler: messages.Welcome | None = None
        self.loss: SchedulerLostError | None = None
        """Why tasks were given up last, if they ever were."""
        self.tasks = OpenTasks()
        self.pending = self.tasks.single
        self.chunks = self.tasks.chunks
        self.refused: messages.Refused | None = None
        self._hello = hello
        # A quiet scheduler is not a lost one: it is asked more than once before it is given up.
        self._heartbeat_interval_seconds = min(heartbeat_interval_seconds, timeout_seconds / LEASE_HEARTBEATS)
        self._timeout_seconds = timeout_seconds
        self._next_id = 0
        self._sequence = 0
        self._next_heartbeat = now + self._heartbeat_interval_seconds
        self._last_heard = now
        self._last_tick = now
        self._outgoing: list[messages.Message] = [hello]
        self._has_asked = False
        """Whether something was sent behind the last hello that a scheduler which lacks it would answer."""
        # The batch that grows, by column; functions that the scheduler lacks are announced when a row first names them.
        self._ids: list[int] = []
        self._functions: list[int] = []
        self._payloads: list[Payload] = []
        self._options: Options | None = None
        self._last_function: Function | None = None
        """Of the last row, where that asked for nothing: what a plain task is compared with, and nothing else."""
        self._backlog = Backlog()
        self._joins = 0
        self._received = 0
        """Bytes of answers since the join."""
        self._told_received = 0
        self._cancels = Cancels(self.tasks, self._backlog)
        self._suspended: dict[TaskName, None] = {}

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, owner: SingleOwner, function: Function, payload: Payload) -> int:
        """A new task that asks for nothing; returns its id."""
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = owner
        if self.state is _JOINED:
            if function is not self._last_function:
                self._turn_to(function, None)
            self._ids.append(task_id)
            self._functions.append(function.number)
            self._payloads.append(payload)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._turn_away(owner, task_id)
        return task_id

    def submit_with_options(self, owner: SingleOwner, function: Function, payload: Payload) -> int:
        """A new task that asks for what its owner's options say; returns its id."""
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = owner
        if self.state is State.JOINED:
            self._add_row(task_id, function, payload, owner.options)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._turn_away(owner, task_id)
        return task_id

    def submit_chunk(self, owner: ChunkOwner, function: Function, payloads: list[Payload]) -> int:
        """New tasks of one function, at most CHUNK_ROWS; returns the first id, the others follow it."""
        # Aligned, so that one entry finds all of them: a million entries would cost more than a million results.
        first = self._next_id + CHUNK_ROWS - 1 & -CHUNK_ROWS
        # The rest of its block stays free: what is answered for an id of the block is the chunk's.
        self._next_id = first + CHUNK_ROWS
        self.chunks[first >> CHUNK_BITS] = owner
        if self.state is State.JOINED:
            self._flush_rows()
            self._turn_to(function, owner.options)
            ids = range(first, first + len(payloads))
            self._backlog.add(ids, [function.number], payloads, owner.options, self._outgoing)
        elif self.state is State.CLOSED:
            del self.chunks[first >> CHUNK_BITS]
            self._turn_away(owner, first)
        return first

    def cancel(self, ids: Sequence[int], answered: Callable[[], None], force: bool = False) -> None:
        """Ask that these tasks never run, and with `force` that they are stopped if they do.

        `answered` is called once for each that was open, when its fate is known.
        """
        self._cancels.add(ids, answered, force)
        if self.state is State.JOINED:
            self._outgoing += self._cancels.take_messages()

    def stop_children(self, parent: TaskName) -> None:
        """Cancel what this task has submitted, and stop what of it runs."""
        ids = self.tasks.ids_of_children(parent)
        if ids:
            self.cancel(ids, lambda: None, force=True)

    def forget_function(self, number: int) -> None:
        if self.state is State.JOINED:
            self._flush_rows()
            self._outgoing.append(messages.ForgetFunctions([number]))

    def suspend(self, name: TaskName) -> None:
        """This task of the worker that the client lives in waits for tasks that it has submitted before."""
        self._suspended[name] = None
        if self.state is State.JOINED:
            self._flush_rows()
            self._outgoing.append(messages.Suspended([name]))

    def resume(self, name: TaskName) -> None:
        """It goes on."""
        self._suspended.pop(name, None)
        if self.state is State.JOINED:
            self._flush_rows()
            self._outgoing.append(messages.Resumed([name]))

    def close(self, reason: str) -> None:
        """Leave the scheduler, which cancels what is unfinished."""
        self._outgoing.append(messages.Goodbye(reason))
        self.state = State.CLOSED
        self._drop_rows()
        self._last_function = None  # what it would keep alive keeps this session alive
        ids = self.tasks.ids()
        for task_id in ids:
            self.tasks.resolve(task_id, messages.Outcome.CANCELLED, b"")
        self._cancels.answer(ids)

    # ---------------------------------------------------------------------------------------------- from the scheduler

    def handle(self, message: messages.Message, now: float) -> None:
        """Take a message of the scheduler's."""
        self._last_heard = now
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(self, message)

    def reconnected(self, now: float) -> None:
        """The connection was lost and is there again: find out at once whether the scheduler knows this client."""
        if self.state is not State.CLOSED:
            self._beat(now)

    def tick(self, now: float) -> None:
        """Send a heartbeat when one is due; give up when nothing was heard for too long."""
        self._allow_for_standstill(now)
        if now >= self._next_heartbeat and self.state is not State.CLOSED:
            self._beat(now)
        if now - self._last_heard > self._timeout_seconds:
            self._lose(SchedulerLostError(f"no scheduler at {self.address} for {self._timeout_seconds:g} seconds"))
            self._last_heard = now

    @property
    def next_deadline(self) -> float:
        loss = self._last_heard + self._timeout_seconds
        return loss if self.state is State.CLOSED else min(self._next_heartbeat, loss)

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        # Without credit the batch grows on: a client that submits one by one must not leave a trail of batches of one.
        if self._ids and (self._backlog.is_open or len(self._ids) >= BATCH_ROWS):
            self._flush_rows()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    # ------------------------------------------------------------------------------------------------- joining, leaving

    def _join(self, welcome: messages.Welcome) -> None:
        """Submit everything that is open, to a scheduler that may have none of it."""
        if self.state is State.CLOSED:
            return
        self.scheduler = welcome
        self.state = State.JOINED
        self._joins += 1
        self._received = self._told_received = 0
        self._keep_lease(welcome.lease_seconds)
        self._drop_rows()
        self._backlog.restart(welcome.credit)
        self._last_function = None
        for task_id in self.tasks.ids():
            owner = self.tasks.owner(task_id)
            self._add_row(task_id, *owner.row(task_id), owner.options)
        self._flush_rows()
        self._cancels.ask_again()
        self._outgoing += self._cancels.take_messages()
        if self._suspended:
            self._outgoing.append(messages.Suspended(list(self._suspended)))

    def _hello_wanted(self, _: messages.HelloWanted) -> None:
        # One hello, though everything that was sent meanwhile is answered like this; another one where it was lost.
        if self.state is State.JOINED or (self.state is State.JOINING and self._has_asked):
            self.state = State.JOINING
            self._drop_rows()
            self._outgoing = [self._hello]  # the rest would be answered in the same way
            self._has_asked = False

    def _refuse(self, refused: messages.Refused) -> None:
        self.refused = refused
        self.state = State.CLOSED
        self._lose(SchedulerLostError(refusal_text(self.address, refused)))

    def _lose(self, error: SchedulerLostError) -> None:
        self.loss = error
        ids = self.tasks.fail(error)
        self._cancels.answer(ids)
        told = self._cancels.tell(ids)
        self._drop_rows()
        if self.state is State.JOINED:
            self._outgoing += told

    def _turn_away(self, owner: Owner, task_id: int) -> None:
        """A task that comes when nobody will ever answer."""
        if self.refused is not None:
            owner.fail(task_id, SchedulerLostError(refusal_text(self.address, self.refused)))
        else:
            owner.fail(task_id, ClientClosedError("the client is disconnected"))

    def _beat(self, now: float) -> None:
        self._next_heartbeat = now + self._heartbeat_interval_seconds
        self._sequence += 1
        self._outgoing.append(messages.Heartbeat(self._sequence))
        self._has_asked = True

    def _allow_for_standstill(self, now: float) -> None:
        """Time in which this process did not run (stopped, suspended) is no silence of the scheduler's."""
        gap = now - self._last_tick - self._heartbeat_interval_seconds
        if gap > self._heartbeat_interval_seconds:
            self._last_heard = min(now, self._last_heard + gap)
        self._last_tick = now

    def _keep_lease(self, lease_seconds: float) -> None:
        """Heartbeats often enough that the lease outlasts a few lost ones, whatever interval was asked for."""
        longest = lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._heartbeat_interval_seconds:
            self._heartbeat_interval_seconds = longest
            self._next_heartbeat = min(self._next_heartbeat, self._last_heard + longest)

    # ------------------------------------------------------------------------------------------------------------- rows

    def _add_row(self, task_id: int, function: Function, payload: Payload, options: Options | None) -> None:
        self._turn_to(function, options)
        self._ids.append(task_id)
        self._functions.append(function.number)
        self._payloads.append(payload)

    def _turn_to(self, function: Function, options: Options | None) -> None:
        """The next rows are of this function, which the scheduler is told of, and ask for this."""
        if options is not self._options and options != self._options:
            self._flush_rows()
        self._options = options
        self._last_function = function if options is None else None
        if function.sent_in_join != self._joins:
            function.sent_in_join = self._joins
            self._outgoing.append(
                messages.Function(function.number, function.name, serializer.DEFAULT, function.payload)
            )

    def _flush_rows(self) -> None:
        """Close the batch that grows."""
        if self._ids:
            ids, functions, payloads = self._ids, self._functions, self._payloads
            self._ids, self._functions, self._payloads = [], [], []
            self._backlog.add(ids, functions, payloads, self._options, self._outgoing)

    def _drop_rows(self) -> None:
        """Nothing of what is not sent yet shall be."""
        self._ids, self._functions, self._payloads = [], [], []
        self._backlog.clear()

    def _credit(self, message: messages.Credit) -> None:
        if self.state is State.JOINED:
            self._backlog.grant(message.bytes, self._outgoing)

    # ---------------------------------------------------------------------------------------------------------- answers

    def _resolved(self, message: messages.Resolved) -> None:
        self.tasks.take(message)
        self._cancels.answer(message.ids)
        welcome = self.scheduler
        if welcome is not None and welcome.result_window and self.state is State.JOINED:
            self._received += sum(map(len, message.payloads))
            if self._received - self._told_received >= welcome.result_window // RECEIVED_PARTS:
                self._told_received = self._received
                self._outgoing.append(messages.Received(self._received))

    _handlers: ClassVar[dict[type, Callable[[Session, Any], None]]] = {
        messages.Resolved: _resolved,
        messages.Started: lambda self, message: self.tasks.start(message.ids),
        messages.CancelRefused: lambda self, message: self._cancels.refused(message.ids),
        messages.Credit: _credit,
        messages.Welcome: _join,
        messages.HelloWanted: _hello_wanted,
        messages.Refused: _refuse,
        messages.Goodbye: lambda self, message: _log.info(
            "the scheduler at %s has left: %s", self.address, message.reason
        ),
        messages.Error: lambda self, message: _log.error(
            "the scheduler at %s refused a message: %s", self.address, message.text
        ),
    }


def refusal_text(address: str, refused: messages.Refused) -> str:
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
