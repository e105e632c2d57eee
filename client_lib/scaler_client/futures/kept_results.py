"""Results that stay on their host (`options(keep=True)`): their futures, and how they are made again after a loss."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ClientClosedError
from ..pickling.references import (
    STAND_INS,
    Call,
    CallWithInputs,
    InputCollector,
    InputFailure,
    ObjectRef,
    ResultObject,
    StoredInput,
    call_payload,
)
from ..protocol.messages import Keep, Options, Outcome, Payload, TaskAttempt
from .future import FINISHED, FutureOwner, TaskFuture, lazy_lock
from .notebook import html_table
from .result_references import check_serializer, give_result

if TYPE_CHECKING:
    from ..pickling.functions import Function

T = TypeVar("T")

_NUMBER_BYTES = 8
_SUCCESS = Outcome.KEPT.value, Outcome.VALUE.value
_NO_CALL = CallWithInputs(b"", (), Keep.YES)


class FetchedValue(TaskFuture[T]):
    """The future of the value of a kept result."""

    _can_be_argument = False
    _frames: Sequence[Payload] = ()
    source: TaskFuture[Any] | None = None
    """The future of the task, until the value is there: without it the result would be freed."""

    def cancel(self, force: bool = False) -> bool:
        """Do nothing: a task that makes the result again may have other readers."""
        return False

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Finish the future with an answer of the scheduler."""
        super().resolve(task_id, outcome, answer)
        self.source = None

    def fail(self, task_id: int, error: BaseException) -> None:
        """Finish the future with an error of the client."""
        super().fail(task_id, error)
        self.source = None

    def set_frames(self, task_id: int, frames: Sequence[Payload]) -> None:
        """Take the value: a pickle, and its buffers."""
        self._frames = frames if len(frames) > 1 else ()
        self.resolve(task_id, Outcome.VALUE, frames[0])

    def _awaited_text(self) -> str:
        source = self.source
        return (
            "the value of a kept result"
            if source is None
            else f"the value of the kept result of {source._short_label()}"
        )

    @property
    def has_failed(self) -> bool:
        """Whether it is done without a value."""
        return self.done() and (self.cancelled() or self._outcome != Outcome.VALUE or self._exception is not None)

    def _load_answer(self) -> None:
        frames, function = self._frames, self._function
        if not frames or function is None:
            super()._load_answer()
            return
        self._set_loaded(function, *function.read_frames(frames))
        self._frames = ()


class KeptResult(ResultObject):
    """A result that stays where it was made. It has what is needed to make it again, as long as a future or a result
    that was made of it exists. It is the sink of its task's answers when the task is submitted again.

    Args:
        name: for display.
        producer: the future of the task.
        parent: the task that has submitted this task; None: it was submitted outside of tasks.
        function: the function of the task.
        options: the options of the task.
    """

    __slots__ = ("fetches", "file_id", "function", "host", "is_kept", "is_lost", "options", "payload")

    def __init__(
        self,
        name: str,
        producer: KeptFuture[Any],
        parent: TaskAttempt | None,
        function: Function,
        options: Options | None,
    ) -> None:
        super().__init__(name, producer, parent)
        self.function = function
        self.options = options
        self.payload: CallWithInputs = _NO_CALL
        """The arguments of the task, without references to other things that it reads."""
        self.host = ""
        """The host that has it, or had it last; empty: the client or the scheduler."""
        self.file_id = -1
        """The id by which hosts know it."""
        self.is_kept = False
        """Whether it has existed."""
        self.is_lost = False
        """Whether the scheduler does not have it any more, so that its task must be submitted again."""
        self.fetches: list[FetchedValue[Any]] = []
        """The futures that wait for its value."""

    @property
    def label(self) -> str:
        """The name and the number of its task."""
        return f"{self.name}#{self.id}"

    def set_kept(self, outcome: int, answer: Payload, payload: CallWithInputs) -> None:
        """Note that the task has ended.

        Args:
            outcome: `kept`, or `value`: then the client has the result, because it is small.
            answer: the payload of this outcome.
            payload: the arguments of the task.
        """
        assert self.producer is not None
        self.id = self.producer.task_id
        self.producer = None
        inputs = [
            StoredInput(each.stored) if type(each) is ObjectRef and not each.stored.is_arguments else each
            for each in payload.inputs
        ]
        self.payload = CallWithInputs(payload.data, inputs, Keep.YES)
        self._set_place(outcome, answer)

    def _set_place(self, outcome: int, answer: Payload) -> None:
        self.is_kept, self.is_lost = True, False
        if outcome == Outcome.VALUE:
            self.frames = () if self.is_gone else (answer,)
            self.size, self.host = len(answer), ""
            return
        self.size = int.from_bytes(answer[:_NUMBER_BYTES], "little")
        self.file_id = int.from_bytes(answer[_NUMBER_BYTES : 2 * _NUMBER_BYTES], "little")
        self.host = bytes(answer[2 * _NUMBER_BYTES :]).decode(errors="replace")

    @property
    def is_on_host(self) -> bool:
        """Whether some host has it, as far as is known here."""
        return self.is_kept and not self.is_lost and bool(self.host) and self.failure is None

    def loss_text(self, why: str) -> str:
        """Return the text of the error that it is lost.

        Args:
            why: why it can't be made again.
        """
        where = f"host {self.host}" if self.host else "the scheduler"
        return f"the result of {self.label} ({self.size:,} bytes) was lost with {where} and can't be made again: {why}"

    def set_loss(self, why: str) -> None:
        """Note that it is lost for good, for this reason."""
        self.failure = InputFailure(self.name, self.id, Outcome.INPUT_LOST, self.loss_text(why).encode())

    def give_failure(self) -> None:
        """Fail everything that waits for its value, as its task has failed."""
        assert self.failure is not None
        fetches, self.fetches = self.fetches, []
        for each in fetches:
            if self.failure.task_id == self.id:
                each.resolve(self.id, self.failure.outcome, self.failure.answer)
            else:
                each.fail_input(self.id, self.failure)

    # ------------------------------------------------------------------------- as the sink of a task submitted again

    def row(self, _task_id: int) -> tuple[Function, CallWithInputs]:
        """Return the function and the arguments, to submit the task again."""
        return self.function, self.payload

    def resolve(self, _task_id: int, outcome: int, answer: Payload) -> None:
        """Take the answer of the task."""
        if outcome in _SUCCESS:
            self._set_place(outcome, answer)
            return
        self.is_lost = True
        if outcome == Outcome.CANCELLED and self.is_gone:
            return  # no task reads it any more
        self.failure = InputFailure(self.name, self.id, outcome, answer)
        self.give_failure()

    def fail(self, task_id: int, error: BaseException) -> None:
        """Take an error of the client. A later call may make the result again."""
        self.is_lost = True
        fetches, self.fetches = self.fetches, []
        for each in fetches:
            each.fail(task_id, error)

    def fail_input(self, _task_id: int, cause: InputFailure) -> None:
        """Take the failure of a result that the task reads."""
        self.is_lost = True
        self.failure = cause
        self.give_failure()

    def start(self) -> None:
        """Do nothing: the future is done."""

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Do nothing: the future has what was measured first."""


class KeptFuture(TaskFuture[T]):
    """The future of a task whose result stays on its host: `Client.options(keep=True)` makes it.

    It is done when the result is there. `result` brings the value; tasks that get the future among their arguments read
    the result where it is. The result is freed when the future and all tasks that read it are gone. If it is lost with
    its host, its task runs again when the value is needed.
    """

    _value: FetchedValue[T] | None = None

    def __init__(
        self,
        io_thread: FutureOwner,
        function: Function,
        payload: Call,
        *,
        options: Options | None,
        parent: TaskAttempt | None,
    ) -> None:
        inputs = payload.inputs if isinstance(payload, CallWithInputs) else ()
        super().__init__(io_thread, function, CallWithInputs(call_payload(payload), inputs, Keep.YES))
        self.options = options
        self.parent = parent
        self._stored = KeptResult(self._task_name(), self, parent, function, options)
        self._reference = ObjectRef(io_thread, self._stored)
        self._add_watcher(give_result)  # if it ends without a result

    # ------------------------------------------------------------------------------------------------ for applications

    @property
    def size(self) -> int | None:
        """The size of the result in bytes; None: there is no result (yet)."""
        return self._stored.size if self._stored.is_kept else None

    @property
    def location(self) -> str | None:
        """The name of the host that has the result, or had it last; "client" if this program has it, because it is
        small; "scheduler" if only the scheduler has it; None: there is no result (yet)."""
        if not self._stored.is_kept:
            return None
        return self._stored.host or ("client" if self._stored.frames else "scheduler")

    def result(self, timeout: float | None = None) -> T:
        """Wait for the task, bring its result, and return it.

        Args:
            timeout: how many seconds to wait; None: no limit.

        Returns:
            The return value of the task.

        Raises:
            ObjectNotFoundError: the result was lost and cannot be made again; the text says why.
            concurrent.futures.TimeoutError: the result is not here in time.
            concurrent.futures.CancelledError: the task was cancelled.
            BaseException: as `TaskFuture.result`, also if the task had to run again and failed then.
        """
        began = time.monotonic()
        value: TaskFuture[T] | None = None
        try:
            if self._state != FINISHED:
                self._wait(timeout)
            if not self._stored.is_kept:
                return super().result(timeout)
            (value,) = fetch_values([self])
            result: T = value.result(None if timeout is None else max(0.0, began + timeout - time.monotonic()))
            return result
        finally:
            self = value = None  # type: ignore[assignment]  # breaks the reference cycle of exception, traceback and frame

    def __await__(self) -> Generator[Any, None, T]:
        return fetch_values([self])[0].__await__()

    def __repr__(self) -> str:
        if not self._stored.is_kept:
            return super().__repr__()
        where = f"{self._stored.size:,} bytes at {self.location}"
        return f"<{type(self).__name__} {self._task_label()} at {id(self):#x} state=finished kept {where}>"

    def _repr_html_(self) -> str:
        if not self._stored.is_kept:
            return super()._repr_html_()
        rows = {"task": self._task_label(), "state": "kept", "size": f"{self._stored.size:,} bytes"}
        return html_table(type(self).__name__, {**rows, "location": str(self.location)})

    # ----------------------------------------------------------------------------------------------- for the I/O thread

    @property
    def reference(self) -> ObjectRef:
        """What stands for the result in the arguments of other tasks."""
        assert self._reference is not None
        return self._reference

    @property
    def stored(self) -> KeptResult:
        """The result in the client's session."""
        return self._stored

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Finish the future with an answer of the scheduler."""
        if outcome in _SUCCESS and not self.done():
            assert isinstance(self._payload, CallWithInputs)
            self._stored.set_kept(outcome, answer, self._payload)
            super().resolve(task_id, Outcome.VALUE, None)  # type: ignore[arg-type]  # the value stays where it is
        else:
            super().resolve(task_id, outcome, answer)

    def fetched(self) -> tuple[FetchedValue[T], bool]:
        """Return the future of the value, and whether it is a new one, whose value must be fetched."""
        value = self._value
        while value is None or value.has_failed:
            made: FetchedValue[T] = FetchedValue(self._io_thread, self._stored.function, None)
            made.task_id, made.options, made.source = self.task_id, self.options, self
            with lazy_lock:
                if self._value is value:
                    self._value = made
                    return made, True
                value = self._value
        return value, False


def fetch_values(futures: Sequence[KeptFuture[Any]]) -> list[FetchedValue[Any]]:
    """Fetch the values of kept results, together. Returns the futures of the values."""
    values, new = [], []
    for future in futures:
        value, is_new = future.fetched()
        values.append(value)
        frames = future.stored.frames  # read once: another thread may clear the client
        if is_new and frames:
            value.set_frames(future.stored.id, frames)
        elif is_new:
            new.append((future.stored, value))
    if new:
        try:
            futures[0]._io_thread.fetch_values(new)
        except ClientClosedError as error:
            for stored, value in new:
                value.fail(stored.id, ClientClosedError(f"can't bring the result of {stored.label}: {error}"))
    return values


def _stand_in(future: KeptFuture[Any], collector: InputCollector) -> ObjectRef:
    check_serializer(future, collector.io_thread, collector.serializer)
    return future.reference


STAND_INS[KeptFuture] = _stand_in
