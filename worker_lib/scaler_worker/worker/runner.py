"""The run loop of a worker. The thread that has the run token executes it.

This thread reads and writes the socket itself. An I/O thread that hands over each task would cost two thread switches,
a sixth of a round trip.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from traceback import StackSummary
from typing import Any, Protocol

from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling.input_lookup import current_inputs
from scaler_client.protocol.messages import (
    FLAG_CALLS,
    FLAG_GANG,
    FLAG_MAY_STORE,
    FLAG_PROFILE,
    FLAG_REPORT_START,
    FLAG_STORE_SMALL,
    Outcome,
    Payload,
    TaskAttempt,
)
from scaler_worker.objects.cache import ObjectCache
from scaler_worker.objects.kept_results import KeptResults, file_of
from scaler_worker.objects.result_files import FILE_BYTES, store_large
from scaler_worker.objects.table import result_file
from scaler_worker.sent_answers import VALUES
from scaler_worker.task_rows import Row, attempt_of, booking_of
from scaler_worker.worker.connection import Connection
from scaler_worker.worker.dispatch_rows import with_results
from scaler_worker.worker.executor import Executor
from scaler_worker.worker.forked_child import end_process
from scaler_worker.worker.gang_place import GangPlace, Load
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.long_task_watcher import LongTaskWatcher
from scaler_worker.worker.processor_wait import ProcessorWait
from scaler_worker.worker.run_token import RunToken, Threads, Wakeup
from scaler_worker.worker.running_task import ProcessProfile, Profile, RunningTask
from scaler_worker.worker.session import WorkerSession

_SPECIAL_FLAGS = FLAG_PROFILE | FLAG_REPORT_START
"""Flags that need work before the task begins."""

_NOT_FOR_CLIENT = FLAG_MAY_STORE | FLAG_STORE_SMALL | FLAG_GANG
"""Flags of tasks whose client does not get the result itself."""

_VALUE = Outcome.VALUE.value
_STORED = Outcome.STORED.value

FLUSH_NS = 1_000_000
"""How long an answer may wait, to be sent together with others."""

Store = Callable[[Any], tuple[int, Payload]]
"""Makes the outcome and its payload of a task's value."""


class InputValues(Protocol):
    """The inputs of one task (`objects.cache.Inputs`)."""

    def __call__(self, position: int, is_shared: bool = False) -> Any:
        """The value of an input. `is_shared`: whether tasks share it."""

    def arguments(self, payload: Payload) -> Any:
        """The arguments of one call, with its inputs."""


class Execution(Protocol):
    """The interface by which the run loop executes one task. The simulation has another implementation."""

    @property
    def run(self) -> Callable[..., tuple[int, Payload]]:
        """Called with a function's number and a payload, a Store if there is one, and for a task with inputs a function
        that loads its arguments (`Executor.run`). A property, so that the run loop looks it up once a queue."""

    @property
    def run_calls(self) -> Callable[..., tuple[int, Payload, int]]:
        """Called as `run` for a row that stands for several calls, with a clock in nanoseconds. Also returns how many
        calls have ended (`Executor.run_calls`)."""

    def stopped(self, error: TaskStoppedError) -> tuple[int, Payload]:
        """The outcome and payload of a task that was stopped while code of the worker ran."""

    def ignored_stop(self, stack: StackSummary) -> tuple[int, Payload, str, str]:
        """The outcome, payload, error line and traceback of a task that was stopped, but has returned a value. `stack`:
        where it was when it was stopped."""

    def forget(self, number: int) -> None:
        """Drop a loaded function."""

    def name_of(self, number: int) -> str:
        """The name of a function."""

    def inputs(self, client: int, inputs: Any) -> InputValues:
        """Find the inputs of a task that begins next."""

    def store_for(self, name: TaskAttempt, with_small: bool) -> Store:
        """The Store of an attempt whose value may be written to a file of the host. `with_small`: also a small
        value."""

    def discard_result(self, name: TaskAttempt) -> None:
        """Remove the file of an attempt that was stopped, if it has written one."""

    @property
    def least_file_bytes(self) -> int:
        """From how many bytes on `store_large` is called with a result."""

    def store_large(self, name: TaskAttempt, payload: Payload, may_be_file: bool) -> tuple[int, Payload]:
        """The outcome and the payload of a large result (`objects.result_files`)."""

    def new_profile(self) -> Profile: ...


class ProcessExecution:
    """Executes tasks in this process."""

    def __init__(self, executor: Executor, objects: ObjectCache, kept: KeptResults) -> None:
        self.run = executor.run
        self.run_calls = executor.run_calls
        self.stopped = executor.stopped
        self.ignored_stop = executor.ignored_stop
        self.forget = executor.forget
        self.name_of = executor.name_of
        self.inputs = objects.inputs
        self.store_for = kept.writer_for
        self.discard_result = kept.discard
        self.least_file_bytes = FILE_BYTES
        self.store_large = store_large
        self.new_profile = ProcessProfile


@dataclass(frozen=True)
class TaskSlot:
    """The slot in which a worker's tasks run, one at a time: the parts that all threads of the worker share."""

    session: WorkerSession
    connection: Connection
    wakeup: Wakeup
    threads: Threads
    token: RunToken
    interruption: Interruption
    task: RunningTask
    watcher: LongTaskWatcher


class Runner:
    """The run loop. All threads that run tasks share it. Only the one that has the token is inside the loop of
    `serve`."""

    def __init__(
        self,
        slot: TaskSlot,
        execution: Execution,
        clean_up: Callable[[float], bool],
        end_worker: Callable[[], None],
    ) -> None:
        """
        Args:
            clean_up: called between tasks with the time in seconds, until it returns True: all is clean until the next
            task.
            end_worker: called when the worker ends while its first thread is inside a task that waits.
        """
        self._slot = slot
        self._session = slot.session
        self._connection = slot.connection
        self._task = slot.task
        self._execution = execution
        self._clean_up = clean_up
        self._is_clean = False
        self._end_worker = end_worker
        self._is_stopping = False
        self.gangs: dict[TaskAttempt, GangPlace] = {}
        """The running and suspended members of gangs."""
        self.find_address: Callable[[], str] = str
        """Returns the address by which other hosts reach this one, for members of gangs; empty: unknown."""

    def start_thread(self) -> None:
        """Start a thread that takes the token from the caller and runs the queued tasks.

        Raises:
            RuntimeError: the system has no more threads.
        """
        self._slot.threads.start(self._serve_in_thread, "runner")

    def stop(self) -> None:
        """End the worker after the running task."""
        self._is_stopping = True
        self._slot.wakeup.set()

    @property
    def is_over(self) -> bool:
        """Whether the worker ends: it must stop, the scheduler refused it, or its process is damaged."""
        return self._is_stopping or self._session.refused is not None or self._slot.interruption.is_process_damaged

    def serve(self) -> bool:
        """Run tasks until the worker ends, or until this thread is not needed.

        Returns:
            True if the worker ends: the caller closes it. False if another thread now runs tasks.
        """
        wait = self._slot.threads.processor_wait()
        try:
            return self._serve(wait)
        finally:
            wait.close()

    def _serve(self, wait: ProcessorWait) -> bool:
        session, connection, wakeup = self._session, self._connection, self._slot.wakeup
        while not self.is_over:
            with connection.lock:
                connection.send()
                if not session.queue:
                    connection.await_message()
            if wakeup.is_set:
                wakeup.is_set = False
                if not self._slot.token.yield_to_waiters():
                    return False
                continue
            self._run_queue(wait)
            now = connection.now()
            session.tick(now)
            session.objects.release()
            if not self._is_clean:
                self._is_clean = self._clean_up(now)
        return True

    def _serve_in_thread(self) -> None:
        token = self._slot.token
        token.acquire()
        if self.serve() and not token.pass_to_first():
            self._end_worker()

    def _run_queue(self, wait: ProcessorWait) -> None:
        """Run the queued tasks. Answers of short tasks go out together, every FLUSH_NS.

        `WorkerSession.take` and `finish` are repeated inline here, which `make bench ONLY=submit,map` pays for.
        """
        session, task, wakeup = self._session, self._task, self._slot.wakeup
        page = task.page
        queue, answers, handed = session.queue, session.answers, session.handed
        run = self._execution.run
        least_file = self._execution.least_file_bytes
        now_ns = self._slot.threads.now_ns
        if not queue:
            return
        self._slot.watcher.wake()
        task.environment.note()
        self._is_clean = False
        while session.forgotten:
            self._execution.forget(session.forgotten.popleft())
        wait.begin()
        begun = flushed = now_ns()
        known_client = known_attempt = 0
        is_woken = wakeup.is_set
        is_reading = False
        while queue and not is_woken:
            try:
                row = queue.popleft()
            except IndexError:  # the watcher has emptied the queue, for a retract or at a new welcome
                break
            if len(row) == 5:
                client, task_id, attempt, function, payload = row
                run_special = None
            else:
                client, task_id, attempt, function, payload, flags, _, _, read, _, booking = row
                inputs = with_results(read)
                if inputs is None:
                    with self._connection.lock:
                        session.give_back(row)
                    continue
                run_special = None
                if flags & FLAG_CALLS:
                    run_special = partial(self._run_calls, row)
                elif flags & FLAG_MAY_STORE:
                    with_small = bool(flags & FLAG_STORE_SMALL)
                    run_special = partial(run, store=self._execution.store_for((client, task_id, attempt), with_small))
                if flags & _SPECIAL_FLAGS:
                    begun = self._begin_special(row, flags)
                    if flags & FLAG_REPORT_START:
                        flushed = 0  # it has a time limit: its answer must not wait for the next task
                if inputs:
                    # Found before the task counts as running. After that, the objects may be forgotten while it runs.
                    # The inputs stay until those of another task replace them: a serializer may unpickle late.
                    current_inputs.values = values = self._execution.inputs(client, inputs)
                    is_reading = True
                    run_special = partial(run_special or run, load=values.arguments)
                if flags & FLAG_GANG:
                    run_special = partial(self._run_member, row, values.arguments if inputs else None)
                if booking:
                    run_special = partial(self._run_booked, row, queue, run_special or run)
            page[1] = task_id
            if client != known_client or attempt != known_attempt:
                # Written only when they change: each write costs a tenth of a no-op task.
                page[0], page[2], page[3] = client, attempt, 1
                known_client, known_attempt = client, attempt
            task.begun_ns = begun
            try:
                session.running = row
                outcome, payload = (run if run_special is None else run_special)(function, payload)
                session.running = None
                if len(payload) >= least_file:
                    outcome, payload = self._store_large(row, outcome, payload)
                is_woken = wakeup.is_set
                if is_woken:
                    suspended_ns, stopped_at = self._finish_special(row)
                    begun += suspended_ns
                    if stopped_at is not None:
                        self._discard_result(row)
                        if outcome in VALUES:
                            outcome, payload, *failure = self._execution.ignored_stop(stopped_at)
                            session.note_failure(attempt_of(row), *failure)
            except TaskStoppedError as error:
                session.running = None
                begun += self._finish_special(row)[0]
                self._discard_result(row)
                outcome, payload = self._execution.stopped(error)
                is_woken = True
            ended = now_ns()
            answers.append((client, task_id, attempt, outcome, ended - begun, payload))
            begun = ended
            if handed:
                followers = handed.pop((client, task_id, attempt), None)
                if followers is not None:
                    if outcome == _VALUE:
                        followers.append(payload)
                    elif outcome == _STORED:
                        followers.append(result_file(file_of((client, task_id, attempt))))
            if ended - flushed > FLUSH_NS:
                session.waited_ns += wait.end(ended - flushed)
                with self._connection.lock:
                    self._connection.exchange()
                    self._slot.watcher.task_ended()
                session.objects.release()
                wait.begin()
                begun = flushed = now_ns()
                is_woken = wakeup.is_set
        session.waited_ns += wait.end(begun - flushed)
        page[3] = 0
        if is_reading:
            current_inputs.values = None
        self._slot.watcher.rest()
        if answers is not session.answers:
            with self._connection.lock:
                session.keep_answers(answers)

    def _store_large(self, row: Row, outcome: int, payload: Payload) -> tuple[int, Payload]:
        """Return the outcome and the payload of a large answer: a value may become a file of its client."""
        if outcome != _VALUE:
            return outcome, payload
        name = attempt_of(row)
        # Not a result that a row behind it reads, that is kept for other tasks, or that is a part of a gang's answer.
        is_read = name in self._session.handed or row[3] in self._session.kept_functions
        is_for_client = not is_read and (len(row) == 5 or not row[5] & _NOT_FOR_CLIENT)
        return self._execution.store_large(name, payload, is_for_client)

    def _run_calls(self, row: Row, function: int, payload: Payload, **load: Load) -> tuple[int, Payload]:
        """Run a row that stands for several calls."""
        outcome, payload, ended = self._execution.run_calls(function, payload, self._slot.threads.now_ns, **load)
        self._session.calls[attempt_of(row)] = ended
        return outcome, payload

    def _run_booked(
        self, row: Row, queue: deque[Row], run: Callable[[int, Payload], tuple[int, Payload]], *task: Any
    ) -> tuple[int, Payload]:
        """Run a row that has resources. They are shown to it for its time, and to rows behind it that share them."""
        booking = booking_of(row)
        self._task.environment.enter(booking)
        try:
            return run(*task)
        finally:
            try:
                is_shared = booking_of(queue[0]) == booking
            except IndexError:
                is_shared = False
            if not is_shared:
                self._task.environment.leave()

    def _run_member(self, row: Row, load: Load | None, function: int, payload: Payload) -> tuple[int, Payload]:
        """Run a member of a gang, when all have begun."""
        name, slot = attempt_of(row), self._slot
        told = self._session.gangs.get(name)
        if told is None:
            return self._execution.run(function, payload)
        place = GangPlace(told, self._session, slot.connection, slot.interruption, self.find_address)
        self.gangs[name] = place
        try:
            return self._execution.run(function, payload, load=place.loader(load))
        finally:
            del self.gangs[name]
            place.end()

    def _begin_special(self, row: Row, flags: int) -> int:
        """Do the work that the flags request before the task begins. Returns the time when the task begins."""
        if flags & FLAG_REPORT_START:
            with self._connection.lock:
                self._session.started(row)
                self._connection.send()
        if flags & FLAG_PROFILE:
            self._slot.wakeup.is_set = True  # to come to `_finish_special`
            self._task.profile = self._execution.new_profile()
        return self._slot.threads.now_ns()

    def _discard_result(self, row: Row) -> None:
        """Remove the result of a task that was stopped, if the task had written it to a file."""
        if len(row) > 5 and row[5] & FLAG_MAY_STORE:
            self._execution.discard_result(attempt_of(row))

    def _finish_special(self, row: Row) -> tuple[int, StackSummary | None]:
        """Clean up after a task that may have been stopped, suspended or profiled, or has children. End a process that
        it has forked.

        Returns:
            The time for which the task was suspended, in nanoseconds, and where it was when it was stopped; None: it
            was not stopped.
        """
        if task_host.is_forked_by_task:
            # Before any lock is taken: a thread that held it is not in this process.
            end_process(self._execution.name_of(row[3]))
        name = attempt_of(row)
        with self._connection.lock:
            stopped_at = self._slot.interruption.finish(name)
            # The task is still there if a signal handler of its own has raised in the middle of `resume`.
            self._session.suspended.pop(name, None)
        if stopped_at is not None:
            self._task.end_processes()
        suspended_ns, profile = self._task.end()
        if profile is not None:
            self._session.costs[name] = profile.cost()
        return suspended_ns, stopped_at
