"""Futures as arguments: the reference that stands for a future's result while another call is pickled.

A future that is an argument stands for the original result, even if the application has changed the value that
`result()` returned. So a future keeps the bytes of its answer. It drops them when the application has read a number or
a text, which nobody can change. A small result that the client has goes into the arguments themselves: an object of its
own would cost a message, and more bytes.
"""

from __future__ import annotations

import traceback
from typing import Any, Protocol

from ..pickling.call_pickles import SMALL_BYTES
from ..pickling.custom_serializer import Serializer, dump
from ..pickling.functions import Function
from ..pickling.object_frames import Answer, ResultFile
from ..pickling.references import STAND_INS, InputCollector, ObjectRef, ResultObject
from ..pickling.serializer import dump_exception, dumps
from ..protocol.messages import Outcome, Payload, TaskAttempt
from .failure_origin import FailureOrigin


class ReadFuture(Protocol):
    """A `TaskFuture`, as this module sees it."""

    task_id: int
    parent: TaskAttempt | None
    failure_origin: FailureOrigin | None
    _io_thread: Any
    _function: Function | None
    _serializer: Serializer | None
    _reference: ObjectRef | None
    _answer: Answer | None
    _outcome: int
    _result: Any
    _exception: BaseException | None
    _cancelled_with: str

    def cancelled(self) -> bool: ...

    def watch_as_input(self) -> None: ...

    def _task_name(self) -> str: ...


def stand_in(future: ReadFuture, collector: InputCollector) -> ObjectRef | bytes:
    """Return what stands for a future in arguments: the pickle of its result if the client has it and it is small, else
    a reference.

    Args:
        future: the future.
        collector: the collector of the call that has the future among its arguments.

    Raises:
        TypeError: as `reference_to` and `check_serializer`.
    """
    io_thread = collector.io_thread
    answer, function = future._answer, future._function
    if function is None or function.serializer is not collector.serializer:
        check_serializer(future, io_thread, collector.serializer)
    is_readable = function is None or function.named_function is None
    is_value = future._outcome == Outcome.VALUE and is_readable
    if answer is None or type(answer) is ResultFile or not is_value or future._io_thread is not io_thread:
        reference = reference_to(future)
        frames = reference.stored.frames
        if len(frames) != 1 or future._io_thread is not io_thread:
            return reference
        answer = frames[0]
    return bytes(answer) if len(answer) <= SMALL_BYTES else reference_to(future)


def check_serializer(future: ReadFuture, io_thread: object, serializer: object) -> None:
    """Check that readers of a future's result can read its bytes.

    Clients inside one task share a connection, but may have different serializers.

    Args:
        future: the future.
        io_thread: the I/O thread of the client that calls. Futures of others are refused by `ObjectRef.check`.
        serializer: the serializer of this client; None: cloudpickle.

    Raises:
        TypeError: another serializer made the bytes of the result.
    """
    function = future._function
    own = future._serializer if function is None else function.serializer
    if own is not serializer and future._io_thread is io_thread and _kind(own) != _kind(serializer):
        name = future._task_name()
        raise TypeError(f"the result of {name} was made with another serializer than this client's: pass its result()")


def _kind(serializer: object) -> tuple[str, str]:
    """Return the module and the name of a serializer's class. Unpickling may make a new object each time."""
    kind = serializer if isinstance(serializer, type) else type(serializer)
    return kind.__module__, kind.__qualname__


def reference_to(future: ReadFuture) -> ObjectRef:
    """Return the reference that stands for the future's result. Called while the arguments of a call are pickled.

    Raises:
        TypeError: the future's function is called by name: its results have a form that other functions can't read.
        SerializerError: the client has the result, and its own serializer raised.
    """
    reference = future._reference
    if reference is not None and (not reference.stored.is_gone or type(reference.stored) is not ResultObject):
        return reference  # the client itself never has a result that stays on its host
    function = future._function
    if function is not None and function.named_function is not None:
        raise TypeError(f"the result of {function.name}, a function by name, can't be an argument: pass its result()")
    stored = ResultObject(future._task_name(), future, future.parent)
    reference = future._reference = ObjectRef(future._io_thread, stored)
    try:
        future.watch_as_input()
    except BaseException:
        future._reference = None
        raise
    return reference


def give_result(future: ReadFuture) -> None:
    """Let the readers of a future that is done have its result, or fail as it has failed. Any thread may call this."""
    assert future._reference is not None
    stored = future._reference.stored
    assert isinstance(stored, ResultObject)
    if stored.producer is None:
        return
    answer = future._answer
    if answer is not None:
        if type(answer) is ResultFile:
            stored.set_value(answer.frames)
        elif future._outcome == Outcome.VALUE:
            stored.set_value((answer,))
        else:
            _give_failure(future, stored, future._outcome, answer)
    elif future.cancelled():
        _give_failure(future, stored, Outcome.CANCELLED, future._cancelled_with.encode())
    elif future._exception is not None:
        answer = dump_exception(future._exception, "".join(traceback.format_exception(future._exception)))
        _give_failure(future, stored, Outcome.EXCEPTION, answer)
    else:  # a value that nobody can change: its bytes were dropped when it was read
        stored.set_value((dump_result(future._result, future._serializer, f"the result of {future._task_name()}"),))


def dump_result(value: Any, own_serializer: Serializer | None, what: str) -> bytes:
    """Return a value as the bytes that a task's answer would have.

    Args:
        value: the value.
        own_serializer: the client's own serializer; None: cloudpickle.
        what: the text that names the value in errors.

    Raises:
        Exception: the value can't be pickled.
    """
    return dumps(value if own_serializer is None else dump(own_serializer, value, what, "in the client"))


def _give_failure(future: ReadFuture, stored: ResultObject, outcome: int, answer: Payload) -> None:
    origin = future.failure_origin
    if origin is None:
        stored.set_failure(future._task_name(), outcome, answer)
    else:
        stored.set_failure(origin.function, outcome, answer, origin.task_id)


def register(kind: type) -> None:
    """Let futures of this type stand in arguments."""
    STAND_INS[kind] = stand_in
