"""The origin of a failure: the task, or the node of a graph, whose failure made its readers fail.

Futures, maps and graphs all read answers here, so that their errors name origins in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from ..errors import RemoteTraceback
from ..pickling.failed_answers import with_source_lines
from ..pickling.functions import Function
from ..pickling.load_failures import add_note, name_task
from ..pickling.object_frames import Answer
from ..pickling.references import InputFailure


class FailureOrigin(NamedTuple):
    """The task, or the node of a graph, whose failure made its readers fail."""

    function: str
    """The name of its function."""
    task_id: int
    place: Callable[[], str]
    """Returns the text that names it; called in any thread."""


def input_origin(cause: InputFailure, reader: Callable[[], str]) -> FailureOrigin:
    """Return the origin for a task that fails because a result that it reads has failed.

    Args:
        cause: the failure of the result.
        reader: returns the name of the reader, for example "cube#4"; called in any thread.
    """
    task = f"task {cause.function}#{cause.task_id}"
    return FailureOrigin(cause.function, cause.task_id, lambda: f"{task}, an input of {reader()}")


def read_answer(
    function: Function, outcome: int, answer: Answer, task: str, origin: FailureOrigin | None
) -> tuple[Any, BaseException | None]:
    """Return result and exception of a task from the bytes of its answer. One of them is None.

    A note of the exception names the failed task. If the failure came from another task, a second note and the cause
    name both tasks.

    Args:
        function: the function of the task.
        outcome: a value of `Outcome`.
        answer: the payload of that outcome.
        task: the name of the task, for example "cube#4".
        origin: the task whose failure made this task fail; None: the task itself has failed, or has a value.
    """
    if origin is None:
        result, exception = function.read_answer(outcome, answer)
        if exception is not None:
            name_task(exception, task)
        return result, exception
    place = origin.place()
    _, exception = function.read_answer(outcome, answer, origin.function, place)
    if exception is not None:
        name_task(exception, f"{origin.function}#{origin.task_id}")
        add_note(exception, f"of {place}")
        if exception.__cause__ is None:  # the task has failed without a traceback: its worker died, for example
            BaseException.__setattr__(exception, "__cause__", RemoteTraceback(f"({place})\n"))
    return None, exception


def cancelled_error(origin: FailureOrigin | None, text: str, stopped_at: str = "") -> CancelledError:
    """Return the exception of a cancelled task. If its input was cancelled, a note and the cause name the input too.

    Args:
        origin: the input; None: the task itself was cancelled.
        text: why the task was cancelled.
        stopped_at: the traceback of the task that was stopped; empty: none is known. It becomes the last cause.
    """
    error = last = CancelledError(text)
    if origin is not None:
        add_note(error, f"of {origin.place()}")
        error.__cause__ = last = CancelledError(text)
    if stopped_at:
        last.__cause__ = RemoteTraceback(with_source_lines(stopped_at))
    return error


def cancellation_text(origin: FailureOrigin | None, task: str) -> str:
    """Return the text that names the task that was cancelled.

    Args:
        origin: the input whose cancellation has cancelled the task; None: the task itself was cancelled.
        task: the name of the task, for example "cube#4".
    """
    place = f"task {task}" if origin is None else origin.place()
    return f"{place}{',' if ',' in place else ''} was cancelled"
