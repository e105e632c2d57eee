"""Printed output on its way from workers to clients. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import C2, W2, A, C, W, joined, resolved, results_event, running

from scaler_scheduler.core import effects, events

WINDOW = 1 << 20
HALF = WINDOW // 2
"""What output may fill."""

LABEL = b"host/1 f#1"


@pytest.fixture
def core(make_core):
    core = make_core(memory_limit_bytes=8 * WINDOW)
    joined(core)
    return core


def output(*rows: tuple[int, int, bytes], route: bytes = W, stream: int = 0) -> events.Output:
    """Rows of client, id and lines."""
    clients, ids, texts = zip(*rows)
    count = len(rows)
    sizes = array("I", [len(LABEL) + len(text) for text in texts])
    return events.Output(
        route, array("q", clients), array("q", ids), array("B", [stream] * count), array("I", [len(LABEL)] * count),
        sizes, b"".join(LABEL + text for text in texts),
    )  # fmt: skip


def printed(*rows: tuple[int, bytes], route: bytes = C, stream: int = 0, dropped: int = 0) -> tuple[object, ...]:
    """The output that was sent to a client: rows of id and lines."""
    return ("output", route, [(task_id, stream, LABEL, text) for task_id, text in rows], dropped)


def outstanding(core, incarnation: int = 11) -> int:
    client = core.scheduler.tables.clients.find(incarnation)
    return client.sent_bytes - client.received_bytes


def test_each_client_gets_the_output_of_its_tasks(core):
    core.client(C2, 12)
    core.feed(output((11, 1, b"one"), (12, 1, b"other"), (11, 2, b"two\nthree"), stream=1))
    assert core.take() == [
        printed((1, b"one"), (2, b"two\nthree"), stream=1),
        printed((1, b"other"), route=C2, stream=1),
    ]
    assert core.scheduler.counts.dropped_output_rows == 0


def test_output_goes_before_later_results(core):
    row = running(core)
    core.feed(output((11, 1, b"one")), results_event(W, [row]))
    assert core.take() == [printed((1, b"one")), resolved(1)]


def test_rows_that_stream_output_have_a_flag_and_their_names(core):
    core.submit(C, [1], stream_output=True, name="fit")
    assert core.take()[-1][3:] == ({0: (effects.FLAG_STREAM_OUTPUT, 0, 0)}, {0: "fit"})
    core.results(W, [(11, 1, 1)])
    core.submit(C, [2, 3], name="Wurzel")
    assert core.take()[-1][3:] == ({0: "Wurzel", 1: "Wurzel"},)
    core.died(A, 22)
    core.worker(W2, 23, agent=33)
    assert core.take()[-1][3:] == ({0: "Wurzel", 1: "Wurzel"},)


def test_output_for_unknown_clients_and_clients_that_have_left(core):
    core.client(C2, 12)
    core.goodbye(C2)
    core.feed(output((99, 1, b"one"), (12, 1, b"two")))
    assert core.take() == []
    assert core.scheduler.counts.dropped_output_rows == 2


def test_only_workers_may_send_output(core):
    core.feed(output((11, 1, b"one"), route=C))
    assert core.take() == [("error", C, "only a worker may send this message")]
    core.feed(output((11, 1, b"one"), route=W2))
    assert core.take() == [("hello wanted", W2)]


def test_a_client_that_acknowledges_nothing_gets_half_a_window_of_output(core):
    line = bytes(HALF // 4 - len(LABEL))
    for _ in range(4):
        core.feed(output((11, 1, line)))
    assert core.take() == [printed((1, line))] * 4
    assert outstanding(core) == HALF
    core.feed(output((11, 1, b"lost"), (11, 2, b"too")))
    assert core.take() == []
    assert core.scheduler.counts.dropped_output_rows == 2
    assert outstanding(core) == HALF


def test_unread_output_does_not_stop_results(core):
    core.feed(output((11, 1, bytes(HALF - len(LABEL)))))
    core.take()
    for number in range(3):
        row = running(core, number)
        core.results(W, [row])
        assert core.take() == [resolved(number)]
    assert not core.scheduler.tables.clients.find(11).pause_reasons


def test_the_next_output_has_the_number_of_dropped_bytes(core):
    core.feed(output((11, 1, bytes(HALF - len(LABEL)))))
    core.feed(output((11, 1, b"lost")))
    core.take()
    core.scheduler.tables.clients.find(11).received_bytes = HALF  # as if it had acknowledged something else
    core.feed(output((11, 1, b"there")))
    assert core.take() == [printed((1, b"there"), dropped=4)]
    core.feed(output((11, 1, b"again")))
    assert core.take() == [printed((1, b"again"))]


def test_an_acknowledgement_brings_the_number_of_dropped_bytes(core):
    core.feed(output((11, 1, bytes(HALF - len(LABEL)))))
    core.feed(output((11, 1, b"lost")))
    core.take()
    core.received(C, HALF // 2)
    assert core.take() == [printed(dropped=4)]
    core.received(C, HALF)
    assert core.take() == []


def test_a_new_connection_resets_the_window(core):
    core.feed(output((11, 1, bytes(HALF - len(LABEL)))))
    core.take()
    core.client(b"client again", 11)
    core.feed(output((11, 1, b"there")))
    assert core.take() == [printed((1, b"there"), route=b"client again")]
