"""The client's side of the conversation with the scheduler, sans-IO: messages in, messages out.

The session keeps every task until its answer arrives. So it can submit open tasks again after a lost connection, and to
a new scheduler after a restart. The same scheduler ignores ids that it already has.
"""

from __future__ import annotations

import enum
import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from ..environments.environment import Environment, contents_messages
from ..errors import ClientClosedError, SchedulerLostError
from ..futures.kept_results import FetchedValue, KeptFuture, KeptResult
from ..pickling.functions import Function
from ..pickling.references import Call, StoredObject
from ..protocol import messages
from ..protocol.messages import Frames, TaskAttempt
from .backlog import BATCH_ROWS, Backlog
from .cancels import Cancels
from .frame_limit import FrameLimit, fits_limit
from .graph_recovery import resubmit_graph
from .held_objects import HeldObjects
from .kept_values import KeptValues
from .liveness import Liveness
from .map_feed import MapFeeds
from .open_tasks import OpenTasks
from .rejected_tasks import RejectedTasks
from .result_acks import ResultAcks
from .result_sinks import BLOCK_IDS, GraphSink, ResultSink, SingleSink
from .shutdown_request import PROTECTED, ShutdownRequest
from .submit_batch import SubmitBatch
from .task_inputs import TaskInputs

_log = logging.getLogger(__name__)


class State(enum.Enum):
    JOINING = "joining"
    JOINED = "joined"
    CLOSED = "closed"


_JOINED = State.JOINED  # looked up once a task
_FILE = messages.Outcome.FILE.value


class Session:
    """One client's conversation with its scheduler.

    Args:
        hello: introduces the client at each join.
        address: the scheduler's address, for texts.
        heartbeat_interval_seconds: the wanted time between two heartbeats.
        timeout_seconds: a scheduler that is silent for longer is lost, and all open tasks fail.
        now: the current time, by any monotonic clock. Later calls take the time from the same clock.
    """

    def __init__(
        self, hello: messages.Hello, address: str, heartbeat_interval_seconds: float, timeout_seconds: float, now: float
    ) -> None:
        self.state = State.JOINING
        self.address = address
        self.scheduler: messages.Welcome | None = None
        """The scheduler that has accepted this client; None: none has yet."""
        self.refused: messages.Refused | None = None
        """The scheduler's final refusal of this client."""
        self.rejection = ""
        """Why the scheduler does not accept this client for now; empty: it accepts the client, or has not answered."""
        self.loss: SchedulerLostError | None = None
        """Why the client last gave up its open tasks; None: it never did."""
        self.on_join_result: Callable[[], None] = _ignore
        """Called when the scheduler has accepted or refused the client."""
        self.on_output: Callable[[messages.Output], None] = _ignore
        """Called with the output of tasks. It must not block."""
        self.file_shortage: Callable[[], str] = str
        """Returns why this process can't open a connection; empty: it can."""
        self.tasks = OpenTasks()
        self.pending = self.tasks.single
        self._hello = hello
        self._timeout_seconds = timeout_seconds
        self._is_silence_logged = False
        self._liveness = Liveness(heartbeat_interval_seconds, timeout_seconds, now)
        self._expects_answer = False
        """Whether a message followed the last hello. A scheduler answers this message even if the hello was lost."""
        self._next_id = 0
        self._suspended: dict[TaskAttempt, None] = {}
        self._environments: weakref.WeakValueDictionary[str, Environment] = weakref.WeakValueDictionary()
        """The environments that tasks may need, by name. Functions hold them."""
        self.feeds = MapFeeds()
        backlog = Backlog()
        self._batch = SubmitBatch(backlog)
        self._batch.outgoing.append(hello)
        self.objects = HeldObjects(backlog)
        self._inputs = TaskInputs(self._batch, self.objects, self.tasks, self._new_id)
        self._kept_values = KeptValues(self.tasks, self.objects, self._inputs)
        self._batch.bind_call = self._inputs.bind_call
        self._acks = ResultAcks()
        self._host_questions: dict[int, Callable[[messages.HeartbeatEcho | None], None]] = {}
        """Questions about the hosts, by the numbers of their heartbeats."""
        self._shutdown = ShutdownRequest()
        self._cancels = Cancels(self.tasks, backlog)
        self._rejected_tasks = RejectedTasks(self.tasks, self._cancels, self._batch)
        self.frame_limit = FrameLimit(backlog, self._rejected_tasks.resolve, self._rejected_tasks.is_named)

    @property
    def incarnation(self) -> int:
        """The client's incarnation."""
        return self._hello.incarnation

    @property
    def is_used(self) -> bool:
        """Whether the program needs this session even without its client: for open tasks, and for kept results."""
        return not self.tasks.is_empty or self.objects.has_kept_results

    # ------------------------------------------------------------------------------------------------- from the client

    def submit(self, sink: SingleSink, function: Function, payload: Call) -> int:
        """Submit a task without options; return its id.

        For payloads without inputs this repeats `submit_with_options` and `SubmitBatch.add_row` inline: two calls less
        per task (benchmarks/submit_rate.py).
        """
        if type(payload) is not bytes:  # a CallWithInputs
            return self.submit_with_options(sink, function, payload)
        task_id = self._next_id
        self._next_id = task_id + 1
        self.pending[task_id] = sink
        if self.state is _JOINED:
            batch = self._batch
            if function is not batch.last_function:
                batch.use_function(function, None)
            batch.ids.append(task_id)
            batch.functions.append(function.number)
            batch.payloads.append(payload)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._fail_new_task(sink, task_id)
        return task_id

    def submit_with_options(self, sink: SingleSink, function: Function, call: Call) -> int:
        """Submit a task with the options of its sink; return its id. The members of a gang have the ids behind it."""
        task_id = self._next_id
        self._next_id = task_id + (1 if sink.options is None else sink.options.gang_size or 1)
        self.pending[task_id] = sink
        if self.state is State.JOINED:
            self._batch.add_row(task_id, function, call, sink.options)
        elif self.state is State.CLOSED:
            del self.pending[task_id]
            self._fail_new_task(sink, task_id)
        return task_id

    def submit_kept(self, future: KeptFuture[Any], sink: SingleSink | None = None) -> int:
        """Submit a task whose result stays on its host; return its id.

        Args:
            future: the future of the task.
            sink: what takes the answers; None: the future.
        """
        stored = future.stored
        future.task_id = stored.id = self.submit_with_options(sink or future, *future.row(-1))
        if self.state is not State.CLOSED:
            stored.known_in_join = self.objects.joins
            self.objects.hold(stored)
        return future.task_id

    def fetch_values(self, wanted: Iterable[tuple[KeptResult, FetchedValue[Any]]]) -> None:
        """Fetch the values of kept results."""
        self._kept_values.fetch(wanted)
        if self.state is State.CLOSED:
            self._kept_values.close()

    def submit_graph(self, sink: GraphSink) -> None:
        """Submit tasks that read one another's results. Each task comes after the tasks whose results it reads."""
        first = self._allocate_ids(sink.count)
        sink.set_first_id(first)
        if self.state is State.CLOSED:
            for task_id in sink.open_ids():
                self._fail_new_task(sink, task_id)
            return
        self.tasks.add_graph(sink)
        if self.state is State.JOINED:
            self._batch.flush()
            self._inputs.bind(sink.objects(), first + sink.count - 1)
            for function in sink.functions():
                self._batch.use_function(function, sink.options)
            rows = sink.batch()
            rows.keep_earlier = self._batch.pop_keep_earlier()
            self._batch.backlog.add(rows, self._batch.outgoing)
            self.objects.forget_after(first + sink.count - 1, sink.kept_ids())

    def send_object(self, stored: StoredObject) -> None:
        """Send a new object, ahead of the tasks that are submitted later."""
        stored.id = self._new_id()
        if self.state is State.CLOSED:
            stored.drop()
            return
        if self.state is State.JOINED:
            self._batch.flush()
            # Send the objects to forget first, because they make room at the scheduler for this object.
            self._batch.outgoing += self.objects.pop_messages(
                self._liveness.sequence, self._batch.ids[0] if self._batch.ids else None
            )
        self.objects.add(stored, self._batch.outgoing if self.state is State.JOINED else None)

    def forget_object(self, stored: StoredObject) -> None:
        """Drop an object without references."""
        self.objects.forget(stored)

    def use_environment(self, environment: Environment) -> None:
        """Send an environment, ahead of the tasks that are submitted later. The caller holds it."""
        self._environments[environment.name] = environment
        if self.state is State.JOINED:
            self._send(environment.message())

    def forget_function(self, number: int) -> None:
        """Drop the function of this number: no task calls it any more."""
        if self.state is State.JOINED:
            self._send(messages.ForgetFunctions([number]))

    def shut_down(self, on_answer: Callable[[str | None], None]) -> None:
        """Ask the scheduler to end.

        Args:
            on_answer: called once: with None when the scheduler ends, or with the reason why it does not.
        """
        self._shutdown.add(on_answer)
        if self.state is State.CLOSED:
            self._shutdown.answer()
        elif self.state is State.JOINED:
            self._batch.outgoing += self._shutdown.messages()

    def cancel(self, ids: Sequence[int], on_answer: Callable[[], None], force: bool = False) -> None:
        """Cancel tasks that have not begun.

        Args:
            on_answer: called once for each of these tasks that is open, when its outcome is known.
            force: interrupt tasks that run, too.
        """
        self._cancels.add(ids, on_answer, force)
        if self.state is State.JOINED:
            self._batch.outgoing += self._cancels.pop_messages()

    @property
    def has_open_tasks(self) -> bool:
        """Whether tasks have no answer yet. Any thread may call this."""
        return bool(self.tasks or len(self.feeds))

    def stop_children(self, parent: TaskAttempt) -> None:
        """Cancel all tasks that this task has submitted, and interrupt the running ones."""
        self.feeds.cancel_children(parent)
        ids = self.tasks.child_ids(parent)
        if ids:
            self.cancel(ids, _ignore, force=True)

    def clear(self, on_done: Callable[[], None]) -> None:
        """Cancel all tasks that have not begun, and drop all objects.

        Args:
            on_done: called when the outcome of all tasks is known.
        """
        self.feeds.cancel_all()
        self._clear(self.tasks.ids(), self.objects.clear, on_done)

    def clear_children(self, parent: TaskAttempt | None, on_done: Callable[[], None]) -> None:
        """Cancel the tasks that one task has submitted and that have not begun, and drop the objects that it has sent.

        Args:
            parent: the task; None: everything that was submitted and sent outside of tasks.
            on_done: called when the outcome of these tasks is known.
        """
        self.feeds.cancel_children(parent)
        self._clear(self.tasks.child_ids(parent), lambda: self.objects.clear_sent_by(parent), on_done)

    def _clear(self, ids: Sequence[int], clear_objects: Callable[[], None], on_done: Callable[[], None]) -> None:
        steps_left = len(ids) + 1

        def finish_step() -> None:
            nonlocal steps_left
            steps_left -= 1
            if not steps_left:
                on_done()

        self.cancel(ids, finish_step)
        clear_objects()
        finish_step()

    def suspend(self, name: TaskAttempt) -> None:
        """Report that a task of this client's worker waits for tasks that it has submitted before."""
        self._suspended[name] = None
        if self.state is State.JOINED:
            self._send(messages.Suspended([name]))

    def resume(self, name: TaskAttempt) -> None:
        """Report that a suspended task runs again."""
        self._suspended.pop(name, None)
        if self.state is State.JOINED:
            self._send(messages.Resumed([name]))

    def forward_output(self, forward: Callable[[list[TaskAttempt], messages.Output], None]) -> None:
        """From now on forward the output of child tasks, instead of calling `on_output`.

        Args:
            forward: called with the parent task of each row, and the rows. It must not block.
        """

        def forward_known(output: messages.Output) -> None:
            parents = map(self.tasks.parent, output.ids)
            known = [(parent, row) for row, parent in enumerate(parents) if parent is not None]
            if known:
                forward([parent for parent, _ in known], output.rows([row for _, row in known]))

        self.on_output = forward_known

    def ask_hosts(self, on_answer: Callable[[messages.HeartbeatEcho | None], None], now: float) -> None:
        """Ask the scheduler about the hosts.

        Args:
            on_answer: called once: with the answer, or with None if this client is not joined or loses its scheduler.
            now: the current time.
        """
        if self.state is not State.JOINED:
            on_answer(None)
            return
        heartbeat = self._liveness.heartbeat(now)
        heartbeat.wants_hosts = True
        self._host_questions[heartbeat.sequence] = on_answer
        self._batch.outgoing.append(heartbeat)
        self._expects_answer = True

    def _drop_host_questions(self) -> None:
        questions, self._host_questions = self._host_questions, {}
        for on_answer in questions.values():
            on_answer(None)

    def close(self, reason: str) -> None:
        """Leave the scheduler, which cancels the unfinished tasks.

        Args:
            reason: for the scheduler's log.
        """
        self._batch.outgoing.append(messages.Goodbye(reason))
        self.state = State.CLOSED
        self._drop_host_questions()
        self._batch.clear()
        self._batch.last_function = None  # a function's finalizer refers to this session: a cycle
        self.objects.close()
        self._inputs.is_joined = False
        self._kept_values.close()
        self._shutdown.answer()
        ids = self.tasks.ids()
        left = 0
        for task_id in ids:
            options = self.tasks.sink(task_id).options
            if not self._cancels.is_requested(task_id):
                left += 1 if options is None else options.calls or 1
        if left and not self._hello.worker:  # a worker cancels the tasks of its ended tasks without a word
            text = "%d open %s cancelled, because this client has left the scheduler at %s: %s"
            _log.warning(text, left, "task was" if left == 1 else "tasks were", self.address, reason)
        why = f"the client has left the scheduler: {reason}".encode()
        for task_id in ids:
            self.tasks.resolve(task_id, messages.Outcome.CANCELLED, why)
        self._cancels.answer(ids)

    # --------------------------------------------------------------------------------------------- from the connection

    def handle(self, message: messages.Message, now: float) -> None:
        """Process a message from the scheduler."""
        self._liveness.last_heard = now
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(self, message)

    def reconnected(self, now: float) -> None:
        """Find out whether the scheduler still knows this client, after the connection was lost and made again."""
        if self.state is not State.CLOSED:
            self._send_heartbeat(now)

    def reject_connection(self, text: str, now: float) -> None:
        """Close the session, because no connection is possible: the keys do not match.

        Args:
            text: the problem of the keys, for the user.
        """
        if self.refused is None:
            self.handle(messages.Refused(messages.NOT_AUTHORIZED, text, 0, ""), now)

    def tick(self, now: float) -> None:
        """Send a heartbeat if one is due; give up the open tasks if the scheduler was silent for too long."""
        liveness = self._liveness
        if now >= liveness.next_heartbeat and self.state is not State.CLOSED:
            self._send_heartbeat(now)
        if liveness.is_timed_out(now):
            self._lose_scheduler(SchedulerLostError(self._timeout_text()))
            liveness.last_heard = now
            self._is_silence_logged = False
        elif (
            self.scheduler is not None
            and not liveness.is_late
            and liveness.is_silent(now) is not self._is_silence_logged
        ):
            self._log_silence(now)

    @property
    def next_deadline(self) -> float:
        """The time at which `tick` must be called next."""
        timeout = self._liveness.last_heard + self._timeout_seconds
        return timeout if self.state is State.CLOSED else min(self._liveness.next_heartbeat, timeout)

    def pop_outgoing(self) -> list[messages.Message]:
        """Return the messages to send now, in this order."""
        # Without credit the batch keeps growing, so that a client that submits one task at a time does not make many
        # small batches.
        batch = self._batch
        if batch.ids and (batch.backlog.is_open or len(batch.ids) >= BATCH_ROWS):
            batch.flush()
        if self.state is _JOINED:
            batch.outgoing += self._kept_values.pop_messages()
            batch.outgoing += self.objects.pop_messages(
                self._liveness.sequence, self._batch.ids[0] if self._batch.ids else None
            )
        outgoing, batch.outgoing = batch.outgoing, []
        return [self._shared(message) if type(message) is messages.Object else message for message in outgoing]

    def _shared(self, message: messages.Object) -> messages.Object:
        """Return the object, or a message without its frames if they are in a file now."""
        if message.is_wanted or message.file_bytes or self.scheduler is None or not self.scheduler.takes_files:
            return message
        return self.objects.share(message) if fits_limit(message.frames, self.frame_limit.bytes) else message

    def pop_frames(self) -> list[Frames]:
        """Return the messages to send now as ZeroMQ frames, split by the scheduler's limit."""
        frames = []
        encode = self.frame_limit.encode
        while True:
            for message in self.pop_outgoing():
                frames += encode(message)
            if not self.frame_limit.pop_freed():
                return frames
            self._batch.backlog.grant(0, self._batch.outgoing)  # sends what waited behind rows that are too large

    def _send(self, message: messages.Message) -> None:
        """Send a message after all tasks that were submitted before."""
        self._batch.flush()
        self._batch.outgoing.append(message)

    def _send_heartbeat(self, now: float) -> None:
        if self.state is State.JOINED:
            self._batch.outgoing += self._acks.rest()
            self.objects.files.remove_results(self.tasks.is_known)
        self._batch.outgoing.append(self._liveness.heartbeat(now))
        self._expects_answer = True

    def _log_silence(self, now: float) -> None:
        """Log that the scheduler does not answer although there are open tasks, or that it answers again."""
        if self._is_silence_logged:
            self._is_silence_logged = False
            _log.warning("the scheduler at %s answers again", self.address)
        elif self.tasks.count():
            self._is_silence_logged = True
            left = self._liveness.last_heard + self._timeout_seconds - now
            _log.warning("the scheduler at %s does not answer; open tasks fail in %.0f s", self.address, left)

    def _timeout_text(self) -> str:
        shortage = self.file_shortage()
        text = f"no scheduler at {self.address} for {self._timeout_seconds:g} seconds"
        return f"{text}: {shortage}" if shortage else text

    # ------------------------------------------------------------------------------------------------- joining, leaving

    def _handle_welcome(self, welcome: messages.Welcome) -> None:
        """Submit all open tasks and objects, because the scheduler may have none of them.

        Several hellos bring several welcomes. If the client has joined this scheduler already, everything that it has
        submitted since arrives behind the other hello. To submit it again would run tasks again whose answers are on
        their way.
        """
        if self.state is State.CLOSED:
            return
        if self._has_joined(welcome):
            self._acks.restart(welcome.result_window)
            self._batch.backlog.grant(welcome.credit, self._batch.outgoing)
            return
        is_another = self._hello.scheduler not in (0, welcome.incarnation)
        if self.scheduler is not None and self.scheduler.incarnation != welcome.incarnation:
            self._shutdown.answer()  # the scheduler that was to end has ended
            self.objects.scheduler_changed()
        if self.rejection:
            _log.warning("the scheduler at %s accepts this client now", self.address)
            self.rejection = ""
        self.scheduler = welcome
        self._drop_host_questions()
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        self.state = State.JOINED
        self._inputs.is_joined = True
        self._acks.restart(welcome.result_window)
        self.frame_limit.restart(welcome.message_size_limit)
        self.objects.files.take_results()
        self._liveness.fit_lease(welcome.lease_seconds)
        self._batch.restart(welcome.credit)
        self._batch.outgoing += [environment.message() for environment in list(self._environments.values())]
        self._submit_open_tasks(is_another)
        self.objects.resend_forgotten()
        self._cancels.repeat()
        outgoing = self._batch.outgoing
        outgoing += self._cancels.pop_messages()
        if self._suspended:
            outgoing.append(messages.Suspended(list(self._suspended)))
        outgoing += self._shutdown.messages()
        self.feeds.set_worker_count(welcome.workers)
        self.on_join_result()

    def _has_joined(self, welcome: messages.Welcome) -> bool:
        """Whether this welcome repeats the one by which the client has joined."""
        joined = self.scheduler
        return self.state is State.JOINED and joined is not None and joined.incarnation == welcome.incarnation

    def _submit_open_tasks(self, is_another_scheduler: bool) -> None:
        self.objects.send_all(self._batch.outgoing, self.scheduler is not None and self.scheduler.takes_files)
        if is_another_scheduler:
            self.objects.claim(self.tasks.single, self._batch.outgoing)
        self._inputs.restart()
        self._kept_values.restart()
        bound: set[GraphSink] = set()
        for task_id in self.tasks.ids_to_resubmit():
            graph = self.tasks.graph(task_id)
            if graph is not None and graph not in bound:  # not before the rows whose results it reads
                bound.add(graph)
                self._inputs.bind(graph.objects(), graph.first + graph.count - 1)
            sink = self.tasks.sink(task_id)
            self._batch.add_row(task_id, *sink.row(task_id), sink.options)
        self._batch.flush()
        for graph in self.tasks.graphs():
            self.objects.forget_after(graph.first + graph.count - 1, graph.kept_ids())

    def _handle_hello_wanted(self, _: messages.HelloWanted) -> None:
        # A scheduler that does not know this client answers each message like this. Only the first answer makes the
        # client send a hello. A later answer does so if that hello was lost.
        if self.state is State.JOINED or (self.state is State.JOINING and self._expects_answer):
            self.state = State.JOINING
            self._inputs.is_joined = False
            self._batch.clear()
            self._batch.outgoing = [self._hello]  # other messages would get the same answer
            self._expects_answer = False

    def _handle_refused(self, refused: messages.Refused) -> None:
        self.refused = refused
        self.state = State.CLOSED
        self.objects.close()
        self._lose_scheduler(SchedulerLostError(refusal_text(self.address, refused)))
        self.on_join_result()

    def _handle_goodbye(self, message: messages.Goodbye) -> None:
        _log.info("the scheduler at %s has left: %s", self.address, message.reason)
        if self._shutdown.is_pending:
            self.scheduler = None  # this client's goodbye has no receiver
            self._shutdown.answer()

    def _lose_scheduler(self, error: SchedulerLostError) -> None:
        """Fail all open tasks with this error."""
        self.loss = error
        self._drop_host_questions()
        made_again = self.tasks.ids_made_again()
        ids = self.tasks.fail(error)
        self._kept_values.fail(error)
        self._cancels.answer(ids)
        # Kept results are made again under the same ids: a late cancel would hit the next task that makes them.
        cancels = self._cancels.abandon([task_id for task_id in ids if task_id not in made_again])
        self._batch.clear_rows()
        self._shutdown.answer()
        if self.state is State.JOINED:
            self._batch.outgoing += cancels

    def _fail_new_task(self, sink: ResultSink, task_id: int) -> None:
        """Fail a task that was submitted after the session was closed."""
        if self.refused is not None:
            sink.fail(task_id, SchedulerLostError(refusal_text(self.address, self.refused)))
        else:
            sink.fail(task_id, ClientClosedError("the client is disconnected"))

    # ---------------------------------------------------------------------------------------------- answers and errors

    def _handle_resolved(self, message: messages.Resolved) -> None:
        received = sum(map(len, message.payloads))
        if _FILE in message.outcomes:
            received += self._take_files(message)
        self._kept_values.refuse(message)
        self.tasks.resolve_all(message)
        self._batch.backlog.drop_answered(message.ids, message.outcomes)
        self._inputs.send_available()
        self._kept_values.advance()
        broken, singles = self.tasks.pop_broken_graphs(), self.tasks.pop_broken_singles()
        if broken or singles:
            self._recover(broken, singles, message.ids)
        else:
            self._cancels.answer(message.ids)
        if self.state is State.JOINED:
            self._batch.outgoing += self._acks.acknowledge(received)

    def _take_files(self, message: messages.Resolved) -> int:
        """Put results that are files of this client in the place of their names. Return the bytes of these files."""
        message.outcomes, message.payloads = list(message.outcomes), list(message.payloads)
        file_bytes = 0
        for row, outcome in enumerate(message.outcomes):
            if outcome == _FILE and self.tasks.is_known(message.ids[row]):  # else its answer is repeated
                result = messages.FileResult.unpack(message.payloads[row])
                file_bytes += result.size
                taken = self.objects.files.take_result(result)
                if taken is None:
                    message.outcomes[row] = messages.Outcome.RESULT_FAILED
                    message.payloads[row] = b"the file with the result, in this client's directory, is gone or damaged"
                else:
                    message.outcomes[row] = messages.Outcome.VALUE
                    message.payloads[row] = cast(messages.Payload, taken)  # `Function.read_answer` knows a ResultFile
        return file_bytes

    def _handle_output(self, message: messages.Output) -> None:
        self.on_output(message)
        if self.state is State.JOINED:
            self._batch.outgoing += self._acks.acknowledge(message.size)

    def _handle_forget_objects(self, message: messages.ForgetObjects) -> None:
        self._kept_values.note_lost(message.ids)
        self.objects.dropped_by_scheduler(message.ids)

    def _handle_fetch_objects(self, message: messages.FetchObjects) -> None:
        self._inputs.send_wanted(self.objects.send_wanted(message.ids, self._batch.outgoing))

    def _handle_credit(self, message: messages.Credit) -> None:
        if self.state is State.JOINED:
            self._batch.flush_if_urgent()
            self._batch.backlog.grant(message.bytes, self._batch.outgoing)

    def _recover(self, graphs: Sequence[GraphSink], singles: Sequence[int], answered: Sequence[int]) -> None:
        """Submit graphs and tasks again that could not read results that were lost with a host."""
        resubmitted = {*singles, *(task_id for graph in graphs for task_id in graph.open_ids())}
        self._cancels.answer([task_id for task_id in answered if task_id not in resubmitted])
        if self.state is not State.JOINED:
            return  # the next join submits all open tasks
        for graph in graphs:
            resubmit_graph(graph, self._batch, self.objects, self._inputs)
        self._inputs.submit_again([(task_id, self.tasks.single[task_id]) for task_id in singles])
        self._cancels.repeat(list(resubmitted))
        self._batch.outgoing += self._cancels.pop_messages()

    def _handle_heartbeat_echo(self, message: messages.HeartbeatEcho) -> None:
        self.objects.confirm(message.sequence)
        if message.ticket:
            self.objects.files.take_ticket(message.ticket)
        if self._host_questions:
            on_answer = self._host_questions.pop(message.sequence, None)
            if on_answer is not None:
                on_answer(message)
        self.feeds.set_worker_count(message.workers)

    def _handle_contents_wanted(self, message: messages.ContentsWanted) -> None:
        if self.state is State.JOINED:
            self._batch.outgoing += contents_messages(list(self._environments.values()), message.names)

    def _handle_notice(self, message: messages.Notice) -> None:
        _log.warning("the scheduler at %s: %s", self.address, message.text)

    def _handle_error(self, message: messages.Error) -> None:
        if self._shutdown.is_pending and message.text.startswith(PROTECTED):
            self._shutdown.answer(message.text)
        elif message.tasks:
            cancels = self._rejected_tasks.reject(message, self.address)
            if self.state is State.JOINED:
                self._batch.outgoing += cancels
        elif self.state is State.JOINING:
            if message.text != self.rejection:
                _log.error("%s", rejection_text(self.address, message.text))
            self.rejection = message.text
        else:
            _log.error("the scheduler at %s refused a message: %s", self.address, message.text)

    _handlers: ClassVar[dict[type, Callable[[Session, Any], None]]] = {
        messages.Resolved: _handle_resolved,
        messages.Started: lambda self, message: self.tasks.start(message.ids),
        messages.CancelRefused: lambda self, message: self._cancels.refuse(message.ids),
        messages.Output: _handle_output,
        messages.Object: lambda self, message: self._kept_values.receive(message),
        messages.ForgetObjects: _handle_forget_objects,
        messages.FetchObjects: _handle_fetch_objects,
        messages.Credit: _handle_credit,
        messages.Welcome: _handle_welcome,
        messages.HelloWanted: _handle_hello_wanted,
        messages.Refused: _handle_refused,
        messages.Goodbye: _handle_goodbye,
        messages.HeartbeatEcho: _handle_heartbeat_echo,
        messages.Error: _handle_error,
        messages.ContentsWanted: _handle_contents_wanted,
        messages.Notice: _handle_notice,
    }

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _allocate_ids(self, count: int) -> int:
        """Return the first of `count` consecutive ids. They begin at a multiple of BLOCK_IDS.

        So one table entry finds BLOCK_IDS tasks: a million entries would cost more than a million results. The rest of
        the last block stays unused, because every answer for an id of a block goes to the block's sink.
        """
        first = self._next_id + BLOCK_IDS - 1 & -BLOCK_IDS
        self._next_id = first + count + BLOCK_IDS - 1 & -BLOCK_IDS
        return first


def _ignore(*_: object) -> None: ...


def rejection_text(address: str, reason: str) -> str:
    """Return the error text for a scheduler that does not accept this client for now."""
    return f"the scheduler at {address} does not accept this client for now: {reason}"


def refusal_text(address: str, refused: messages.Refused) -> str:
    """Return the error text for a scheduler that has refused this client."""
    if refused.reason == messages.NOT_AUTHORIZED:
        return f"no access to {address}: {refused.text}"
    return (
        f"the scheduler at {address} (version {refused.version}, protocol version {refused.protocol_version}) refuses "
        f"this client (protocol version {messages.PROTOCOL_VERSION}): {refused.text}"
    )
