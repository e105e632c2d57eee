"""What a worker knows and says, without sockets, threads or clock: messages in, messages out.

A task waits in `queue`, is `running`, is `suspended` while it waits for its children, and is done: its answer stands in
`answers` until it is sent. `take`, `finish`, `suspend` and `resume` are these steps. The run loop (runner.py) takes and
finishes by hand, as a call for each would cost a no-op a tenth of its time.

The thread that runs tasks and the watcher, which minds the connection while one runs long, share a session. What
they share without a lock are deques, whose ends are safe to use from both, and `running`; everything else happens under
the connection's lock.

With each hello the scheduler counts on nothing that it sent before, except for the tasks that the hello names. So queue
and answers are dropped when it is made, and once more at the welcome. The run loop still holds the old deques: it finds
nothing more in the one, and what it puts into the other goes through `keep_answers`. It reads `queue` first, so that
one is replaced last.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scaler_client.protocol import messages
from scaler_client.protocol.messages import Payload, TaskName
from scaler_worker.objects.table import ObjectTable
from scaler_worker.task_rows import Answer, Cost, ObjectName, Row, name_of
from scaler_worker.worker.dispatch_rows import rows_of

_log = logging.getLogger(__name__)


class WorkerSession:
    def __init__(self, hello: messages.Hello, heartbeat_interval_seconds: float, now: float) -> None:
        self.queue: deque[Row] = deque()
        self.answers: deque[Answer] = deque()
        self.running: Row | None = None
        self.suspended: dict[TaskName, Row] = {}
        self.costs: dict[TaskName, Cost] = {}
        """Of profiled tasks among `answers`; put here first."""
        self.errors: dict[TaskName, str] = {}
        """Likewise of those that have failed."""
        self.tracebacks: dict[TaskName, str] = {}
        """Likewise."""
        self.functions: dict[int, messages.Function] = {}
        """What the scheduler has sent, by its numbers."""
        self.forgotten: deque[int] = deque()
        """Numbers whose loaded functions the executor may drop."""
        self.objects = ObjectTable()
        """What the scheduler has sent for tasks to read, or said to be a file of the host."""
        self.stored: deque[ObjectName] = deque()
        """Results of which tasks have made files since the last heartbeat."""
        self._unconfirmed: deque[tuple[int, list[ObjectName]]] = deque()
        """Earlier ones. The answer to the heartbeat of this number shows that the scheduler has been kept of them."""
        self.stops: list[TaskName] = []
        """Tasks to interrupt, each of which was running or suspended when the scheduler said so; see `pop_stops`."""
        self.refused: messages.Refused | None = None
        self.take_output: Callable[[], messages.Output | None] = lambda: None
        """Called for what tasks have printed, behind everything that has ended by then."""
        self._hello = hello
        self._hello_tasks: frozenset[TaskName] = frozenset()
        """What the last hello named as running: the scheduler expects an answer under that name."""
        self._stopped: set[TaskName] = set()
        """Tasks that run or are suspended, or did lately, and that the scheduler has had stopped."""
        self._stale_stops: set[TaskName] = set()
        """Of those that the last hello named: an earlier scheduler, or one that has forgotten it, had them stopped."""
        self.frame_limit = 0
        """Bytes of one frame that the scheduler takes; 0: any."""
        self._is_joined = False
        self._rejection = ""
        """Why it has not, as the scheduler has said last."""
        self._started_row: Row | None = None
        """The last task that was kept to have started."""
        self._heartbeat_interval_seconds = heartbeat_interval_seconds
        self._next_heartbeat = now + heartbeat_interval_seconds
        self._sequence = 0
        self._has_heartbeat_since_hello = False
        self._outgoing: list[messages.Message] = [hello]

    # ----------------------------------------------------------------------------------------------- a task's steps

    def take(self) -> Row | None:
        """Begin the task that waits longest; None when none does."""
        if not self.queue:
            return None
        self.running = self.queue.popleft()
        return self.running

    def finish(self, outcome: int, payload: Payload, duration: int, cost: Cost | None = None) -> None:
        """The running task has ended. `duration` in nanoseconds; `cost` where it is profiled."""
        assert self.running is not None
        client, task_id, attempt = name_of(self.running)
        self.running = None
        if cost is not None:
            self.costs[client, task_id, attempt] = cost
        self.answers.append((client, task_id, attempt, outcome, duration, payload))

    def report_failure(self, line: str, traceback: str = "") -> None:
        """The running task has failed: one line that says why, and the traceback, for people."""
        if self.running is not None:
            name = name_of(self.running)
            self.errors[name] = line
            if traceback:
                self.tracebacks[name] = traceback

    def suspend(self) -> TaskName:
        """The running task waits for its children: another one may begin."""
        assert self.running is not None
        name = name_of(self.running)
        # In both for a moment: that is where the task can't be interrupted (interruption.py).
        self.suspended[name] = self.running
        self.running = None
        return name

    def resume(self, name: TaskName) -> None:
        """A suspended task goes on."""
        assert self.running is None
        self._started_row = self.running = self.suspended[name]
        del self.suspended[name]

    def started(self, row: Row) -> None:
        """Tell that this task runs: it was asked for, or it has been running for long enough."""
        if self._started_row is not row and self._is_joined:
            self._started_row = row
            client, task_id, attempt = name_of(row)
            self._outgoing.append(messages.Started([task_id], [client], [attempt]))

    def keep_answers(self, answers: deque[Answer]) -> None:
        """Take what was answered into a deque that has been replaced since, as far as anybody wants it."""
        while answers:
            answer = answers.popleft()
            if name_of(answer) in self._hello_tasks:
                self.answers.append(answer)
            else:
                self.costs.pop(name_of(answer), None)
                self.errors.pop(name_of(answer), None)
                self.tracebacks.pop(name_of(answer), None)

    # --------------------------------------------------------------------------------------------------- the connection

    def handle(self, message: messages.Message) -> None:
        """Take a message of the scheduler's."""
        handler = _HANDLERS_JOINED.get(type(message))
        if handler is not None:
            # Before the welcome such a message is an old one, to what this worker was before its hello.
            if self._is_joined:
                handler(self, message)
            return
        handler = _HANDLERS_ALWAYS.get(type(message))
        if handler is not None:
            handler(self, message)

    def pop_stops(self) -> Sequence[TaskName]:
        """What is to be interrupted now."""
        stops, self.stops = self.stops, []
        return stops

    def reconnected(self, now: float) -> None:
        """The connection is a new one: find out whether the scheduler knows it."""
        self._next_heartbeat = now
        self.tick(now)

    def tick(self, now: float) -> None:
        """Send a heartbeat when one is due: a scheduler that was started anew answers that it wants a hello."""
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + self._heartbeat_interval_seconds
            self._sequence += 1
            if self.stored:
                # What was stored just now is kept behind this heartbeat.
                self._unconfirmed.append((self._sequence + 1, self._pop_stored()))
            self._has_heartbeat_since_hello = True
            self._outgoing.append(messages.Heartbeat(self._sequence))

    @property
    def next_deadline(self) -> float:
        return self._next_heartbeat

    def close(self) -> None:
        # The answers first: the scheduler takes none of a worker that has left.
        self._outgoing = [*self.take_outgoing(), messages.Goodbye("the worker ends")]

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        outgoing, self._outgoing = self._outgoing, []
        if not self._is_joined:
            return outgoing
        answers = self.answers
        # One at a time from the left: the running thread may append to the right meanwhile.
        taken = [answers.popleft() for _ in range(len(answers))]
        output = self.take_output()  # before the answers go, and after they were taken: so it is theirs
        if output is not None:
            outgoing.append(output)
        if taken:
            if self._stale_stops:
                return [*outgoing, *self._without_stale(taken)]
            outgoing.append(self._results(taken))
        return outgoing

    def _results(self, taken: list[Answer]) -> messages.Results:
        clients, ids, attempts, outcomes, durations, payloads = map(list, zip(*taken))
        results = messages.Results(clients, ids, attempts, outcomes, durations, payloads)
        if self.costs:
            costs = [self.costs.pop(name, (0, 0)) for name in zip(clients, ids, attempts)]
            if any(map(any, costs)):
                results.cpu_times, results.peaks = map(list, zip(*costs))
        if self.errors:
            errors = [self.errors.pop(name, "") for name in zip(clients, ids, attempts)]
            if any(errors):
                results.errors = errors
        if self.tracebacks:
            tracebacks = [self.tracebacks.pop(name, "") for name in zip(clients, ids, attempts)]
            if any(tracebacks):
                results.tracebacks = tracebacks
        return results

    def _without_stale(self, taken: list[Answer]) -> list[messages.Message]:
        """The answers without those of tasks that were stopped for a scheduler that has taken them over since, and does
        not know: it must give them out again, which it does at a hello that does not name them."""
        stale = [answer for answer in taken if name_of(answer) in self._stale_stops]
        self._stale_stops.difference_update(map(name_of, stale))
        lost = [answer for answer in stale if answer[3] != messages.Outcome.VALUE]
        kept = [answer for answer in taken if answer not in lost]
        sent: list[messages.Message] = [self._results(kept)] if kept else []
        if lost:
            self._rejoin()
            sent += self._outgoing
            self._outgoing = []
        return sent

    # -------------------------------------------------------------------------------------- what the scheduler has said

    def _on_dispatch(self, message: messages.Dispatch) -> None:
        self.queue.extend(rows_of(message, self.objects))

    def _on_object(self, message: messages.Object) -> None:
        self.objects.put((message.client, message.id), message.frames)

    def _on_forget_objects(self, message: messages.ForgetObjects) -> None:
        self.objects.forget(zip(message.clients, message.ids))

    def _on_function(self, message: messages.Function) -> None:
        self.functions[message.number] = message

    def _on_forget_functions(self, message: messages.ForgetFunctions) -> None:
        for number in message.numbers:
            self.functions.pop(number, None)
            self.forgotten.append(number)

    def _on_retract(self, message: messages.Retract) -> None:
        """Take the tasks out of the queue, from whose left end the running thread takes as well."""
        wanted = set(message.tasks)
        returned: set[TaskName] = set()
        kept: list[Row] = []
        queue = self.queue
        while True:
            # Everything comes out at the right, which is safe. When the running thread finds nothing meanwhile, it
            # comes for the connection's lock, and there waits for the rest to be back.
            try:
                row = queue.pop()
            except IndexError:
                break
            if name_of(row) in wanted:
                returned.add(name_of(row))
            else:
                kept.append(row)
        queue.extend(reversed(kept))
        tasks = list(message.tasks)
        self._outgoing.append(messages.Retracted(tasks, [int(name in returned) for name in tasks]))

    def _pop_stored(self) -> list[ObjectName]:
        return [self.stored.popleft() for _ in range(len(self.stored))]  # the running thread may append meanwhile

    def _on_heartbeat_echo(self, echo: messages.HeartbeatEcho) -> None:
        while self._unconfirmed and self._unconfirmed[0][0] <= echo.sequence:
            self._unconfirmed.popleft()

    def _report_stored(self) -> None:
        """Files of which the scheduler may not know: it has the agent remove those that do not count. No dispatch has
        the attempt 0, so that these answers count for none."""
        running = {name[:2] for name in self._hello_tasks}
        names = [name for _, names in self._unconfirmed for name in names] + self._pop_stored()
        self.stored.extend(name for name in names if name in running)  # they are not answered yet
        names = [name for name in names if name not in running]
        self._unconfirmed.clear()
        if names:
            self._unconfirmed.append((self._sequence + 1, names))
            clients, ids = map(list, zip(*names))
            zeros = [0] * len(names)
            sizes: list[Payload] = [bytes(8)] * len(names)
            outcomes = [messages.Outcome.STORED.value] * len(names)
            self._outgoing.append(messages.Results(clients, ids, zeros, outcomes, zeros, sizes))

    def _on_stop(self, message: messages.Stop) -> None:
        running = self.running
        running_name = None if running is None else name_of(running)
        stops = [name for name in message.tasks if name == running_name or name in self.suspended]
        self.stops += stops
        self._stale_stops.difference_update(stops)
        self._stopped = {name for name in self._stopped if name == running_name or name in self.suspended}
        self._stopped.update(stops)

    def _on_welcome(self, welcome: messages.Welcome) -> None:
        self.frame_limit = welcome.message_size_limit
        # There is something to drop where a second hello has crossed the first one's welcome.
        self._is_joined = True
        if self._rejection:
            _log.warning("the scheduler takes worker %s now", self._hello.name)
            self._rejection = ""
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        self.forgotten.extend(self.functions)
        self.functions.clear()
        self.objects.clear()
        self.queue.clear()
        answers, self.answers = self.answers, deque()
        self.queue = deque()
        self.keep_answers(answers)
        self._report_stored()

    def _on_hello_wanted(self, _: messages.HelloWanted) -> None:
        # Each message to a scheduler started anew is answered so. One hello is enough for all of them, unless it went
        # the way of the connection: a heartbeat behind it shows that.
        if self._is_joined or self._has_heartbeat_since_hello:
            self._rejoin()

    def _rejoin(self) -> None:
        """Say hello, naming what runs."""
        self._is_joined = False
        self._has_heartbeat_since_hello = False
        self.queue.clear()
        # Before the names are read: what ends between the two is not named, and so dropped by `keep_answers`.
        self.answers.clear()
        self.costs.clear()
        self.errors.clear()
        self.tracebacks.clear()
        running = self.running
        names = [*self.suspended] if running is None else [*self.suspended, name_of(running)]
        self._hello_tasks = frozenset(names)
        self._stale_stops = self._stopped.intersection(names)
        self.answers = deque()
        self.queue = deque()
        self._outgoing = [replace(self._hello, running=names)]

    def _on_refused(self, message: messages.Refused) -> None:
        self.refused = message

    def _on_error(self, message: messages.Error) -> None:
        if self._is_joined:
            _log.error("the scheduler refused a message: %s", message.text)
        elif message.text != self._rejection:
            self._rejection = message.text
            text = "the scheduler does not take worker %s for now, which goes on asking: %s"
            _log.error(text, self._hello.name, message.text)


_HANDLERS_JOINED: dict[type, Callable[[WorkerSession, Any], None]] = {
    messages.Dispatch: WorkerSession._on_dispatch,
    messages.Function: WorkerSession._on_function,
    messages.ForgetFunctions: WorkerSession._on_forget_functions,
    messages.Object: WorkerSession._on_object,
    messages.ForgetObjects: WorkerSession._on_forget_objects,
    messages.Retract: WorkerSession._on_retract,
    messages.Stop: WorkerSession._on_stop,
    messages.HeartbeatEcho: WorkerSession._on_heartbeat_echo,
}

_HANDLERS_ALWAYS: dict[type, Callable[[WorkerSession, Any], None]] = {
    messages.Welcome: WorkerSession._on_welcome,
    messages.HelloWanted: WorkerSession._on_hello_wanted,
    messages.Refused: WorkerSession._on_refused,
    messages.Error: WorkerSession._on_error,
}
