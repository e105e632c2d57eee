"""Futures that are done, as arguments: small results go into the arguments themselves."""

from __future__ import annotations

import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from scaler_client.errors import TaskTimeoutError
from scaler_client.futures.future import TaskFuture
from scaler_client.pickling.call_pickles import INPUT_PICKLES, SMALL_BYTES, with_small_values
from scaler_client.pickling.functions import Function
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.references import CallWithInputs, ObjectRef, call_payload
from scaler_client.pickling.serializer import call_dumper, dump_exception
from scaler_client.protocol.messages import Outcome

FUNCTION: Any = SimpleNamespace(
    name="f", named_function=None, serializer=None, read_answer=lambda outcome, answer: (pickle.loads(answer), None)
)
IO_THREAD: Any = SimpleNamespace(forget_object=lambda stored: None, close_reason="")
LARGE = "x" * SMALL_BYTES


def future(value: Any = None, is_done: bool = True) -> TaskFuture[Any]:
    made: TaskFuture[Any] = TaskFuture(IO_THREAD, FUNCTION, b"")
    made.task_id = 1
    if is_done:
        made.resolve(1, Outcome.VALUE, pickle.dumps(value))
    return made


def inputs(call: Any) -> int:
    return len(call.inputs) if type(call) is CallWithInputs else 0


def bytes_of(call: Any) -> bytes:
    return bytes(call_payload(call))


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


@pytest.mark.parametrize("is_done", [(True, True), (True, False), (False, True), (False, False)])
def test_a_result_that_comes_before_the_task_is_sent_goes_inside_the_arguments(is_done: tuple[bool, bool]) -> None:
    read = [future(is_done=False), future(is_done=False)]
    call: Any = call_dumper(IO_THREAD)((read[0], "text", read[1], 7), {})
    for each, ends in zip(read, is_done):
        if ends:
            each.resolve(1, Outcome.VALUE, pickle.dumps([1]))
    small = with_small_values(call)
    assert inputs(small) == is_done.count(False)
    with with_inputs(lambda position: f"input {position}"):
        loaded = pickle.loads(bytes_of(small))
    left = iter(range(2))
    values = [[1] if ends else f"input {next(left)}" for ends in is_done]
    assert loaded == (values[0], "text", values[1], 7)
    left_inputs = [each for each, ends in zip(call.inputs, is_done) if not ends]
    assert list(small.inputs if inputs(small) else ()) == left_inputs


def test_arguments_that_look_like_an_input_are_left_alone() -> None:
    for build in (lambda each: (each, INPUT_PICKLES[0]), lambda each: (each, each), lambda each: ([each],)):
        each = future(is_done=False)
        call = call_dumper(IO_THREAD)(build(each), {})
        each.resolve(1, Outcome.VALUE, pickle.dumps(1))
        assert with_small_values(call) is call  # type: ignore[arg-type]


def test_a_large_result_stays_an_input() -> None:
    each = future(is_done=False)
    call = call_dumper(IO_THREAD)((each,), {})
    each.resolve(1, Outcome.VALUE, pickle.dumps(LARGE))
    assert with_small_values(call) is call  # type: ignore[arg-type]


# ------------------------------------------------------------------------- a program that changes the value that it got


def read_by_a_task(argument: Any) -> Any:
    """Return what a task gets for this argument."""
    call = call_dumper(IO_THREAD)((argument,), {})
    if type(call) is not CallWithInputs:
        return pickle.loads(bytes_of(call))[0]
    (frame,) = call.inputs[0].stored.frames
    return pickle.loads(frame)


def changed(value: Any) -> None:
    """Change a value as a program would."""
    if isinstance(value, dict):
        value["a"].append(2)
    elif isinstance(value, SimpleNamespace):
        value.a = 3
    else:
        value.append(4)


@pytest.mark.parametrize("padding", ["", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("has_earlier_reader", [False, True])
def test_tasks_read_what_the_task_returned(padding: str, has_earlier_reader: bool) -> None:
    for value in ([1, padding], {"a": [1, padding]}, SimpleNamespace(a=[1], b=padding), bytearray(padding.encode())):
        expected = pickle.dumps(value)
        done = future(value)
        if has_earlier_reader:
            read_by_a_task(done)
        mine: Any = done.result()
        changed(mine)
        assert pickle.dumps(mine) != expected
        assert pickle.dumps(read_by_a_task(done)) == expected
        assert done.result() is mine


def test_readers_fail_as_the_task_failed_if_the_program_changes_the_exception() -> None:
    failed = future(is_done=False)
    answer = dump_exception(KeyError("no"), "remote frames")
    failed._function = Function(1, "f", b"")
    failed.resolve(1, Outcome.EXCEPTION, answer)
    error = failed.exception()
    assert error is not None
    error.args = ("changed",)
    call: Any = call_dumper(IO_THREAD)((failed,), {})
    assert call.inputs[0].stored.failure[2:] == (Outcome.EXCEPTION, answer)


@pytest.mark.parametrize("value", [1, 2.5, "text" * 100, b"bytes" * 100, None, True])
def test_the_bytes_of_values_that_nobody_can_change_are_dropped(value: Any) -> None:
    done = future(value)
    assert done.result() == value
    assert done._answer is None
    assert read_by_a_task(done) == value


def test_readers_of_a_requested_literal_get_what_the_graph_had() -> None:
    literal = TaskFuture.finished(IO_THREAD, [1], None, is_input=True)
    literal.result().append(2)
    assert literal.result() == [1, 2] and read_by_a_task(literal) == [1]
    lock = threading.Lock()
    assert TaskFuture.finished(IO_THREAD, lock, None, is_input=True).result() is lock
