"""Runs one task: bytes in, outcome and bytes out.

An exception that a task raises is its outcome. This includes a TaskStoppedError that hits the task's function, or the
pickling of its arguments or result. A TaskStoppedError that hits any other code comes out of `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from scaler_client.errors import ScalerError
from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import retry_policy, serializer
from scaler_client.pickling.load_failures import RAISED_BY, load_failure, with_note
from scaler_client.pickling.named_function import NAMED_KIND_PREFIX
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome, Payload
from scaler_worker.objects.cache import InputLostError
from scaler_worker.worker.error_text import bounded_traceback, describe_error, error_line, one_line, traceback_text
from scaler_worker.worker.exported_functions import ExportedCall, ExportedFunctions
from scaler_worker.worker.forked_child import end_process

dumps, loads = serializer.dumps, serializer.loads


class _Substitute:
    """Takes the place of a function that is called by name, or that can't be loaded."""

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
    ) -> None:
        """
        Args:
            functions: the functions that the scheduler has sent, by number. The dict changes while the worker runs.
            report_failure: called with one line that says why the task has failed, and with its traceback.
            exported: the functions that are called by name.
            place: this worker, for error texts.
            task: returns a description of the running task, for notes in errors.
        """
        self._sent = functions
        self._report_failure = report_failure
        self._exported = ExportedFunctions({}) if exported is None else exported
        self._place = place
        self._task = task
        self._loaded: dict[int, Callable[..., Any] | _Substitute] = {}

    def forget(self, number: int) -> None:
        self._loaded.pop(number, None)

    def run(
        self, number: int, payload: Payload, store: Callable[[Any], tuple[int, Payload]] | None = None
    ) -> tuple[int, Payload]:
        """Call a function.

        Args:
            number: the function's, as the scheduler has sent it.
            payload: the pickled arguments.
            store: makes the outcome and its payload of the value; None: the value is pickled.

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
            arguments = loads(payload)
            if type(arguments) is tuple:
                value = fn(*arguments)  # type: ignore[operator]
            else:
                args, kwargs = arguments
                value = fn(*args, **kwargs)  # type: ignore[operator]
        except BaseException as error:
            return self._exception(number, fn, error, are_loaded=arguments is not None)
        try:
            return (0, dumps(value)) if store is None else store(value)
        except TaskStoppedError as error:
            return self._exception(number, fn, error)
        except BaseException as error:
            return Outcome.RESULT_FAILED.value, self._unpicklable(number, "result", value, error)

    def stopped(self, error: TaskStoppedError) -> tuple[int, Payload]:
        """The outcome and payload of a task that was stopped while code of the worker ran."""
        plain = TaskStoppedError("the task was stopped")
        return Outcome.EXCEPTION.value, serializer.dump_exception(plain, traceback_text(error))

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
                loaded = serializer.loads(function.payload)
        except TaskStoppedError:  # stops this task alone: the next task loads the function
            raise
        except BaseException as error:
            text = load_failure(self.name_of(number), self._place, describe_error(error), error)
            failure = (
                one_line(f"the function can't be unpickled: {describe_error(error)}"),
                bounded_traceback(traceback_text(error)),
            )
            loaded = _Substitute(partial(self._fail_to_load, _dump_load_error(error, text), failure))
        self._loaded[number] = loaded
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

    def _exception(self, number: int, fn: object, error: BaseException, are_loaded: bool = True) -> tuple[int, Payload]:
        if task_host.is_forked_by_task:
            end_process(self.name_of(number), error)
        if type(error) is InputLostError:
            self._report_failure(error_line(error), "")
            return Outcome.INPUT_LOST.value, f"{self.name_of(number)}: {error}".encode(errors="replace")
        try:
            text = traceback_text(error)
            failure = "" if are_loaded else self._arguments_failure(number, error)
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

    def _arguments_failure(self, number: int, error: BaseException) -> str:
        """What a failed unpickling of the arguments means; empty for Scaler's own errors and for a stop."""
        if isinstance(error, ScalerError) or not isinstance(error, Exception):
            return ""
        return load_failure(f"the arguments of {self.name_of(number)}", self._place, describe_error(error), error)

    def _unpicklable(self, number: int, what: str, value: Any, error: BaseException) -> bytes:
        kind = type(value)
        text = (
            f"the {what} of {self.name_of(number)}, of type {kind.__module__}.{kind.__qualname__}, can't be pickled: "
            f"{describe_error(error)}"
        )
        traceback = traceback_text(value if isinstance(value, BaseException) else error)
        self._report_failure(one_line(text), bounded_traceback(traceback))
        if isinstance(value, BaseException):
            text += "\n" + traceback
        return with_note(text, self._note()).encode(errors="replace")


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
    if type(fn) is not retry_policy.RetryingFunction or isinstance(error, TaskStoppedError):
        return False
    return isinstance(error, fn.retry_on)


def _dump_load_error(error: BaseException, failure: str) -> bytes:
    """Pickle the error of a function that can't be unpickled, or else an ImportError with its text."""
    text = traceback_text(error)
    try:
        return serializer.dump_exception(error, text, "", failure)
    except BaseException:
        return serializer.dump_exception(ImportError(describe_error(error)), text, "", failure)
