"""Rows that stand for several calls: every call as if it were a task of its own, up to the first failure."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling.call_rows import ROW_LIMIT_NS, CallBlock, RowAnswer, pack_calls
from scaler_client.pickling.functions import Function
from scaler_client.pickling.serializer import loads
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_worker.worker.executor import ROW_LIMIT_BYTES, Executor

NUMBER = 7


class Row:
    """Runs a row, and reads its answer as the client does."""

    def __init__(
        self, fn: Callable[..., Any] | bytes, calls: list[tuple[Any, ...]], begin: int = 0, call_ns: int = 1000
    ) -> None:
        self.failures: list[str] = []
        payload = fn if isinstance(fn, bytes) else cloudpickle.dumps(fn)
        executor = Executor(
            {NUMBER: messages.Function(NUMBER, "fn", "cloudpickle", payload)},
            report_failure=lambda line, traceback: self.failures.append(line),
        )
        row = CallBlock(0, len(calls), pack_calls(None, calls)).row(begin, len(calls))
        clock = itertools.count(0, call_ns)
        self.outcome, answer, self.ended = executor.run_calls(NUMBER, row, lambda: next(clock))
        read = RowAnswer(answer)
        payloads = read.payloads()
        self.values = read.values() if payloads is None else list(map(loads, payloads))
        self.error = None
        if self.outcome:
            _, self.error = Function(1, "fn", b"").read_answer(self.outcome, read.failure)


def divide(a: float, b: float) -> float:
    return a / b


def test_all_calls_run() -> None:
    row = Row(divide, [(6, 3), (8, 4), (9, 2)], begin=1)
    assert (row.outcome, row.values, row.ended) == (Outcome.VALUE, [2.0, 4.5], 2)
    assert Row(lambda: None, [(), ()]).values == [None, None]


def test_the_first_failure_ends_the_row() -> None:
    row = Row(divide, [(6, 3), (1, 0), (9, 3)])
    assert (row.outcome, row.values, row.ended) == (Outcome.EXCEPTION, [2.0], 2)
    assert isinstance(row.error, ZeroDivisionError) and row.failures == ["ZeroDivisionError: division by zero"]


KEPT: list[int] = []


def test_a_result_that_changes_later_comes_back_as_it_was() -> None:
    def collect(number: int) -> Any:
        KEPT.append(number)
        return KEPT if number > 1 else number

    assert Row(collect, [(number,) for number in range(4)]).values == [0, 1, [0, 1, 2], [0, 1, 2, 3]]


def test_calls_do_not_share_arguments() -> None:
    shared: list[int] = []

    def append(values: list[int]) -> int:
        values.append(1)
        return len(values)

    assert Row(append, [(shared,), (shared,)]).values == [1, 1]


def test_a_result_that_cannot_be_pickled_fails_alone() -> None:
    row = Row(lambda number: threading.Lock() if number == 2 else "text", [(1,), (2,), (3,)])
    assert (row.outcome, row.values, row.ended) == (Outcome.RESULT_FAILED, ["text"], 2)
    assert "the result of fn, of type _thread.lock" in str(row.error)


class Unloadable:
    def __reduce__(self) -> Any:
        return divide, (1, 0)


def test_arguments_that_cannot_be_unpickled_fail_alone() -> None:
    row = Row(lambda value: 1, [([],), (Unloadable(),)])
    assert (row.outcome, row.values, row.ended) == (Outcome.EXCEPTION, [1], 2)
    assert "the arguments of fn can't be unpickled" in str(row.error)


def test_a_function_that_cannot_be_loaded_fails_the_first_call() -> None:
    row = Row(b"garbage", [(1,), (2,)])
    assert (row.outcome, row.values, row.ended) == (Outcome.FUNCTION_FAILED, [], 1)


@pytest.mark.parametrize("value", [None, "text"])
def test_a_row_ends_after_its_time(value: Any) -> None:
    row = Row(lambda _: value, [(number,) for number in range(1000)], call_ns=ROW_LIMIT_NS // 2)
    assert row.outcome == Outcome.VALUE and 0 < row.ended == len(row.values) < 100


def test_a_row_ends_when_its_results_are_large() -> None:
    row = Row(lambda _: bytes(ROW_LIMIT_BYTES // 3), [(number,) for number in range(10)])
    assert row.outcome == Outcome.VALUE and row.ended == len(row.values) == 3


def test_a_stop_is_the_outcome_of_its_call() -> None:
    def stop(number: int) -> int:
        if number:
            raise TaskStoppedError("stop")
        return number

    row = Row(stop, [(0,), (1,), (2,)])
    assert (row.outcome, row.values, row.ended) == (Outcome.EXCEPTION, [0], 2)
