"""Results of open and ended tasks as inputs of other tasks, in the client's session."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.client.session.stand_ins import (
    UNLIMITED,
    SinkRecorder,
    joined_session,
    sent_without_functions,
    submit,
    welcome,
)

from scaler_client.pickling.call_pickles import SMALL_BYTES
from scaler_client.pickling.references import CallWithInputs, InputFailure, ObjectRef, ResultObject, StoredObject
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Outcome
from scaler_client.session.held_objects import OBJECTS_ROWS
from scaler_client.session.session import Session


def resolved(task_id: int, body: bytes = b"", outcome: int = Outcome.VALUE) -> messages.Resolved:
    return messages.Resolved([task_id], [outcome], [body])


class Holder:
    def forget_object(self, stored: StoredObject) -> None: ...


class Sink(SinkRecorder):
    """A future whose result other tasks may read."""

    def __init__(self, *inputs: Sink, options: messages.Options | None = None) -> None:
        payload: bytes = CallWithInputs(b"p", [each.reference for each in inputs]) if inputs else b"p"
        super().__init__(payload=payload, options=options)
        self.task_id = -1
        self.stored = ResultObject("f", self, None)
        self.reference = ObjectRef(Holder(), self.stored)

    def resolve(self, task_id: int, outcome: int, answer: Any) -> None:
        super().resolve(task_id, outcome, answer)
        if outcome == Outcome.VALUE:
            self.stored.set_value([answer])
        else:
            self.stored.set_failure("f", outcome, answer)

    def fail_input(self, task_id: int, cause: InputFailure) -> None:
        self.told.append(cause)
        self.resolve(task_id, cause.outcome, cause.answer)


def submitted(session: Session, *inputs: Sink, options: messages.Options | None = None) -> Sink:
    sink = Sink(*inputs, options=options)
    sink.task_id = submit(session, sink)
    return sink


def rows(outgoing: list[Any]) -> list[Any]:
    """Return for each Submit its ids, inputs, keep, and results of earlier batches; and other messages."""
    return [
        (list(each.ids), list(each.inputs), list(each.keep), list(each.keep_earlier))
        if isinstance(each, messages.Submit)
        else each
        for each in outgoing
    ]


def test_a_reader_in_the_same_batch() -> None:
    session = joined_session()
    first = submitted(session)
    submitted(session, first)
    assert rows(sent_without_functions(session)) == [([0, 1], [0], [Keep.BOTH, 0], [])]


def test_a_result_is_kept_before_its_reader_passes_other_tasks() -> None:
    """The row that says so must not wait behind the reader."""
    session = joined_session(credit=1)
    low, urgent = messages.Options(priority=-1), messages.Options(priority=7)
    first = submitted(session)
    assert rows(sent_without_functions(session)) == [([0], [], [], [])]
    waiting = submitted(session, options=low)  # the batch in which the next row's input is noted
    submitted(session, first, options=urgent)
    submitted(session, waiting, options=messages.Options(priority=-2))
    assert sent_without_functions(session) == []
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert rows(sent_without_functions(session)) == [
        ([2], [0], [], [0]),
        ([1], [], [Keep.BOTH], []),
        ([3], [1], [], []),
    ]


def test_a_reader_in_a_later_batch() -> None:
    session = joined_session()
    first = submitted(session)
    sent_without_functions(session)
    submitted(session, first)
    submitted(session, first)
    assert rows(sent_without_functions(session)) == [([1, 2], [0, 0], [], [0])]
    submitted(session, first)
    assert rows(sent_without_functions(session)) == [([3], [0], [], [])]


def test_the_result_of_a_task_that_has_ended_is_sent() -> None:
    session = joined_session()
    first = submitted(session)
    sent_without_functions(session)
    session.handle(resolved(0, body=b"one"), 0.0)
    submitted(session, first)
    assert rows(sent_without_functions(session)) == [messages.Object(0, [b"one"], name="f"), ([1], [0], [], [])]


def test_the_scheduler_asks_for_a_result() -> None:
    session = joined_session()
    first, second, third = submitted(session), submitted(session), submitted(session)
    sent_without_functions(session)
    submitted(session, first, second, third)
    sent_without_functions(session)
    session.handle(resolved(0, body=b"one"), 0.0)
    session.handle(messages.FetchObjects([0, 1, 2], [77, 77, 77]), 0.0)
    assert sent_without_functions(session) == [messages.Objects([0], [b"one"])]
    session.handle(resolved(1, body=b"two"), 0.0)
    assert sent_without_functions(session) == [messages.Objects([1], [b"two"])]
    session.handle(resolved(2, outcome=Outcome.CANCELLED), 0.0)
    assert sent_without_functions(session) == [messages.ForgetObjects([2])]


def test_small_results_that_the_scheduler_asks_for_go_in_one_message() -> None:
    session = joined_session()
    read = [submitted(session) for _ in range(OBJECTS_ROWS + 2)]
    sent_without_functions(session)
    submitted(session, *read)
    sent_without_functions(session)
    for task_id in range(len(read)):
        session.handle(resolved(task_id, body=b"x" * SMALL_BYTES if task_id else b"x" * (SMALL_BYTES + 1)), 0.0)
    ids = list(range(len(read)))
    session.handle(messages.FetchObjects(ids[::-1], [77] * len(ids)), 0.0)
    large, *small = sent_without_functions(session)
    assert large == messages.Object(0, [b"x" * (SMALL_BYTES + 1)], name="f")
    assert [len(message.ids) for message in small] == [OBJECTS_ROWS, 1]
    assert sorted(each for message in small for each in message.ids) == ids[1:]
    assert all(message.ids == sorted(message.ids) for message in small)


def test_the_scheduler_asks_for_a_result_that_nobody_has() -> None:
    session = joined_session()
    session.handle(messages.FetchObjects([5], [77]), 0.0)
    assert sent_without_functions(session) == [messages.ForgetObjects([5])]


def test_a_reader_fails_as_its_input_has_failed() -> None:
    """Also when its answer comes first, and when the scheduler only knows that the input is missing."""
    session = joined_session()
    first = submitted(session)
    second = submitted(session, first)
    third = submitted(session, second)
    sent_without_functions(session)
    answer = messages.Resolved([1, 0, 2], [1, 1, Outcome.INPUT_LOST], [b"oh", b"oh", b"lost"])
    session.handle(answer, 0.0)
    assert first.told == [(0, 1, b"oh")]
    assert second.told == [InputFailure("f", 0, 1, b"oh"), (1, 1, b"oh")]
    assert third.told == [InputFailure("f", 1, 1, b"oh"), (2, 1, b"oh")]


def test_a_failure_of_its_own_is_no_failure_of_an_input() -> None:
    session = joined_session()
    first = submitted(session)
    second = submitted(session, first)
    sent_without_functions(session)
    session.handle(messages.Resolved([0, 1], [0, 1], [b"one", b"oh"]), 0.0)
    assert second.told == [(1, 1, b"oh")]


def test_results_without_references_are_forgotten_behind_their_readers() -> None:
    session = joined_session(credit=1)
    first = submitted(session)
    sent_without_functions(session)
    submitted(session, first)
    session.forget_object(first.stored)
    assert not sent_without_functions(session)
    session.handle(messages.Credit(UNLIMITED), 0.0)
    assert rows(sent_without_functions(session)) == [([1], [0], [], [0]), messages.ForgetObjects([0])]


def test_a_reader_is_cancelled_before_it_is_sent() -> None:
    """The next batch has the result kept, for readers of later batches."""
    session = joined_session(credit=1)
    first = submitted(session)
    sent_without_functions(session)
    second = submitted(session, first)
    session.cancel([second.task_id], lambda: None)
    submitted(session, first)
    session.handle(messages.Credit(UNLIMITED), 0.0)
    assert rows(sent_without_functions(session)) == [([2], [0], [], [0])]


def test_a_new_scheduler_gets_the_results_that_open_tasks_read() -> None:
    session = joined_session()
    first, second, unread = submitted(session), submitted(session), submitted(session)
    submitted(session, first, second)
    submitted(session, unread)
    sent_without_functions(session)
    session.handle(resolved(0, body=b"one"), 0.0)
    session.handle(resolved(2, body=b"unread"), 0.0)
    session.handle(resolved(4), 0.0)
    session.handle(messages.HelloWanted(), 0.0)
    session.pop_outgoing()
    session.handle(welcome(incarnation=6), 0.0)
    sent = rows(sent_without_functions(session))
    assert (
        messages.Object(0, [b"one"], name="f") in sent and len([each for each in sent if type(each) is not tuple]) == 1
    )
    assert [each for each in sent if type(each) is tuple] == [([1], [], [], []), ([3], [0, 1], [], [1])]


def test_the_freed_result_of_an_open_task_is_forgotten_after_each_join() -> None:
    session = joined_session()
    first = submitted(session)
    submitted(session, first)
    session.forget_object(first.stored)
    assert rows(sent_without_functions(session)) == [
        ([0, 1], [0], [Keep.BOTH, Keep.NO], []),
        messages.ForgetObjects([0]),
    ]
    for incarnation in (6, 7):
        session.handle(messages.HelloWanted(), 0.0)
        session.pop_outgoing()
        session.handle(welcome(incarnation=incarnation), 0.0)
        sent = rows(sent_without_functions(session))
        assert sent == [([0, 1], [0], [Keep.BOTH, Keep.NO], []), messages.ForgetObjects([0])]
        assert len(session.objects) == 0


def test_a_freed_result_stays_for_the_last_reader_that_is_submitted_again() -> None:
    session = joined_session()
    first = submitted(session)
    submitted(session, first)
    submitted(session)
    submitted(session, first)
    session.forget_object(first.stored)
    sent_without_functions(session)
    session.handle(messages.HelloWanted(), 0.0)
    session.pop_outgoing()
    session.handle(welcome(incarnation=6, credit=1), 0.0)
    session.handle(messages.Credit(UNLIMITED), 0.0)
    sent = rows(sent_without_functions(session))
    assert sent == [([0], [], [Keep.BOTH], []), ([1, 2, 3], [0, 0], [], []), messages.ForgetObjects([0])]


def test_a_result_that_waits_for_credit_after_a_second_join_is_forgotten() -> None:
    """The scheduler has it if it is the scheduler of the first join."""
    session = joined_session()
    submitted(session)
    first = submitted(session)
    sent_without_functions(session)
    submitted(session, first)
    sent_without_functions(session)
    session.handle(resolved(1, body=b"one"), 0.0)
    session.handle(messages.HelloWanted(), 0.0)
    session.pop_outgoing()
    session.handle(welcome(credit=1), 0.0)
    assert rows(sent_without_functions(session)) == [([0], [], [], [])]
    session.handle(resolved(2), 0.0)
    session.forget_object(first.stored)
    session.handle(messages.Credit(UNLIMITED), 0.0)
    assert rows(sent_without_functions(session)) == [messages.ForgetObjects([1])]


@pytest.mark.parametrize("credit", [1, UNLIMITED])
@pytest.mark.parametrize("end", ["cancel", "drop"])
def test_a_long_chain_is_linear_work(credit: int, end: str) -> None:
    steps = [steps_of_chain(count, credit, end) for count in (300, 1200)]
    assert steps[1] < 5 * steps[0]  # four times as many links


def steps_of_chain(count: int, credit: int, end: str) -> int:
    """Return how many lines run to submit a chain, to cancel or drop its middle, and to get its answers."""
    steps = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        session = joined_session(credit=credit)
        sinks = [submitted(session)]
        sent_without_functions(session)
        for _ in range(count - 1):
            sinks.append(submitted(session, sinks[-1]))
        sent_without_functions(session)
        for sink in sinks[count // 4 : count // 2]:
            if end == "cancel":
                session.cancel([sink.task_id], lambda: None)
            else:
                session.forget_object(sink.stored)
        sent_without_functions(session)
        session.handle(messages.Credit(UNLIMITED), 0.0)
        sent_without_functions(session)
        ids = [sink.task_id for sink in sinks]
        session.handle(messages.Resolved(ids, [Outcome.VALUE] * count, [b"v"] * count), 0.0)
        for sink in sinks:
            session.forget_object(sink.stored)
        sent_without_functions(session)
    finally:
        sys.settrace(before)
    return steps
