"""`TaskFuture`: a `concurrent.futures.Future` that is cheap to make.

The standard Future makes a Condition. Its locks, and their garbage collection, cost more than all other work for a
small task. Without them a task takes 2.2 us instead of 10 (100,000 no-op tasks; `make bench ONLY=submit`). Here a
lock is made when a thread waits. Results stay bytes until they are read, so that the I/O thread runs no user code.
"""

from __future__ import annotations

import asyncio
import concurrent.futures._base
import contextlib
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future, TimeoutError
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..nested import slot_await, slot_wait, task_host
from ..pickling.call_rows import IMMUTABLE_TYPES
from ..pickling.failed_answers import TRACEBACK
from ..pickling.load_failures import name_task
from ..pickling.object_frames import Answer
from ..pickling.references import Call, InputFailure, ObjectHolder, ObjectRef, reduced
from ..protocol.messages import Options, Outcome, Payload, TaskAttempt
from .failure_origin import FailureOrigin, cancellation_text, cancelled_error, input_origin, read_answer
from .notebook import html_table
from .profiling import NOT_DONE, ProfilingInfo, profiling_info
from .result_references import dump_result, give_result, register

if TYPE_CHECKING:
    from ..pickling.custom_serializer import Serializer
    from ..pickling.functions import Function

T = TypeVar("T")

PENDING = "PENDING"
RUNNING = "RUNNING"
CANCELLED = "CANCELLED"
CANCELLED_AND_NOTIFIED = "CANCELLED_AND_NOTIFIED"
FINISHED = "FINISHED"

_DONE_STATES = (CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED)
_OPEN_STATES = (PENDING, RUNNING)

_TASK_ID_SECONDS = 0.1
"""The longest time that `repr` of a new future waits for the id of its task."""

LockType = type(threading.Lock())

_log = logging.getLogger(__name__)


lazy_lock = threading.RLock()
"""Held while a future gets its condition, a list or its result. One lock serves all futures, because this is rare and
short.

The thread that holds it may run a signal handler, or a `__del__` method, that enters it again. So each block makes what
it needs first. Then it checks the field and sets it, without a call in between: CPython runs such code only at calls,
jumps and allocations.
"""


HOLDER_CHECK_SECONDS = 0.05
"""The time between two checks of the thread that holds the condition of a future."""

_OWNER = re.compile(r"owner=(\d+) ")
_HOLDING_FILES = (concurrent.futures._base.__file__, __file__)


def is_abandoned(condition: threading.RLock) -> bool:
    """Return whether a thread has acquired the condition and will never release it.

    `concurrent.futures.wait` and `as_completed` acquire the conditions of all their futures in a loop. Ctrl-C in this
    loop leaves the conditions locked. A thread that still needs them has a frame of `concurrent.futures` or of this
    module, other than a frame that waits for a future.
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


def _owner(condition: threading.RLock) -> int | None:
    """Return the thread that has acquired the condition. Only the `repr` of an RLock has it."""
    found = _OWNER.search(repr(condition))
    return None if found is None or found[1] == "0" else int(found[1])


Watcher = Callable[["TaskFuture[Any]"], object]

_READ = (give_result,)
"""The watchers of a future whose result other tasks read, if it has no other watcher."""


class FutureOwner(slot_wait.SlotReporter, ObjectHolder, Protocol):
    """The part of the client's I/O thread that futures use."""

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        """Cancel the task, and wait for the answer. With `force`, a running task is stopped too."""

    def fetch_values(self, wanted: Any) -> None:
        """Fetch the values of kept results (`kept_results.fetch_values`)."""

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
    # Finishing and waiting: only the I/O thread finishes a future. It sets the state, then calls the watchers. A thread
    # that waits adds its watcher, then reads the state. In either order, one of the two threads sees what the other has
    # written.
    #
    # Finishing and the standard library: its functions hold the condition while they read the state twice, and the
    # state must not change in between. The I/O thread sets `_is_finishing`, then looks for a condition; if there is
    # one, it finishes the future under it. A thread that makes a condition then reads `_is_finishing` and lets the I/O
    # thread go first. Again, one of the two threads sees what the other has written.

    # The defaults of fields that few futures need are class attributes. Fields that every future reads are set in
    # `__init__`: reading a default from the class costs five times as much as setting the field
    # (benchmarks/submit_rate.py).
    _state: str = PENDING
    _outcome: int = 0
    _answer: Answer | None = None
    """The bytes of the answer, until they are read. If the application can change what it reads, the bytes stay: tasks
    that get this future as an argument read what its task returned."""
    _exception: BaseException | None = None
    _lazy_condition: threading.RLock | None = None
    _watchers: Sequence[Any] | None = None
    """What the I/O thread does when the future is done: it releases a lock, or calls a Watcher."""
    _result: Any = None
    _is_finishing: bool = False
    _lazy_waiters: list[Any] | None = None
    _done_callbacks: list[Callable[[Any], object]] | None = None
    _cancelled_with: str = ""
    """Why the client itself has cancelled the task, or the traceback of the task that was stopped; empty: neither."""
    _function_name: str = ""
    """The name of the function, kept after the function itself is dropped."""
    _profile: tuple[int, int, int] | None = None
    task_id: int = -1
    options: Options | None = None
    parent: TaskAttempt | None = None
    """The task that submitted this one; None outside of tasks."""
    failure_origin: FailureOrigin | None = None
    """The node of a graph, or the task among the arguments, that made it fail. It is set before the future fails."""
    _serializer: Serializer | None = None
    """The serializer of the result, kept after the function is dropped; None: cloudpickle."""
    _reference: ObjectRef | None = None
    """What stands for the result in the arguments of other tasks; None: no task reads it."""

    def __init__(self, io_thread: FutureOwner, function: Function | None, payload: Call | None) -> None:
        self._io_thread = io_thread
        self._function: Function | None = function
        self._payload: Call | None = payload

    @classmethod
    def finished(cls, io_thread: FutureOwner, value: T, serializer: Serializer | None, is_input: bool) -> TaskFuture[T]:
        """Return a future that has its value and belongs to no task.

        Args:
            io_thread: the client's.
            value: the value.
            serializer: the client's; None: cloudpickle.
            is_input: whether other tasks may read it. They read the value as it is now, if it can be pickled.
        """
        future = cls(io_thread, None, None)
        future._result = value
        future._serializer = serializer
        if is_input and type(value) not in IMMUTABLE_TYPES:
            with contextlib.suppress(Exception):  # a task that gets the future gets this error
                future._answer = dump_result(value, serializer, "a literal")
        future._state = FINISHED
        return future

    _can_be_argument = True

    # The functions of concurrent.futures use the two properties below.

    @property
    def _condition(self) -> Any:
        # A lock, because the standard library only acquires and releases it. A Condition costs 1 us more.
        condition = self._lazy_condition
        if condition is None:
            made = threading.RLock()
            with lazy_lock:
                if self._lazy_condition is None:
                    self._lazy_condition = made
                condition = self._lazy_condition
        while self._is_finishing and self._state not in _DONE_STATES:
            time.sleep(0)  # the I/O thread is about to set the state, in `resolve` or `fail`
        return condition

    @_condition.setter
    def _condition(self, condition: Any) -> None:
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
            True if the task will not run, or was stopped. False if the task still runs, or is done: then nothing
            changes.
        """
        is_forced = bool(force)  # converted here, because the conversion may raise
        if self._state == PENDING or (is_forced and self._state == RUNNING):
            self._io_thread.cancel(self, is_forced)
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def cancelled(self) -> bool:
        """Return whether the task was cancelled."""
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def running(self) -> bool:
        """Return whether the client knows that a worker runs the task. It never learns this of a short task."""
        return self._state == RUNNING

    @property
    def _cancellation(self) -> str:
        """The text that says why the task was cancelled."""
        why = self._cancelled_with.partition(TRACEBACK)[0]
        return why or cancellation_text(self.failure_origin, self._short_label())

    def _cancelled_error(self) -> CancelledError:
        _, *stopped_at = self._cancelled_with.partition(TRACEBACK)
        return cancelled_error(self.failure_origin, self._cancellation, "".join(stopped_at))

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
            SchedulerLostError: the client had no scheduler for too long.
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
            ValueError: the task is not done, was submitted without profiling, or ended without a worker's answer.
            concurrent.futures.CancelledError: the task was cancelled.
        """
        if self._state not in _DONE_STATES:
            raise ValueError(NOT_DONE)
        if self._state != FINISHED:
            raise self._cancelled_error()
        if self._profile is not None:
            return profiling_info(*self._profile)
        if self.options is None or not self.options.profiling:
            raise ValueError("the task was not profiled: submit it with profiling=True")
        raise ValueError("the task was not profiled: it did not end on a worker")

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(future)` when the future is done; immediately if it is already done.

        Callbacks run in the order in which they were added, in a thread of the client. A slow callback delays only
        other callbacks.

        Args:
            fn: the callback. Its argument is this future; an exception that it raises is logged.
        """
        if self._state in _DONE_STATES:
            _run_callback(fn, self)
            return
        if self._done_callbacks is None:
            made: list[Callable[[Any], object]] = []
            with lazy_lock:
                if self._done_callbacks is None:
                    self._done_callbacks = made
        self._done_callbacks.append(fn)
        self.watch(self._io_thread.schedule_callbacks)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher(self)` in the I/O thread when the future is done; now if it is done or just ends.

        In the second case it may be called twice.

        Args:
            watcher: a function of this library that is short and does not block.
        """
        self._add_watcher(watcher)
        if self._state in _DONE_STATES:
            watcher(self)

    def watch_as_input(self) -> None:
        """Let the readers of the result have it when the future is done.

        As `watch(give_result)`, but all such futures share one tuple of watchers (benchmarks/chains.py).
        """
        with lazy_lock:
            if self._watchers is None:
                self._watchers = _READ
                is_first = True
            else:
                is_first = False
        if not is_first:
            self._add_watcher(give_result)
        if self._state in _DONE_STATES:
            give_result(self)

    def unwatch(self, watcher: Watcher | LockType) -> None:  # type: ignore[valid-type]
        """Remove a watcher."""
        watchers = self._watchers
        if isinstance(watchers, list) and watcher in watchers:
            watchers.remove(watcher)

    def __await__(self) -> Generator[Any, None, T]:
        if task_host.host is None or self._state in _DONE_STATES:
            return asyncio.wrap_future(self).__await__()
        return slot_await.await_without_slot(self._io_thread, asyncio.wrap_future(self))

    def __dask_tokenize__(self) -> tuple[str, int]:
        """Return what dask names a collection by that holds this future. The collection keeps the future alive, so no
        other future has the same identity meanwhile."""
        return type(self).__name__, id(self)

    def __repr__(self) -> str:
        if self._answer is not None and self._state == FINISHED:
            self._load_answer()  # `repr` shows the type of the result or exception
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
        # The I/O thread assigns the id, usually within a millisecond. The wait has a limit, because the I/O thread may
        # be slow, or may itself be the calling thread.
        deadline = time.monotonic() + _TASK_ID_SECONDS
        while self.task_id < 0 and self._state == PENDING and time.monotonic() < deadline:
            time.sleep(0.001)
        return self._short_label()

    def _short_label(self) -> str:
        """Return the task's name, with its id if it is known already."""
        return self._task_name() + (f"#{self.task_id}" if self.task_id >= 0 else "")

    def _awaited_text(self) -> str:
        """Return what `result` waits for."""
        return f"the result of {self._short_label()}"

    def _task_name(self) -> str:
        if self.options is not None and self.options.name:
            return self.options.name
        function = self._function  # read once: another thread may load the answer, which drops the function
        return self._function_name if function is None else function.name

    def __reduce__(self) -> Any:
        return reduced(self)

    # ----------------------------------------------------------------------------------------------- for the I/O thread

    def row(self, _task_id: int) -> tuple[Function, Call]:
        """Return the function and the arguments, to submit the task again to a new scheduler."""
        assert self._function is not None and self._payload is not None
        return self._function, self._payload

    def resolve(self, _task_id: int, outcome: int, answer: Payload) -> None:
        """Finish the future with an answer of the scheduler."""
        if self._state not in _OPEN_STATES:
            return
        self._payload = None
        state = FINISHED
        if not outcome:
            self._answer = answer
        elif outcome == Outcome.CANCELLED:
            state = CANCELLED_AND_NOTIFIED
            if answer:
                self._cancelled_with = bytes(answer).decode(errors="replace")
        else:
            self._outcome = outcome
            self._answer = answer
        self._is_finishing = True
        if self._lazy_condition is None:
            self._state = state
        else:
            self._finish_locked(state)
        if self._watchers is not None:
            self._call_watchers(self._watchers)

    def fail_input(self, task_id: int, cause: InputFailure) -> None:
        """Finish the future, because a task whose result it reads has failed or was cancelled."""
        if self._state in _OPEN_STATES:
            name = f"{self._task_name()}#{task_id}"
            self.failure_origin = input_origin(cause, lambda: name)
            self.resolve(task_id, cause.outcome, cause.answer)

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
        if self._watchers is not None:
            self._call_watchers(self._watchers)

    def start(self) -> None:
        """Mark a pending future as running."""
        if self._state == PENDING:
            self._state = RUNNING

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Keep what the worker measured, in nanoseconds and bytes. Called before `resolve`."""
        if self._state not in _DONE_STATES:
            self._profile = duration, cpu_time, peak

    def _call_watchers(self, watchers: Sequence[Any]) -> None:
        for watcher in tuple(watchers):  # a copy: a waiter that times out removes its latch
            if type(watcher) is LockType:
                watcher.release()
            else:
                watcher(self)

    def _finish_locked(self, state: str) -> None:
        """Finish a future that has a condition, and wake its waiters."""
        self._is_finishing = False  # a thread that holds the condition may wait for this in the property
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
        finally:
            condition.release()

    def _acquire_condition(self) -> threading.RLock:
        """Acquire and return the condition, or a new one if a thread has abandoned it."""
        condition: threading.RLock
        while not (condition := self._condition).acquire(blocking=False):
            if is_abandoned(condition):
                self._condition = threading.RLock()
            elif condition.acquire(timeout=HOLDER_CHECK_SECONDS):
                break
        return condition

    def run_callbacks(self) -> None:
        """Run the callbacks that have not run yet. The callback thread calls this."""
        callbacks = self._done_callbacks
        while callbacks:
            try:
                _run_callback(callbacks.pop(0), self)
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
        self._add_watcher(latch)
        if self._state not in _DONE_STATES:
            self._io_thread.check_can_wait()
            if task_host.host is None:
                latch.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
            else:
                slot_wait.wait(self._io_thread, latch, timeout, self.done)
        state = self._state
        if state in (CANCELLED, CANCELLED_AND_NOTIFIED):
            raise self._cancelled_error()
        if state != FINISHED:
            self.unwatch(latch)
            raise TimeoutError(f"{self._awaited_text()} is not there after {max(0.0, timeout or 0.0):.3g} s")

    def _add_watcher(self, watcher: Any) -> None:
        watchers = self._watchers
        while type(watchers) is not list:
            made = list(watchers or ())
            with lazy_lock:
                if self._watchers is watchers:
                    self._watchers = made
                watchers = self._watchers
        watchers.append(watcher)

    def _load_answer(self) -> None:
        """Unpickle the answer into a result or an exception."""
        answer, function = self._answer, self._function
        if answer is None or function is None:
            return
        if self._outcome:
            task = f"{self._task_name()}#{self.task_id}"
            result, exception = read_answer(function, self._outcome, answer, task, self.failure_origin)
        else:  # the most frequent case, with few steps (benchmarks/submit_rate.py)
            result, exception = function.read_answer(self._outcome, answer)
            if exception is not None:
                name_task(exception, f"{self._task_name()}#{self.task_id}")
        self._set_loaded(function, result, exception)

    def _set_loaded(self, function: Function, result: Any, exception: BaseException | None) -> None:
        """Take what the answer holds. It was unpickled without the lock, because this runs user code. If two threads
        have unpickled it, the first result counts."""
        is_fixed = exception is None and type(result) in IMMUTABLE_TYPES
        keeps_bytes = not is_fixed and self._can_be_argument and function.named_function is None
        if self._reference is not None and not keeps_bytes:
            give_result(self)
        origin = self.failure_origin
        if origin is not None:  # keep it for readers, as text: the function may hold a whole graph
            origin = origin._replace(place=origin.place().__str__)
        with lazy_lock:
            if self._function is not None:
                if function.serializer is not None:
                    self._serializer = function.serializer  # before the bytes are dropped, as readers look there first
                self._result = result
                if exception is not None:
                    self._exception = exception
                    self.failure_origin = origin
                self._function_name = function.name
                if not keeps_bytes:
                    self._answer = None
                self._function = None  # last: other threads then read the result


register(TaskFuture)


_LOOP_CALLBACKS = asyncio.wrap_future.__module__
"""The module of the callback with which asyncio copies the outcome of a future: that of the callback's argument."""


def _run_callback(callback: Callable[[Any], object], future: TaskFuture[Any]) -> None:
    try:
        if future._outcome and getattr(callback, "__module__", None) == _LOOP_CALLBACKS:
            callback(_for_event_loop(future))
        else:
            callback(future)
    except Exception:
        _log.exception("exception calling callback for %r", future)


def _for_event_loop(future: TaskFuture[Any]) -> Future[Any]:
    """Return the future that asyncio copies: this one, unless it has an exception that asyncio can't raise."""
    error = future.exception()
    raised = None if error is None else error_for_loop(error)
    if raised is error:
        return future
    copied: Future[Any] = Future()
    copied.set_exception(raised)
    return copied


def error_for_loop(error: BaseException) -> BaseException:
    """Return an exception that a coroutine can raise: the exception itself, or a `RuntimeError` with it as its cause.

    asyncio futures reject a StopIteration, and the error would be lost. A coroutine would take an instance of a
    subclass as the end of the awaited future, and its value as the result.
    """
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError(f"the task raised {type(error).__name__}")
    raised.__cause__ = error
    return raised


def _name_fields() -> None:
    """Set every field of one future, so that CPython keeps the fields of all futures in arrays.

    CPython learns a class's fields from its first instances, about twenty. An instance that gets another field later
    gets a dict of its own. If a program's first burst of tasks is longer than that, answers would make a dict for each
    future: 0.2 us, and 0.5 us of garbage collection (benchmarks/submit_rate.py).
    """
    future: TaskFuture[None] = TaskFuture(cast(FutureOwner, None), None, None)
    for name in TaskFuture.__annotations__:
        setattr(future, name, getattr(TaskFuture, name))


_name_fields()
