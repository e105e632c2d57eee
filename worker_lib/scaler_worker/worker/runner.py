"""The run loop: what the thread that has the token does, from task to task.

The running thread reads and writes the socket itself: handing every task over from an I/O thread would cost two thread
switches, a sixth of a round trip.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable

from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling.input_lookup import reading_now
from scaler_client.protocol.messages import FLAG_MAY_STORE, FLAG_PROFILE, FLAG_TELL_START
from scaler_worker.objects.cache import ObjectCache
from scaler_worker.objects.kept_results import KeptResults
from scaler_worker.task_rows import Row, name_of
from scaler_worker.worker.connection import Connection
from scaler_worker.worker.executor import Executor
from scaler_worker.worker.forked_child import end_process
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.long_task_watcher import LongTaskWatcher
from scaler_worker.worker.profiling import Profile
from scaler_worker.worker.run_token import RunToken
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.session import WorkerSession
from scaler_worker.worker.wakeup import Wakeup

_SPECIAL_FLAGS = FLAG_PROFILE | FLAG_TELL_START
"""Flags that want something before the task begins."""

FLUSH_NS = 1_000_000
"""Answers wait at most about this long for others to travel with."""


class Runner:
    """Shared by all threads that run tasks; only the one that has the token is ever inside `serve`'s loop."""

    def __init__(
        self,
        session: WorkerSession,
        connection: Connection,
        executor: Executor,
        objects: ObjectCache,
        kept: KeptResults,
        watcher: LongTaskWatcher,
        interruption: Interruption,
        task: RunningTask,
        token: RunToken,
        wakeup: Wakeup,
        do_periodic_work: Callable[[], None],
        end_process: Callable[[], None],
    ) -> None:
        """`do_periodic_work` is called now and then between tasks; `end_process` when the worker ends while its
        first thread is inside a task that waits."""
        self._session = session
        self._connection = connection
        self._executor = executor
        self._objects = objects
        self._kept = kept
        self._watcher = watcher
        self._interruption = interruption
        self._task = task
        self._token = token
        self._wakeup = wakeup
        self._do_periodic_work = do_periodic_work
        self._end_process = end_process
        self._is_stopping = False

    def start_thread(self) -> None:
        """Another thread gets the token from the caller, and goes on with the queue."""
        threading.Thread(target=self._serve_in_thread, name="runner", daemon=True).start()

    def stop(self) -> None:
        """End after the task that runs."""
        self._is_stopping = True
        self._wakeup.set()

    @property
    def is_over(self) -> bool:
        """Told to stop, or refused, or unfit to run another task."""
        return self._is_stopping or self._session.refused is not None or self._interruption.is_process_damaged

    def serve(self) -> bool:
        """Run what comes. False when others do that by now, True when the worker is over: the caller then closes."""
        session, connection, wakeup = self._session, self._connection, self._wakeup
        while not self.is_over:
            with connection.lock:
                connection.send()
                if not session.queue:
                    connection.await_message()
            if wakeup.is_set:
                wakeup.is_set = False
                if not self._token.yield_to_waiters():
                    return False
                continue
            self._run_queue()
            self._do_periodic_work()
        return True

    def _serve_in_thread(self) -> None:
        try:
            self._token.acquire()
            if self.serve() and not self._token.pass_to_first():
                self._end_process()
        except BaseException:
            # It had the token: nothing would ever run here again, and the agent would not know.
            traceback.print_exc()
            os._exit(1)

    def _run_queue(self) -> None:
        """Run what is queued; answers go out together while tasks are short, at once when they are long."""
        session, task, wakeup = self._session, self._task, self._wakeup
        page = task.page
        queue, answers = session.queue, session.answers
        run = self._executor.run
        clock = time.perf_counter_ns
        if not queue:
            return
        self._watcher.wake()
        while session.forgotten:
            self._executor.forget(session.forgotten.popleft())
        begun = flushed = clock()
        known_client = known_attempt = 0
        is_woken = wakeup.is_set
        is_reading = False
        while queue and not is_woken:
            try:
                row = queue.popleft()
            except IndexError:  # emptied by the watcher, for a retract or another scheduler
                break
            if len(row) == 5:
                client, task_id, attempt, function, payload = row
                store = None
            else:
                client, task_id, attempt, function, payload, flags, _, _, inputs, _ = row
                store = self._kept.writer_for(client, task_id) if flags & FLAG_MAY_STORE else None
                if flags & _SPECIAL_FLAGS:
                    begun = self._begin_special(row, flags)
                    if flags & FLAG_TELL_START:
                        flushed = 0  # its seconds are counted elsewhere: its answer does not wait for a long task's end
                if inputs:
                    # Found before the task counts as running: from then on it may outlive what is known of objects.
                    # They stay until the next such task's take their place: a serializer may unpickle late.
                    reading_now.values = self._objects.inputs(client, inputs)
                    is_reading = True
            page[1] = task_id
            if client != known_client or attempt != known_attempt:
                # Written when they change only: each write costs a tenth of a no-op.
                page[0], page[2], page[3] = client, attempt, 1
                known_client, known_attempt = client, attempt
            task.begun_ns = begun
            try:
                session.running = row
                outcome, payload = run(function, payload) if store is None else run(function, payload, store)
                session.running = None
                is_woken = wakeup.is_set
                if is_woken:
                    begun += self._finish_special(row)
            except TaskStoppedError as error:
                session.running = None
                begun += self._finish_special(row)
                outcome, payload = self._executor.stopped(error)
                is_woken = True
            ended = clock()
            answers.append((client, task_id, attempt, outcome, ended - begun, payload))
            begun = ended
            if ended - flushed > FLUSH_NS:
                with self._connection.lock:
                    self._connection.exchange()
                session.objects.release()
                begun = flushed = clock()
                is_woken = wakeup.is_set
        page[3] = 0
        if is_reading:
            reading_now.values = None
        self._watcher.rest()
        if answers is not session.answers:
            with self._connection.lock:
                session.keep_answers(answers)

    def _begin_special(self, row: Row, flags: int) -> int:
        """Do what the flags ask for before the task begins. Returns when it begins."""
        if flags & FLAG_TELL_START:
            with self._connection.lock:
                self._session.started(row)
                self._connection.send()
        if flags & FLAG_PROFILE:
            self._wakeup.is_set = True  # to come to `_finish_special`
            self._task.profile = Profile()
        return time.perf_counter_ns()

    def _finish_special(self, row: Row) -> int:
        """The task is over, and may have been stopped, suspended or profiled, or this is a process that it has forked.

        Returns:
            For how many nanoseconds it was suspended.
        """
        if task_host.is_forked_by_task:
            # Before any lock: the threads that have held one are not in this process.
            end_process(self._executor.name_of(row[3]))
        name = name_of(row)
        with self._connection.lock:
            self._interruption.finish(name)
            # It is still there when a signal handler of the task's own has raised in the middle of `resume`.
            self._session.suspended.pop(name, None)
        suspended_ns, profile = self._task.end()
        if profile is not None:
            self._session.costs[name] = profile.cost()
        return suspended_ns
