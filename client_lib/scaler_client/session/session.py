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
from .rejected_tasks import RejectedTasks
from .result_acks import ResultAcks
from .result_sinks import CHUNK_BITS, CHUNK_ROWS, ChunkSink, GraphSink, ResultSink, SingleSink
from .shutdown_request import PROTECTED, ShutdownRequest
from .submit_batch import SubmitBatch

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
        self.rejection = ""
        """Why the scheduler does not take this client for now; empty: it does, or has not said."""
        self._hello = hello
        self._heartbeats = Heartbeats(heartbeat_interval_seconds, timeout_seconds, now)
        self._timeout_seconds = timeout_seconds
        self._next_id = 0
        self._last_heard = now
        self._awaits_answer = False
        """Whether something was sent behind the last hello that a scheduler which lacks it would answer."""
        self._backlog = Backlog()
        self._rows = SubmitBatch(self._backlog)
        self._rows.outgoing.append(hello)
        self.objects = HeldObjects(self._backlog)
        self._shutdown = ShutdownRequest()
        self._acks = ResultAcks()
        self._cancels = Cancels(self.tasks, self._backlog)
        self._suspended: dict[TaskName, None] = {}
        self.frame_limit = FrameLimit(self._backlog, self._not_sent, self._is_named)
        self._rejected_tasks = RejectedTasks(self.tasks, self._backlog, self._rows, self._not_sent, self._is_named)
        self.on_output: Callable[[messages.Output], None] = _ignore_output
        """Called with what tasks have printed; it must not block."""
        self.shortage: Callable[[], str] = str
        """Why this process can't open a connection; empty where it can."""

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, sink: SingleSink, function: Function, payload: Payload) -> int:
        """A new task that asks for nothing; returns its id."""
        if type(payload) is not bytes:  # of a call that reads objects
            return self.submit_with_options(sink, function, payload)
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = sink
        if self.state is _JOINED:
            rows = self._rows
            if function is not rows.last_function:
                rows.use_function(function, None)
            rows.ids.append(task_id)
            rows.functions.append(function.number)
            rows.payloads.append(payload)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._fail_new_task(sink, task_id)
        return task_id

    def submit_with_options(self, sink: SingleSink, function: Function, payload: Payload) -> int:
        """A new task that asks for what its sink's options say; returns its id."""
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = sink
        if self.state is State.JOINED:
            self._rows.add_row(task_id, function, payload, sink.options)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._fail_new_task(sink, task_id)
        return task_id

    def submit_chunk(self, sink: ChunkSink, function: Function, payloads: list[Payload]) -> int:
        """New tasks of one function, at most CHUNK_ROWS; returns the first id, the others follow it."""
        first = self._allocate_ids(len(payloads))
        self.chunks[first >> CHUNK_BITS] = sink
        if self.state is State.JOINED:
            self._rows.add_chunk(first, function, payloads, sink.options)
        elif self.state is State.CLOSED:
            del self.chunks[first >> CHUNK_BITS]
            self._fail_new_task(sink, first)
        return first

    def submit_graph(self, sink: GraphSink) -> None:
        """New tasks that read one another's results, those that are read before those that read them."""
        first = self._allocate_ids(sink.count)
        sink.submitted(first)
        if self.state is State.CLOSED:
            for task_id in sink.open_ids():
                self._fail_new_task(sink, task_id)
            return
        self.tasks.add_graph(sink)
        if self.state is State.JOINED:
            self._rows.flush()
            for function in sink.functions():
                self._rows.use_function(function, sink.options)
            self._backlog.add(sink.batch(), self._rows.outgoing)
            self.objects.forget_after(first + sink.count - 1, sink.kept_ids())

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
            self._rows.outgoing += self.objects.pop_messages(self._heartbeats.sequence)
        self.objects.add(stored, self._rows.outgoing if self.state is State.JOINED else None)

    def shut_down(self, answered: Callable[[str | None], None]) -> None:
        """Ask that the scheduler ends; `answered` is called with None once it does, or with why it does not."""
        self._shutdown.ask(answered)
        if self.state is State.CLOSED:
            self._shutdown.end()
        elif self.state is State.JOINED:
            self._rows.outgoing += self._shutdown.messages()

    def cancel(self, ids: Sequence[int], answered: Callable[[], None], force: bool = False) -> None:
        """Ask that these tasks never run, and with `force` that they are stopped if they do.

        `answered` is called once for each that was open, when its fate is known.
        """
        self._cancels.add(ids, answered, force)
        if self.state is State.JOINED:
            self._rows.outgoing += self._cancels.pop_messages()

    def stop_children(self, parent: TaskName) -> None:
        """Cancel what this task has submitted, and stop what of it runs."""
        ids = self.tasks.child_ids(parent)
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
        self._rows.clear()
        self._rows.last_function = None  # what it would keep alive keeps this session alive
        self.objects.end()
        self._shutdown.end()
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
            self._send_heartbeat(now)

    def tick(self, now: float) -> None:
        """Send a heartbeat when one is due; give up when nothing was heard for too long."""
        pause_seconds = self._heartbeats.pause_seconds(now)
        if pause_seconds:
            self._last_heard = min(now, self._last_heard + pause_seconds)
        if now >= self._heartbeats.next and self.state is not State.CLOSED:
            self._send_heartbeat(now)
        if now - self._last_heard > self._timeout_seconds:
            self._lose(SchedulerLostError(self._timeout_text()))
            self._last_heard = now

    def _timeout_text(self) -> str:
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
            rows.outgoing += self.objects.pop_messages(self._heartbeats.sequence)
        outgoing, rows.outgoing = rows.outgoing, []
        return outgoing

    # ------------------------------------------------------------------------------------------------- joining, leaving

    def _join(self, welcome: messages.Welcome) -> None:
        """Submit everything that is open, to a scheduler that may have none of it."""
        if self.state is State.CLOSED:
            return
        if self.scheduler is not None and self.scheduler.incarnation != welcome.incarnation:
            self._shutdown.end()  # the one that was to end has
            self.objects.scheduler_changed()
        if self.rejection:
            _log.warning("the scheduler at %s takes this client now", self.address)
            self.rejection = ""
        self.scheduler = welcome
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        self.state = State.JOINED
        self._acks.restart(welcome.result_window)
        self.frame_limit.restart(welcome.message_size_limit)
        self._heartbeats.fit_lease(welcome.lease_seconds, self._last_heard)
        self._rows.restart(welcome.credit)
        self.objects.join(self._rows.outgoing)
        for task_id in self.tasks.ids_to_resubmit():
            sink = self.tasks.sink(task_id)
            self._rows.add_row(task_id, *sink.row(task_id), sink.options)
        self._rows.flush()
        for graph in self.tasks.graphs():
            self.objects.forget_after(graph.first + graph.count - 1, graph.kept_ids())
        self.objects.resend()
        self._cancels.resubmitted()
        self._rows.outgoing += self._cancels.pop_messages()
        if self._suspended:
            self._rows.outgoing.append(messages.Suspended(list(self._suspended)))
        self._rows.outgoing += self._shutdown.messages()

    def _hello_wanted(self, _: messages.HelloWanted) -> None:
        # One hello, though everything that was sent meanwhile is answered like this; another one where it was lost.
        if self.state is State.JOINED or (self.state is State.JOINING and self._awaits_answer):
            self.state = State.JOINING
            self._rows.clear()
            self._rows.outgoing = [self._hello]  # the rest would be answered in the same way
            self._awaits_answer = False

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
        self._rows.clear_rows()
        self._shutdown.end()
        if self.state is State.JOINED:
            self._rows.outgoing += told

    def _fail_new_task(self, sink: ResultSink, task_id: int) -> None:
        """A task that comes when nobody will ever answer."""
        if self.refused is not None:
            sink.fail(task_id, SchedulerLostError(refusal_text(self.address, self.refused)))
        else:
            sink.fail(task_id, ClientClosedError("the client is disconnected"))

    def _send_heartbeat(self, now: float) -> None:
        self._rows.outgoing.append(self._heartbeats.beat(now))
        self._awaits_answer = True

    def _allocate_ids(self, count: int) -> int:
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
        broken = self.tasks.pop_broken_graphs()
        if broken:
            self._recover(broken, message.ids)
        else:
            self._cancels.answer(message.ids)
        if self.state is State.JOINED:
            self._rows.outgoing += self._acks.take(sum(map(len, message.payloads)))

    def _not_sent(self, message: messages.Resolved) -> None:
        """Tasks that have failed without the scheduler."""
        if self.tasks.is_known(message.ids[0]):
            self.tasks.take(message)
            self._cancels.answer(message.ids)

    def _is_named(self, task_id: int) -> bool:
        return self.tasks.is_known(task_id) and self.tasks.sink(task_id).row(task_id)[0].by_name is not None

    def _output(self, message: messages.Output) -> None:
        self.on_output(message)
        if self.state is State.JOINED:
            self._rows.outgoing += self._acks.take(message.size)

    def _recover(self, graphs: Sequence[GraphSink], answered: Sequence[int]) -> None:
        """Targets of these could not read what was lost with some host."""
        again = {task_id for graph in graphs for task_id in graph.open_ids()}
        self._cancels.answer([task_id for task_id in answered if task_id not in again])
        if self.state is not State.JOINED:
            return  # all of it is submitted at the next join
        for graph in graphs:
            submit_again(graph, self._rows, self._backlog, self.objects)
        self._cancels.resubmitted(list(again))
        self._rows.outgoing += self._cancels.pop_messages()

    def _goodbye(self, message: messages.Goodbye) -> None:
        _log.info("the scheduler at %s has left: %s", self.address, message.reason)
        if self._shutdown.is_pending:
            self.scheduler = None  # there is nobody to say goodbye to
            self._shutdown.end()

    def _notice(self, message: messages.Notice) -> None:
        _log.warning("the scheduler at %s: %s", self.address, message.text)

    def _error(self, message: messages.Error) -> None:
        if self._shutdown.is_pending and message.text.startswith(PROTECTED):
            self._shutdown.end(message.text)
        elif message.tasks:
            told = self._rejected_tasks.take(message, self.address)
            if self.state is State.JOINED:
                self._rows.outgoing += told
        elif self.state is State.JOINING:
            if message.text != self.rejection:
                _log.error("%s", rejection_text(self.address, message.text))
            self.rejection = message.text
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


def _ignore_output(_: messages.Output) -> None: ...


def rejection_text(address: str, reason: str) -> str:
    return f"the scheduler at {address} does not take this client for now: {reason}"


def refusal_text(address: str, refused: messages.Refused) -> str:
    if refused.reason == messages.NOT_AUTHORIZED:
        return f"no access to {address}: {refused.text}"
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
