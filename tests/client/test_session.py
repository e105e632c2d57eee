"""The client's session: messages in, messages out, no socket and no clock."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from scaler_client import messages
from scaler_client.errors import ClientClosedError, SchedulerLostError
from scaler_client.functions import Function
from scaler_client.messages import Outcome
from scaler_client.session import BATCH_BYTES, BATCH_ROWS, CHUNK_ROWS, Session, State

ADDRESS = "tcp://192.0.2.1:2345"
HEARTBEAT_SECONDS = 2.0
TIMEOUT_SECONDS = 60.0
HELLO = messages.Hello(messages.Role.CLIENT, 77, "3.11.7", "0.1.0", "host", 1)


def new_session() -> Session:
    return Session(HELLO, ADDRESS, HEARTBEAT_SECONDS, TIMEOUT_SECONDS, 0.0)


def welcome(incarnation: int = 5, lease_seconds: float = 60.0) -> messages.Welcome:
    return messages.Welcome(1, "0.1.0", incarnation, 3, lease_seconds)


@pytest.fixture
def session() -> Session:
    """One that has joined."""
    session = new_session()
    session.handle(welcome(), 0.0)
    assert session.take_outgoing() == [HELLO]
    return session


class Owner:
    """Notes what it is told."""

    def __init__(self, function: Function | None = None, payload: bytes = b"payload") -> None:
        self.function = function or Function(1, "f", b"code")
        self.payload = payload
        self.told: list[Any] = []

    def row(self, task_id: int) -> tuple[Function, bytes]:
        return self.function, self.payload

    def resolve(self, task_id: int, outcome: int, answer: Any) -> None:
        self.told.append((task_id, outcome, answer))

    def fail(self, task_id: int, error: BaseException) -> None:
        self.told.append((task_id, error))

    def start(self) -> None:
        self.told.append("started")


class Chunk(Owner):
    """Tasks of a map."""

    def __init__(self, function: Function, payloads: list[bytes]) -> None:
        super().__init__(function)
        self.payloads: list[Any] = payloads
        self.first = -1
        self.open = set(range(len(payloads)))

    def submit(self, session: Session) -> int:
        self.first = session.submit_chunk(self, self.function, self.payloads)
        return self.first

    def row(self, task_id: int) -> tuple[Function, bytes]:
        return self.function, self.payloads[task_id - self.first]

    def resolve(self, task_id: int, outcome: int, answer: Any) -> bool:  # type: ignore[override]
        super().resolve(task_id, outcome, answer)
        self.open.discard(task_id - self.first)
        return not self.open

    def open_ids(self) -> list[int]:
        return [self.first + position for position in sorted(self.open)]


def submit(session: Session, owner: Owner) -> int:
    return session.submit(owner, owner.function, owner.payload)


def resolved(*ids: int, outcome: int = Outcome.VALUE) -> messages.Resolved:
    return messages.Resolved(list(ids), [outcome] * len(ids), [b"answer"] * len(ids))


def plain(message: Any) -> Any:
    """A Submit with its columns as lists, whatever kind of sequence they are."""
    if isinstance(message, messages.Submit):
        return messages.Submit(list(message.ids), list(message.functions), list(message.payloads))
    return message


def sent(session: Session) -> list[Any]:
    return [plain(message) for message in session.take_outgoing()]


# -------------------------------------------------------------------------------------------------------------- joining


def test_hello_comes_first_and_tasks_only_after_the_welcome() -> None:
    session, owner = new_session(), Owner()
    submit(session, owner)
    assert sent(session) == [HELLO]
    session.handle(welcome(), 0.1)
    assert session.state is State.JOINED
    assert sent(session) == [
        messages.Function(1, "f", "cloudpickle", b"code"),
        messages.Submit([0], [1], [b"payload"]),
    ]


def test_ids_count_on(session: Session) -> None:
    function = Function(1, "f", b"code")
    owners = [Owner(function) for _ in range(3)]
    assert [submit(session, owner) for owner in owners[:2]] == [0, 1]
    chunk = Chunk(function, [b"a", b"b", b"c"])
    assert chunk.submit(session) == CHUNK_ROWS
    assert submit(session, owners[0]) == CHUNK_ROWS + 3
    assert sent(session)[1:] == [
        messages.Submit([0, 1], [1, 1], [b"payload"] * 2),
        messages.Submit([CHUNK_ROWS, CHUNK_ROWS + 1, CHUNK_ROWS + 2], [1], [b"a", b"b", b"c"]),
        messages.Submit([CHUNK_ROWS + 3], [1], [b"payload"]),
    ]


def test_a_function_goes_once(session: Session) -> None:
    one, other = Owner(Function(1, "f", b"code")), Owner(Function(2, "g", b"more"))
    submit(session, one)
    submit(session, other)
    submit(session, one)
    out = sent(session)
    assert {message.number for message in out[:2]} == {1, 2}
    assert out[2].functions == [1, 2, 1]
    submit(session, one)
    assert sent(session) == [messages.Submit([3], [1], [b"payload"])]


def test_answers_reach_their_owners(session: Session) -> None:
    owners = [Owner() for _ in range(3)]
    ids = [submit(session, owner) for owner in owners]
    session.handle(messages.Started([ids[1]]), 1.0)
    session.handle(messages.Resolved([2, 0], [Outcome.VALUE, Outcome.EXCEPTION], [b"v", b"e"]), 1.0)
    assert [owner.told for owner in owners] == [[(0, Outcome.EXCEPTION, b"e")], ["started"], [(2, Outcome.VALUE, b"v")]]
    assert list(session.pending) == [1]


def test_answers_to_nobody_are_dropped(session: Session) -> None:
    owner = Owner()
    submit(session, owner)
    session.handle(resolved(0, 7), 1.0)
    session.handle(resolved(0), 1.0)
    session.handle(messages.Started([0, 9]), 1.0)
    session.handle(messages.CancelRefused([0, 9]), 1.0)
    assert owner.told == [(0, Outcome.VALUE, b"answer")]


# -------------------------------------------------------------------------------------------------------------- batches


def test_batches_are_cut_by_rows(session: Session) -> None:
    function = Function(1, "f", b"")
    for _ in range(2 * BATCH_ROWS + 5):
        session.submit(Owner(), function, b"x")
    batches = sent(session)[1:]
    assert [len(batch.ids) for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert [task_id for batch in batches for task_id in batch.ids] == list(range(2 * BATCH_ROWS + 5))


def test_batches_are_cut_by_bytes(session: Session) -> None:
    half = bytes(BATCH_BYTES // 2)
    payloads = [half, half, b"small", bytes(BATCH_BYTES), b"1", b"2"]
    chunk = Chunk(Function(1, "f", b""), payloads)
    chunk.submit(session)
    batches = sent(session)[1:]
    assert [list(batch.payloads) for batch in batches] == [[half, half], [b"small", payloads[3]], [b"1", b"2"]]
    assert [batch.ids for batch in batches] == [[0, 1], [2, 3], [4, 5]]


# --------------------------------------------------------------------------------------------------------------- cancel


class Answered:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_a_cancel_that_is_granted(session: Session) -> None:
    owner, answered = Owner(), Answered()
    task_id = submit(session, owner)
    session.cancel([task_id], answered)
    assert sent(session)[1:] == [messages.Submit([0], [1], [b"payload"]), messages.Cancel([0])]
    assert answered.times == 0
    session.handle(resolved(0, outcome=Outcome.CANCELLED), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"answer")])


def test_a_cancel_that_is_refused(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (answered.times, owner.told) == (1, [])
    session.handle(resolved(0), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_a_cancel_that_crosses_the_result(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.handle(resolved(0), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_two_threads_cancel_the_same_task(session: Session) -> None:
    first, second = Answered(), Answered()
    submit(session, Owner())
    session.cancel([0], first)
    session.cancel([0], second)
    session.handle(messages.CancelRefused([0]), 1.0)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (first.times, second.times) == (1, 1)


def test_cancel_of_what_is_over_asks_nothing(session: Session) -> None:
    submit(session, Owner())
    session.handle(resolved(0), 1.0)
    session.take_outgoing()
    session.cancel([0], Answered())
    assert session.take_outgoing() == []


def test_cancel_before_the_welcome() -> None:
    session, owner, other, answered = new_session(), Owner(), Owner(), Answered()
    submit(session, owner)
    submit(session, other)
    session.cancel([0], answered)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"")])
    session.handle(welcome(), 1.0)
    assert sent(session)[-1] == messages.Submit([1], [1], [b"payload"])


def test_a_cancel_on_its_way_when_the_scheduler_was_started_anew(session: Session) -> None:
    owner, other, answered = Owner(), Owner(), Answered()
    submit(session, owner)
    submit(session, other)
    session.cancel([0], answered)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"")])
    assert sent(session)[-1] == messages.Submit([1], [1], [b"payload"])


# ----------------------------------------------------------------------------------------------- schedulers come and go


def test_what_is_unresolved_is_submitted_again(session: Session) -> None:
    owners = [Owner(payload=b"%d" % number) for number in range(4)]
    for owner in owners:
        submit(session, owner)
    session.handle(resolved(1), 1.0)
    session.take_outgoing()
    session.handle(messages.HelloWanted(), 2.0)
    session.handle(messages.HelloWanted(), 2.0)
    submit(session, Owner(payload=b"4"))
    assert session.take_outgoing() == [HELLO]
    session.handle(welcome(incarnation=6), 2.0)
    out = sent(session)
    assert out[-1].ids == [0, 2, 3, 4] and out[-1].payloads == [b"0", b"2", b"3", b"4"]


def test_a_function_without_pending_tasks_is_sent_again_to_a_new_scheduler(session: Session) -> None:
    owner = Owner()
    submit(session, owner)
    session.take_outgoing()
    session.handle(resolved(0), 1.0)
    session.handle(messages.HelloWanted(), 2.0)
    session.handle(welcome(incarnation=6), 2.0)
    session.take_outgoing()
    submit(session, owner)
    assert [type(message) for message in sent(session)] == [messages.Function, messages.Submit]


def test_map_rows_are_submitted_again_by_their_owner(session: Session) -> None:
    submit(session, Owner(payload=b"single"))
    chunk = Chunk(Function(1, "f", b""), [b"row 0", b"row 1", b"row 2"])
    first = chunk.submit(session)
    session.handle(resolved(first + 1), 1.0)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    assert sent(session)[-1].payloads == [b"single", b"row 0", b"row 2"]
    session.handle(resolved(first, first + 2), 1.0)
    assert session.chunks == {}


def test_a_chunk_is_lost_and_cancelled_as_a_single_task_is(session: Session) -> None:
    lost, closed = (Chunk(Function(1, "f", b""), [b"1", b"2"]) for _ in range(2))
    lost.submit(session)
    session.tick(100.0)
    assert [type(error) for _, error in lost.told] == [SchedulerLostError] * 2
    closed.submit(session)
    session.close("enough")
    assert [outcome for _, outcome, _ in closed.told] == [Outcome.CANCELLED] * 2
    assert session.chunks == {}


def test_a_goodbye_of_the_scheduler_loses_nothing(session: Session) -> None:
    owner = Owner()
    submit(session, owner)
    session.handle(messages.Goodbye("stops"), 1.0)
    assert owner.told == [] and list(session.pending) == [0]


def test_heartbeats(session: Session) -> None:
    session.tick(HEARTBEAT_SECONDS - 0.1)
    assert session.take_outgoing() == []
    session.tick(HEARTBEAT_SECONDS)
    session.tick(HEARTBEAT_SECONDS + 0.1)
    assert session.take_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline == 2 * HEARTBEAT_SECONDS
    session.tick(2 * HEARTBEAT_SECONDS)
    assert session.take_outgoing() == [messages.Heartbeat(2)]


def test_heartbeats_come_often_enough_for_a_short_lease() -> None:
    session = new_session()
    session.handle(welcome(lease_seconds=1.5), 0.0)
    session.take_outgoing()
    assert session.next_deadline <= 0.5
    session.tick(0.5)
    assert session.take_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline <= 1.0


def test_a_lost_scheduler_fails_what_is_pending(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.handle(messages.HeartbeatEcho(1), 10.0)
    session.tick(10.0 + TIMEOUT_SECONDS)
    assert owner.told == []
    session.tick(10.1 + TIMEOUT_SECONDS)
    ((task_id, error),) = owner.told
    assert task_id == 0 and isinstance(error, SchedulerLostError)
    assert ADDRESS in str(error) and "60 seconds" in str(error)
    assert answered.times == 1 and not session.pending


def test_after_a_loss_it_works_with_the_next_scheduler(session: Session) -> None:
    submit(session, Owner())
    session.tick(100.0)
    session.handle(messages.HelloWanted(), 101.0)
    session.handle(welcome(incarnation=9), 101.0)
    session.take_outgoing()
    owner = Owner()
    submit(session, owner)
    assert sent(session)[-1].ids == [1]
    session.handle(resolved(1), 102.0)
    assert owner.told == [(1, Outcome.VALUE, b"answer")]


def test_refused_names_both_versions(session: Session) -> None:
    owner = Owner()
    submit(session, owner)
    session.handle(messages.Refused("protocolVersion", "too old", 9, "4.2"), 1.0)
    ((_, error),) = owner.told
    assert isinstance(error, SchedulerLostError)
    for part in (ADDRESS, "4.2", "protocol version 9", "protocol version 1", "too old"):
        assert part in str(error)


def test_a_refused_session_fails_what_comes_later_and_rests(session: Session) -> None:
    session.handle(messages.Refused("protocolVersion", "too old", 9, "4.2"), 1.0)
    session.take_outgoing()
    owner = Owner()
    submit(session, owner)
    session.tick(100.0)
    assert len(owner.told) == 1 and isinstance(owner.told[0][1], SchedulerLostError)
    assert session.take_outgoing() == []
    assert session.next_deadline > 100.0, "a deadline that is over makes the I/O thread turn without rest"


def test_what_comes_after_the_end_is_turned_away(session: Session) -> None:
    session.close("enough")
    owner, chunk = Owner(), Chunk(Function(1, "f", b""), [b"1", b"2"])
    submit(session, owner)
    chunk.submit(session)
    assert isinstance(owner.told[0][1], ClientClosedError) and isinstance(chunk.told[0][1], ClientClosedError)
    assert not session.pending and not session.chunks


def test_close_says_goodbye_and_cancels(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.take_outgoing()
    session.close("enough")
    assert sent(session) == [messages.Goodbye("enough")]
    assert session.state is State.CLOSED
    assert owner.told == [(0, Outcome.CANCELLED, b"")] and answered.times == 1
    session.tick(1000.0)
    assert session.take_outgoing() == []


def test_forgetting_a_function_comes_after_its_tasks(session: Session) -> None:
    submit(session, Owner())
    session.forget_function(1)
    assert sent(session)[1:] == [messages.Submit([0], [1], [b"payload"]), messages.ForgetFunctions([1])]


def test_payloads_are_not_touched(session: Session) -> None:
    payload = pickle.dumps(((1,), {}))
    owner = Owner(payload=payload)
    submit(session, owner)
    assert session.take_outgoing()[-1].payloads[0] is payload  # type: ignore[union-attr]
