"""`TaskFuture`: a `concurrent.futures.Future` that is cheap to make.

The standard Future makes a Condition. Its locks, and their garbage collection, cost more than everything else about a
small task: without them a task takes 2.5 us instead of 10 (100,000 no-op tasks; `make bench`, submit). Here a condition
is made when a thread waits. Results stay bytes until they are read, so that the I/O thread runs no user code.
"""

from __future__ import annotations

import asyncio
import concurrent.futures._base
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future, TimeoutError
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..nested import slot_await, slot_wait, task_host
from ..pickling.load_failures import add_note, name_task
from ..protocol.messages import Options, Outcome, Payload, TaskName
from .notebook import html_table
from .profiling import NOT_DONE, ProfilingInfo, profiling_info

if TYPE_CHECKING:
    from ..pickling.functions import Function

T = TypeVar("T")

PENDING = "PENDING"
RUNNING = "RUNNING"
CANCELLED = "CANCELLED"
CANCELLED_AND_NOTIFIED = "CANCELLED_AND_NOTIFIED"
FINISHED = "FINISHED"

_DONE_STATES = (CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED)

_TASK_ID_SECONDS = 0.1
"""The longest time that the text of a new future waits for the id of its task."""

_log = logging.getLogger(__name__)


class FailedNode(NamedTuple):
    """The node of a graph whose failure made other nodes fail."""

    function: str
    """The name of its function."""
    row: int
    task_id: int
    row_name: Callable[[int], str]
    """Returns the text that names a row."""


_lazy_lock = threading.Lock()
"""Held while a future makes its condition or latches. One lock for all futures: this is rare and short."""


HOLDER_CHECK_SECONDS = 0.05
"""The time between two checks of the thread that holds the condition of a future."""

_OWNER = re.compile(r"owner=(\d+) ")
_HOLDING_FILES = (concurrent.futures._base.__file__, __file__)


def is_abandoned(condition: threading.Condition) -> bool:
    """Return whether a thread has acquired the condition and will never release it.

    `concurrent.futures.wait` and `as_completed` acquire the conditions of all their futures in a loop. Ctrl-C in this
    loop leaves the conditions locked. A thread that still needs them has a frame of that module or of this one, other
    than one that waits for a future.
    """
    owner = _owner(condition)
    if owner is None:
        return False
    frame = sys._current_frames().get(owner)
    while frame is not None:
        code = frame.f_code
        if code.co_filename in _HOLDING_FILES and code.co_name not in ("result", "exception"):
            return False
        frame = frame.f_back
    return _owner(condition) == owner


def _owner(condition: threading.Condition) -> int | None:
    """Return the thread that has acquired the condition. An RLock tells it in its text alone."""
    found = _OWNER.search(repr(condition._lock))  # type: ignore[attr-defined]
    return None if found is None or found[1] == "0" else int(found[1])


class FutureOwner(slot_wait.SlotReporter, Protocol):
    """The part of the client's I/O thread that futures use."""

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        """Cancel the task, and wait for the answer. With `force`, a running task is stopped too."""

    def schedule_callbacks(self, future: TaskFuture[Any]) -> None:
        """Let the callback thread run the callbacks of the future."""

    def check_can_wait(self) -> None:
        """Raise an error if waiting for a future of this client could never end."""


class TaskFuture(Future[T]):
    """The future of a task. `Client.submit` makes it.

    It is a `concurrent.futures.Future`: use it with `concurrent.futures.wait`, `as_completed` and
    `asyncio.wrap_future`, or await it in a coroutine. Inside a task, waiting for it gives up the task's slot.
    """

    # Two races are settled without a lock.
    #
    # Finishing and waiting: only the I/O thread finishes a future. It sets the state, then releases the latches. A
    # waiter adds its latch, then reads the state. In either order, one of the two sees what the other has written.
    #
    # Finishing and the standard library: its functions hold the condition while they read the state twice, and the
    # state must not change in between. The I/O thread sets `_is_finishing`, then looks for a condition; if there is
    # one, it finishes the future under it. A thread that makes a condition then reads `_is_finishing` and lets the I/O
    # thread go first. Again, one of the two sees what the other has written.

    # Defaults are class attributes: setting twelve fields in `__init__` costs a third of a submit.
    _state = PENDING
    _outcome: int = Outcome.VALUE
    _answer: Payload | None = None
    _result: Any = None
    _exception: BaseException | None = None
    _lazy_condition: threading.Condition | None = None
    _is_finishing = False
    _lazy_waiters: list[Any] | None = None
    _latches: list[threading.Lock] | None = None
    _done_callbacks: Any = ()
    _function_name = ""
    """The name of the function, once the function itself is dropped."""
    _profile: tuple[int, int, int] | None = None
    task_id = -1
    options: Options | None = None
    parent: TaskName | None = None
    """The task that submitted this one; None outside of tasks."""
    failed_node: FailedNode | None = None
    """For a target of a graph: the node that made it fail. It is set before the target fails."""

    def __init__(self, io_thread: FutureOwner, function: Function, payload: Payload) -> None:
        self._io_thread = io_thread
        self._function: Function | None = function
        self._payload: Payload | None = payload

    @classmethod
    def finished(cls, io_thread: FutureOwner, value: T) -> TaskFuture[T]:
        """Return a future that has its value and belongs to no task."""
        future = cls.__new__(cls)
        future._io_thread = io_thread
        future._function = future._payload = None
        future._result = value
        future._state = FINISHED
        return future

    # The functions of concurrent.futures use the two properties below.

    @property
    def _condition(self) -> threading.Condition:
        condition = self._lazy_condition
        if condition is None:
            with _lazy_lock:
                condition = self._lazy_condition
                if condition is None:
                    condition = self._lazy_condition = threading.Condition()
        while self._is_finishing and self._state not in _DONE_STATES:
            time.sleep(0)  # the I/O thread is about to set the state, in `resolve` or `fail`
        return condition

    @_condition.setter
    def _condition(self, condition: threading.Condition) -> None:
        self._lazy_condition = condition

    @property
    def _waiters(self) -> list[Any]:
        waiters = self._lazy_waiters
        if waiters is None:
            waiters = self._lazy_waiters = [] if task_host.host is None else slot_wait.SlotWaiters(self._io_thread)
        return waiters

    @_waiters.setter
    def _waiters(self, waiters: list[Any]) -> None:
        self._lazy_waiters = waiters

    # ------------------------------------------------------------------------------------------------ for applications

    def cancel(self, force: bool = False) -> bool:
        """Cancel the task, and wait for the scheduler's answer.

        Args:
            force: whether to stop the task if it runs. `TaskStoppedError` is raised in the task. If the task does not
                end within seconds, its worker process is ended.

        Returns:
            True if the task will not run, or was stopped. False if it runs, or is done: then nothing changes.
        """
        is_forced = bool(force)  # converted here, because the conversion may raise
        if self._state == PENDING or (is_forced and self._state == RUNNING):
            self._io_thread.cancel(self, is_forced)
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def cancelled(self) -> bool:
        """Return whether the task was cancelled."""
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def running(self) -> bool:
        """Return whether a worker is known to run the task. A short task is done before the client knows."""
        return self._state == RUNNING

    def done(self) -> bool:
        """Return whether the task has ended or was cancelled."""
        return self._state in _DONE_STATES

    def result(self, timeout: float | None = None) -> T:
        """Wait for the task, and return its result.

        Args:
            timeout: how many seconds to wait; None: no limit.

        Returns:
            The return value of the task.

        Raises:
            concurrent.futures.TimeoutError: the task is not done in time.
            concurrent.futures.CancelledError: the task was cancelled.
            TaskTimeoutError: the task ran for longer than its `timeout`.
            WorkerDiedError: the worker of the task died in every attempt.
            FunctionLoadError: a worker could not unpickle the function.
            ArgumentLoadError: a worker could not unpickle the arguments.
            ResultPickleError: the result could not be pickled or unpickled.
            SchedulerLostError: the scheduler was gone for too long.
            BaseException: the exception that the task raised.
        """
        if self._state != FINISHED:
            self._wait(timeout)
        if self._answer is not None:
            self._load_answer()
        if self._exception is not None:
            try:
                raise self._exception
            finally:
                self = None  # type: ignore[assignment]  # breaks the reference cycle of exception, traceback and frame
        result: T = self._result
        return result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the task, and return its exception.

        Args:
            timeout: how many seconds to wait; None: no limit.

        Returns:
            The exception that `result` would raise; None if the task returned a value.

        Raises:
            concurrent.futures.TimeoutError: the task is not done in time.
            concurrent.futures.CancelledError: the task was cancelled.
        """
        if self._state != FINISHED:
            self._wait(timeout)
        if self._answer is not None:
            self._load_answer()
        return self._exception

    def profiling_info(self) -> ProfilingInfo:
        """Return what the worker measured. Does not wait: read the result first.

        Returns:
            The durations and the peak memory of the last attempt.

        Raises:
            ValueError: the task is not done, was submitted without profiling, or did not end on a worker.
            concurrent.futures.CancelledError: the task was cancelled.
        """
        if self._state not in _DONE_STATES:
            raise ValueError(NOT_DONE)
        if self._state != FINISHED:
            raise CancelledError()
        if self._profile is not None:
            return profiling_info(*self._profile)
        if self.options is None or not self.options.profiling:
            raise ValueError("the task was not profiled: submit it with profiling=True")
        raise ValueError("the task was not profiled: it did not end on a worker")

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(future)` when the future is done; immediately if it is already done.

        Callbacks run in the order in which they were added, in a thread of the client. A slow callback delays other
        callbacks only.

        Args:
            fn: the callback. Its argument is this future; an exception that it raises is logged.
        """
        with self._condition:
            if self._state not in _DONE_STATES:
                self._done_callbacks = [*self._done_callbacks, fn]
                return
        _run_callback(fn, self)

    def __await__(self) -> Generator[Any, None, T]:
        if task_host.host is None or self._state in _DONE_STATES:
            return asyncio.wrap_future(self).__await__()
        return slot_await.await_without_slot(self._io_thread, asyncio.wrap_future(self))

    def __repr__(self) -> str:
        if self._answer is not None and self._state == FINISHED:
            self._load_answer()  # the text has the type of the result or exception
        kind, _, rest = super().__repr__().partition(" at ")
        return f"{kind} {self._task_label()} at {rest}"

    def _repr_html_(self) -> str:
        state = self._state.partition("_")[0].lower()
        if self._state == FINISHED:
            error = self.exception()
            state += f", returned {type(self._result).__name__}" if error is None else f", raised {error!r}"
        return html_table(type(self).__name__, {"task": self._task_label(), "state": state})

    def _task_label(self) -> str:
        """Return the task's name and id, such as `square#3`, with which `scaler_client` finds the task."""
        # The I/O thread gives the id, usually within a millisecond. The wait has a limit, because the I/O thread may be
        # slow, or be the calling thread.
        deadline = time.monotonic() + _TASK_ID_SECONDS
        while self.task_id < 0 and self._state == PENDING and time.monotonic() < deadline:
            time.sleep(0.001)
        return self._task_name() + (f"#{self.task_id}" if self.task_id >= 0 else "")

    def _task_name(self) -> str:
        if self.options is not None and self.options.name:
            return self.options.name
        return self._function_name if self._function is None else self._function.name

    def __reduce__(self) -> Any:
        raise TypeError("a future can't be pickled: pass its result() to the task instead")

    # ----------------------------------------------------------------------------------------------- for the I/O thread

    def row(self, _task_id: int) -> tuple[Function, Payload]:
        """Return the function and the arguments, to submit the task again to a new scheduler."""
        assert self._function is not None and self._payload is not None
        return self._function, self._payload

    def resolve(self, _task_id: int, outcome: int, answer: Payload) -> None:
        """Finish the future with an answer of the scheduler."""
        if self._state in _DONE_STATES:
            return
        self._payload = None
        state = FINISHED
        if outcome == Outcome.CANCELLED:
            state = CANCELLED_AND_NOTIFIED
        else:
            if outcome:
                self._outcome = outcome
            self._answer = answer
        self._is_finishing = True
        if self._lazy_condition is None:
            self._state = state
        else:
            self._finish_locked(state)
        if self._latches is not None:
            self._release_latches(self._latches)

    def fail(self, _task_id: int, error: BaseException) -> None:
        """Finish the future with an error of the client."""
        if self._state in _DONE_STATES:
            return
        self._payload = None
        self._exception = error
        self._is_finishing = True
        if self._lazy_condition is None:
            self._state = FINISHED
        else:
            self._finish_locked(FINISHED)
        if self._latches is not None:
            self._release_latches(self._latches)

    def start(self) -> None:
        """Mark a pending future as running."""
        if self._state == PENDING:
            self._state = RUNNING

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Keep what the worker measured, in nanoseconds and bytes. Called before `resolve`."""
        if self._state not in _DONE_STATES:
            self._profile = duration, cpu_time, peak

    @staticmethod
    def _release_latches(latches: list[threading.Lock]) -> None:
        for latch in tuple(latches):  # a copy: a waiter that times out removes its latch
            latch.release()

    def _finish_locked(self, state: str) -> None:
        """Finish a future that has a condition, and wake its waiters."""
        self._is_finishing = False  # else a thread that holds the condition waits in the property, to release it
        condition = self._acquire_condition()
        try:
            self._state = state
            for waiter in self._lazy_waiters or ():
                if self._state == CANCELLED_AND_NOTIFIED:
                    waiter.add_cancelled(self)
                elif self._outcome == Outcome.VALUE and self._exception is None:
                    waiter.add_result(self)
                else:
                    waiter.add_exception(self)
            condition.notify_all()
        finally:
            condition.release()
        if self._done_callbacks:
            self._io_thread.schedule_callbacks(self)

    def _acquire_condition(self) -> threading.Condition:
        """Acquire and return the condition, or a new one if a thread has abandoned it."""
        while not (condition := self._condition).acquire(blocking=False):
            if is_abandoned(condition):
                self._condition = threading.Condition()
            elif condition.acquire(timeout=HOLDER_CHECK_SECONDS):
                break
        return condition

    def run_callbacks(self) -> None:
        """Run the callbacks. The callback thread calls this once."""
        condition = self._acquire_condition()
        callbacks, self._done_callbacks = self._done_callbacks, ()
        condition.release()
        for callback in callbacks:
            try:
                _run_callback(callback, self)
            except BaseException:  # SystemExit, for example, would end the thread of all callbacks
                _log.exception("exception calling callback for %r", self)

    # -------------------------------------------------------------------------------------------------------- internals

    def _wait(self, timeout: float | None) -> None:
        """Wait until the future is finished.

        Raises:
            CancelledError: the task was cancelled.
            TimeoutError: the task is not done in time.
        """
        # A plain lock serves as a latch. Condition.wait makes one too, and three more objects.
        latch = threading.Lock()
        latch.acquire()
        latches = self._latches
        if latches is None:
            with _lazy_lock:
                latches = self._latches
                if latches is None:
                    latches = self._latches = []
        latches.append(latch)
        if self._state not in _DONE_STATES:
            self._io_thread.check_can_wait()
            if task_host.host is None:
                latch.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
            else:
                slot_wait.wait(self._io_thread, latch, timeout, self.done)
        state = self._state
        if state in (CANCELLED, CANCELLED_AND_NOTIFIED):
            raise CancelledError()
        if state != FINISHED:
            latches.remove(latch)
            raise TimeoutError()

    def _load_answer(self) -> None:
        """Unpickle the answer into a result or an exception."""
        answer, function = self._answer, self._function
        if answer is None or function is None:
            return
        node = self.failed_node
        if node is None:
            result, exception = function.read_answer(self._outcome, answer)
            if exception is not None:
                name_task(exception, f"{self._task_name()}#{self.task_id}")
        else:
            place = node.row_name(node.row)
            result, exception = function.read_answer(self._outcome, answer, node.function, place)
            if exception is not None:
                name_task(exception, f"{node.function}#{node.task_id}")
                add_note(exception, f"of {place}")
        # Unpickling runs user code, so it happens without the lock. If two threads read, the first one decides.
        with _lazy_lock:
            if self._answer is not None:
                self._result = result
                self._exception = exception
                self._answer = None
                self._function_name = function.name
                self._function = self.failed_node = None


def _run_callback(callback: Callable[[Any], object], future: Future[Any]) -> None:
    try:
        callback(future)
    except Exception:
        _log.exception("exception calling callback for %r", future)
