"""The protocol of a worker, without sockets, threads or clock: messages in, messages out.

The life of a task: it waits in `queue`, then it is `running`. It is `suspended` while it waits for its children. Its
answer is in `answers` until the answer is sent. `take`, `finish`, `suspend` and `resume` are the steps. The run loop
(runner.py) repeats `take` and `finish` inline: two calls would cost a no-op task a tenth of its time.

Two threads share a session: the thread that runs tasks, and the long-task watcher. Without a lock they share `running`
and the deques, whose ends both threads can use safely. All other access needs the connection's lock.

After a hello, the scheduler counts only on the tasks that the hello names: those that run or are suspended, and those
that have ended and whose answers may be lost. So the session replaces queue and answers when it makes a hello, and
again at the welcome. The run loop still holds the old deques. It finds nothing more in the old queue. Answers that it
puts into the old deque go through `keep_answers`. The run loop reads `queue` before `answers`, so the session replaces
`queue` last.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scaler_client.protocol import messages
from scaler_client.protocol.messages import FLAG_MAY_STORE, FLAG_STORE_SMALL, Payload, TaskAttempt
from scaler_worker.objects.table import ObjectTable
from scaler_worker.sent_answers import VALUES, SentAnswers, is_final
from scaler_worker.task_rows import (
    Answer,
    Cost,
    Result,
    Row,
    attempt_of,
    booking_number,
    booking_of,
    flags_of,
    without_booking,
)
from scaler_worker.worker.dispatch_rows import rows_of
from scaler_worker.worker.processor_wait import without_waits

IDLE_INTERVALS = 5
"""An idle worker sends a heartbeat after so many intervals: its agent renews its lease, and a new connection is noticed
at once. A heartbeat every 2 s from each of 1,000 idle workers would be the larger part of what they cost."""

_log = logging.getLogger(__name__)


class WorkerSession:
    """The session of one worker with the scheduler."""

    def __init__(self, hello: messages.Hello, heartbeat_interval_seconds: float, now: float) -> None:
        self.queue: deque[Row] = deque()
        self.waited_ns = 0
        """For how long the tasks of `answers` have waited for a processor, in nanoseconds."""
        self.answers: deque[Answer] = deque()
        self.running: Row | None = None
        self.handed: dict[TaskAttempt, list[Result]] = {}
        """Rows in the queue whose results rows behind them read. The result is put into the list. The run loop keeps a
        reference to this dict."""
        self.kept_functions: set[int] = set()
        """Functions of which other tasks may read some results: none of their results is a file of its client."""
        self.suspended: dict[TaskAttempt, Row] = {}
        self.costs: dict[TaskAttempt, Cost] = {}
        """The costs of profiled tasks among `answers`. A cost is put here before the answer."""
        self.errors: dict[TaskAttempt, str] = {}
        """One line for each failed task among `answers`. Put here before the answer."""
        self.tracebacks: dict[TaskAttempt, str] = {}
        """Tracebacks of failed tasks among `answers`. Put here before the answer."""
        self.calls: dict[TaskAttempt, int] = {}
        """The number of calls that have ended, of rows among `answers` that stand for several. Put here before the
        answer."""
        self.functions: dict[int, messages.Function] = {}
        """The functions that the scheduler has sent, by their numbers."""
        self.gangs: dict[TaskAttempt, messages.GangMember] = {}
        """The places of members of gangs that are queued or run here."""
        self.exchanges: dict[TaskAttempt, messages.Exchange] = {}
        """The values that members have given to the others, until the answer has come."""
        self.exchanged: dict[TaskAttempt, messages.Exchange] = {}
        """The last answers."""
        self.latches: dict[TaskAttempt, threading.Lock] = {}
        """Locks on which members wait for such an answer. It releases them."""
        self.forgotten: deque[int] = deque()
        """Numbers whose loaded functions the executor may drop."""
        self.objects = ObjectTable()
        """The objects that tasks read: sent by the scheduler, or files of the host."""
        self.stops: list[TaskAttempt] = []
        """Tasks to interrupt. Each was running or suspended when the scheduler's Stop came."""
        self.refused: messages.Refused | None = None
        self.take_output: Callable[[], messages.Output | None] = lambda: None
        """Returns the output of tasks.

        Called after the answers are taken, so that the output of their tasks is complete.
        """
        self._hello = hello
        self._hello_tasks: frozenset[TaskAttempt] = frozenset()
        """The tasks that the last hello has named: the scheduler expects their answers."""
        self._sent = SentAnswers()
        self._stopped: set[TaskAttempt] = set()
        """Stopped tasks that run or are suspended, or did so lately."""
        self._stale_stops: set[TaskAttempt] = set()
        """Stopped tasks that the last hello has named: the scheduler does not know that they were stopped."""
        self.frame_limit = 0
        """The largest frame that the scheduler takes, in bytes; 0: no limit."""
        self._is_joined = False
        self._rejection = ""
        """Why the scheduler has not accepted this worker, by its last message; empty: no reason is known."""
        self._started_row: Row | None = None
        """The last task whose start was reported."""
        self._heartbeat_interval_seconds = heartbeat_interval_seconds
        self._last_heartbeat_at = now
        self._lease_seconds = math.inf
        self._is_probed = False
        """Whether the scheduler asks if this worker is alive: another peer claims its incarnation, or it was quiet."""
        self._sequence = 0
        self._has_heartbeat_since_hello = False
        self._outgoing: list[messages.Message] = [hello]

    # ----------------------------------------------------------------------------------------------- a task's steps

    def take(self) -> Row | None:
        """Begin the first task of the queue. Returns None if the queue is empty. The run loop does this inline."""
        if not self.queue:
            return None
        self.running = self.queue.popleft()
        return self.running

    def finish(self, outcome: int, payload: Payload, duration: int, cost: Cost | None = None) -> None:
        """End the running task. `duration` is in nanoseconds. The run loop does this inline."""
        assert self.running is not None
        client, task_id, attempt = attempt_of(self.running)
        self.running = None
        if cost is not None:
            self.costs[client, task_id, attempt] = cost
        self.answers.append((client, task_id, attempt, outcome, duration, payload))

    def report_failure(self, line: str, traceback: str = "") -> None:
        """Note why the running task has failed: one line, and the traceback."""
        if self.running is not None:
            self.note_failure(attempt_of(self.running), line, traceback)

    def note_failure(self, name: TaskAttempt, line: str, traceback: str) -> None:
        """Note why a task has failed, which may have ended."""
        self.errors[name] = line
        if traceback:
            self.tracebacks[name] = traceback

    def suspend(self) -> TaskAttempt:
        """Suspend the running task, which waits for its children: another task may begin."""
        assert self.running is not None
        name = attempt_of(self.running)
        # For a moment the task is in both places. It can't be interrupted then (interruption.py).
        row = self.running
        if flags_of(row) & messages.FLAG_RELEASE:
            row = without_booking(row)  # rows that share the booking keep it
        self.suspended[name] = row
        self.running = None
        self._return(self._take_out(self._clashes))
        return name

    def resume(self, name: TaskAttempt) -> None:
        """Resume a suspended task."""
        assert self.running is None
        self._started_row = self.running = self.suspended[name]
        del self.suspended[name]

    def started(self, row: Row) -> None:
        """Report that this task runs: the scheduler has asked for it, or the task has run for long enough."""
        if self._started_row is not row and self._is_joined:
            self._started_row = row
            client, task_id, attempt = attempt_of(row)
            self._outgoing.append(messages.Started([task_id], [client], [attempt]))

    def give(self, name: TaskAttempt, round_number: int, value: bytes) -> None:
        """Give a member's value to the other members of its gang."""
        message = self.exchanges[name] = messages.Exchange(*name, round_number, [value])
        if self._is_joined:
            self._outgoing.append(message)

    def end_member(self, name: TaskAttempt) -> None:
        """Forget a member of a gang that has ended."""
        self.gangs.pop(name, None)
        self.exchanges.pop(name, None)
        self.exchanged.pop(name, None)
        self.latches.pop(name, None)

    def keep_answers(self, answers: deque[Answer]) -> None:
        """Take over answers from a deque that has been replaced, if the last hello has named their tasks. The scheduler
        hears of all results in files, and has those removed that do not count."""
        while answers:
            answer = answers.popleft()
            if attempt_of(answer) in self._hello_tasks or answer[3] == messages.Outcome.STORED:
                self.answers.append(answer)
            else:
                self._forget_notes(attempt_of(answer))

    # --------------------------------------------------------------------------------------------------- the connection

    def handle(self, message: messages.Message) -> None:
        """Handle a message of the scheduler."""
        handler = _HANDLERS_JOINED.get(type(message))
        if handler is not None:
            # Such a message before the welcome was sent before the scheduler got the hello.
            if self._is_joined:
                handler(self, message)
            return
        handler = _HANDLERS_ALWAYS.get(type(message))
        if handler is not None:
            handler(self, message)

    def pop_stops(self) -> Sequence[TaskAttempt]:
        """The tasks to interrupt now; returns each once."""
        stops, self.stops = self.stops, []
        return stops

    def reconnected(self, now: float) -> None:
        """Ask on a new connection whether the scheduler knows this worker: by a heartbeat."""
        self._send_heartbeat(now)

    def tick(self, now: float) -> None:
        """Send a heartbeat if one is due. A restarted scheduler answers that it wants a hello."""
        if now >= self.next_deadline or self._is_probed:
            self._send_heartbeat(now)

    def _send_heartbeat(self, now: float) -> None:
        self._last_heartbeat_at = now
        self._is_probed = False
        self._sequence += 1
        self._has_heartbeat_since_hello = True
        self._outgoing.append(messages.Heartbeat(self._sequence))

    @property
    def next_deadline(self) -> float:
        """When the next heartbeat is due, in seconds."""
        seconds = self._heartbeat_interval_seconds
        if self._is_idle:
            # The protocol wants at least three heartbeats a lease.
            seconds = max(seconds, min(IDLE_INTERVALS * seconds, self._lease_seconds / 4))
        return self._last_heartbeat_at + seconds

    @property
    def _is_idle(self) -> bool:
        """Whether the scheduler knows this worker, and it has nothing to do."""
        return self._is_joined and self.running is None and not self.queue and not self.suspended

    def close(self, is_damaged: bool = False) -> None:
        """Leave the scheduler. `is_damaged`: a task has made the process unfit to go on."""
        # The answers go first: the scheduler takes no answers of a worker that has left.
        self._outgoing = self.pop_outgoing()
        if not (is_damaged and self.suspended):
            # Otherwise its agent reports a death, which counts an attempt of the suspended tasks.
            self._outgoing.append(messages.Goodbye("the worker ends"))

    def pop_outgoing(self) -> list[messages.Message]:
        """The messages to send now, in this order."""
        outgoing, self._outgoing = self._outgoing, []
        if not self._is_joined:
            return outgoing
        answers = self.answers
        # Take one at a time from the left, because the running thread may append to the right at the same time.
        taken = [answers.popleft() for _ in range(len(answers))]
        output = self.take_output()  # it goes before the answers, and was printed before they were taken
        if output is not None:
            outgoing.append(output)
        if taken:
            if self._stale_stops:
                return [*outgoing, *self._without_stale(taken)]
            results = self._results(taken)
            self._sent.add(results, self._sequence, self._stopped)
            outgoing.append(results)
        return outgoing

    def _results(self, taken: list[Answer]) -> messages.Results:
        clients, ids, attempts, outcomes, durations, payloads = map(list, zip(*taken))
        if self.waited_ns:
            durations = without_waits(durations, self.waited_ns)
            self.waited_ns = 0
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
        if self.calls:
            calls = [self.calls.pop(name, 0) for name in zip(clients, ids, attempts)]
            if any(calls):
                results.calls = calls
        return results

    def _without_stale(self, taken: list[Answer]) -> list[messages.Message]:
        """Leave out the answers of tasks that were stopped for an earlier scheduler.

        The present scheduler does not know that they were stopped, and must run them again. It does so at a hello that
        does not name them.
        """
        stale = [answer for answer in taken if attempt_of(answer) in self._stale_stops]
        self._stale_stops.difference_update(map(attempt_of, stale))
        lost = [answer for answer in stale if answer[3] not in VALUES]
        kept = [answer for answer in taken if answer not in lost]
        sent: list[messages.Message] = []
        if kept:
            results = self._results(kept)
            self._sent.add(results, self._sequence, self._stopped)
            sent.append(results)
        if lost:
            self._rejoin()
            sent += self._outgoing
            self._outgoing = []
        return sent

    # -------------------------------------------------------------------------------------- messages of the scheduler

    def _on_dispatch(self, message: messages.Dispatch) -> None:
        rows = rows_of(message, self.objects, self.handed)
        for row, flags in enumerate(message.flags):
            if flags & (FLAG_STORE_SMALL | FLAG_MAY_STORE) == FLAG_STORE_SMALL:
                self.kept_functions.add(message.functions[row])
        if self.suspended and (message.bookings or message.flags):
            rows = list(rows)
            returned = [row for row in rows if self._clashes(row)]
            self._return(returned)
            rows = [row for row in rows if row not in returned] if returned else rows
        self.queue.extend(rows)

    def _clashes(self, row: Row) -> bool:
        """Whether a row may not run beside the suspended tasks: the scheduler did not know that they are suspended.

        The row shares a booking with one of them, and would have its resources as well; or this process may have to be
        ended because of it.
        """
        flags = flags_of(row)
        if flags & messages.FLAG_REPORT_START and not flags & messages.FLAG_GANG:
            return True
        number = booking_number(booking_of(row))
        return number != "" and any(booking_number(booking_of(each)) == number for each in self.suspended.values())

    def _return(self, rows: Sequence[Row]) -> None:
        """Give rows back unasked."""
        if rows:
            for row in rows:
                self.handed.pop(attempt_of(row), None)
            self._outgoing.append(messages.Retracted(list(map(attempt_of, rows)), [1] * len(rows)))

    def give_back(self, row: Row) -> None:
        """Give back a row from the queue: a row before it, whose result it reads, had no value."""
        self._outgoing.append(messages.Retracted([attempt_of(row)], [1]))

    def _on_gang_member(self, message: messages.GangMember) -> None:
        self.gangs[message.client, message.id, message.attempt] = message

    def _on_exchange(self, message: messages.Exchange) -> None:
        name = message.client, message.id, message.attempt
        given = self.exchanges.get(name)
        if given is not None and given.round == message.round:
            del self.exchanges[name]
            self.exchanged[name] = message
            latch = self.latches.pop(name, None)
            if latch is not None:
                latch.release()

    def _on_object(self, message: messages.Object) -> None:
        self.objects.put((message.client, message.id), message.frames)

    def _on_forget_objects(self, message: messages.ForgetObjects) -> None:
        self.objects.forget(zip(message.clients, message.ids))

    def _on_function(self, message: messages.Function) -> None:
        self.functions[message.number] = message

    def _on_forget_functions(self, message: messages.ForgetFunctions) -> None:
        for number in message.numbers:
            self.functions.pop(number, None)
            self.kept_functions.discard(number)
            self.forgotten.append(number)

    def _on_retract(self, message: messages.Retract) -> None:
        """Give these tasks back, unless they have begun."""
        wanted = set(message.tasks)
        returned = {attempt_of(row) for row in self._take_out(lambda row: attempt_of(row) in wanted)}
        for name in returned:
            self.handed.pop(name, None)
            self.gangs.pop(name, None)
        tasks = list(message.tasks)
        self._outgoing.append(messages.Retracted(tasks, [int(name in returned) for name in tasks]))

    def _take_out(self, is_wanted: Callable[[Row], bool]) -> list[Row]:
        """Take rows out of the queue. The running thread may take rows from its left end at the same time."""
        taken: list[Row] = []
        kept: list[Row] = []
        queue = self.queue
        while True:
            # To take all tasks out at the right end is safe. If the running thread finds the queue empty, it waits for
            # the connection's lock until the other tasks are back.
            try:
                row = queue.pop()
            except IndexError:
                break
            (taken if is_wanted(row) else kept).append(row)
        queue.extend(reversed(kept))
        return taken

    def _on_heartbeat_echo(self, echo: messages.HeartbeatEcho) -> None:
        if not echo.sequence:
            self._is_probed = True
        self._sent.confirm(echo.sequence)

    def _on_stop(self, message: messages.Stop) -> None:
        running = self.running
        running_name = None if running is None else attempt_of(running)
        stops = [name for name in message.tasks if name == running_name or name in self.suspended]
        self.stops += stops
        self._stale_stops.difference_update(stops)
        self._stopped = {name for name in self._stopped if name == running_name or name in self.suspended}
        self._stopped.update(stops)

    def _on_welcome(self, welcome: messages.Welcome) -> None:
        self.frame_limit = welcome.message_size_limit
        self._lease_seconds = welcome.lease_seconds
        # Queue and answers are not empty if a second hello has crossed the welcome to the first one.
        self._is_joined = True
        if self._rejection:
            _log.warning("the scheduler accepts worker %s now", self._hello.name)
            self._rejection = ""
        self._hello = replace(self._hello, scheduler=welcome.incarnation)
        self.forgotten.extend(self.functions)
        self.functions.clear()
        self.kept_functions.clear()
        self.objects.clear()
        self.queue.clear()
        self.handed.clear()
        answers, self.answers = self.answers, deque()
        self.queue = deque()
        self.keep_answers(answers)
        for results in self._sent.pop_final():
            self._sent.add(results, self._sequence, ())
            self._outgoing.append(results)
        self.gangs = {name: place for name, place in self.gangs.items() if name in self._hello_tasks}
        self._outgoing += self.exchanges.values()  # the values, or their answers, may be lost

    def _on_hello_wanted(self, _: messages.HelloWanted) -> None:
        # A restarted scheduler answers each message like this. One hello is enough for all of them, unless it was lost
        # with the connection. In that case the scheduler answers a later heartbeat like this again.
        if self._is_joined or self._has_heartbeat_since_hello:
            self._rejoin()

    def _rejoin(self) -> None:
        """Send a hello that names the running tasks, and those that have ended and whose answers may be lost."""
        self._is_joined = False
        self._has_heartbeat_since_hello = False
        self.queue.clear()
        self.handed.clear()
        # First the running task, then the answers: the answer of a task that ends between the two steps is among the
        # answers, or goes through `keep_answers`.
        running = self.running
        unsent = self._pop_final_answers()
        finished = dict.fromkeys([*self._sent.names(), *map(attempt_of, unsent)])
        if running is not None and attempt_of(running) in finished:
            running = None
        names = [*self.suspended] if running is None else [*self.suspended, attempt_of(running)]
        self._stale_stops = self._stopped.intersection(names)
        # A dispatch on the last connection may have been repeated here: only the later attempt counts.
        last: dict[tuple[int, int], int] = {}
        for client, task_id, attempt in (*names, *finished):
            last[client, task_id] = max(attempt, last.get((client, task_id), 0))
        finished = {name: None for name in finished if name[2] == last[name[:2]]}
        names += finished
        self._hello_tasks = frozenset(names)
        self.answers = deque(unsent)
        self.queue = deque()
        rows = [*self.suspended.values()] if running is None else [*self.suspended.values(), running]
        bookings = {attempt_of(row): booking_of(row) for row in rows}
        named = [bookings.get(name, "") for name in names] if any(bookings.values()) else []
        self._outgoing = [replace(self._hello, running=names, bookings=named, finished=len(finished))]

    def _pop_final_answers(self) -> list[Answer]:
        """Take out the answers that are not sent. Returns those of tasks that have ended for good."""
        kept: list[Answer] = []
        while self.answers:
            answer = self.answers.popleft()
            is_stopped = attempt_of(answer) in self._stopped and answer[3] not in VALUES
            if is_final(answer[3]) and not is_stopped:
                kept.append(answer)
            else:
                self._forget_notes(attempt_of(answer))
        return kept

    def _forget_notes(self, name: TaskAttempt) -> None:
        """Forget what belongs to an answer that is not sent."""
        for notes in (self.costs, self.errors, self.tracebacks, self.calls):
            notes.pop(name, None)

    def _on_refused(self, message: messages.Refused) -> None:
        self.refused = message

    def _on_error(self, message: messages.Error) -> None:
        if self._is_joined:
            _log.error("the scheduler refused a message: %s", message.text)
        elif message.text != self._rejection:
            self._rejection = message.text
            text = "the scheduler does not accept worker %s yet; the worker keeps trying: %s"
            _log.error(text, self._hello.name, message.text)


_HANDLERS_JOINED: dict[type, Callable[[WorkerSession, Any], None]] = {
    messages.Dispatch: WorkerSession._on_dispatch,
    messages.Function: WorkerSession._on_function,
    messages.ForgetFunctions: WorkerSession._on_forget_functions,
    messages.GangMember: WorkerSession._on_gang_member,
    messages.Exchange: WorkerSession._on_exchange,
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
