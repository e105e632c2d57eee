"""What a client knows and says, without sockets, threads or clock: messages in, messages out.

The session keeps every task until its answer is there, so that whatever dies in between it can be submitted again: to
the same scheduler after a lost connection (which tells by id what it has already), to a new one after a restart.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from . import messages, serializer
from .errors import ClientClosedError, SchedulerLostError
from .functions import Function
from .messages import Payload

BATCH_ROWS = 4096
"""Most tasks of one Submit: a longer batch would let the scheduler's other peers wait."""

BATCH_BYTES = 4 << 20
"""Payload bytes after which a Submit is closed."""

LEASE_HEARTBEATS = 3
"""Heartbeats that fit into the scheduler's lease, at the least."""

CHUNK_BITS = 10
CHUNK_ROWS = 1 << CHUNK_BITS
"""Most tasks that `map` hands over at once: enough to make its share per task small, few enough to start at once."""

_log = logging.getLogger(__name__)


class Owner(Protocol):
    """Who wants the answers of some ids."""

    def row(self, task_id: int) -> tuple[Function, Payload]:
        """What to submit again."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> object: ...

    def fail(self, task_id: int, error: BaseException) -> None: ...

    def start(self) -> None: ...


class ChunkOwner(Owner, Protocol):
    """Who wants the answers of up to CHUNK_ROWS ids behind one another."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Returns whether all are answered."""

    def open_ids(self) -> list[int]:
        """Those that are not answered."""


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
        self.pending: dict[int, Owner] = {}
        """Who waits for which single task, in the order of submission."""
        self.chunks: dict[int, ChunkOwner] = {}
        """Who waits for the tasks of a chunk, by their ids without the last CHUNK_BITS bits."""
        self.refused: messages.Refused | None = None
        self._hello = hello
        self._heartbeat_interval_seconds = heartbeat_interval_seconds
        self._timeout_seconds = timeout_seconds
        self._next_id = 0
        self._sequence = 0
        self._next_heartbeat = now + heartbeat_interval_seconds
        self._last_heard = now
        self._outgoing: list[messages.Message] = [hello]
        # The batch that grows, by column; functions that the scheduler lacks are announced when a row first names them.
        self._ids: list[int] = []
        self._functions: list[int] = []
        self._payloads: list[Payload] = []
        self._last_function: Function | None = None
        self._joins = 0
        self._cancelling: dict[int, list[Callable[[], None]]] = {}

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, owner: Owner, function: Function, payload: Payload) -> int:
        """A new task; returns its id."""
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = owner
        if self.state is _JOINED:
            if function is not self._last_function:
                self._announce(function)
            self._ids.append(task_id)
            self._functions.append(function.number)
            self._payloads.append(payload)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._turn_away(owner, task_id)
        return task_id

    def submit_chunk(self, owner: ChunkOwner, function: Function, payloads: list[Payload]) -> int:
        """New tasks of one function, at most CHUNK_ROWS; returns the first id, the others follow it."""
        # Aligned, so that one entry finds all of them: a million entries would cost more than a million results.
        first = self._next_id + CHUNK_ROWS - 1 & -CHUNK_ROWS
        self._next_id = first + len(payloads)
        self.chunks[first >> CHUNK_BITS] = owner
        if self.state is _JOINED:
            self._flush_rows()
            if function is not self._last_function:
                self._announce(function)
            self._add_batches(range(first, first + len(payloads)), [function.number], payloads)
        elif self.state is State.CLOSED:
            del self.chunks[first >> CHUNK_BITS]
            self._turn_away(owner, first)
        return first

    def cancel(self, ids: Sequence[int], answered: Callable[[], None]) -> None:
        """Ask that these tasks never run; `answered` is called once for each that was open, when its fate is known."""
        waiting = [task_id for task_id in ids if task_id in self.pending or task_id >> CHUNK_BITS in self.chunks]
        if self.state is not State.JOINED:
            # No scheduler has them, or one that may be gone: they will not be submitted again.
            for task_id in waiting:
                self._resolve(task_id, messages.Outcome.CANCELLED, b"")
                answered()
            return
        for task_id in waiting:
            self._cancelling.setdefault(task_id, []).append(answered)
        self._flush_rows()
        if waiting:
            self._outgoing.append(messages.Cancel(sorted(waiting)))

    def forget_function(self, number: int) -> None:
        if self.state is State.JOINED:
            self._flush_rows()
            self._outgoing.append(messages.ForgetFunctions([number]))

    def close(self, reason: str) -> None:
        """Leave the scheduler, which cancels what is unfinished."""
        self._outgoing.append(messages.Goodbye(reason))
        self.state = State.CLOSED
        self._drop_rows()
        self._last_function = None  # what it would keep alive keeps this session alive
        for task_id in self._open_ids():
            self._resolve(task_id, messages.Outcome.CANCELLED, b"")

    # ---------------------------------------------------------------------------------------------- from the scheduler

    def handle(self, message: messages.Message, now: float) -> None:
        """Take a message of the scheduler's."""
        self._last_heard = now
        if isinstance(message, messages.Resolved):
            self._resolved(message)
        elif isinstance(message, messages.Started):
            for task_id in message.ids:
                owner = self.pending.get(task_id)
                if owner is not None:
                    owner.start()
        elif isinstance(message, messages.CancelRefused):
            for task_id in message.ids:
                self._answer_cancel(task_id)
        elif isinstance(message, messages.Welcome):
            self._join(message)
        elif isinstance(message, messages.HelloWanted):
            if self.state is State.JOINED:
                self.state = State.JOINING
                self._drop_rows()
                self._outgoing.append(self._hello)
        elif isinstance(message, messages.Refused):
            self._refuse(message)
        elif isinstance(message, messages.Goodbye):
            _log.info("the scheduler at %s has left: %s", self.address, message.reason)
        elif isinstance(message, messages.Error):
            _log.error("the scheduler at %s refused a message: %s", self.address, message.text)

    def tick(self, now: float) -> None:
        """Send a heartbeat when one is due; give up when nothing was heard for too long."""
        if now >= self._next_heartbeat and self.state is not State.CLOSED:
            self._next_heartbeat = now + self._heartbeat_interval_seconds
            self._sequence += 1
            self._outgoing.append(messages.Heartbeat(self._sequence))
        if now - self._last_heard > self._timeout_seconds:
            self._lose(SchedulerLostError(f"no scheduler at {self.address} for {self._timeout_seconds:g} seconds"))
            self._last_heard = now

    @property
    def next_deadline(self) -> float:
        loss = self._last_heard + self._timeout_seconds
        return loss if self.state is State.CLOSED else min(self._next_heartbeat, loss)

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        if self._ids:
            self._flush_rows()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    # ---------------------------------------------------------------------------------------------------------- inside

    def _join(self, welcome: messages.Welcome) -> None:
        """Submit everything that is open, to a scheduler that may have none of it."""
        if self.state is State.CLOSED:
            return
        self.scheduler = welcome
        self.state = State.JOINED
        self._joins += 1
        self._keep_lease(welcome.lease_seconds)
        self._cancel_again()
        self._drop_rows()
        self._last_function = None
        open_rows = [(task_id, *self._owner(task_id).row(task_id)) for task_id in self._open_ids()]
        for task_id, function, payload in open_rows:
            self._announce(function)
            self._ids.append(task_id)
            self._functions.append(function.number)
            self._payloads.append(payload)

    def _open_ids(self) -> list[int]:
        """Every task without an answer, ascending."""
        ids = list(self.pending)
        for owner in self.chunks.values():
            ids += owner.open_ids()
        return sorted(ids)

    def _owner(self, task_id: int) -> Owner:
        return self.pending.get(task_id) or self.chunks[task_id >> CHUNK_BITS]

    def _announce(self, function: Function) -> None:
        """Send the function unless the scheduler has it; rows that name it come later."""
        self._last_function = function
        if function.sent_in_join != self._joins:
            function.sent_in_join = self._joins
            self._outgoing.append(
                messages.Function(function.number, function.name, serializer.DEFAULT, function.payload)
            )

    def _keep_lease(self, lease_seconds: float) -> None:
        """Heartbeats often enough that the lease outlasts a few lost ones, whatever interval was asked for."""
        longest = lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._heartbeat_interval_seconds:
            self._heartbeat_interval_seconds = longest
            self._next_heartbeat = min(self._next_heartbeat, self._last_heard + longest)

    def _turn_away(self, owner: Owner, task_id: int) -> None:
        """A task that comes when nobody will ever answer."""
        if self.refused is not None:
            owner.fail(task_id, SchedulerLostError(refusal_text(self.address, self.refused)))
        else:
            owner.fail(task_id, ClientClosedError("the client is disconnected"))

    def _cancel_again(self) -> None:
        """Wishes that were on their way when the connection was lost: those tasks are not submitted again."""
        for task_id in list(self._cancelling):
            self._resolve(task_id, messages.Outcome.CANCELLED, b"")

    def _refuse(self, refused: messages.Refused) -> None:
        self.refused = refused
        self.state = State.CLOSED
        self._lose(SchedulerLostError(refusal_text(self.address, refused)))

    def _lose(self, error: BaseException) -> None:
        for task_id in self._open_ids():
            owner = self._take_owner(task_id)
            if owner is not None:
                owner.fail(task_id, error)
            self._answer_cancel(task_id)
        self.chunks.clear()
        self._drop_rows()

    def _resolved(self, message: messages.Resolved) -> None:
        pop = self.pending.pop
        chunks = self.chunks
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            owner = pop(task_id, None)
            if owner is not None:
                owner.resolve(task_id, outcome, answer)
                continue
            chunk = chunks.get(task_id >> CHUNK_BITS)
            if chunk is not None and chunk.resolve(task_id, outcome, answer):
                del chunks[task_id >> CHUNK_BITS]
        if self._cancelling:
            for task_id in message.ids:
                self._answer_cancel(task_id)

    def _resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        owner = self.pending.pop(task_id, None)
        if owner is not None:
            owner.resolve(task_id, outcome, answer)
        else:
            chunk = self.chunks.get(task_id >> CHUNK_BITS)
            if chunk is not None and chunk.resolve(task_id, outcome, answer):
                del self.chunks[task_id >> CHUNK_BITS]
        self._answer_cancel(task_id)

    def _take_owner(self, task_id: int) -> Owner | None:
        return self.pending.pop(task_id, None) or self.chunks.get(task_id >> CHUNK_BITS)

    def _answer_cancel(self, task_id: int) -> None:
        for answered in self._cancelling.pop(task_id, ()):
            answered()

    def _drop_rows(self) -> None:
        self._ids, self._functions, self._payloads = [], [], []

    def _flush_rows(self) -> None:
        """Close the batch that grows."""
        if self._ids:
            ids, functions, payloads = self._ids, self._functions, self._payloads
            self._drop_rows()
            self._add_batches(ids, functions, payloads)

    def _add_batches(self, ids: Sequence[int], functions: list[int], payloads: list[Payload]) -> None:
        for begin, end in _batches(payloads):
            named = functions if len(functions) == 1 else functions[begin:end]
            self._outgoing.append(messages.Submit(ids[begin:end], named, payloads[begin:end]))


def _batches(payloads: list[Payload]) -> list[tuple[int, int]]:
    """Where to cut rows into batches that are not too long and not too heavy."""
    if len(payloads) <= BATCH_ROWS and sum(map(len, payloads)) <= BATCH_BYTES:
        return [(0, len(payloads))]
    bounds = []
    begin = size = 0
    for position, payload in enumerate(payloads):
        size += len(payload)
        if size >= BATCH_BYTES or position - begin + 1 >= BATCH_ROWS:
            bounds.append((begin, position + 1))
            begin = position + 1
            size = 0
    if begin < len(payloads):
        bounds.append((begin, len(payloads)))
    return bounds


def refusal_text(address: str, refused: messages.Refused) -> str:
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
