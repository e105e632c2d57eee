"""Large objects that are files of the client: what its session says of them, and when it removes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.client.session.stand_ins import (
    HEARTBEAT_SECONDS,
    UNLIMITED,
    SinkRecorder,
    new_session,
    sent_without_functions,
    submit,
    welcome,
)

from scaler_client.pickling.references import CallWithInputs, ResultObject, StoredObject
from scaler_client.protocol import messages
from scaler_client.protocol.messages import (
    DataAddress,
    FetchObjects,
    FileResult,
    ForgetObjects,
    Object,
    Outcome,
    Payload,
    Received,
    Resolved,
)
from scaler_client.session.held_objects import NoFiles
from scaler_client.session.session import Session

DATA = DataAddress("tcp://laptop:1", "", "ticket")
LARGE = b"large" * 10
SMALL = b"small"


class Files(NoFiles):
    """Objects of at least the size of LARGE are files."""

    def __init__(self) -> None:
        self.there: dict[int, Sequence[Payload]] = {}
        self.sizes: dict[int, int] = {}

    def share(self, message: Object) -> Object:
        if sum(map(len, message.frames)) < len(LARGE):
            return message
        self.there[message.id] = list(message.frames)
        self.sizes[message.id] = len(LARGE)
        return self.announcement(message.id, message.name)

    def ids(self) -> Sequence[int]:
        return list(self.sizes)

    def has(self, object_id: int) -> bool:
        return object_id in self.sizes

    def announcement(self, object_id: int, name: str = "") -> Object:
        return Object(object_id, (), name=name, file_bytes=self.sizes[object_id], data=DATA)

    def read(self, object_id: int) -> Sequence[Payload] | None:
        return self.there.get(object_id)

    def remove(self, object_id: int) -> None:
        del self.there[object_id], self.sizes[object_id]


def joined(takes_files: bool = True, credit: int = UNLIMITED) -> tuple[Session, Files]:
    session, files = new_session(), Files()
    session.objects.files = files
    session.pop_outgoing()
    join(session, takes_files=takes_files, credit=credit)
    return session, files


def join(session: Session, incarnation: int = 5, takes_files: bool = True, credit: int = UNLIMITED) -> None:
    session.handle(replace(welcome(incarnation, credit=credit), takes_files=takes_files), 1.0)


def send(session: Session, data: bytes = LARGE) -> StoredObject:
    stored = StoredObject("table", [data], None)
    session.send_object(stored)
    return stored


def fetch(session: Session, *ids: int) -> list[Any]:
    session.handle(FetchObjects(list(ids)), 2.0)
    return sent_without_functions(session)


def test_a_large_object_is_sent_as_a_file_and_a_small_one_as_bytes() -> None:
    session, files = joined()
    large, small = send(session), send(session, SMALL)
    assert sent_without_functions(session) == [
        Object(large.id, (), name="table", file_bytes=len(LARGE), data=DATA),
        Object(small.id, [SMALL], name="table"),
    ]
    assert list(files.there) == [large.id]


def test_a_scheduler_that_takes_no_files_gets_the_bytes() -> None:
    session, files = joined(takes_files=False)
    send(session)
    assert sent_without_functions(session) == [Object(0, [LARGE], name="table")] and not files.there


def test_an_object_that_waits_for_credit_is_no_file_yet() -> None:
    session, files = joined(credit=0)
    stored = send(session)
    assert sent_without_functions(session) == [] and not files.there
    session.objects.forget(stored)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert sent_without_functions(session) == [] and not files.there


def test_the_file_stays_until_the_scheduler_forgets_the_object() -> None:
    session, files = joined()
    session.objects.forget(send(session))
    assert sent_without_functions(session)[-1] == ForgetObjects([0])
    assert files.there, "tasks may still read it"
    session.handle(ForgetObjects([0], [77]), 2.0)
    assert not files.there


@pytest.mark.parametrize("is_referenced", [False, True])
def test_the_scheduler_gets_the_bytes_that_it_asks_for(is_referenced: bool) -> None:
    session, files = joined()
    stored = send(session)
    sent_without_functions(session)
    if not is_referenced:
        session.objects.forget(stored)
        sent_without_functions(session)
    # The scheduler may have heard meanwhile that it is forgotten: then it takes the bytes for a new object.
    again = [] if is_referenced else [ForgetObjects([0])]
    assert fetch(session, 0) == [Object(0, [LARGE], is_wanted=True), *again]
    assert fetch(session, 9) == [ForgetObjects([9])], "it has no such object"
    assert list(files.there) == [0]


def test_a_file_that_somebody_has_removed() -> None:
    session, files = joined()
    stored = send(session)
    sent_without_functions(session)
    files.there.clear()
    assert fetch(session, 0) == [Object(0, [LARGE], is_wanted=True)], "the client still has the bytes"
    session.objects.forget(stored)
    sent_without_functions(session)
    answer = [Object(0, [b""], is_wanted=True), ForgetObjects([0])]
    assert fetch(session, 0) == answer, "the scheduler takes it for lost"


def test_bytes_that_the_scheduler_asks_for_use_no_credit() -> None:
    session, _ = joined(credit=len(LARGE) + 200)
    send(session)
    sent_without_functions(session)
    fetch(session, 0)
    submit(session, SinkRecorder())
    (batch,) = sent_without_functions(session)
    assert batch.ids == [1]


def add_result(session: Session) -> ResultObject:
    """Add the large result of a task that has ended."""
    producer = SinkRecorder()
    producer.task_id = submit(session, producer)  # type: ignore[attr-defined]
    session.handle(messages.Resolved([0], [0], [LARGE]), 2.0)
    stored = ResultObject("", producer, None)  # type: ignore[arg-type]
    stored.set_value([LARGE])
    sent_without_functions(session)
    session.objects.add(stored, session._batch.outgoing)
    return stored


def test_the_result_of_an_ended_task_may_be_a_file() -> None:
    session, files = joined()
    add_result(session)
    assert sent_without_functions(session) == [Object(0, (), file_bytes=len(LARGE), data=DATA)]
    assert fetch(session, 0) == [Object(0, [LARGE], is_wanted=True)]
    assert list(files.there) == [0]


def test_the_next_scheduler_ends_the_file_of_a_result_too() -> None:
    session, files = joined()
    stored = add_result(session)
    sent_without_functions(session)
    join(session, 6)
    assert sent_without_functions(session) == [Object(0, (), file_bytes=len(LARGE), data=DATA)]
    assert stored.known_in_join == session.objects.joins, "the next reader does not send it again"
    session.objects.forget(stored)
    assert sent_without_functions(session) == [ForgetObjects([0])]
    session.handle(ForgetObjects([0], [77]), 2.0)
    assert not files.there


def test_a_rejected_object_keeps_its_file_as_long_as_it_has_references() -> None:
    session, files = joined()
    stored = send(session)
    sent_without_functions(session)
    session.handle(ForgetObjects([0], [77]), 2.0)
    assert files.there
    session.objects.forget(stored)
    assert not files.there


def test_a_new_scheduler_that_takes_no_files_gets_the_bytes() -> None:
    session, files = joined()
    kept, gone = send(session), send(session)
    session.objects.forget(gone)
    sent_without_functions(session)
    session.handle(messages.HelloWanted(), 2.0)
    session.pop_outgoing()
    join(session, 6, takes_files=False)
    assert sent_without_functions(session)[0] == Object(kept.id, [LARGE], name="table")
    assert not files.there


@pytest.mark.parametrize("incarnation", [5, 6])
def test_a_join_says_again_what_is_a_file(incarnation: int) -> None:
    session, files = joined()
    kept, gone = send(session), send(session)
    submit(session, SinkRecorder(payload=CallWithInputs(b"payload", [kept.id])))  # type: ignore[arg-type]
    session.objects.forget(gone)
    sent_without_functions(session)
    session.handle(messages.HelloWanted(), 2.0)
    session.pop_outgoing()
    join(session, incarnation)
    first, second, rows, forgotten = sent_without_functions(session)
    assert first == Object(gone.id, (), file_bytes=len(LARGE), data=DATA), "the scheduler may have dropped it before"
    assert second == Object(kept.id, (), name="table", file_bytes=len(LARGE), data=DATA)
    assert rows.inputs == [kept.id] and gone.id in forgotten.ids
    session.handle(ForgetObjects([gone.id], [77]), 2.0)
    assert list(files.there) == [kept.id]


# ------------------------------------------------------------------------------------------------- arguments of calls


def send_arguments(session: Session) -> StoredObject:
    stored = StoredObject("", [LARGE], None, is_arguments=True)
    session.send_object(stored)
    return stored


def test_the_file_of_arguments_is_the_only_copy_of_the_bytes() -> None:
    session, files = joined()
    stored = send_arguments(session)
    assert sent_without_functions(session) == [Object(0, (), file_bytes=len(LARGE), data=DATA)]
    assert stored.frames == () and files.there == {0: [LARGE]}
    assert fetch(session, 0) == [Object(0, [LARGE], is_wanted=True)]


def test_arguments_are_announced_again_after_a_restart() -> None:
    session, files = joined()
    send_arguments(session)
    sent_without_functions(session)
    join(session, incarnation=6)
    assert sent_without_functions(session) == [Object(0, (), file_bytes=len(LARGE), data=DATA)]
    join(session, incarnation=7, takes_files=False)
    assert sent_without_functions(session) == [Object(0, [LARGE])] and not files.there


def test_clear_keeps_the_arguments_of_running_calls() -> None:
    session, files = joined()
    stored, other = send_arguments(session), send(session)
    session.clear(lambda: None)
    assert not stored.is_gone and other.is_gone
    assert ForgetObjects([other.id]) in sent_without_functions(session) and stored.id in files.there
    session.objects.forget(stored)
    assert sent_without_functions(session) == [ForgetObjects([stored.id])]


class ResultFiles(Files):
    """The client's directory with some results."""

    def __init__(self, *results: int) -> None:
        super().__init__()
        self.results = {file: b"value %d" % file for file in results}
        self.is_open: Any = None

    def take_result(self, result: FileResult) -> Payload | None:
        return self.results.pop(result.file, None)

    def remove_results(self, is_open: Any) -> None:
        self.results = {file: value for file, value in self.results.items() if is_open(file)}


def answer(session: Session, *ids: int, size: int = 1000) -> None:
    payloads: list[Payload] = [FileResult(each, size).pack() for each in ids]
    session.handle(Resolved(list(ids), [Outcome.FILE.value] * len(ids), payloads), 1.0)


def test_a_result_in_a_file_is_a_value() -> None:
    session = new_session()
    files = ResultFiles(0)
    session.objects.files = files
    session.handle(welcome(result_window=8000), 0.0)
    sinks = [SinkRecorder(), SinkRecorder()]
    for sink in sinks:
        submit(session, sink)
    session.pop_outgoing()
    answer(session, 0, 1)
    assert [told[1:] for sink in sinks for told in sink.told] == [
        (Outcome.VALUE, b"value 0"),
        (Outcome.RESULT_FAILED, b"the file with the result, in this client's directory, is gone or damaged"),
    ]
    assert [each.bytes for each in session.pop_outgoing() if isinstance(each, Received)] == [2 * (16 + 1000)]


def test_files_of_results_stay_while_their_tasks_are_open() -> None:
    session = new_session()
    files = ResultFiles(0, 1)
    session.objects.files = files
    session.handle(welcome(), 0.0)
    submit(session, SinkRecorder())
    session.tick(HEARTBEAT_SECONDS + 1)
    assert list(files.results) == [0]
