"""What waits for credit, found by id."""

from __future__ import annotations

from scaler_client.protocol.messages import Object, Submit
from scaler_client.session.submit_queue import SubmitQueue


def batch(*ids: int) -> tuple[Submit, int]:
    return Submit(list(ids), [1], [b"x"] * len(ids), None), 10


def sent(queue: SubmitQueue) -> list[int]:
    """The first ids of all that waits, in the order in which it goes."""
    found = []
    while queue:
        message = queue.first()[0]
        found.append(message.id if isinstance(message, Object) else message.ids[0])
        queue.replace_first(None)
    return found


def test_an_object_with_a_lower_id_than_waiting_tasks():
    """The client sends the result of an earlier task, because a new task reads it."""
    queue = SubmitQueue()
    queue.add([batch(10, 11, 13)], 5, ())
    queue.add([(Object(12, [b"r"]), 1)], 0, ())
    queue.add([(Object(4, [b"r"]), 1)], 0, ())
    queue.add([batch(20)], 0, (4,))
    assert [number for number in range(25) if queue.has(number)] == [4, 10, 11, 12, 13, 20]
    assert queue.has_up_to(4) and not queue.has_up_to(3)
    assert queue.keep(13) and not queue.keep(14)
    assert sent(queue) == [10, 4, 12, 20]
    assert not queue.has_up_to(99)


def test_a_task_goes_behind_an_object_that_it_reads():
    queue = SubmitQueue()
    queue.add([batch(1)], 5, ())
    queue.add([(Object(2, [b"r"]), 1)], 0, ())
    queue.add([batch(3)], 5, (2,))
    assert sent(queue) == [1, 2, 3]


def test_the_rest_of_a_batch_is_found_behind_many_that_have_left():
    queue = SubmitQueue()
    queue.add([batch(number) for number in range(10)], 0, ())
    queue.add([(Object(100, [b"r"]), 1)], 0, ())
    for _ in range(8):
        queue.replace_first(None)
    queue.add([batch(101, 102, 103)], 0, ())
    queue.replace_first(None)
    assert queue.has(9) and queue.has(100) and queue.has(103) and not queue.has(8)
    queue.replace_all(lambda waiting: waiting if isinstance(waiting[0], Submit) else None)
    assert not queue.has(100) and sent(queue) == [9, 101]
