"""Running one task: bytes in, outcome and bytes out. Nothing that a task does raises here."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from scaler_client import messages, serializer
from scaler_client.messages import Outcome, Payload

dumps, loads = serializer.dumps, serializer.loads


class _Failed:
    """Stands for a function that can't be loaded."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


class Executor:
    """Loads functions and calls them."""

    def __init__(self, functions: dict[int, messages.Function]) -> None:
        """`functions` are those that the scheduler has sent, by number; it changes as they come and go."""
        self._sent = functions
        self._loaded: dict[int, Callable[..., Any] | _Failed] = {}

    def forget(self, number: int) -> None:
        self._loaded.pop(number, None)

    def run(self, number: int, payload: Payload) -> tuple[int, Payload]:
        """Call the function with the arguments in `payload`; returns the outcome and its payload."""
        fn = self._loaded.get(number)
        if fn is None:
            fn = self._load(number)
        if type(fn) is _Failed:
            return Outcome.FUNCTION_FAILED.value, fn.payload
        try:
            arguments = loads(payload)
            if type(arguments) is tuple:
                value = fn(*arguments)  # type: ignore[operator]
            else:
                args, kwargs = arguments
                value = fn(*args, **kwargs)  # type: ignore[operator]
        except BaseException as error:
            return self._exception(number, error)
        try:
            return 0, dumps(value)
        except BaseException as error:
            return Outcome.RESULT_FAILED.value, self._unpicklable(number, "result", value, error)

    def name_of(self, number: int) -> str:
        function = self._sent.get(number)
        return function.name if function is not None else f"function {number}"

    def _load(self, number: int) -> Callable[..., Any] | _Failed:
        loaded: Callable[..., Any] | _Failed
        try:
            loaded = serializer.loads(self._sent[number].payload)
        except BaseException as error:
            loaded = _Failed(_described(error))
        self._loaded[number] = loaded
        return loaded

    def _exception(self, number: int, error: BaseException) -> tuple[int, Payload]:
        try:
            return Outcome.EXCEPTION.value, _with_traceback(error)
        except BaseException as second:
            return Outcome.RESULT_FAILED.value, self._unpicklable(number, "exception", error, second)

    def _unpicklable(self, number: int, what: str, value: Any, error: BaseException) -> bytes:
        kind = type(value)
        text = (
            f"the {what} of {self.name_of(number)}, of type {kind.__module__}.{kind.__qualname__}, can't be pickled: "
            f"{_said(error)}"
        )
        if isinstance(value, BaseException):
            text += "\n" + _format(value)
        return text.encode(errors="replace")


def _format(error: BaseException) -> str:
    """The traceback's text, without the frames of this file."""
    inner = error.__traceback__
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return "".join(traceback.format_exception(type(error), error, inner))


def _said(error: BaseException) -> str:
    """Type and text; an exception's `__str__` may fail as well."""
    return traceback.format_exception_only(type(error), error)[-1].rstrip()


def _with_traceback(error: BaseException) -> bytes:
    """Exception and remote traceback as bytes that are known to come back."""
    return serializer.dump_exception(error, _format(error))


def _described(error: BaseException) -> bytes:
    """The same, for an error that must arrive in whatever shape."""
    try:
        return _with_traceback(error)
    except BaseException:
        return _with_traceback(ImportError(_said(error)))
