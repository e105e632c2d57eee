"""The scheduler's limit of a frame: which messages are sent, split, or fail."""

from __future__ import annotations

from typing import Any

import pytest

from scaler_client.errors import MessageTooLargeError, ScalerError
from scaler_client.pickling import serializer
from scaler_client.protocol import messages, wire
from scaler_client.protocol.messages import Function, Object, Objects, Outcome, Resolved, Results, Submit
from scaler_client.session import frame_limit
from scaler_client.session.backlog import TASK_OVERHEAD, Backlog
from scaler_client.session.frame_limit import FrameLimit, result_frames

LIMIT = 100_000


class Scene:
    def __init__(self, limit: int = LIMIT, is_named: bool = False) -> None:
        self.backlog = Backlog()
        self.backlog.restart(1 << 40)
        self.failed: list[Resolved] = []
        self.frames = FrameLimit(self.backlog, self.failed.append, lambda _: is_named)
        self.frames.restart(limit)

    def sent(self, message: messages.Message) -> list[Any]:
        found = self.frames.encode(message)
        assert all(len(frame) <= (self.frames.bytes or 1 << 40) for frames in found for frame in frames)
        return found

    def ids_of(self, sent: list[Any]) -> list[int]:
        return [each for frames in sent for each in decoded_ids(frames)]


def decoded_ids(frames: Any) -> list[int]:
    from scaler_client.protocol.columns import BatchReader

    return list(BatchReader(frames[0]).numbers(0, "Q"))


def submit(*payloads: bytes, functions: tuple[int, ...] = (1,)) -> Submit:
    return Submit(range(10, 10 + len(payloads)), list(functions), list(payloads))


def test_messages_within_the_limit_are_unchanged() -> None:
    scene = Scene()
    batch = submit(b"a", b"b")
    assert [list(map(bytes, each)) for each in scene.sent(batch)] == [list(map(bytes, wire.encode(batch)))]
    scene.frames.restart(0)
    assert len(scene.sent(submit(bytes(LIMIT * 2)))) == 1 and not scene.failed


def test_only_the_too_large_row_fails_and_does_not_count() -> None:
    scene = Scene()
    outgoing: list[Any] = []
    batch = submit(b"a", bytes(LIMIT + 1), b"c")
    scene.backlog.add(batch, outgoing)
    assert scene.ids_of([each for message in outgoing for each in scene.sent(message)]) == [10, 12]
    [failed] = scene.failed
    assert failed.ids == [11] and failed.outcomes == [Outcome.EXCEPTION]
    error, _ = serializer.loads(failed.payloads[0])
    assert isinstance(error, MessageTooLargeError)
    assert str(error) == (
        "the task has 100,001 bytes in one frame, and the scheduler takes 100,000 (--message-size-limit)"
    )
    scene.backlog.grant(0, [])
    assert scene.backlog._used == 2 + 2 * TASK_OVERHEAD
    assert scene.frames.pop_freed() and not scene.frames.pop_freed()


class Huge(bytes):
    """Bytes that say that they are 4.5 GB."""

    def __len__(self) -> int:
        return 4_500_000_000


@pytest.mark.parametrize("limit", [0, 1 << 30, 1 << 40])
@pytest.mark.parametrize("credit", [0, 1000])
def test_a_row_that_is_too_large_waits_for_no_credit_and_keeps_none_from_others(credit: int, limit: int) -> None:
    scene = Scene(limit)
    scene.backlog.restart(credit)
    outgoing: list[Any] = []
    scene.backlog.add(submit(b"a", Huge(b"b"), b"c"), outgoing)
    assert scene.ids_of([each for message in outgoing for each in scene.sent(message)]) == []
    assert [each.ids for each in scene.failed] == [[11]] and scene.frames.pop_freed()
    error, _ = serializer.loads(scene.failed[0].payloads[0])
    assert isinstance(error, MessageTooLargeError)
    assert str(error).startswith("the task has 4,500,000,000 bytes")
    assert ("client.send_object()" in str(error)) == (limit != 1 << 30)
    outgoing.clear()
    scene.backlog.grant(0, outgoing)
    assert [each for message in outgoing for each in message.ids] == ([10, 12] if credit else [])
    outgoing.clear()
    scene.backlog.grant(1000, outgoing)
    assert [each for message in outgoing for each in message.ids] == ([] if credit else [10, 12])


def test_a_too_large_batch_is_split() -> None:
    scene = Scene()
    sent = scene.sent(submit(*[bytes(60_000)] * 5))
    assert len(sent) >= 4 and scene.ids_of(sent) == [10, 11, 12, 13, 14] and not scene.failed


def test_rows_of_a_too_large_function_fail_until_the_next_welcome() -> None:
    scene = Scene()
    assert scene.sent(Function(2, "big", "cloudpickle", bytes(LIMIT + 1))) == []
    assert scene.ids_of(scene.sent(submit(b"a", b"b", b"c", functions=(1, 2, 1)))) == [10, 12]
    assert [each.ids for each in scene.failed] == [[11]]
    scene.frames.restart(LIMIT)
    assert scene.ids_of(scene.sent(submit(b"a", functions=(2,)))) == [10]


def test_the_failure_of_a_named_function_is_text() -> None:
    scene = Scene(is_named=True)
    assert scene.sent(submit(bytes(LIMIT + 1))) == []
    assert bytes(scene.failed[0].payloads[0]).startswith(b"the task has 100,001 bytes")


def test_a_too_large_object_is_not_sent_and_does_not_count() -> None:
    scene = Scene()
    message = Object(5, [bytes(LIMIT + 1)], name="numbers")
    scene.backlog.count_object(message)
    assert scene.sent(message) == [] and scene.backlog._used == 0


def test_small_objects_that_are_too_long_together_go_one_by_one() -> None:
    scene = Scene()
    assert len(scene.sent(Objects([5, 6], [bytes(40_000), bytes(40_000)]))) == 1
    payloads = [bytes(60_000), bytes(50_000)]
    assert scene.sent(Objects([5, 6], payloads)) == [
        wire.encode(Object(id, [each])) for id, each in zip((5, 6), payloads)
    ]


def test_results_are_split_and_a_too_large_result_becomes_a_failure() -> None:
    payloads: list[Any] = [b"a", bytes(LIMIT + 1), bytes(60_000), bytes(60_000)]
    results = Results([7], [1, 2, 3, 4], [1], [0], [5], payloads, errors=["", "x", "", ""])
    sent = result_frames(results, LIMIT)
    assert all(frame_limit.fits_limit(each, LIMIT) for each in sent)
    from scaler_client.protocol.columns import BatchReader

    told = [(BatchReader(each[0]), each) for each in sent]
    assert [number for batch, _ in told for number in batch.numbers(1, "Q")] == [1, 2, 3, 4]
    outcomes = [bytes(batch.numbers(3, "B")) for batch, _ in told]
    assert bytes([Outcome.RESULT_FAILED.value]) in outcomes
    assert len(result_frames(Results([7], [1, 2], [1], [0], [5], [b"a", b"b"]), 0)) == 1


def test_only_rows_that_cannot_be_encoded_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = wire.encode

    def encode_even(message: messages.Message) -> Any:
        if isinstance(message, Submit) and 13 in message.ids:
            raise KeyError("a number\nthat is none")
        return encode(message)

    monkeypatch.setattr(wire, "encode", encode_even)
    scene = Scene()
    assert scene.ids_of(scene.sent(submit(*[b"a"] * 6))) == [10, 11, 12, 14, 15]
    [failed] = scene.failed
    error, _ = serializer.loads(failed.payloads[0])
    assert failed.ids == [13] and type(error) is ScalerError
    assert str(error) == "the task can't be encoded as a message: KeyError: 'a number\\nthat is none'"


NOT_ENCODABLE: list[messages.Message] = [
    Function("one", "f", "cloudpickle", b""),  # type: ignore[arg-type]
    Object("one", [b"a"]),  # type: ignore[arg-type]
    messages.Cancel(["one"]),  # type: ignore[list-item]
    messages.ForgetFunctions([-1]),
    messages.ForgetObjects([1 << 64]),
    messages.Received(-1),
    messages.Suspended([(1, 2, -3)]),
    messages.Resumed([(1, 2, -3)]),
    messages.Heartbeat(-1),
    messages.Goodbye(3),  # type: ignore[arg-type]
    messages.Hello(messages.Role.CLIENT, -1, "", "", "", 1),
    messages.Started([-1], [1], [1]),
    messages.Retracted([(1, 2, 3)], [-1]),
    messages.WorkerDied(-1, 1, ""),
    messages.Output([1], [-1], [b""], [b""], [1]),
]


@pytest.mark.parametrize("message", NOT_ENCODABLE, ids=lambda message: type(message).__name__)
def test_a_message_that_cannot_be_encoded_is_logged(
    message: messages.Message, caplog: pytest.LogCaptureFixture
) -> None:
    assert Scene().sent(message) == [] == frame_limit.encode_or_log(message)
    assert [each.partition(" can't be encoded as a message: ")[1] != "" for each in caplog.messages] == [True, True]


def test_tasks_of_a_function_that_cannot_be_encoded_fail() -> None:
    scene = Scene()
    assert scene.sent(Function(2, 3, "cloudpickle", b"")) == []  # type: ignore[arg-type]
    assert scene.ids_of(scene.sent(submit(b"a", b"b", functions=(1, 2)))) == [10]
    error, _ = serializer.loads(scene.failed[0].payloads[0])
    assert scene.failed[0].ids == [11] and str(error).startswith("the task's function can't be encoded as a message: ")


def test_a_result_that_cannot_be_encoded_becomes_a_failure() -> None:
    from scaler_client.protocol.columns import BatchReader

    results = Results([7], [1, 2, 3], [1], [0], [5, -6, 7], [b"a", b"b", b"c"], [1, 2, 3], [4, 5, 6])
    told = [BatchReader(frames[0]) for frames in result_frames(results, LIMIT)]
    ids = [number for batch in told for number in batch.numbers(1, "Q")]
    outcomes = [number for batch in told for number in batch.numbers(3, "B")]
    assert ids == [1, 2, 3] and outcomes == [0, Outcome.RESULT_FAILED.value, 0]
    assert any(b"the result can't be encoded as a message: " in batch.data(7) for batch in told)
