"""Results that stay on their hosts, in the client's session: fetched late, freed, and made again after a loss."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.session.stand_ins import UNLIMITED, joined_session, sent_without_functions, submit, welcome
from tests.client.session.test_task_inputs import Sink, resolved, rows

from scaler_client.errors import ClientClosedError, ObjectNotFoundError, ResultPickleError, SchedulerLostError
from scaler_client.futures.kept_results import FetchedValue, KeptFuture, fetch_values
from scaler_client.pickling.call_rows import CallBlock
from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import CallWithInputs, ObjectRef, StoredObject
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Outcome
from scaler_client.session import kept_values
from scaler_client.session.map_feed import CallFailure, MapFeed
from scaler_client.session.session import Session

HOST = b"node-7"
LOST = Outcome.INPUT_LOST


class Caller:
    """What futures see of the I/O thread."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def fetch_values(self, wanted: Any) -> None:
        self.session.fetch_values(wanted)

    def forget_object(self, stored: StoredObject) -> None:
        self.session.forget_object(stored)

    def check_can_wait(self) -> None: ...


@pytest.fixture
def session() -> Session:
    return joined_session()


@pytest.fixture
def keep(session: Session) -> Callable[..., KeptFuture[Any]]:
    """Submits a kept task that reads these futures or references."""
    caller: Any = Caller(session)

    def submit_kept(*inputs: Any, options: messages.Options | None = None) -> KeptFuture[Any]:
        references = [each if isinstance(each, ObjectRef) else each.reference for each in inputs]
        call = CallWithInputs(b"p", references)
        future: KeptFuture[Any] = KeptFuture(caller, Function(1, "f", b"code"), call, options=options, parent=None)
        session.submit_kept(future)
        return future

    return submit_kept


def kept(*ids: int, size: int = 3, host: bytes = HOST) -> messages.Resolved:
    answers = [size.to_bytes(8, "little") + (1 << 48 | each).to_bytes(8, "little") + host for each in ids]
    return messages.Resolved(list(ids), [Outcome.KEPT] * len(ids), answers)


def ended(session: Session, *ids: int, host: bytes = HOST) -> None:
    """The tasks end, and everything that was to be sent is sent."""
    sent_without_functions(session)
    session.handle(kept(*ids, host=host), 0.0)
    sent_without_functions(session)


def give(session: Session, task_id: int, value: Any) -> None:
    session.handle(messages.Object(task_id, [pickle.dumps(value)], 77), 0.0)


def lose(session: Session, *ids: int) -> None:
    session.handle(messages.ForgetObjects(list(ids), [77] * len(ids)), 0.0)


def sent(session: Session) -> list[Any]:
    return rows(sent_without_functions(session))


def begin(*futures: KeptFuture[Any]) -> list[FetchedValue[Any]]:
    """Fetch the values, without waiting for them."""
    return fetch_values(futures)


Keeper = Callable[..., KeptFuture[Any]]


def test_it_is_done_without_its_value_which_comes_once(session: Session, keep: Keeper) -> None:
    future = keep()
    assert sent(session) == [([0], [], [Keep.YES], [])]
    assert (future.size, future.location) == (None, None)
    session.handle(kept(0, size=1234), 0.0)
    assert future.done() and future.exception() is None and sent(session) == []
    assert (future.size, future.location) == (1234, "node-7")
    (value,) = begin(future)
    assert sent(session) == [messages.FetchObjects([0])]
    give(session, 0, "value")
    assert value.result() == future.result() == "value" and sent(session) == []


def small(*ids: int, value: Any = "small") -> messages.Resolved:
    """The answers of small results: their client gets them too."""
    return messages.Resolved(list(ids), [Outcome.VALUE] * len(ids), [pickle.dumps(value)] * len(ids))


def test_a_small_value_comes_with_the_answer(session: Session, keep: Keeper) -> None:
    future = keep()
    sent(session)
    session.handle(small(0), 0.0)
    assert future.done() and future.exception() is None
    assert (future.size, future.location) == (len(pickle.dumps("small")), "client")
    assert future.result() == "small" == begin(future)[0].result() and sent(session) == []
    keep(future)
    assert sent(session) == [([1], [0], [Keep.YES], [])], "the scheduler has it"


def test_another_scheduler_gets_a_small_value_from_the_client(session: Session, keep: Keeper) -> None:
    future = keep()
    sent(session)
    large = "x" * 1000
    session.handle(small(0, value=large), 0.0)
    session.handle(messages.HelloWanted(), 0.0)
    session.handle(welcome(6), 0.0)
    sent(session)
    keep(future)
    assert sent(session) == [([1], [0], [Keep.YES], [0])]
    session.handle(messages.FetchObjects([0], [77]), 0.0)
    (value,) = sent(session)
    assert (value.id, *value.frames) == (0, pickle.dumps(large)), "its task does not run again"
    lose(session, 0)
    assert future.result() == large


def test_a_freed_small_result_is_made_again_for_a_lost_one(session: Session, keep: Keeper) -> None:
    first = keep()
    sent(session)
    session.handle(small(0, value="x" * 1000), 0.0)
    second = keep(first)
    ended(session, 1)
    del first
    gc.collect()
    assert sent(session) == [messages.ForgetObjects([0])]
    lose(session, 1)
    begin(second)
    assert sent(session)[:2] == [([0], [], [Keep.YES], []), ([1], [0], [Keep.YES], [])]
    session.handle(small(0, value="y" * 1000), 0.0)
    session.handle(kept(1), 0.0)
    assert sent(session)[-1] == messages.FetchObjects([1])


def test_many_values_come_with_one_message_as_far_as_the_window_allows(
    session: Session, keep: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_values, "FETCH_BYTES", 6)
    futures = [keep() for _ in range(4)]
    ended(session, 0, 1, 2, 3)
    begin(*futures)
    assert sent(session) == [messages.FetchObjects([0, 1])]
    give(session, 1, "one")
    assert sent(session) == [messages.FetchObjects([2])]
    give(session, 0, "zero"), give(session, 2, "two")
    assert sent(session) == [messages.FetchObjects([3])]


def test_a_freed_result_whose_row_waits_for_credit_is_forgotten_behind_its_row(session: Session, keep: Keeper) -> None:
    """Its answer was on its way when the client joined again. The scheduler takes the row for a new task, and keeps its
    result."""
    first, second = keep(), keep()
    sent(session)
    session.handle(messages.HelloWanted(), 0.0)
    session.handle(welcome(credit=1), 0.0)
    assert sent(session)[-1] == ([0], [], [Keep.YES], [])
    session.handle(kept(0, 1), 0.0)
    del first, second
    gc.collect()
    assert sent(session) == [messages.ForgetObjects([0])]
    session.handle(messages.Credit(UNLIMITED), 0.0)
    assert sent(session) == [([1], [], [Keep.YES], []), messages.ForgetObjects([1])]


def test_a_value_with_buffers_is_writable(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    begin(future)
    sent(session)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(pickle.PickleBuffer(bytearray(b"abc")), 5, buffer_callback=buffers.append)
    session.handle(messages.Object(0, [data, bytes(buffers[0].raw())], 77), 0.0)
    assert future.result() == bytearray(b"abc") and isinstance(future.result(), bytearray)


def test_a_value_that_is_wanted_before_the_task_ends(session: Session, keep: Keeper) -> None:
    (value,) = begin(keep())
    assert sent(session) == [([0], [], [Keep.YES], [])]
    session.handle(kept(0), 0.0)
    assert sent(session) == [messages.FetchObjects([0])]
    give(session, 0, 7)
    assert value.result() == 7


def test_a_task_that_fails(session: Session, keep: Keeper) -> None:
    future = keep()
    (value,) = begin(future)
    session.handle(resolved(0, b"died", Outcome.WORKER_DIED), 0.0)
    for each in (future, value):
        with pytest.raises(Exception, match="died"):
            each.result()
    assert future.size is None


def test_it_is_freed_with_its_future_and_its_readers(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    reader = Sink(future)
    submit(session, reader)
    assert sent(session) == [([1], [0], [], [])]
    del future, reader
    assert sent(session) == [], "the session has the reader's row"
    session.handle(resolved(1), 0.0)
    assert sent(session) == [messages.ForgetObjects([0])]


def test_a_lost_result_is_made_again_when_its_value_is_wanted(session: Session, keep: Keeper) -> None:
    options = messages.Options(retries=2)
    future = keep(options=options)
    ended(session, 0)
    lose(session, 0)
    assert sent(session) == [], "only when it is needed"
    (value,) = begin(future)
    (again,) = sent_without_functions(session)
    assert not value.cancel(), "the task may have other readers"
    assert rows([again]) == [([0], [], [Keep.YES], [])] and again.options == options
    session.handle(kept(0, host=b"node-8"), 0.0)
    assert sent(session) == [messages.FetchObjects([0])] and future.location == "node-8"
    give(session, 0, "again")
    assert value.result() == "again"


def test_a_value_that_is_lost_while_it_is_fetched(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    begin(future)
    sent(session)
    lose(session, 0)
    assert sent(session) == [([0], [], [Keep.YES], [])]
    lose(session, 0)
    assert sent(session) == [], "the scheduler's answer to the fetch comes too"
    session.handle(kept(0), 0.0)
    assert sent(session) == [messages.FetchObjects([0])]


def test_a_reader_makes_its_lost_input_again(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    reader = Sink(future)
    submit(session, reader)
    sent(session)
    lose(session, 0)
    session.handle(resolved(1, b"lost", LOST), 0.0)
    assert sent(session) == [([0], [], [Keep.YES], []), ([1], [0], [], [])]
    session.handle(resolved(1), 0.0)
    assert [each[:2] for each in reader.told] == [(1, Outcome.VALUE)]


def test_a_reader_of_a_result_that_is_known_to_be_lost(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    lose(session, 0)
    submit(session, Sink(future, options=messages.Options(priority=3)))
    outgoing = sent_without_functions(session)
    assert rows(outgoing) == [([0], [], [Keep.YES], []), ([1], [0], [], [])]
    assert outgoing[0].options is None and outgoing[1].options == messages.Options(priority=3)


def test_freed_inputs_are_made_again_and_freed_again(session: Session, keep: Keeper) -> None:
    first = keep()
    second = keep(first)
    third = keep(second)
    ended(session, 0, 1, 2)
    del first, second
    assert sent(session) == [messages.ForgetObjects([0, 1])]
    lose(session, 2)
    begin(third)
    assert sent(session) == [
        ([0], [], [Keep.YES], []),
        ([1], [0], [Keep.YES], []),
        ([2], [1], [Keep.YES], []),
        messages.ForgetObjects([0, 1]),
    ]
    session.handle(kept(0, 1, 2), 0.0)
    assert sent(session) == [messages.FetchObjects([2])]


def test_an_input_that_is_still_there_is_not_made_again(session: Session, keep: Keeper) -> None:
    first = keep()
    second = keep(first)
    ended(session, 0, 1)
    lose(session, 1)
    begin(second)
    assert sent(session) == [([1], [0], [Keep.YES], [])]


def test_large_arguments_stay_as_long_as_the_result_may_be_made_again(session: Session, keep: Keeper) -> None:
    caller: Any = Caller(session)
    stored = StoredObject("", [b"x"], None, is_arguments=True)
    session.send_object(stored)
    first = keep(ObjectRef(caller, stored))
    ended(session, 1)
    assert not stored.is_gone
    lose(session, 1)
    begin(first)
    assert sent(session) == [([1], [0], [Keep.YES], [])]


def test_literals_of_graphs_bring_no_warning_of_large_arguments(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them is sent once: `send_object`, which the warning recommends, would not be better."""
    literal = bytes(20_000_000)
    for _ in range(10):
        session.send_object(StoredObject("", [literal], None, is_arguments=True))
    assert caplog.messages == []


def test_large_arguments_are_freed_with_the_future_of_a_kept_result(session: Session, keep: Keeper) -> None:
    caller: Any = Caller(session)
    stored = StoredObject("", [b"x"], None, is_arguments=True)
    session.send_object(stored)
    first = keep(ObjectRef(caller, stored))
    ended(session, 1)
    assert not stored.is_gone
    del first
    gc.collect()
    sent(session)
    assert stored.is_gone


def test_a_result_that_cannot_be_made_again_says_why(session: Session, keep: Keeper) -> None:
    caller: Any = Caller(session)
    reference = ObjectRef(caller, StoredObject("prices", [b"x"], None))
    session.send_object(reference.stored)
    first = keep(reference)
    second = keep(first)
    reader = Sink(second)
    ended(session, 1, 2)
    submit(session, reader)
    del reference, first
    lose(session, 2)
    text = "the result of f#1 .* was lost with host node-7 and can't be made again: the object prices, .* was freed"
    with pytest.raises(ObjectNotFoundError, match=f"f#2 .* can't be made again: {text}"):
        second.result()
    session.handle(resolved(3, b"lost", LOST), 0.0)
    (cause,) = [each for each in reader.told if not isinstance(each, tuple) or each[0] == "f"]
    assert b"prices" in cause.answer


def test_giving_up_the_scheduler_cancels_no_task_that_makes_a_result_again(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    lose(session, 0)
    begin(future)
    submit(session, Sink(future))
    sent(session)
    session._lose_scheduler(SchedulerLostError("gone"))
    (cancel,) = sent(session)
    assert cancel.ids == [1], "the reader is not submitted again"
    begin(future)
    assert sent(session) == [([0], [], [Keep.YES], [])]


def test_inputs_of_a_result_that_cannot_be_made_again_stay_freed(session: Session, keep: Keeper) -> None:
    caller: Any = Caller(session)
    reference = ObjectRef(caller, StoredObject("prices", [b"x"], None))
    session.send_object(reference.stored)
    first = keep()
    second = keep(first)
    third = keep(second, reference)
    ended(session, 1, 2, 3)
    del first, second, reference
    sent(session)
    lose(session, 3)
    with pytest.raises(ObjectNotFoundError, match="the object prices, .* was freed"):
        third.result()
    assert sent(session) == []


def test_a_task_that_fails_when_it_runs_again(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    lose(session, 0)
    begin(future)
    session.handle(resolved(0, b"each attempt died", Outcome.WORKER_DIED), 0.0)
    with pytest.raises(Exception, match="each attempt died"):
        future.result()


def test_a_task_that_can_never_read_its_input_fails_in_the_end(session: Session, keep: Keeper) -> None:
    reader = Sink(future := keep())
    ended(session, 0)
    submit(session, reader)
    for _ in range(20):
        sent(session)
        session.handle(resolved(1, b"lost", LOST), 0.0)
    assert reader.told == [(1, LOST, b"lost")] and not future.cancelled()


def test_after_a_restart_the_scheduler_asks_for_the_input_of_a_reader(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0, host=b"")  # the former scheduler had it
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    session.handle(welcome(incarnation=6), 0.0)
    assert sent(session) == [], "it is made again when it is needed"
    submit(session, Sink(future))
    assert sent(session) == [([1], [0], [], [0])]
    session.handle(messages.FetchObjects([0], [77]), 0.0)
    assert sent(session) == [([0], [], [Keep.YES], [])]


def test_after_a_restart_a_value_is_fetched_again(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0, host=b"")  # the former scheduler had it
    begin(future)
    sent(session)
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    session.handle(welcome(incarnation=6), 0.0)
    assert sent(session) == [messages.FetchObjects([0])]
    lose(session, 0)
    assert sent(session) == [([0], [], [Keep.YES], [])]


def test_after_a_restart_a_value_comes_that_a_reader_needs_too(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0, host=b"")  # the former scheduler had it
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    session.handle(welcome(incarnation=6), 0.0)
    submit(session, Sink(future))
    (value,) = begin(future)
    assert sent(session) == [([1], [0], [], [0]), messages.FetchObjects([0])]
    session.handle(messages.FetchObjects([0], [77]), 0.0)
    assert sent(session) == [([0], [], [Keep.YES], [])]
    lose(session, 0)
    assert sent(session) == [], "the scheduler's answer to the client's question"
    session.handle(kept(0), 0.0)
    assert sent(session) == [messages.FetchObjects([0])]
    give(session, 0, "again")
    assert value.result() == "again"


def test_an_open_task_is_still_kept_after_a_restart(session: Session, keep: Keeper) -> None:
    future = keep()
    sent(session)
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    session.handle(welcome(incarnation=6), 0.0)
    submit(session, Sink(future))
    assert sent(session) == [([0], [], [Keep.YES], []), ([1], [0], [], [0])]


def test_a_lost_result_is_made_again_after_the_next_join(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    lose(session, 0)
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    begin(future)
    assert sent(session) == []
    session.handle(welcome(incarnation=6), 0.0)
    assert sent(session) == [([0], [], [Keep.YES], [])]


@pytest.mark.parametrize("is_lost", [False, True])
def test_waiting_for_a_value_ends_with_the_client(session: Session, keep: Keeper, is_lost: bool) -> None:
    future = keep()
    ended(session, 0)
    if is_lost:
        lose(session, 0)
    (value,) = begin(future)
    session.close("a test")
    with pytest.raises((ClientClosedError, Exception)):
        value.result(0)
    assert value.done()


def test_waiting_for_a_value_ends_when_the_scheduler_is_lost(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    (value,) = begin(future)
    session._lose_scheduler(SchedulerLostError("gone"))
    with pytest.raises(SchedulerLostError):
        value.result(0)
    sent(session)
    begin(future)
    assert sent(session) == [messages.FetchObjects([0])], "a later call asks again"


def new_map(session: Session, count: int) -> tuple[MapFeed, list[CallBlock]]:
    """Submit a map of kept calls."""
    caller: Any = Caller(session)
    function, call = Function(1, "f", b"code"), CallWithInputs(b"p", ())
    blocks = [
        CallBlock(each, 1, call, KeptFuture(caller, function, call, options=None, parent=None)) for each in range(count)
    ]
    feed = MapFeed(function, None, None, threading.Event())
    feed.add(session, blocks, True)
    return feed, blocks


def test_a_map_of_kept_calls(session: Session) -> None:
    feed, blocks = new_map(session, 3)
    assert [each[0] for each in sent(session)] == [[0, 1, 2]]
    session.handle(kept(1, 0), 0.0)
    assert feed.answered == 2 and [each.kept.size for each in blocks] == [3, 3, None]
    session.handle(messages.HelloWanted(), 0.0)
    sent(session)
    session.handle(welcome(incarnation=6), 0.0)
    claim, row = sent(session)
    assert row == ([2], [], [Keep.YES], []) and sorted(claim.ids) == [1 << 48, (1 << 48) + 1]
    session.handle(kept(2), 0.0)
    lose(session, 2)
    begin(blocks[2].kept)
    assert sent(session) == [([2], [], [Keep.YES], [])]
    session.handle(kept(2, host=b"node-8"), 0.0)
    assert feed.answered == 3 and blocks[2].kept.location == "node-8" and not session.feeds
    assert sent(session) == [messages.FetchObjects([2])]
    give(session, 2, "again")
    blocks.clear()
    (freed,) = sent(session)
    assert sorted(freed.ids) == [0, 1, 2]


def test_a_kept_call_that_fails_ends_its_map(session: Session) -> None:
    feed, blocks = new_map(session, 2)
    sent(session)
    session.handle(resolved(1, b"died", Outcome.WORKER_DIED), 0.0)
    assert feed.failure == CallFailure(1, Outcome.WORKER_DIED, b"died", 1) and blocks[1].kept.size is None
    with pytest.raises(Exception, match="died"):
        blocks[1].kept.result()
    session._lose_scheduler(SchedulerLostError("gone"))
    assert isinstance(feed.error, SchedulerLostError) and blocks[0].kept.exception() is feed.error


def test_clear_frees_it(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    session.clear(lambda: None)
    assert sent(session) == [messages.ForgetObjects([0])]
    with pytest.raises(ObjectNotFoundError, match="was freed"):
        future.result()


def test_a_value_that_is_too_large_for_a_message(session: Session, keep: Keeper) -> None:
    future = keep()
    ended(session, 0)
    for _ in range(2):
        (value,) = begin(future)
        assert sent(session) == [messages.FetchObjects([0])]
        session.handle(messages.Resolved([0], [Outcome.RESULT_FAILED], [b"it is too large"]), 0.0)
        with pytest.raises(ResultPickleError, match="it is too large"):
            value.result(0)
        assert not [each for each in sent(session) if not isinstance(each, messages.Received)], "it does not run again"


def test_another_scheduler_hears_which_results_hosts_have(session: Session, keep: Keeper) -> None:
    first, second, third, small, lost = keep(), keep(), keep(), keep(), keep()
    session.handle(kept(0, 1, size=70_000), 0.0)
    session.handle(kept(3, size=7, host=b""), 0.0)  # the scheduler had it
    session.handle(kept(4), 0.0)
    lose(session, 4)
    sent_without_functions(session)
    del second
    gc.collect()
    session.handle(messages.HelloWanted(), 0.0)
    session.handle(welcome(6), 0.0)
    claim = next(each for each in sent_without_functions(session) if isinstance(each, messages.HeldResults))
    assert (claim.ids, claim.bytes) == ([1 << 48], [70_000]), "not what is open, small, lost or freed"
    keep(first)
    assert sent(session) == [([5], [0], [Keep.YES], [])], "the scheduler knows that it is needed"
    lose(session, 0)
    assert sent(session) == [] and first.done() and not third.done() and small.done() and lost.done()
    begin(first)
    assert sent(session) == [([0], [], [Keep.YES], [])], "no host had it"


def test_another_scheduler_hears_of_results_that_only_open_tasks_read(session: Session, keep: Keeper) -> None:
    first, unread = keep(), keep()
    session.handle(kept(0, 1), 0.0)
    second, third = keep(first), keep(first)
    sent_without_functions(session)
    del first, unread
    gc.collect()
    sent(session)
    session.handle(messages.HelloWanted(), 0.0)
    session.handle(welcome(6), 0.0)
    hello, claim, both, *_ = sent(session)
    assert (claim.ids, claim.bytes) == ([1 << 48], [3]), "once, and not what nobody reads"
    assert both[:2] == ([2, 3], [0, 0])
    lose(session, 0)
    session.handle(messages.Resolved([2, 3], [LOST] * 2, [b"no host had it"] * 2), 0.0)
    assert [each[0] for each in sent(session)] == [[0], [2], [3]], "it is made again for its readers"
    assert not second.done() and not third.done()
