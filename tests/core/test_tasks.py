"""A task's way through the core: submit, dispatch, results, cancel, death. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.core.harness import MILLISECOND, SECOND, Core, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch import TARGET_BYTES

C, C2, W, W2, A = b"client", b"client 2", b"worker", b"worker 2", b"agent"


def joined(core: Core) -> int:
    """A client with a function, an agent with one worker; the client's number."""
    number = core.client(C, 11)
    core.agent(A, 33)
    core.worker(W, 22, agent=33)
    core.function(C, 1, b"f")
    return number


def dispatched(core: Core) -> dict[bytes, int]:
    """How many tasks went to whom; takes everything."""
    counts: dict[bytes, int] = {}
    for sent in core.take():
        if sent[0] == "dispatch":
            counts[sent[1]] = counts.get(sent[1], 0) + len(sent[2])
    return counts


# ----------------------------------------------------------------------------------------------------- there and back


def test_one_task(core):
    number = joined(core)
    core.submit(C, [5], body=b"argument")
    assert core.take() == [("function", W, 1, b"f"), ("dispatch", W, [(number, 5, 1, 1, b"argument")])]
    core.started(W, (number, 5, 1))
    assert core.take() == [("started", C, [5])]
    core.results(W, [(number, 5, 1)], body=b"value")
    assert core.take() == [("resolved", C, [(5, effects.OUTCOME_VALUE, b"value")])]
    assert core.scheduler.counts.resolved == 1
    assert core.tables()["dispatched"] == core.tables()["waiting"] == 0


def test_every_outcome_of_a_worker_goes_on_as_it_is(core):
    number = joined(core)
    for outcome in range(effects.WORKER_OUTCOMES):
        core.submit(C, [outcome])
        core.take()
        core.results(W, [(number, outcome, 1)], outcome=outcome, body=b"%d" % outcome)
        assert core.take() == [("resolved", C, [(outcome, outcome, b"%d" % outcome)])]


def test_tasks_wait_for_the_first_worker(core):
    number = core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2], body=b"x")
    assert core.tables()["waiting"] == 2
    assert core.take() == []
    core.worker(W, 22)
    assert core.take_dispatched(W) == [(number, 1, 1)]


def test_payloads_of_all_kinds_stay_with_their_tasks(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    bodies = [b"a", b"L" * 100, b"", b"M", b"cc", b"dddd"]
    core.feed(submit_event(C, [1, 2, 3, 4, 5, 6], [2], bodies, [1, 3]))
    (sent,) = core.take()
    assert sent == ("dispatch", W, [(number, task_id, 1, 2, body) for task_id, body in enumerate(bodies, 1)])
    # Answers likewise, out of order, with late ones in between.
    ids, answers = [6, 2, 99, 1, 4], [b"six", b"", b"late", b"one", b""]
    large = {1: b"TWO" * 50, 4: b"FOUR"}
    count = len(ids)
    core.feed(
        events.Results(
            W, array("I", [number] * count), array("Q", ids), array("I", [1] * count), array("B", [0] * count),
            array("Q", [1000] * count), array("I", [len(answer) for answer in answers]), b"".join(answers), large,
        )
    )  # fmt: skip
    assert core.take() == [("resolved", C, [(6, 0, b"six"), (2, 0, b"TWO" * 50), (1, 0, b"one"), (4, 0, b"FOUR")])]
    assert core.scheduler.counts.late == 1
    core.died(A, 22)  # the rest goes again, payloads and all
    core.worker(W2, 23)
    assert [sent for sent in core.take() if sent[0] == "dispatch"] == [
        ("dispatch", W2, [(number, 3, 2, 2, b""), (number, 5, 2, 2, b"cc")])
    ]


def test_requeued_large_payloads(core):
    number = joined(core)
    core.submit(C, [1], body=b"L" * 1000, large=[0])
    core.take()
    core.died(A, 22)
    core.worker(W2, 23)
    assert core.take()[-1] == ("dispatch", W2, [(number, 1, 2, 1, b"L" * 1000)])


def test_answers_for_several_clients_in_one_message(core):
    first = joined(core)
    second = core.client(C2, 12)
    core.function(C2, 9, b"f")
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.function(C2, 8, b"g")
    core.submit(C2, [1, 2], 8)
    rows = [(first, 1, 1), (second, 1, 1), (first, 2, 1), (second, 2, 1)]
    assert sorted(core.take_dispatched(W)) == sorted(rows)
    sizes = [1, 2, 3, 4]
    core.feed(
        events.Results(
            W, array("I", [row[0] for row in rows]), array("Q", [row[1] for row in rows]), array("I", [1] * 4),
            array("B", [0, 1, 2, 3]), array("Q", [1] * 4), array("I", sizes), b"abbcccdddd", {},
        )
    )  # fmt: skip
    assert core.take() == [
        ("resolved", C, [(1, 0, b"a"), (2, 2, b"ccc")]),
        ("resolved", C2, [(1, 1, b"bb"), (2, 3, b"dddd")]),
    ]


def test_results_that_nobody_waits_for(core):
    number = joined(core)
    core.worker(W2, 23)
    core.submit(C, [1])
    (row,) = core.take_dispatched(W2)
    core.results(W, [row])  # of a worker that does not hold it
    core.results(W2, [(number, 1, 2)])  # of an attempt that has not been
    core.results(W2, [(number, 2, 1)])  # of a task that is not
    core.results(W2, [(99, 1, 1)])  # of a client that is not
    assert core.take() == []
    assert core.scheduler.counts.late == 4
    core.results(W2, [row, row])
    assert core.take() == [("resolved", C, [(1, 0, b"")])]
    assert core.scheduler.counts.late == 5


def test_started_of_what_is_not_there(core):
    number = joined(core)
    core.worker(W2, 23)
    core.submit(C, [1])
    core.take_dispatched(W2)
    core.started(W, (number, 1, 1))
    core.started(W2, (number, 1, 2), (number, 2, 1), (99, 1, 1))
    assert core.take() == []
    core.started(W2, (number, 1, 1))
    core.started(W2, (number, 1, 1))
    assert core.take() == [("started", C, [1])] * 2


# ---------------------------------------------------------------------------------------------------- adaptive prefetch


def test_an_unknown_function_gets_one_task_a_worker(core):
    joined(core)
    core.worker(W2, 23)
    core.submit(C, range(100))
    assert dispatched(core) == {W: 1, W2: 1}


@pytest.mark.parametrize(
    "nanoseconds, expected", [(0, 1000), (1000, 1000), (10 * MILLISECOND, 2), (10 * SECOND, 1), (1 << 63, 1)]
)
def test_a_worker_holds_about_one_round_trip_of_work(core, nanoseconds, expected):
    joined(core)
    core.teach(C, W, 2, b"g", nanoseconds, 0)
    core.submit(C, range(1, 5001), 2)
    assert dispatched(core) == {W: expected}


def test_the_queue_size_bounds_the_prefetch(make_core):
    core = make_core(queue_size=7)
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 5001), 2)
    assert dispatched(core) == {W: 7}


def test_a_worker_of_queue_size_one(make_core):
    core = make_core(queue_size=1)
    number = joined(core)
    core.submit(C, range(5))
    for task_id in range(5):
        assert core.take_dispatched(W) == [(number, task_id, 1)]
        core.results(W, [(number, task_id, 1)])
        core.take_one("resolved", C, [(task_id, 0, b"")])


def test_a_busy_worker_is_given_more_before_it_runs_dry(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 3001), 2)
    rows = core.take_dispatched(W)
    assert len(rows) == 1000
    core.results(W, rows[:100], 1000)
    assert [sent[0] for sent in core.take()] == ["resolved"]  # it still has plenty
    core.results(W, rows[100:600], 1000)
    assert dispatched(core) == {W: 600}
    assert number == 1


def test_few_tasks_are_spread_over_idle_workers(core):
    joined(core)
    core.teach(C, W, 2, b"g", MILLISECOND, 0)
    for number in range(1, 8):
        core.worker(b"worker %d" % number, 100 + number)
    core.submit(C, range(1, 9), 2)
    counts = dispatched(core)
    assert len(counts) == 8
    assert set(counts.values()) == {1}


def test_single_tasks_go_to_the_worker_that_was_busy_last(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, [1], 2)
    ((kind, first, rows),) = [sent for sent in core.take() if sent[0] == "dispatch"]
    for task_id in range(2, 6):
        core.results(first, [row[:3] for row in rows])
        core.take()
        core.submit(C, [task_id], 2)
        ((kind, route, rows),) = core.take()
        assert (kind, route) == ("dispatch", first)


def test_no_ops_that_fit_one_message_are_not_spread(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, range(1, 9), 2)
    assert list(dispatched(core).values()) == [8]


@pytest.mark.parametrize("large", [[], [0]])
def test_large_payloads_are_not_piled_up_at_a_worker(core, large):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    body = bytes(TARGET_BYTES // 4 + 1)
    core.feed(*[submit_event(C, [row + 1], [2], [body], large) for row in range(12)])
    held = core.take_dispatched(W)
    assert len(held) == 4
    core.results(W, held)
    assert {sent[0]: len(sent[2]) for sent in core.take()} == {"dispatch": 4, "resolved": 4}


# ------------------------------------------------------------------------------------------------------------ functions


def test_a_function_goes_once_to_each_worker_whoever_brought_it(core):
    first = joined(core)
    core.worker(W2, 23)
    second = core.client(C2, 12)
    core.function(C2, 40, b"f")
    core.submit(C, [1, 2])
    functions = [sent for sent in core.take() if sent[0] == "function"]
    assert sorted(functions) == [("function", W, 1, b"f"), ("function", W2, 1, b"f")]
    for route in (W, W2):
        for client in (first, second):
            core.results(route, [(client, 1, 1), (client, 2, 1)])
    core.take()
    core.submit(C2, [1, 2], 40)
    assert {sent[0] for sent in core.take()} == {"dispatch"}
    assert core.tables()["functions"] == 1


def test_a_function_is_forgotten_when_nobody_names_it(core):
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    core.take()
    core.client(C2, 12)
    core.function(C2, 5, b"f")
    core.forget(C, 1)
    assert core.take() == []
    core.forget(C2, 5, 5, 6)
    assert core.take() == [("forget", W, [1])]
    assert core.tables()["functions"] == 0
    core.submit(C, [2])
    assert core.take() == [("error", C, "submit names function 1, which this client has not sent")]
    core.function(C, 1, b"f")
    core.submit(C, [2])
    assert core.take()[0] == ("function", W, 2, b"f")


def test_a_function_forgotten_while_tasks_wait_stays_for_them(core):
    number = joined(core)
    core.submit(C, [1, 2], body=b"x")
    core.take()
    core.forget(C, 1)
    core.function(C, 1, b"another")  # the number is free for another one
    assert core.take() == []
    core.results(W, [(number, 1, 1)])
    assert core.take() == [("dispatch", W, [(number, 2, 1, 1, b"x")]), ("resolved", C, [(1, 0, b"")])]
    core.results(W, [(number, 2, 1)])
    assert core.take() == [("forget", W, [1]), ("resolved", C, [(2, 0, b"")])]


def test_a_function_of_two_numbers_is_forgotten_once(core):
    joined(core)
    core.function(C, 2, b"f")
    core.submit(C, [1], 2)
    core.results(W, core.take_dispatched(W))
    core.take()
    core.goodbye(C)
    assert core.take() == [("forget", W, [1])]


def test_a_function_dropped_and_taken_up_again_in_one_turn(core):
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    core.take()
    again = events.Function(C, 1, "f", "cloudpickle", b"digest of f", b"f")
    core.feed(events.ForgetFunctions(C, array("I", [1])), again)
    assert core.take() == []
    core.feed(events.ForgetFunctions(C, array("I", [1])), again, events.ForgetFunctions(C, array("I", [1])))
    assert core.take() == [("forget", W, [1])]


def test_a_function_number_is_taken(core):
    joined(core)
    core.function(C, 1, b"f")  # the same again is fine
    core.function(C, 1, b"another")
    assert core.take() == [("error", C, "function number 1 is taken")]


def test_a_submit_that_names_an_unknown_function_changes_nothing(core):
    joined(core)
    core.feed(submit_event(C, [1, 2], [1, 7], [b"", b""], []))
    assert core.take() == [("error", C, "submit names function 7, which this client has not sent")]
    assert core.tables()["waiting"] == 0


def test_mixed_functions_in_one_batch(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.teach(C, W, 3, b"h", 1000, 1)
    core.feed(submit_event(C, [10, 11, 12, 13], [2, 2, 3, 2], [b"a", b"", b"cc", b"d"], [3]))
    (sent,) = core.take()
    expected = [(10, 2, b"a"), (11, 2, b""), (12, 3, b"cc"), (13, 2, b"d")]
    functions = {2: 2, 3: 3}
    assert sent[:2] == ("dispatch", W)
    assert [(row[1], functions[row[3]], row[4]) for row in sent[2]] == expected
    core.forget(C, 2, 3)
    core.results(W, [(number, 10, 1), (number, 11, 1), (number, 13, 1)])
    assert core.take() == [("forget", W, [2]), ("resolved", C, [(task_id, 0, b"") for task_id in (10, 11, 13)])]
    core.results(W, [(number, 12, 1)])
    assert core.take() == [("forget", W, [3]), ("resolved", C, [(12, 0, b"")])]


# ------------------------------------------------------------------------------------------------------------- fairness


def test_two_clients_take_turns(core):
    first = joined(core)
    core.teach(C, W, 2, b"g", 10 * MILLISECOND, 0)
    second = core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C, range(1, 10_001), 2)
    core.submit(C2, range(10), 2)
    rows = core.take_dispatched(W)
    order = [row[0] for row in rows]
    while second in order[-3:] or len(order) < 20:
        core.results(W, rows[:1], 10 * MILLISECOND)
        rows = rows[1:] + [row[:3] for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
        order.append(rows[-1][0])
    assert order[:24].count(second) >= 8  # its ten are through while the other's thousands wait
    assert first in order


# ---------------------------------------------------------------------------------------------------------------- death


def test_only_the_running_task_pays(make_core):
    core = make_core(task_retries=0)
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3], 2)
    core.take()
    core.died(A, 22, (number, 2, 1))
    (sent,) = core.take()
    assert [row[:2] for row in sent[2]] == [(2, effects.OUTCOME_WORKER_DIED)]
    assert core.tables()["waiting"] == 2
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(number, 1, 2), (number, 3, 2)]


def test_retries_and_what_the_client_is_told(make_core):
    core = make_core(task_retries=2)
    number = joined(core)
    core.submit(C, [1])
    for attempt in (1, 2, 3):
        assert core.take_dispatched(W) == [(number, 1, attempt)]
        core.died(A, 21 + attempt, (number, 1, attempt), peak_bytes=attempt << 20)
        if attempt < 3:
            core.worker(W, 22 + attempt, agent=33)
    (sent,) = core.take()
    deaths = [
        f"attempt {attempt} on host (pid 4711): signal 9 (SIGKILL), peak memory {attempt} MiB" for attempt in (1, 2, 3)
    ]
    text = f"function 1: the worker died in each of 3 attempts: {'; '.join(deaths)}"
    assert sent == ("resolved", C, [(1, effects.OUTCOME_WORKER_DIED, text.encode())])
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0


def test_a_task_that_only_waited_in_queues_never_pays(make_core):
    core = make_core(task_retries=0)
    number = joined(core)
    core.submit(C, [1])
    for attempt in range(1, 10):
        assert core.take_dispatched(W) == [(number, 1, attempt)]
        core.died(A, 21 + attempt)
        core.worker(W, 22 + attempt, agent=33)
    assert core.take_dispatched(W) == [(number, 1, 10)]


@pytest.mark.parametrize("running", [(1, 1, 2), (1, 9, 1), (99, 1, 1)])
def test_a_death_that_names_what_the_worker_does_not_run(make_core, running):
    core = make_core(task_retries=0)
    joined(core)
    core.submit(C, [1])
    core.take()
    core.died(A, 22, running)
    assert core.tables()["waiting"] == 1


def test_a_worker_dies_twice_or_was_never_known(core):
    joined(core)
    core.submit(C, [1])
    core.take()
    core.died(A, 22, (1, 1, 1))
    core.died(A, 22, (1, 1, 1))
    core.died(A, 99)
    core.worker(W2, 23, agent=77)
    core.take()
    core.died(A, 23)  # another agent's
    assert core.tables()["workers"] == 1


def test_requeued_tasks_go_first_and_in_their_order(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 10 * MILLISECOND, 0)
    core.submit(C, range(1, 7), 2)
    assert [row[1] for row in core.take_dispatched(W)] == [1, 2]
    core.died(A, 22)
    for name in range(4):
        core.worker(b"worker %d" % name, 100 + name)
    rows = [row[:3] for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
    assert rows[:2] == [(number, 1, 2), (number, 2, 2)]
    assert sorted(row[1] for row in rows) == [1, 2, 3, 4, 5, 6]


def test_a_worker_dies_after_its_client_left(core):
    number = joined(core)
    core.submit(C, [1])
    core.take()
    core.goodbye(C)
    core.died(A, 22, (number, 1, 1))
    assert core.tables()["functions"] == core.tables()["clients by number"] == 0


# --------------------------------------------------------------------------------------------------------------- cancel


def cancelled(*ids: int) -> tuple[object, ...]:
    return ("resolved", C, [(task_id, effects.OUTCOME_CANCELLED, b"") for task_id in ids])


def test_cancel_a_waiting_task(core):
    number = joined(core)
    core.submit(C, [1, 2, 3, 4], body=b"x")
    assert core.take_dispatched(W) == [(number, 1, 1)]
    core.cancel(C, 3)
    assert core.take() == [cancelled(3)]
    core.cancel(C, 3)  # twice: the answer has been given
    core.results(W, [(number, 1, 1)], 1000)
    assert core.take() == [
        ("dispatch", W, [(number, 2, 1, 1, b"x"), (number, 4, 1, 1, b"x")]),
        ("resolved", C, [(1, 0, b"")]),
    ]


def test_cancel_what_a_worker_holds(core):
    number = joined(core)
    core.submit(C, [1])
    core.take()
    core.cancel(C, 1)
    core.started(W, (number, 1, 1))
    core.cancel(C, 1)
    assert core.take() == [("cancel refused", C, [1]), ("started", C, [1]), ("cancel refused", C, [1])]


def test_cancel_a_requeued_task(core):
    number = joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.died(A, 22)
    core.cancel(C, 1)
    assert core.take() == [cancelled(1)]
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(number, 2, 1)]


def test_cancel_unknown_and_finished_tasks_says_nothing(core):
    number = joined(core)
    core.submit(C, [5])
    core.results(W, core.take_dispatched(W))
    core.take()
    core.cancel(C, 5, 6, 4, (1 << 63) + 1)
    core.cancel(C)
    assert core.take() == []
    assert number == 1


def test_cancel_many_in_all_states_at_once(core):
    number = joined(core)
    core.submit(C, [1, 2, 3, 4, 5, 6], large=[2], body=b"x")
    assert core.take_dispatched(W) == [(number, 1, 1)]
    core.cancel(C, 6, 1, 3, 3, 2, 99)
    assert core.take() == [("cancel refused", C, [1]), cancelled(6, 3, 2)]
    core.results(W, [(number, 1, 1)], 1000)
    assert core.take()[0] == ("dispatch", W, [(number, 4, 1, 1, b"x"), (number, 5, 1, 1, b"x")])


def test_cancel_and_submit_in_one_turn(core):
    joined(core)
    core.feed(submit_event(C, [1], [1], [b""], []), events.Cancel(C, array("Q", [1])))
    assert core.take() == [cancelled(1)]
    assert core.tables()["waiting"] == 0


def test_cancel_everything_without_a_worker_keeps_nothing(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    for begin in range(0, 100, 10):
        core.submit(C, range(begin, begin + 10), body=b"x" * 1000)
    core.cancel(C, *range(100))
    assert core.take() == [cancelled(*range(100))]
    (client,) = core.scheduler.clients
    assert not client.batches
    core.forget(C, 1)
    assert core.tables()["functions"] == 0


def test_a_cancelled_task_submitted_again_waits_again(core):
    joined(core)
    core.submit(C, [1, 2, 3])
    core.take()
    core.cancel(C, 2)
    core.submit(C, [2, 3])
    assert core.take() == [cancelled(2)]
    assert core.tables()["waiting"] == 2


def test_another_clients_task_of_the_same_id_is_not_cancelled(core):
    joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.client(C2, 12)
    core.cancel(C2, 1, 2)
    assert core.take() == []
    assert core.tables()["waiting"] == 1


def test_known_rows_of_a_repeated_submit_are_dropped(core):
    number = joined(core)
    core.feed(submit_event(C, [1, 2, 3], [1], [b"a", b"bb", b"L"], [2]))
    core.take()
    core.feed(submit_event(C, [2, 3, 4], [1], [b"bb", b"L", b"d"], [1]))
    assert core.tables()["waiting"] == 3
    core.results(W, [(number, 1, 1)], 1000)
    rows = [row for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
    assert [(row[1], row[4]) for row in rows] == [(2, b"bb"), (3, b"L"), (4, b"d")]
