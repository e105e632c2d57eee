"""Texts about the exceptions that tasks raise."""

from __future__ import annotations

import os
import traceback
from types import FrameType

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import retry_policy

LINE_LIMIT = 200
"""The longest line that says why a task failed, in characters."""

TRACEBACK_BYTES = 4096
"""The longest traceback that is sent to the scheduler, in bytes of UTF-8."""

_MAX_LINE_LENGTH = 300
_LEFT_OUT = "  [{:>10,} lines are left out here]"
_NO_CODE = "  in a function that is not written in Python\n"
_OWN_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_EXECUTOR = os.path.join(os.path.dirname(__file__), "executor.py")


def traceback_text(error: BaseException) -> str:
    """The text of a traceback, without the worker's frames around the task's function, and those that stopped it."""
    inner = error.__traceback__
    while inner is not None and _is_own(inner.tb_frame.f_code.co_filename):
        inner = inner.tb_next
    try:
        shown = traceback.TracebackException(type(error), error, inner, compact=True)
        if isinstance(error, TaskStoppedError):
            while shown.stack and _is_own(shown.stack[-1].filename):
                shown.stack.pop()
            if not shown.stack:
                return _stopped_text([_NO_CODE], error)
        return "".join(shown.format())
    except Exception:  # attributes of an exception may raise errors too
        return "".join([*traceback.format_tb(inner), f"{describe_error(error)}\n"])


def task_stack(frame: FrameType | None) -> traceback.StackSummary:
    """Return where the task is whose thread executes this frame. Its text is made later, as that may read files.

    Args:
        frame: the frame; None: the thread executes none.
    """
    places = []
    for place in traceback.walk_stack(frame):
        file = place[0].f_code.co_filename
        if not _is_own(file):
            places.append(place)
        elif file == _EXECUTOR:
            return traceback.StackSummary.extract(reversed(places), lookup_lines=False)
    return traceback.StackSummary()  # it executes no task


def stack_text(stack: traceback.StackSummary, error: TaskStoppedError) -> str:
    """The text of a traceback that ends in this stack with this error."""
    return _stopped_text(stack.format() or [_NO_CODE], error)


def _stopped_text(lines: list[str], error: TaskStoppedError) -> str:
    return "".join(["Traceback (most recent call last):\n", *lines, f"{describe_error(error)}\n"])


def bounded_traceback(text: str) -> str:
    """Shorten a traceback to TRACEBACK_BYTES: keep its first line and its last lines."""
    if len(text.encode("utf-8", "replace")) <= TRACEBACK_BYTES:
        return text
    head, *lines = [line[:_MAX_LINE_LENGTH] for line in text.splitlines()]
    left = TRACEBACK_BYTES - 4 * _MAX_LINE_LENGTH - len(_LEFT_OUT)
    kept: list[str] = []
    for line in reversed(lines):
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([head, _LEFT_OUT.format(len(lines) - len(kept)), *reversed(kept)])


def describe_error(error: BaseException) -> str:
    """The type and text of an exception. Works if its `__str__` raises, too."""
    try:
        return traceback.format_exception_only(type(error), error)[-1].rstrip()
    except Exception:
        return f"{type(error).__qualname__}: <exception str() failed>"


def error_line(error: BaseException) -> str:
    """One line that says why a task failed, for lists of tasks."""
    return one_line(describe_error(error))


def one_line(text: str) -> str:
    """Turn a text into one printable line."""
    words = " ".join(text[: 10 * LINE_LIMIT].split())[:LINE_LIMIT]
    return words if words.isprintable() else "".join(letter if letter.isprintable() else " " for letter in words)


def _is_own(path: str) -> bool:
    return path == retry_policy.__file__ or path.startswith(_OWN_FOLDER)
