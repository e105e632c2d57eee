"""Futures that are done, as arguments: small results go into the arguments themselves."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from scaler_client.errors import TaskTimeoutError
from scaler_client.futures.future import TaskFuture
from scaler_client.futures.result_references import SMALL_BYTES
from scaler_client.pickling.references import CallWithInputs, ObjectRef
from scaler_client.pickling.serializer import call_dumper
from scaler_client.protocol.messages import Outcome

FUNCTION: Any = SimpleNamespace(
    name="f", named_function=None, read_answer=lambda outcome, answer: (pickle.loads(answer), None)
)
IO_THREAD: Any = SimpleNamespace(forget_object=lambda stored: None)
LARGE = "x" * SMALL_BYTES


def future(value: Any = None, is_done: bool = True) -> TaskFuture[Any]:
    made: TaskFuture[Any] = TaskFuture(IO_THREAD, FUNCTION, b"")
    made.task_id = 1
    if is_done:
        made.resolve(1, Outcome.VALUE, pickle.dumps(value))
    return made


def inputs(payload: bytes) -> int:
    return len(payload.inputs) if type(payload) is CallWithInputs else 0


@pytest.mark.parametrize("is_read", [False, True])
def test_a_small_result_is_part_of_the_arguments(is_read: bool) -> None:
    value = {"a": [1]}
    done = future(value)
    if is_read:
        assert done.result() == value
    dump = call_dumper(IO_THREAD)
    for args, kwargs in (((done, 2), {}), (([done], {"k": done}), {}), ((1,), {"k": done})):
        payload = dump(args, kwargs)
        assert inputs(payload) == 0
        text = repr(pickle.loads(payload))
        assert repr(value) in text and "Future" not in text


def test_other_results_are_inputs() -> None:
    failed = future(is_done=False)
    failed.fail(1, TaskTimeoutError("late"))
    read = future(LARGE)
    assert read.result() == LARGE
    for each in (future(LARGE), read, future(is_done=False), failed):
        payload = call_dumper(IO_THREAD)((each, 2), {})
        assert inputs(payload) == 1 and type(payload.inputs[0]) is ObjectRef  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [1, LARGE])
def test_a_future_of_another_client(value: Any) -> None:
    dump = call_dumper(SimpleNamespace())
    for argument in (future(value), [future(value)]):
        with pytest.raises(ValueError, match="belongs to another client"):
            dump((argument,), {})
