"""Waiting tasks are found by id, in any order of their batches. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from scaler_scheduler.core.events import DEFAULT_OPTIONS
from scaler_scheduler.core.state.batches import Batch, BatchQueue
from scaler_scheduler.core.state.functions import Function


def batch_of(*ids):
    function = Function(1, b"digest", "f", "cloudpickle", b"")
    return Batch(array("q", ids), [function], array("I", [0] * len(ids)), b"", {}, DEFAULT_OPTIONS, 0.0)


def test_a_waiting_task_is_found_in_its_batch():
    queue = BatchQueue()
    late, dense, sparse = batch_of(5000), batch_of(*range(1000, 3000)), batch_of(3, 1_000_000, 2**62)
    for batch in (late, dense, sparse):
        queue.append(batch)
    assert queue.find(5000) == (late, 0)
    assert queue.find(1000) == (dense, 0)
    assert queue.find(2047) == (dense, 1047)
    assert queue.find(2**62) == (sparse, 2)
    assert queue.find(4) is None
    assert queue.find(999) is None
    dense.cancelled.add(1047)
    assert queue.find(2047) is None
    dense.next = 10
    assert queue.find(1009) is None
    assert queue.find(1010) == (dense, 10)


def test_the_index_is_empty_when_the_queue_is():
    queue = BatchQueue()
    for first in range(0, 5000, 7):
        queue.append(batch_of(first, first + 3))
    while queue:
        gone = queue.first
        queue.remove_first()
        assert queue.find(gone.ids[0]) is None
    assert not queue._blocks


def test_a_row_from_the_middle_of_a_batch_has_its_own_bytes():
    function = Function(1, b"digest", "f", "cloudpickle", b"")
    sizes = array("I", [1, 2, 0, 3, 1])
    batch = Batch(array("q", range(5)), [function], sizes, b"abbdddE", {2: b"LARGE"}, DEFAULT_OPTIONS, 0.0)
    assert [batch.size_of(row) for row in range(5)] == [1, 2, 5, 3, 1]
    payload, start, size, is_large = batch.take_row(3)
    assert (payload[start : start + size], is_large) == (b"ddd", False)
    assert batch.take_row(2) == (b"LARGE", 0, 5, True)
    assert batch.waiting_rows() == [0, 1, 4]
    assert batch.row_of(3) == -1
    assert batch.run_length(10) == 2
    batch.next, batch.position = 2, 3
    batch.skip_cancelled()
    assert (batch.next, batch.position) == (4, 6)
    payload, start, size, is_large = batch.take_row(4)
    assert payload[start : start + size] == b"E"
    batch.skip_cancelled()
    assert batch.is_empty and not batch.cancelled
