"""How the calls of a map become rows: by their run time, within limits, and again when a row comes back."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.client.session.stand_ins import joined_session

from scaler_client.pickling.call_rows import CallBlock, pack_answer, pack_calls, row_calls
from scaler_client.pickling.functions import Function
from scaler_client.pickling.serializer import dump_exception, dumps
from scaler_client.protocol.messages import HeartbeatEcho, Options, Outcome
from scaler_client.session.map_feed import (
    AHEAD_NS,
    MAX_ROWS,
    MIN_ROW_NS,
    MIN_ROWS,
    ROW_NS,
    CallFailure,
    MapFeed,
    MapFeeds,
)
from scaler_client.session.result_sinks import SingleSink


class Recorder:
    """A session that keeps the rows."""

    def __init__(self, workers: int = 4) -> None:
        self.feeds = MapFeeds()
        self.feeds.worker_count = workers
        self.rows: dict[int, tuple[SingleSink, list[int]]] = {}
        """Sink and calls of the rows in flight, by id."""
        self.sizes: list[int] = []
        """The number of calls of each row that was submitted."""

    def submit_with_options(self, sink: SingleSink, _function: Function, payload: Any) -> int:
        _, count, calls, _ = row_calls(payload)
        task_id = len(self.sizes)
        self.sizes.append(count)
        self.rows[task_id] = sink, list(calls)
        assert sink.options is not None and sink.options.calls == count
        return task_id

    def answer(self, task_id: int, call_ns: int, values: int | None = None) -> None:
        """Answer the first calls of a row, or all."""
        sink, calls = self.rows.pop(task_id)
        calls = calls[:values]
        sink.resolve(task_id, Outcome.VALUE, pack_answer(calls, None, call_ns * len(calls)))

    def answer_all(self, call_ns: int) -> None:
        while self.rows:
            self.answer(min(self.rows), call_ns)


def blocks(count: int, size: int = 100) -> list[CallBlock]:
    made = []
    for first in range(0, count, size):
        calls = [(number,) for number in range(first, min(count, first + size))]
        made.append(CallBlock(first, len(calls), pack_calls(None, calls)))
    return made


def new_feed(options: Options | None = None, row_calls: int | None = None) -> MapFeed:
    return MapFeed(Function(1, "f", b""), options, None, threading.Event(), row_calls)


def results(made: list[CallBlock]) -> list[int]:
    found = []
    for block in made:
        assert not block.left
        for begin, count, _ in sorted(block.answers):
            found += range(block.first + begin, block.first + begin + count)
    return found


def test_calls_go_out_one_by_one_until_a_run_time_is_known() -> None:
    session, feed, made = Recorder(), new_feed(), blocks(10_000)
    feed.add(session, made, True)
    assert session.sizes == [1] * MIN_ROWS
    session.answer(0, 1000)
    assert session.sizes[MIN_ROWS : MIN_ROWS + 3] == [36, 100, 100]
    session.answer_all(1000)
    assert results(made) == list(range(10_000)) and not session.feeds


def test_a_row_runs_for_a_few_milliseconds() -> None:
    session, feed = Recorder(), new_feed()
    feed.add(session, blocks(100_000, 1000), False)
    session.answer(0, ROW_NS // 11)
    assert set(session.sizes[MIN_ROWS:]) == {10}


def test_long_calls_are_rows_of_their_own() -> None:
    session, feed, made = Recorder(), new_feed(), blocks(300)
    feed.add(session, made, True)
    session.answer_all(10 * ROW_NS)
    assert session.sizes == [1] * 300 and results(made) == list(range(300))


def test_rows_get_shorter_at_the_end() -> None:
    session, feed = Recorder(), new_feed()
    feed.add(session, blocks(3000, 1000), True)
    call_ns = MIN_ROW_NS // 4
    session.answer_all(call_ns)
    late = session.sizes[MIN_ROWS:]
    assert late[0] == ROW_NS // (call_ns + 1) and 3 in late and sum(session.sizes) == 3000


def test_many_workers_get_more_first_calls() -> None:
    session, feed = Recorder(workers=1000), new_feed()
    feed.add(session, blocks(10_000), True)
    assert session.sizes == [1] * 2000
    session.feeds.set_worker_count(1500)
    assert session.sizes == [1] * 3000


def test_the_rows_on_their_way_are_limited() -> None:
    session, feed = Recorder(workers=1), new_feed()
    feed.function.call_time.add(1, 10_000)
    feed.add(session, blocks(1_000_000, 400), False)
    assert sum(session.sizes) * 10_000 >= AHEAD_NS or len(session.sizes) == MIN_ROWS
    assert len(session.sizes) <= MAX_ROWS and sum(session.sizes) * 10_000 < 2 * AHEAD_NS + MIN_ROWS * ROW_NS


def test_one_long_call_does_not_make_rows_of_one_call() -> None:
    feed = new_feed()
    for _ in range(20):
        feed.function.call_time.add(100, 100 * 20_000)
    feed.function.call_time.add(30, 1_000_000_000)
    session = Recorder(workers=1)
    feed.add(session, blocks(10_000, 1000), False)
    assert session.sizes[0] >= 50


def test_calls_that_a_worker_has_not_run_go_out_again() -> None:
    session, feed, made = Recorder(), new_feed(row_calls=10), blocks(20, 20)
    feed.add(session, made, True)
    assert session.sizes == [10, 10]
    session.answer(0, 1000, values=3)
    assert session.sizes == [10, 10, 7] and session.rows[2][1] == [3, 4, 5, 6, 7, 8, 9]
    session.answer_all(1000)
    assert results(made) == list(range(20)) and feed.answered == 20


def test_each_call_of_a_row_whose_worker_died_goes_out_alone() -> None:
    session, feed, made = Recorder(), new_feed(row_calls=4), blocks(8, 8)
    feed.add(session, made, True)
    sink, _ = session.rows.pop(0)
    sink.resolve(0, Outcome.WORKER_DIED, b"signal 9")
    assert session.sizes == [4, 4, 1, 1, 1, 1] and feed.failure is None
    session.answer(1, 1000)
    sink, calls = session.rows.pop(4)
    sink.resolve(4, Outcome.WORKER_DIED, b"signal 9")
    assert feed.failure == CallFailure(calls[0], Outcome.WORKER_DIED, b"signal 9", 4) and calls == [2]


def test_the_failed_call_that_is_first_in_the_map_counts() -> None:
    session, feed = Recorder(), new_feed()
    feed.function.call_time.add(1, ROW_NS // 4)
    feed.add(session, blocks(10_000, 20), False)
    submitted = len(session.sizes)
    assert submitted < 1000 and set(session.sizes) == {3, 2}
    error = dump_exception(ValueError("x"), "text")
    for task_id, values in ((1, 1), (0, 2), (2, 0)):
        sink, calls = session.rows.pop(task_id)
        sink.resolve(task_id, Outcome.EXCEPTION, pack_answer(calls[:values], None, 1000, error))
    assert feed.failure is not None and feed.failure[0] == 2 and bytes(feed.failure[2]) == error
    assert len(session.sizes) == submitted, "nothing is submitted behind a failure"
    assert feed.open_ids() == sorted(session.rows)


def test_an_error_of_the_client_ends_the_map() -> None:
    session, feed = Recorder(), new_feed()
    feed.add(session, blocks(1000), True)
    error = RuntimeError("lost")
    for task_id in list(session.rows):
        session.rows.pop(task_id)[0].fail(task_id, error)
    assert feed.error is error and not session.feeds and len(session.sizes) == MIN_ROWS


@pytest.mark.parametrize("payload", [b"\0" * 40, dumps(3)])
def test_an_answer_that_is_none_fails_or_goes_out_again(payload: bytes) -> None:
    session, feed = Recorder(), new_feed(row_calls=4)
    feed.add(session, blocks(4), True)
    session.rows.pop(0)[0].resolve(0, Outcome.VALUE, payload)
    assert feed.failure is not None or session.sizes[1:] == [1, 1, 1, 1]


def test_idle_is_reported_once_nothing_is_on_its_way() -> None:
    session, feed, idle = Recorder(), new_feed(), []
    feed.add(session, blocks(3), True)
    feed.when_idle(lambda: idle.append(1))
    assert not idle
    session.answer_all(1000)
    assert idle == [1]
    feed.when_idle(lambda: idle.append(2))
    assert idle == [1, 2]


def test_clear_ends_a_map_whose_rows_all_run() -> None:
    session = joined_session()
    feed = new_feed()
    feed.add(session, blocks(1000), True)
    rows = len(session.pending)
    session.pop_outgoing()
    session.clear(lambda: None)
    assert feed.failure is not None and feed.failure[:2] == (rows, Outcome.CANCELLED)
    assert feed.open_ids() == list(session.pending)


def test_stopping_a_task_ends_its_maps() -> None:
    session = joined_session()
    own, other = (MapFeed(Function(1, "f", b""), None, parent, threading.Event()) for parent in ((1, 2, 3), None))
    for feed in (own, other):
        feed.add(session, blocks(1000), True)
    session.stop_children((1, 2, 3))
    assert own.failure is not None and other.failure is None


def test_a_session_that_learns_of_more_workers_fills_its_feeds() -> None:
    session = joined_session()
    feed = new_feed()
    feed.add(session, blocks(1000), True)
    assert len(session.pending) == MIN_ROWS
    session.handle(HeartbeatEcho(1, workers=100), 1.0)
    assert len(session.pending) == 200


@pytest.mark.parametrize("outcome", [Outcome.VALUE, Outcome.WORKER_DIED])
def test_calls_that_come_back_to_a_cancelled_map_are_not_sent(outcome: Outcome) -> None:
    session, feed = Recorder(), new_feed(row_calls=4)
    feed.add(session, blocks(4, 4), True)
    assert feed.open_ids() == [0]
    sink, calls = session.rows.pop(0)
    sink.resolve(0, outcome, b"signal 9" if outcome else pack_answer(calls[:1], None, 1000))
    assert session.sizes == [4] and not session.feeds
    assert feed.failure is not None and feed.failure[1] == Outcome.CANCELLED


def test_a_map_that_is_closed_between_two_blocks_is_forgotten() -> None:
    session, feed = Recorder(), new_feed()
    feed.add(session, blocks(3), False)
    session.answer_all(1000)
    assert len(session.feeds) == 1
    assert feed.open_ids() == [] and not session.feeds
