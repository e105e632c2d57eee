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
from .errors import SchedulerLostError
from .functions import Function
from .messages import Payload

BATCH_ROWS = 4096
"""Most tasks of one Submit: a longer batch would let the scheduler's other peers wait."""

BATCH_BYTES = 4 << 20
"""Payload bytes after which a Submit is closed."""

_log = logging.getLogger(__name__)


class Owner(Protocol):
    """Who wants the answers of some ids."""

    def row(self, task_id: int) -> tuple[Function, Payload]:
        """What to submit again."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None: ...

    def fail(self, task_id: int, error: BaseException) -> None: ...

    def start(self) -> None: ...


class State(enum.Enum):
    JOINING = "joining"
    JOINED = "joined"
    CLOSED = "closed"


class Session:
    def __init__(
        self, hello: messages.Hello, address: str, heartbeat_interval_seconds: float, timeout_seconds: float, now: float
    ) -> None:
        self.state = State.JOINING
        self.address = address
        self.scheduler: messages.Welcome | None = None
        self.pending: dict[int, Owner] = {}
        """Who waits for which task, in the order of submission."""
        self.refused: messages.Refused | None = None
        self._hello = hello
        self._heartbeat_interval_seconds = heartbeat_interval_seconds
        self._timeout_seconds = timeout_seconds
        self._next_id = 0
        self._sequence = 0
        self._next_heartbeat = now + heartbeat_interval_seconds
        self._last_heard = now
        self._outgoing: list[messages.Message] = [hello]
        self._rows: list[tuple[int, Function, Payload]] = []
        self._cancelling: dict[int, Callable[[], None]] = {}

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, owner: Owner, function: Function, payload: Payload) -> int:
        """A new task; returns its id."""
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = owner
        if self.state is State.JOINED:
            self._rows.append((task_id, function, payload))
        return task_id

    def submit_many(self, owner: Owner, function: Function, payloads: Sequence[Payload]) -> int:
        """New tasks of one function, their ids behind one another; returns the first."""
        first = self._next_id
        end = self._next_id = first + len(payloads)
        ids = range(first, end)
        self.pending.update(dict.fromkeys(ids, owner))
        if self.state is State.JOINED:
            self._rows.extend(zip(ids, [function] * len(payloads), payloads))
        return first

    def cancel(self, ids: Sequence[int], answered: Callable[[], None]) -> None:
        """Ask that these tasks never run; `answered` is called once for each that was open, when its fate is known."""
        waiting = [task_id for task_id in ids if task_id in self.pending]
        if self.state is not State.JOINED:
            # No scheduler has them, or one that may be gone: they will not be submitted again.
            for task_id in waiting:
                self._resolve(task_id, messages.Outcome.CANCELLED, b"")
                answered()
            return
        for task_id in waiting:
            self._cancelling[task_id] = answered
        self._flush_rows()
        self._outgoing.append(messages.Cancel(sorted(waiting)))

    def forget_function(self, number: int) -> None:
        if self.state is State.JOINED:
            self._flush_rows()
            self._outgoing.append(messages.ForgetFunctions([number]))

    def close(self, reason: str) -> None:
        """Leave the scheduler, which cancels what is unfinished."""
        self._outgoing.append(messages.Goodbye(reason))
        self.state = State.CLOSED
        self._rows = []
        for task_id in list(self.pending):
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
                self._rows = []
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
        return min(self._next_heartbeat, self._last_heard + self._timeout_seconds)

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        if self._rows:
            self._flush_rows()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    # ---------------------------------------------------------------------------------------------------------- inside

    def _join(self, welcome: messages.Welcome) -> None:
        self.scheduler = welcome
        self.state = State.JOINED
        self._cancel_again()
        functions: set[Function] = set()
        self._rows = []
        for task_id, owner in self.pending.items():
            function, payload = owner.row(task_id)
            functions.add(function)
            self._rows.append((task_id, function, payload))
        for function in functions:
            function.is_sent = False

    def _cancel_again(self) -> None:
        """Wishes that were on their way when the connection was lost: those tasks are not submitted again."""
        for task_id in list(self._cancelling):
            self._resolve(task_id, messages.Outcome.CANCELLED, b"")

    def _refuse(self, refused: messages.Refused) -> None:
        self.refused = refused
        self.state = State.CLOSED
        self._lose(SchedulerLostError(refusal_text(self.address, refused)))

    def _lose(self, error: BaseException) -> None:
        for task_id, owner in list(self.pending.items()):
            owner.fail(task_id, error)
            self._answer_cancel(task_id)
        self.pending.clear()
        self._rows = []

    def _resolved(self, message: messages.Resolved) -> None:
        pop = self.pending.pop
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            owner = pop(task_id, None)
            if owner is not None:
                owner.resolve(task_id, outcome, answer)
        if self._cancelling:
            for task_id in message.ids:
                self._answer_cancel(task_id)

    def _resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        owner = self.pending.pop(task_id, None)
        if owner is not None:
            owner.resolve(task_id, outcome, answer)
        self._answer_cancel(task_id)

    def _answer_cancel(self, task_id: int) -> None:
        answered = self._cancelling.pop(task_id, None)
        if answered is not None:
            answered()

    def _flush_rows(self) -> None:
        """Turn the rows gathered so far into messages: functions that the scheduler lacks, then batches."""
        rows, self._rows = self._rows, []
        for begin, end in _batches(rows):
            ids, functions, payloads = zip(*rows[begin:end])
            for function in set(functions):
                if not function.is_sent:
                    function.is_sent = True
                    self._outgoing.append(
                        messages.Function(function.number, function.name, serializer.DEFAULT, function.payload)
                    )
            self._outgoing.append(messages.Submit(ids, [function.number for function in functions], payloads))


def _batches(rows: Sequence[tuple[int, Function, Payload]]) -> list[tuple[int, int]]:
    """Where to cut rows into batches that are not too long and not too heavy."""
    bounds = []
    begin = size = 0
    for position, (_id, _function, payload) in enumerate(rows):
        size += len(payload)
        if size >= BATCH_BYTES or position - begin + 1 >= BATCH_ROWS:
            bounds.append((begin, position + 1))
            begin = position + 1
            size = 0
    if begin < len(rows):
        bounds.append((begin, len(rows)))
    return bounds


def refusal_text(address: str, refused: messages.Refused) -> str:
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
