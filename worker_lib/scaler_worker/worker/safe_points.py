"""Finds the points where a task can be interrupted without damage to its process.

A stop raises an exception between any two instructions of the task. Two kinds of code must not be interrupted:

- An import: modules stay half loaded, and some C extensions can't be loaded again. - Code of the standard library and
of our packages that changes state of the whole process. A lock may stay held, or a table may stay half written.

All other code belongs to the task, and must expect exceptions anyway.
"""

from __future__ import annotations

import dis
import enum
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, TracebackType

from scaler_worker.worker.executor import Executor


class Place(enum.Enum):
    """The kind of code that an exception would interrupt."""

    SAFE = 1
    SHARED = 2
    """The innermost code changes state that the whole process shares. It ends soon, or it is blocked in a system call,
    where it expects exceptions."""
    IMPORT = 3
    """A module is being imported, or an object finalized: Python would only print an exception from a finalizer."""


IMPORT_MODULES = frozenset(
    ("importlib._bootstrap", "importlib._bootstrap_external", "_frozen_importlib", "_frozen_importlib_external")
)
"""Values of `__name__`. The names of the frozen modules change when importlib is imported."""

SHARED_STATE = frozenset(
    (
        "_weakrefset", "concurrent", "contextlib", "functools", "importlib", "logging", "multiprocessing", "queue",
        "tempfile", "threading", "warnings", "weakref", "scaler_client", "scaler_worker",
    )
)  # fmt: skip
"""Top-level modules that keep locks, registries or caches for the whole process, or that enter locks of other modules.

For example contextlib: an exception between `__enter__` and the body of `with` leaves the lock held.
"""

EXECUTION = frozenset(
    (
        "scaler_client.pickling.cloudpickle_ext",
        "scaler_client.pickling.custom_serializer",
        "scaler_client.pickling.named_function",
        "scaler_client.pickling.object_frames",
        "scaler_client.pickling.retry_policy",
        "scaler_client.pickling.serializer",
        "scaler_worker.objects.kept_results",
        "scaler_worker.worker.error_text",
        "scaler_worker.worker.executor",
        "scaler_worker.worker.exported_functions",
    )
)
"""Our modules that work for one task only, maybe for long (pickling). The run loop expects TaskStoppedError there."""

LIBRARIES = sys.stdlib_module_names | SHARED_STATE | {"capnp", "cloudpickle", "zmq"}
"""Top-level modules whose innermost frames work for the code that calls them. `__main__` is code of the task."""

_RESUME = dis.opmap.get("RESUME", -1)
"""The first instruction of a function. It checks for exceptions that were set for the thread."""

_BASE: CodeType = Executor.run.__code__
"""The outermost frame of a task: all its code runs above it."""


def place_of(frames: Iterable[FrameType]) -> Place:
    """The kind of place that an exception in the first frame would interrupt. Each frame is called by the next one.

    Only the innermost frames can count as changing shared state: library code that calls the task's code expects
    exceptions there. An import is interrupted by any exception inside it.
    """
    is_innermost = True
    is_shared = False
    for frame in frames:
        code = frame.f_code
        if code is _BASE:
            break
        name = str(frame.f_globals.get("__name__"))
        if name in IMPORT_MODULES or code.co_name == "__del__":
            return Place.IMPORT
        if is_innermost and name not in EXECUTION:
            package = name.partition(".")[0]
            is_innermost = package in LIBRARIES
            is_shared = is_shared or package in SHARED_STATE
    return Place.SHARED if is_shared else Place.SAFE


def stack(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def was_raised_unsafely(error: BaseException) -> bool:
    """Whether the exception was raised at an unsafe point.

    A function that had not executed anything counts as not called. Reason: an exception may be set for a thread that
    waits for the GIL. Python 3.13 raises it at the next check, often at the start of a function that the thread calls.
    """
    frames = list(_stack_of(error))
    if place_of(frames) is Place.SAFE:
        return False
    return not (_was_raised_at_start(error) and place_of(frames[1:]) is Place.SAFE)


def _stack_of(error: BaseException) -> Iterator[FrameType]:
    """The frame where the exception was raised, and its callers, also of frames that have ended since.

    The traceback alone is not enough. Python removes the frames of an import from it, and it has no frames outside of
    the frame that caught the exception. The callers alone are not enough either: an ended generator may not know its
    caller any more. So this function follows both.
    """
    entries = _entries(error)
    for number in range(len(entries) - 1, -1, -1):
        caller = entries[number - 1].tb_frame if number else None
        for frame in stack(entries[number].tb_frame):
            if frame is caller:
                break
            yield frame


def _was_raised_at_start(error: BaseException) -> bool:
    """Whether it was raised at the start of the innermost function. Python 3.10 has no check there."""
    entry = _entries(error)[-1]
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == _RESUME


def _entries(error: BaseException) -> list[TracebackType]:
    entries = []
    traceback = error.__traceback__
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries
