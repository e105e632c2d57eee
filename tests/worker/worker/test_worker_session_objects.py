"""The objects of a worker's session, without sockets, files or clock."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.worker.worker.test_worker_session import HELLO, WELCOME, dispatch

from scaler_client.protocol import messages
from scaler_client.protocol.messages import FLAG_PROFILE, INPUT_OF_ROW_BEFORE
from scaler_worker.objects.table import ABSENT, KnownObject
from scaler_worker.task_rows import depth_of, flags_of, priority_of
from scaler_worker.worker.dispatch_rows import with_results
from scaler_worker.worker.session import WorkerSession

CLIENT = 2


class Value:
    """A value whose end can be seen."""


@pytest.fixture
def session() -> WorkerSession:
    """A session that has joined."""
    session = WorkerSession(HELLO, 2.0, 0.0)
    session.pop_outgoing()
    session.handle(WELCOME)
    return session


def reading(*ids: int, counts: Sequence[int], inputs: Sequence[int], sources: Sequence[int]) -> messages.Dispatch:
    return replace(dispatch(*ids), inputs=list(inputs), input_counts=list(counts), input_sources=list(sources))


def known(session: WorkerSession, number: int, client: int = CLIENT) -> KnownObject:
    found = session.objects.find((client, number))
    assert found is not None
    return found


def test_rows_have_their_inputs(session: WorkerSession) -> None:
    message = reading(10, 11, 12, counts=[2, 0, 1], inputs=[7, 8, 7], sources=[0, 0, 0])
    session.handle(message)
    session.handle(replace(message, flags=[0, FLAG_PROFILE, 0], depths=[3, 0, 0], priorities=[0, 0, -2]))
    assert [row[5:9] for row in session.queue] == [
        (0, 0, 0, [7, 8]),
        (),
        (0, 0, 0, [7]),
        (0, 3, 0, [7, 8]),
        (FLAG_PROFILE, 0, 0, []),
        (0, 0, -2, [7]),
    ]
    assert list(map(flags_of, session.queue)) == [0, 0, 0, 0, FLAG_PROFILE, 0]
    assert list(map(depth_of, session.queue)) == [0, 0, 0, 3, 0, 0]
    assert list(map(priority_of, session.queue)) == [0, 0, 0, 0, 0, -2]


def test_inline_inputs_are_cut_off_the_payload(session: WorkerSession) -> None:
    message = reading(10, 11, 12, counts=[2, 0, 2], inputs=[7, 8, 7, 9], sources=[0, 0, 0, 0])
    message = replace(message, payloads=[b"argsseven", b"args", b"argsnine"], inline_sizes=[6, 0, 0, 5])
    session.handle(message)
    assert [(row[4], *row[8:9]) for row in session.queue] == [
        (b"args", (b"seven", 8)),
        (b"args",),
        (b"args", (7, b"nine")),
    ]


def test_an_object_is_known_by_client_and_id(session: WorkerSession) -> None:
    session.handle(messages.Object(7, [b"a"], CLIENT))
    session.handle(messages.Object(7, [b"b", b"c"], 3))
    assert known(session, 7).frames == [b"a"] and known(session, 7, 3).frames == [b"b", b"c"]
    assert session.objects.find((CLIENT, 8)) is None


def test_files_are_known_since_the_dispatch(session: WorkerSession) -> None:
    session.handle(messages.Object(7, [b"a"], CLIENT))
    session.handle(reading(10, counts=[3], inputs=[7, 8, 9], sources=[1, 1, 0]))
    assert known(session, 7).frames == [b"a"], "what was sent is no file"
    assert known(session, 8).frames is None
    assert session.objects.find((CLIENT, 9)) is None


def test_bytes_may_replace_a_file(session: WorkerSession) -> None:
    """The scheduler sends them if the host agent is lost. A task that waits for the file continues with the bytes."""
    session.handle(reading(10, counts=[1], inputs=[8], sources=[1]))
    waited_for = known(session, 8)
    session.handle(messages.Object(8, [b"a"], CLIENT))
    assert known(session, 8) is waited_for and waited_for.frames == [b"a"]


def test_a_value_that_tasks_share_stays_if_the_bytes_come_again(session: WorkerSession) -> None:
    session.handle(messages.Object(7, [b"a"], CLIENT))
    known(session, 7).keep_value(None, True)
    session.handle(messages.Object(7, [b"a"], CLIENT))
    assert known(session, 7).value is None


def test_a_forgotten_object_is_freed_at_the_release(session: WorkerSession) -> None:
    for number in (7, 8):
        session.handle(messages.Object(number, [b"a"], CLIENT))
    value = Value()
    goes = weakref.ref(value)
    known(session, 7).keep_value(value, False)
    read_by_a_task = known(session, 7)
    del value
    session.handle(messages.ForgetObjects([7, 99], [CLIENT, CLIENT]))
    gc.collect()
    assert goes() is not None, "not under the lock"
    session.objects.release()
    assert goes() is None
    assert read_by_a_task.is_forgotten and read_by_a_task.value is ABSENT
    assert session.objects.find((CLIENT, 7)) is None and known(session, 8).frames == [b"a"]


def test_an_object_forgotten_while_its_value_is_made_is_not_kept(session: WorkerSession) -> None:
    session.handle(messages.Object(7, [b"a"], CLIENT))
    being_made = known(session, 7)
    session.handle(messages.ForgetObjects([7], [CLIENT]))
    being_made.keep_value(5, True)
    being_made.keep_mapped([b"a"])
    assert being_made.value is ABSENT and being_made.frames is None


def test_a_welcome_removes_all_objects_but_inputs_of_running_tasks(session: WorkerSession) -> None:
    session.handle(messages.Object(7, [b"a"], CLIENT))
    session.handle(reading(10, counts=[1], inputs=[8], sources=[1]))
    read_by_a_task = known(session, 7)
    session.handle(messages.HelloWanted())
    session.handle(messages.Object(9, [b"a"], CLIENT))
    assert session.objects.find((CLIENT, 9)) is None, "it came before the welcome"
    session.handle(WELCOME)
    assert [session.objects.find((CLIENT, number)) for number in (7, 8)] == [None, None]
    assert read_by_a_task.frames == [b"a"] and not read_by_a_task.is_forgotten


def results(sent: Sequence[messages.Message]) -> list[tuple[int, int, int, int]]:
    """The client, id, attempt and outcome of all answers."""
    batches = [message for message in sent if isinstance(message, messages.Results)]
    return [row for each in batches for row in zip(each.clients, each.ids, each.attempts, each.outcomes)]


def join_again(session: WorkerSession) -> list[tuple[int, int, int, int]]:
    """The answers that the session sends first."""
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    session.handle(WELCOME)
    return results(session.pop_outgoing())


def test_results_in_files_are_answered_again(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    for _ in range(2):
        session.take()
        session.finish(messages.Outcome.STORED, b"12345678", 1)
    told = results(session.pop_outgoing())
    assert [(task_id, outcome) for _, task_id, _, outcome in told] == [(10, messages.Outcome.STORED), (11, 10)]
    session.handle(messages.HelloWanted())
    [hello] = session.pop_outgoing()
    assert isinstance(hello, messages.Hello) and hello.running == [row[:3] for row in told] and hello.finished == 2
    session.handle(WELCOME)
    assert results(session.pop_outgoing()) == told


def followers(session: WorkerSession) -> list[list[bytes]]:
    """Dispatch a row and two that read its result, of which the second also has an input of its own."""
    session.handle(reading(10, 11, 12, counts=[0, 1, 2], inputs=[10, 10, 7], sources=[INPUT_OF_ROW_BEFORE] * 2 + [0]))
    return [list(each) for each in session.handed.values()]


def test_rows_get_the_results_of_rows_before_them(session: WorkerSession) -> None:
    assert followers(session) == [[]]
    _, first, second = session.queue
    assert with_results(first[8]) is None and with_results(second[8]) is None  # type: ignore[misc]
    session.handed[CLIENT, 10, 1].append(b"ten")
    assert with_results(first[8]) == (b"ten",)  # type: ignore[misc]
    assert with_results(second[8]) == (b"ten", 7)  # type: ignore[misc]


def test_a_row_without_its_result_is_given_back(session: WorkerSession) -> None:
    followers(session)
    session.handle(messages.Retract([(CLIENT, 10, 1)]))
    assert not session.handed
    session.give_back(session.queue[0])
    assert session.pop_outgoing() == [
        messages.Retracted([(CLIENT, 10, 1)], [1]),
        messages.Retracted([(CLIENT, 11, 1)], [1]),
    ]


def test_a_new_scheduler_has_no_results_for_rows(session: WorkerSession) -> None:
    followers(session)
    session.handle(messages.HelloWanted())
    assert not session.handed and not session.queue
