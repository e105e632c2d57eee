"""Futures: `concurrent.futures.Future`s without the cost of one.

The standard Future builds a Condition, and its locks and what the garbage collector does with them cost more than
everything else about a small task: 10 us a task fell to 2.5 (measured with 100,000 no-op tasks; `make bench`, submit).
Here the condition comes into being when somebody waits. Results stay bytes until somebody reads them, so that the
I/O thread never runs foreign code.
"""

from __future__ import annotations

import asyncio
import logging
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
"""How long the text of a future that was just submitted waits for its task's number, at the most."""

_log = logging.getLogger(__name__)


class FailedNode(NamedTuple):
    """The node of a graph whose failure is that of others."""

    function: str
    """Its function's name."""
    row: int
    task_id: int
    row_name: Callable[[int], str]
    """Names the row."""


_lazy_lock = threading.Lock()
"""Held while a future gets its condition: one for all, as it is rare and short."""


class FutureOwner(slot_wait.SlotReporter, Protocol):
    """The client's I/O thread, as its futures see it."""

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        """Ask that the task never runs, with `force` that it is stopped if it does, and wait for the answer."""

    def schedule_callbacks(self, future: TaskFuture[Any]) -> None:
        """Have the future's callbacks run, in the callback thread."""

    def check_can_wait(self) -> None:
        """Raise where waiting for this client's futures could never end."""


class TaskFuture(Future[T]):
    """The future of one task. Made by `Client.submit`, never by users.

    It is a `concurrent.futures.Future` to `wait`, `as_completed` and `asyncio.wrap_future`, and can be awaited.
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
    """Once the function itself is not needed any more."""
    _profile: tuple[int, int, int] | None = None
    task_id = -1
    options: Options | None = None
    parent: TaskName | None = None
    """What the task asks for."""
    failed_node: FailedNode | None = None
    """Of a graph's target that has failed; set before that."""

    def __init__(self, io_thread: FutureOwner, function: Function, payload: Payload) -> None:
        self._io_thread = io_thread
        self._function: Function | None = function
        self._payload: Payload | None = payload

    @classmethod
    def finished(cls, io_thread: FutureOwner, value: T) -> TaskFuture[T]:
        """One of no task, that has its value."""
        future = cls.__new__(cls)
        future._io_thread = io_thread
        future._function = future._payload = None
        future._result = value
        future._state = FINISHED
        return future

    # The standard library's module functions reach for these two.

    @property
    def _condition(self) -> threading.Condition:
        condition = self._lazy_condition
        if condition is None:
            with _lazy_lock:
                condition = self._lazy_condition
                if condition is None:
                    condition = self._lazy_condition = threading.Condition()
        while self._is_finishing and self._state not in _DONE_STATES:
            time.sleep(0)  # the I/O thread is between two lines of `resolve`
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

    # ------------------------------------------------------------------------------------------------- what users call

    def cancel(self, force: bool = False) -> bool:
        """Ask that the task never runs, and wait for the answer.

        Args:
            force: stop it if it runs: `TaskStoppedError` is raised in it, and its worker's process is ended when that
                does not help within seconds.

        Returns:
            True when it will not run (any more); False when it runs or is done, which it then stays.
        """
        is_forced = bool(force)  # here: whatever that raises, the I/O thread must not
        if self._state == PENDING or (is_forced and self._state == RUNNING):
            self._io_thread.cancel(self, is_forced)
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def cancelled(self) -> bool:
        """Whether the task will never run, because it was cancelled."""
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def running(self) -> bool:
        """Whether a worker is known to be running the task; short ones are over before anybody is told."""
        return self._state == RUNNING

    def done(self) -> bool:
        """Whether the task was cancelled or has ended."""
        return self._state in _DONE_STATES

    def result(self, timeout: float | None = None) -> T:
        """The task's return value, waited for.

        Args:
            timeout: seconds to wait; None waits without end.

        Raises:
            concurrent.futures.TimeoutError: it isn't there in time.
            concurrent.futures.CancelledError: the task was cancelled.
            TaskTimeoutError, WorkerDiedError, ResultPickleError, FunctionLoadError, SchedulerLostError: what their
                names say.
            BaseException: whatever the task raised.
        """
        if self._state != FINISHED:
            self._wait(timeout)
        if self._answer is not None:
            self._load_answer()
        if self._exception is not None:
            try:
                raise self._exception
            finally:
                self = None  # type: ignore[assignment]  # break the cycle of exception, traceback and this frame
        result: T = self._result
        return result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the task raised, waited for; None when it returned. Raises what `result` raises beside that."""
        if self._state != FINISHED:
            self._wait(timeout)
        if self._answer is not None:
            self._load_answer()
        return self._exception

    def profiling_info(self) -> ProfilingInfo:
        """What the worker measured. Does not wait: ask for the result first.

        Raises:
            ValueError: the task is not done, was not submitted with profiling, or did not come to its end on a worker.
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
        raise ValueError("the task was not profiled: it did not come to its end on a worker")

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(self)` once the future is done, at once when it is; callbacks run in the order they were added.

        They run in a thread of the client's own, so that a slow one delays other callbacks and nothing else.
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
            self._load_answer()  # it says what was returned or raised
        kind, _, rest = super().__repr__().partition(" at ")
        return f"{kind} {self._task_label()} at {rest}"

    def _repr_html_(self) -> str:
        state = self._state.partition("_")[0].lower()
        if self._state == FINISHED:
            error = self.exception()
            state += f", returned {type(self._result).__name__}" if error is None else f", raised {error!r}"
        return html_table(type(self).__name__, {"task": self._task_label(), "state": state})

    def _task_label(self) -> str:
        """As in "square#3", by which the task can be looked up."""
        # The I/O thread gives the number, usually within a millisecond. Without end nobody waits for text: the thread
        # may be held up, or be the one that asks.
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

    # ---------------------------------------------------------------------------------------- what the I/O thread calls

    def row(self, _task_id: int) -> tuple[Function, Payload]:
        """What to submit again when the scheduler has forgotten the task."""
        assert self._function is not None and self._payload is not None
        return self._function, self._payload

    def resolve(self, _task_id: int, outcome: int, answer: Payload) -> None:
        """End the future with what came from the scheduler."""
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
        """End the future with an error of the client's own."""
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
        """What the worker measured, in nanoseconds and bytes; called before `resolve`."""
        if self._state not in _DONE_STATES:
            self._profile = duration, cpu_time, peak

    @staticmethod
    def _release_latches(latches: list[threading.Lock]) -> None:
        for latch in tuple(latches):  # a copy: who gives up waiting takes its own out meanwhile
            latch.release()

    def _finish_locked(self, state: str) -> None:
        """End a future that has a condition, and tell whoever waits."""
        self._is_finishing = False  # who holds the condition must get on for us to get it
        with self._condition:
            self._state = state
            for waiter in self._lazy_waiters or ():
                if self._state == CANCELLED_AND_NOTIFIED:
                    waiter.add_cancelled(self)
                elif self._outcome == Outcome.VALUE and self._exception is None:
                    waiter.add_result(self)
                else:
                    waiter.add_exception(self)
            self._condition.notify_all()
        if self._done_callbacks:
            self._io_thread.schedule_callbacks(self)

    def run_callbacks(self) -> None:
        """Called once, by the callback thread."""
        with self._condition:
            callbacks, self._done_callbacks = self._done_callbacks, ()
        for callback in callbacks:
            try:
                _run_callback(callback, self)
            except BaseException:  # such as SystemExit, which would end the thread, and with it all other callbacks
                _log.exception("exception calling callback for %r", self)

    # ---------------------------------------------------------------------------------------------------------- inside

    def _wait(self, timeout: float | None) -> None:
        """Wait until the future is finished; raise where it is cancelled or not in time."""
        # A bare lock as a latch: a Condition's wait makes one too, and three more objects around it.
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
        """Turn the answer's bytes into result or exception."""
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
        # Not under the lock: unpickling runs foreign code. Of two threads that read at once, the first decides.
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
