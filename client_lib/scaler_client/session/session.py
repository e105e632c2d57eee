"""What a client knows and says, without sockets, threads or clock: messages in, messages out.

The session keeps every task until its answer is there, so that whatever dies in between it can be submitted again: to
the same scheduler after a lost connection (which tells by id what it has already), to a new one after a restart.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import ClientClosedError, SchedulerLostError
from ..pickling.functions import Function
from ..pickling.references import StoredObject
from ..protocol import messages
from ..protocol.messages import Payload, TaskName
from .backlog import BATCH_ROWS, Backlog
from .cancels import Cancels
from .frame_limit import FrameLimit
from .graph_recovery import submit_again
from .held_objects import HeldObjects
from .liveness import Heartbeats
from .open_tasks import OpenTasks
from .rejected_tasks import Refusals
from .result_acks import Receipts
from .result_sinks import CHUNK_BITS, CHUNK_ROWS, ChunkOwner, GraphOwner, Owner, SingleOwner
from .shutdown_request import PROTECTED, ShuttingDown
from .submit_batch import GrowingBatch

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
        self.turned_away = ""
        """Why the scheduler does not take this client for now; empty: it does, or has not said."""
        self._hello = hello
        self._heartbeats = Heartbeats(heartbeat_interval_seconds, timeout_seconds, now)
        self._timeout_seconds = timeout_seconds
        self._next_id = 0
        self._last_heard = now
        self._has_asked = False
        """Whether something was sent behind the last hello that a scheduler which lacks it would answer."""
        self._backlog = Backlog()
        self._rows = GrowingBatch(self._backlog)
        self._rows.outgoing.append(hello)
        self.objects = HeldObjects(self._backlog)
        self._shutting_down = ShuttingDown()
        self._receipts = Receipts()
        self._cancels = Cancels(self.tasks, self._backlog)
        self._suspended: dict[TaskName, None] = {}
        self.frame_limit = FrameLimit(self._backlog, self._not_sent, self._is_named)
        self._refusals = Refusals(self.tasks, self._backlog, self._rows, self._not_sent, self._is_named)
        self.take_output: Callable[[messages.Output], None] = _pass_over
        """Called with what tasks have printed; it must not block."""
        self.shortage: Callable[[], str] = str
        """Why this process can't open a connection; empty where it can."""

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, owner: SingleOwner, function: Function, payload: Payload) -> int:
        """A new task that asks for nothing; returns its id."""
        if type(payload) is not bytes:  # of a call that reads objects
            return self.submit_with_options(owner, function, payload)
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = owner
        if self.state is _JOINED:
            rows = self._rows
            if function is not rows.last_function:
                rows.turn_to(function, None)
            rows.ids.append(task_id)
            rows.functions.append(function.number)
            rows.payloads.append(payload)
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
            self._rows.add_row(task_id, function, payload, owner.options)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._turn_away(owner, task_id)
        return task_id

    def submit_chunk(self, owner: ChunkOwner, function: Function, payloads: list[Payload]) -> int:
        """New tasks of one function, at most CHUNK_ROWS; returns the first id, the others follow it."""
        first = self._take_ids(len(payloads))
        self.chunks[first >> CHUNK_BITS] = owner
        if self.state is State.JOINED:
            self._rows.add_chunk(first, function, payloads, owner.options)
        elif self.state is State.CLOSED:
            del self.chunks[first >> CHUNK_BITS]
            self._turn_away(owner, first)
        return first

    def submit_graph(self, owner: GraphOwner) -> None:
        """New tasks that read one another's results, those that are read before those that read them."""
        first = self._take_ids(owner.count)
        owner.submitted(first)
        if self.state is State.CLOSED:
            for task_id in owner.open_ids():
                self._turn_away(owner, task_id)
            return
        self.tasks.add_graph(owner)
        if self.state is State.JOINED:
            self._rows.flush()
            for function in owner.functions():
                self._rows.turn_to(function, owner.options)
            self._backlog.add(owner.batch(), self._rows.outgoing)
            self.objects.forget_behind(first + owner.count - 1, owner.kept_ids())

    def send_object(self, stored: StoredObject) -> None:
        """A new object, for tasks that are submitted after it."""
        stored.id = self._next_id
        self._next_id += 1
        if self.state is State.CLOSED:
            stored.drop()
            return
        if self.state is State.JOINED:
            self._rows.flush()
            # What is forgotten makes room for this one.
            self._rows.outgoing += self.objects.take_messages(self._heartbeats.sequence)
        self.objects.add(stored, self._rows.outgoing if self.state is State.JOINED else None)

    def shut_down(self, answered: Callable[[str | None], None]) -> None:
        """Ask that the scheduler ends; `answered` is called with None once it does, or with why it does not."""
        self._shutting_down.ask(answered)
        if self.state is State.CLOSED:
            self._shutting_down.end()
        elif self.state is State.JOINED:
            self._rows.outgoing += self._shutting_down.messages()

    def cancel(self, ids: Sequence[int], answered: Callable[[], None], force: bool = False) -> None:
        """Ask that these tasks never run, and with `force` that they are stopped if they do.

        `answered` is called once for each that was open, when its fate is known.
        """
        self._cancels.add(ids, answered, force)
        if self.state is State.JOINED:
            self._rows.outgoing += self._cancels.take_messages()

    def stop_children(self, parent: TaskName) -> None:
        """Cancel what this task has submitted, and stop what of it runs."""
        ids = self.tasks.ids_of_children(parent)
        if ids:
            self.cancel(ids, lambda: None, force=True)

    def forget_function(self, number: int) -> None:
        if self.state is State.JOINED:
            self._rows.flush()
            self._rows.outgoing.append(messages.ForgetFunctions([number]))

    def suspend(self, name: TaskName) -> None:
        """This task of the worker that the client lives in waits for tasks that it has submitted before."""
        self._suspended[name] = None
        if self.state is State.JOINED:
            self._rows.flush()
            self._rows.outgoing.append(messages.Suspended([name]))

    def resume(self, name: TaskName) -> None:
        """It goes on."""
        self._suspended.pop(name, None)
        if self.state is State.JOINED:
            self._rows.flush()
            self._rows.outgoing.append(messages.Resumed([name]))

    def close(self, reason: str) -> None:
        """Leave the scheduler, which cancels what is unfinished."""
        self._rows.outgoing.append(messages.Goodbye(reason))
        self.state = State.CLOSED
        self._rows.drop()
        self._rows.last_function = None  # what it would keep alive keeps this session alive
        self.objects.end()
        self._shutting_down.end()
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
        standstill = self._heartbeats.standstill(now)
        if standstill:
            self._last_heard = min(now, self._last_heard + standstill)
        if now >= self._heartbeats.next and self.state is not State.CLOSED:
            self._beat(now)
        if now - self._last_heard > self._timeout_seconds:
            self._lose(SchedulerLostError(self._silence()))
            self._last_heard = now

    def _silence(self) -> str:
        shortage = self.shortage()
        text = f"no scheduler at {self.address} for {self._timeout_seconds:g} seconds"
        return f"{text}: {shortage}" if shortage else text

    @property
    def next_deadline(self) -> float:
        loss = self._last_heard + self._timeout_seconds
        return loss if self.state is State.CLOSED else min(self._heartbeats.next, loss)

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        # Without credit the batch grows on: a client that submits one by one must not leave a trail of batches of one.
        rows = self._rows
        if rows.ids and (self._backlog.is_open or len(rows.ids) >= BATCH_ROWS):
            rows.flush()
        if self.state is _JOINED:
            rows.outgoing += self.objects.take_messages(self._heartbeats.sequence)
        outgoing, rows.outgoing = rows.outgoing, []
        return outgoing

    # ------------------------------------------------------------------------------------------------- joining, leaving

    def _join(self, welcome: messages.Welcome) -> None:
        """Submit everything that is open, to a scheduler that may have none of it."""
        if self.state is State.CLOSED:
            return
        if self.scheduler is not None and self.scheduler.incarnation != welcome.incarnation:
            self._shutting_down.end()  # the one that was to end has
            self.objects.forgotten_by_scheduler()
        if self.turned_away:
            _log.warning("the scheduler at %s takes this client now", self.address)
            self.turned_away = ""
        self.scheduler = welcome
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        self.state = State.JOINED
        self._receipts.restart(welcome.result_window)
        self.frame_limit.restart(welcome.message_size_limit)
        self._heartbeats.keep_lease(welcome.lease_seconds, self._last_heard)
        self._rows.restart(welcome.credit)
        self.objects.join(self._rows.outgoing)
        for task_id in self.tasks.ids_to_submit():
            owner = self.tasks.owner(task_id)
            self._rows.add_row(task_id, *owner.row(task_id), owner.options)
        self._rows.flush()
        for graph in self.tasks.all_graphs():
            self.objects.forget_behind(graph.first + graph.count - 1, graph.kept_ids())
        self.objects.tell_again()
        self._cancels.ask_again()
        self._rows.outgoing += self._cancels.take_messages()
        if self._suspended:
            self._rows.outgoing.append(messages.Suspended(list(self._suspended)))
        self._rows.outgoing += self._shutting_down.messages()

    def _hello_wanted(self, _: messages.HelloWanted) -> None:
        # One hello, though everything that was sent meanwhile is answered like this; another one where it was lost.
        if self.state is State.JOINED or (self.state is State.JOINING and self._has_asked):
            self.state = State.JOINING
            self._rows.drop()
            self._rows.outgoing = [self._hello]  # the rest would be answered in the same way
            self._has_asked = False

    def _refuse(self, refused: messages.Refused) -> None:
        self.refused = refused
        self.state = State.CLOSED
        self.objects.end()
        self._lose(SchedulerLostError(refusal_text(self.address, refused)))

    def _lose(self, error: SchedulerLostError) -> None:
        self.loss = error
        ids = self.tasks.fail(error)
        self._cancels.answer(ids)
        told = self._cancels.tell(ids)
        self._rows.drop_rows()
        self._shutting_down.end()
        if self.state is State.JOINED:
            self._rows.outgoing += told

    def _turn_away(self, owner: Owner, task_id: int) -> None:
        """A task that comes when nobody will ever answer."""
        if self.refused is not None:
            owner.fail(task_id, SchedulerLostError(refusal_text(self.address, self.refused)))
        else:
            owner.fail(task_id, ClientClosedError("the client is disconnected"))

    def _beat(self, now: float) -> None:
        self._rows.outgoing.append(self._heartbeats.beat(now))
        self._has_asked = True

    def _take_ids(self, count: int) -> int:
        """Ids behind one another, of which this is the first."""
        # Aligned, so that few entries find all of them: a million entries would cost more than a million results.
        first = self._next_id + CHUNK_ROWS - 1 & -CHUNK_ROWS
        # The rest of the last block stays free: what is answered for an id of the block is theirs.
        self._next_id = first + count + CHUNK_ROWS - 1 & -CHUNK_ROWS
        return first

    def _credit(self, message: messages.Credit) -> None:
        if self.state is State.JOINED:
            self._backlog.grant(message.bytes, self._rows.outgoing)

    # ---------------------------------------------------------------------------------------------------------- answers

    def _resolved(self, message: messages.Resolved) -> None:
        self.tasks.take(message)
        broken = self.tasks.take_broken()
        if broken:
            self._recover(broken, message.ids)
        else:
            self._cancels.answer(message.ids)
        if self.state is State.JOINED:
            self._rows.outgoing += self._receipts.take(sum(map(len, message.payloads)))

    def _not_sent(self, message: messages.Resolved) -> None:
        """Tasks that have failed without the scheduler."""
        if self.tasks.are_known(message.ids[0]):
            self.tasks.take(message)
            self._cancels.answer(message.ids)

    def _is_named(self, task_id: int) -> bool:
        return self.tasks.are_known(task_id) and self.tasks.owner(task_id).row(task_id)[0].by_name is not None

    def _output(self, message: messages.Output) -> None:
        self.take_output(message)
        if self.state is State.JOINED:
            self._rows.outgoing += self._receipts.take(message.size)

    def _recover(self, graphs: Sequence[GraphOwner], answered: Sequence[int]) -> None:
        """Targets of these could not read what was lost with some host."""
        again = {task_id for graph in graphs for task_id in graph.open_ids()}
        self._cancels.answer([task_id for task_id in answered if task_id not in again])
        if self.state is not State.JOINED:
            return  # all of it is submitted at the next join
        for graph in graphs:
            submit_again(graph, self._rows, self._backlog, self.objects)
        self._cancels.ask_again(list(again))
        self._rows.outgoing += self._cancels.take_messages()

    def _goodbye(self, message: messages.Goodbye) -> None:
        _log.info("the scheduler at %s has left: %s", self.address, message.reason)
        if self._shutting_down.is_under_way:
            self.scheduler = None  # there is nobody to say goodbye to
            self._shutting_down.end()

    def _notice(self, message: messages.Notice) -> None:
        _log.warning("the scheduler at %s: %s", self.address, message.text)

    def _error(self, message: messages.Error) -> None:
        if self._shutting_down.is_under_way and message.text.startswith(PROTECTED):
            self._shutting_down.end(message.text)
        elif message.tasks:
            told = self._refusals.take(message, self.address)
            if self.state is State.JOINED:
                self._rows.outgoing += told
        elif self.state is State.JOINING:
            if message.text != self.turned_away:
                _log.error("%s", not_taken_text(self.address, message.text))
            self.turned_away = message.text
        else:
            _log.error("the scheduler at %s refused a message: %s", self.address, message.text)

    _handlers: ClassVar[dict[type, Callable[[Session, Any], None]]] = {
        messages.Resolved: _resolved,
        messages.Started: lambda self, message: self.tasks.start(message.ids),
        messages.CancelRefused: lambda self, message: self._cancels.refused(message.ids),
        messages.Output: _output,
        messages.Credit: _credit,
        messages.Welcome: _join,
        messages.HelloWanted: _hello_wanted,
        messages.Refused: _refuse,
        messages.Goodbye: _goodbye,
        messages.HeartbeatEcho: lambda self, message: self.objects.confirm(message.sequence),
        messages.Error: _error,
        messages.Notice: _notice,
    }


def _pass_over(_: messages.Output) -> None: ...


def not_taken_text(address: str, reason: str) -> str:
    return f"the scheduler at {address} does not take this client for now: {reason}"


def refusal_text(address: str, refused: messages.Refused) -> str:
    if refused.reason == messages.NOT_AUTHORIZED:
        return f"no access to {address}: {refused.text}"
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
