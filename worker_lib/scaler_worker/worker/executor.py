"""Runs one task: bytes in, outcome and bytes out.

An exception that a task raises is its outcome. This includes a TaskStoppedError that hits the task's function, or the
pickling of its arguments or result. A TaskStoppedError that hits any other code comes out of `run`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from operator import length_hint
from traceback import StackSummary
from typing import Any

from scaler_client.errors import ScalerError
from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import retry_policy, serializer
from scaler_client.pickling.call_pickles import arguments_pickle
from scaler_client.pickling.call_rows import (
    PICKLES,
    ROW_LIMIT_NS,
    SINGLES,
    SMALL_RESULT_TYPES,
    pack_answer,
    row_calls,
)
from scaler_client.pickling.load_failures import (
    RAISED_BY,
    imported_packages,
    load_failure,
    with_note,
    with_versions,
)
from scaler_client.pickling.named_function import NAMED_KIND_PREFIX
from scaler_client.pickling.package_versions import local_versions
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome, Payload
from scaler_worker.objects.cache import InputLostError
from scaler_worker.objects.callable_copies import CallableCopies, with_own_state
from scaler_worker.objects.host_storage import NoRoomError
from scaler_worker.objects.result_files import dump_result
from scaler_worker.worker.error_text import (
    bounded_traceback,
    describe_error,
    error_line,
    one_line,
    stack_text,
    traceback_text,
)
from scaler_worker.worker.exported_functions import ExportedCall, ExportedFunctions
from scaler_worker.worker.forked_child import end_process

dumps, loads = serializer.dumps, serializer.loads

ROW_LIMIT_BYTES = 1 << 20
"""A row of calls ends when its results have this size."""

_CLOCK_CALLS = 16
"""The clock is read after so many calls with small results. It costs as much as the call of an empty function."""

_CLOCK_CALLS_OF_NO_OPS = 64
_NO_OP_NS = 300
"""The clock is read less often if the calls between its last two readings took less than this, each. Otherwise its
reading is a twelfth of what a no-op costs in the worker (`make bench ONLY=map`)."""

_OVER: Any = object()
"""In place of a result: there is none."""


class ThreadRow(threading.local):
    """The row of several calls that the calling thread runs, or ran last."""

    source: Iterator[Any] = iter(())
    """What its calls are taken from."""

    def calls_left(self) -> int:
        """How many values of its calls are left: the number falls with each call that begins."""
        return length_hint(self.source)


thread_row = ThreadRow()


class _Substitute:
    """Stands for a function that is called by name, or that can't be loaded."""

    def __init__(self, run: ExportedCall) -> None:
        self.run = run


class Executor:
    """Loads functions and calls them."""

    def __init__(
        self,
        functions: dict[int, messages.Function],
        report_failure: Callable[[str, str], None] = lambda line, traceback: None,
        exported: ExportedFunctions | None = None,
        place: str = "on the worker",
        task: Callable[[], str] = str,
        note_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            functions: the functions that the scheduler has sent, by number. The dict changes while the worker runs.
            report_failure: called with one line that says why the task has failed, and with its traceback.
            exported: the functions that are called by name.
            place: this worker, for error texts.
            task: returns a description of the running task, for notes in errors.
            note_loaded: called when a function was loaded, which imports modules.
        """
        self._sent = functions
        self._note_loaded = note_loaded
        self._report_failure = report_failure
        self._exported = ExportedFunctions({}) if exported is None else exported
        self._place = place
        self._task = task
        self._loaded: dict[int, Callable[..., Any] | _Substitute] = {}

    def forget(self, number: int) -> None:
        self._loaded.pop(number, None)

    def run(
        self,
        number: int,
        payload: Payload,
        store: Callable[[Any], tuple[int, Payload]] | None = None,
        load: Callable[[Payload], Any] = loads,
    ) -> tuple[int, Payload]:
        """Call a function.

        Args:
            number: the function's, as the scheduler has sent it.
            payload: the pickled arguments.
            store: makes the outcome and its payload of the value; None: the value is pickled.
            load: makes the arguments of the payload.

        Returns:
            The outcome and its payload.

        Raises:
            TaskStoppedError: the task was stopped while code of the worker ran.
        """
        fn = self._loaded.get(number)
        if fn is None:
            fn = self._load(number)
        if type(fn) is _Substitute:
            return fn.run(payload)
        arguments = None
        try:
            arguments = load(payload)
            if type(arguments) is tuple:
                value = fn(*arguments)  # type: ignore[operator]
            else:
                args, kwargs = arguments
                value = fn(*args, **kwargs)  # type: ignore[operator]
        except BaseException as error:
            return self._exception(number, fn, error, payload if arguments is None else None)
        try:
            return (0, dump_result(value)) if store is None else store(value)
        except TaskStoppedError as error:
            return self._exception(number, fn, error)
        except BaseException as error:
            outcome = Outcome.NO_ROOM if type(error) is NoRoomError else Outcome.RESULT_FAILED
            return outcome.value, self._unpicklable(number, "result", value, error)

    def run_calls(
        self, number: int, payload: Payload, now_ns: Callable[[], int], load: Callable[[Payload], Any] = loads
    ) -> tuple[int, Payload, int]:
        """Call a function several times.

        The first failure ends the row. It also ends when it has run for ROW_LIMIT_NS or its results have
        ROW_LIMIT_BYTES: the client sends the other calls again, perhaps to another worker.

        Args:
            number: the function's, as the scheduler has sent it.
            payload: the packed arguments (`pickling.call_rows`).
            now_ns: a monotonic clock in nanoseconds.
            load: makes the arguments of one call of their payload.

        Returns:
            The outcome, its payload, and the number of calls that have ended. If one has failed, it is the last one,
            and the outcome is its outcome.

        Raises:
            TaskStoppedError: the task was stopped while code of the worker ran.
        """
        fn = self._loaded.get(number)
        if fn is None:
            fn = self._load(number)
        begun = now_ns()
        values: list[Any] = []
        pickles: list[bytes] | None = None  # of all results, from the first one on that is not of a small type
        if type(fn) is _Substitute:
            outcome, failure = fn.run(payload)
            return outcome, pack_answer(values, pickles, 0, failure), 1
        outcome = Outcome.VALUE.value
        failure = b""
        deadline = begun + ROW_LIMIT_NS
        not_loaded: Payload | None = payload  # what is being unpickled
        try:
            form, count, calls, thread_row.source = row_calls(payload)
            not_loaded = None
            value: Any = _OVER
            if form != PICKLES:
                value = _call_while_small(fn, form, calls, count, values, now_ns, deadline)  # type: ignore[arg-type]
            if form == SINGLES:
                calls = zip(calls)
            if form == PICKLES or value is not _OVER:
                pickles = list(map(dumps, values))
                size = 0
                while len(pickles) < count:
                    if value is _OVER:
                        arguments = next(calls)
                        if form == PICKLES:
                            not_loaded = arguments
                            arguments = load(arguments)
                            not_loaded = None
                        value = fn(*arguments)  # type: ignore[operator]
                    try:
                        pickles.append(dumps(value))
                    except TaskStoppedError:
                        raise
                    except BaseException as error:
                        outcome = Outcome.RESULT_FAILED.value
                        failure = self._unpicklable(number, "result", value, error)
                        break
                    value = _OVER
                    size += len(pickles[-1])
                    if size > ROW_LIMIT_BYTES or now_ns() > deadline:
                        break
        except BaseException as error:
            outcome, failure = self._exception(number, fn, error, not_loaded)
            if outcome == Outcome.INPUT_LOST:
                return outcome, failure, 1
        ended = len(values if pickles is None else pickles) + bool(outcome)
        return outcome, pack_answer(values, pickles, now_ns() - begun, failure), ended

    def stopped(self, error: TaskStoppedError) -> tuple[int, Payload]:
        """The outcome and payload of a task that was stopped while code of the worker ran."""
        plain = TaskStoppedError("the task was stopped")
        return Outcome.EXCEPTION.value, serializer.dump_exception(plain, traceback_text(error))

    def ignored_stop(self, stack: StackSummary) -> tuple[int, Payload, str, str]:
        """The outcome, payload, error line and traceback of a task that was stopped, but has returned a value.

        Args:
            stack: where the task was when it was stopped.
        """
        error = TaskStoppedError("the task ignored its stop")
        text = stack_text(stack, error)
        payload = serializer.dump_exception(error, text)
        return Outcome.EXCEPTION.value, payload, error_line(error), bounded_traceback(text)

    def name_of(self, number: int) -> str:
        function = self._sent.get(number)
        return function.name if function is not None else f"function {number}"

    def _load(self, number: int) -> Callable[..., Any] | _Substitute:
        loaded: Callable[..., Any] | _Substitute
        try:
            function = self._sent[number]
            if function.kind.startswith(NAMED_KIND_PREFIX):
                loaded = _Substitute(self._exported.find(function.kind))
            else:
                _check_version(function.kind)
                loaded = with_own_state(serializer.loads(function.payload), function.payload)
        except TaskStoppedError:  # this stops only this task: the next task loads the function
            raise
        except BaseException as error:
            text = self._load_failure(self.name_of(number), error, self._payload_of(number))
            failure = (
                one_line(f"the function can't be unpickled: {describe_error(error)}"),
                bounded_traceback(traceback_text(error)),
            )
            loaded = _Substitute(partial(self._fail_to_load, _dump_load_error(error, text), failure))
        self._loaded[number] = loaded
        self._note_loaded()
        return loaded

    def _fail_to_load(self, dumped: bytes, failure: tuple[str, str], _payload: Payload) -> tuple[int, Payload]:
        self._report_failure(*failure)
        note = self._note()
        if note:
            try:
                error, text, _, failure_text = loads(dumped)
                dumped = serializer.dump_exception(error, text, note, failure_text)
            except Exception:
                pass  # the error goes without the note
        return Outcome.FUNCTION_FAILED.value, dumped

    def _exception(
        self, number: int, fn: object, error: BaseException, not_loaded: Payload | None = None
    ) -> tuple[int, Payload]:
        """The outcome and payload of a task that has raised an exception.

        Args:
            number: the function's.
            fn: the function.
            error: the exception.
            not_loaded: the arguments, if unpickling them has raised it.
        """
        if task_host.is_forked_by_task:
            end_process(self.name_of(number), error)
        if type(error) is InputLostError:
            self._report_failure(error_line(error), "")
            return Outcome.INPUT_LOST.value, f"{self.name_of(number)}: {error}".encode(errors="replace")
        try:
            text = traceback_text(error)
            failure = "" if not_loaded is None else self._arguments_failure(number, error, not_loaded)
            payload = serializer.dump_exception(error, text, self._note(), failure)
            outcome = Outcome.RETRYABLE if _is_retryable(fn, error) else Outcome.EXCEPTION
            brief = f"the arguments can't be unpickled: {describe_error(error)}" if failure else describe_error(error)
            self._report_failure(one_line(brief), bounded_traceback(text))
        except TaskStoppedError:
            raise
        except BaseException as second:
            return Outcome.RESULT_FAILED.value, self._unpicklable(number, "exception", error, second)
        return outcome.value, payload

    def _note(self) -> str:
        task = self._task()
        return f"{RAISED_BY} {task}" if task else ""

    def _arguments_failure(self, number: int, error: BaseException, payload: Payload) -> str:
        """The error text for arguments that can't be unpickled; empty for Scaler's own errors and for a stop."""
        if isinstance(error, ScalerError) or not isinstance(error, Exception):
            return ""
        return self._load_failure(f"the arguments of {self.name_of(number)}", error, arguments_pickle(payload))

    def _load_failure(self, what: str, error: BaseException, payload: Payload) -> str:
        """The error text for a pickle that can't be unpickled, with this worker's versions of the packages in it."""
        text = load_failure(what, self._place, describe_error(error))
        return with_versions(text, local_versions(imported_packages(payload, error)))

    def _payload_of(self, number: int) -> Payload:
        function = self._sent.get(number)
        return b"" if function is None else function.payload

    def _unpicklable(self, number: int, what: str, value: Any, error: BaseException) -> bytes:
        kind = type(value)
        reason = f"can't be pickled: {describe_error(error)}{_place_of_failure(value)}"
        if type(error) is NoRoomError:
            reason = f"can't be stored: {error}"
        text = f"the {what} of {self.name_of(number)}, of type {kind.__module__}.{kind.__qualname__}, {reason}"
        traceback = traceback_text(value if isinstance(value, BaseException) else error)
        self._report_failure(one_line(text), bounded_traceback(traceback))
        if isinstance(value, BaseException):
            text += "\n" + traceback
        return with_note(text, self._note()).encode(errors="replace")


def _call_while_small(
    fn: Callable[..., Any],
    form: int,
    calls: Iterator[Any],
    count: int,
    values: list[Any],
    now_ns: Callable[[], int],
    deadline: int,
) -> Any:
    """Call a function until a result has none of SMALL_RESULT_TYPES, or the deadline is over.

    Each result's type is checked before the next call, which may change a mutable result. `values.append` and
    `type(value) is kind` are quicker than a local `append` and a set; a call with one argument has no tuple
    (`make bench ONLY=map`).

    Args:
        fn: the function.
        form: SINGLES or TUPLES.
        calls: the arguments of each call.
        count: the number of calls.
        values: takes the results.
        now_ns: a monotonic clock in nanoseconds.
        deadline: when to stop.

    Returns:
        The result that is not small, or _OVER.
    """
    kind = None  # the type of the latest result
    clock_calls = _CLOCK_CALLS
    read_ns = now_ns()
    while len(values) < count:
        if form == SINGLES:
            for argument in islice(calls, clock_calls):
                value = fn(argument)
                if type(value) is not kind:
                    kind = type(value)
                    if kind not in SMALL_RESULT_TYPES:
                        return value
                values.append(value)
        else:
            for arguments in islice(calls, clock_calls):
                value = fn(*arguments)
                if type(value) is not kind:
                    kind = type(value)
                    if kind not in SMALL_RESULT_TYPES:
                        return value
                values.append(value)
        before_ns, read_ns = read_ns, now_ns()
        if read_ns > deadline:
            break
        is_no_op = read_ns - before_ns < clock_calls * _NO_OP_NS
        clock_calls = _CLOCK_CALLS_OF_NO_OPS if is_no_op else _CLOCK_CALLS
    return _OVER


def _check_version(pickled_by: str) -> None:
    """Refuse code of another version of Python: it may end the process when it is loaded or run.

    Raises:
        RuntimeError: another version has pickled the function.
    """
    kind, _, version = pickled_by.partition(" ")
    own_kind, _, own_version = serializer.CLOUDPICKLE_KIND.partition(" ")
    if kind == own_kind and version not in ("", own_version):
        text = f"it was pickled by Python {version}, and this worker runs Python {own_version}"
        raise RuntimeError(f"{text}: client and workers must have the same minor version")


def _is_retryable(fn: object, error: BaseException) -> bool:
    if type(fn) not in (retry_policy.RetryingFunction, CallableCopies) or isinstance(error, TaskStoppedError):
        return False
    return isinstance(error, fn.retry_on)  # type: ignore[attr-defined]


def _place_of_failure(value: Any) -> str:
    try:
        return serializer.place_of_failure(value)
    except BaseException:  # pickling runs code of the value
        return ""


def _dump_load_error(error: BaseException, failure: str) -> bytes:
    """Pickle the error of a function that can't be unpickled, or else an ImportError with its text."""
    text = traceback_text(error)
    try:
        return serializer.dump_exception(error, text, "", failure)
    except BaseException:
        return serializer.dump_exception(ImportError(describe_error(error)), text, "", failure)
