"""Real worker processes against a fake scheduler: tests that need a main thread, signals, or a process' end."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.waiting import wait_until
from tests.worker.fake_scheduler import WAIT_SECONDS, FakeScheduler, of_rows
from tests.worker.worker_process import (
    CHAIN,
    child,
    child_that_takes_long,
    count_forks_that_survive_sigterm,
    fork_a_child_that,
    fork_a_child_that_waits,
    grow,
    hold_lock_of_logging,
    import_and_spin,
    import_as_if_it_could_be_stopped,
    import_slow_module,
    joined_worker,
    link_of_chain,
    outlast,
    parent,
    parent_with_an_alarm,
    run_in_a_pool,
    say,
    say_while_waiting,
    sleep,
    spin,
    thread_of_task,
    wait_in_threading,
    write_slow_module,
)

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import FLAG_PROFILE, FLAG_REPORT_START, Outcome
from scaler_worker.fork_server.process_events import DAMAGED_STATUS


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


@pytest.fixture
def process(scheduler: FakeScheduler) -> Iterator[subprocess.Popen[bytes]]:
    with joined_worker(scheduler) as process:
        yield process


def assert_stopped(answer: tuple[int, Any]) -> None:
    assert answer[0] == Outcome.EXCEPTION and isinstance(answer[1], TaskStoppedError)


def suspended_parent(scheduler: FakeScheduler, number: int, name: str) -> None:
    """Suspend a parent in the main thread: the next tasks run in another thread."""
    scheduler.send_function(8, parent)
    scheduler.send_function(9, child)
    scheduler.send_function(7, thread_of_task)
    scheduler.dispatch(8, (number, name))
    scheduler.dispatch(7, (number + 1, None))
    assert scheduler.answers(1) == {number + 1: (0, "other")}


# ---------------------------------------------------------------------------------------------------- interruption


@pytest.mark.parametrize("fn", [sleep, spin])
def test_a_sleeping_and_a_busy_task_are_stopped(scheduler: FakeScheduler, process: Any, fn: Any) -> None:
    scheduler.send_function(3, fn)
    scheduler.dispatch(3, (10, 60.0))
    scheduler.await_start(10)
    scheduler.stop(10)
    assert_stopped(scheduler.answers(1)[10])
    scheduler.dispatch(1, (11, 3))
    assert scheduler.answers(1) == {11: (0, 9)}


def test_a_task_in_another_thread_is_stopped(scheduler: FakeScheduler, process: Any) -> None:
    suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, spin)
    scheduler.dispatch(3, (20, 60.0))
    scheduler.dispatch(1, (21, 3))
    scheduler.await_start(20)
    scheduler.stop(20)
    answers = scheduler.answers(2)
    assert_stopped(answers[20])
    assert answers[21] == (0, 9)
    scheduler.dispatch(9, (22, "first"))
    assert scheduler.answers(2) == {22: (0, "first released"), 10: (0, "first on")}


def test_a_suspended_task_of_the_main_thread_is_stopped(scheduler: FakeScheduler, process: Any) -> None:
    suspended_parent(scheduler, 10, "first")
    scheduler.stop(10)
    assert_stopped(scheduler.answers(1)[10])
    scheduler.dispatch(7, (12, None))
    assert scheduler.answers(1) == {12: (0, "main")}


def test_a_task_that_ignores_its_stop_has_no_value(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, outlast)
    scheduler.dispatch(3, (10, 60.0))
    scheduler.await_start(10)
    scheduler.stop(10)
    assert_stopped(scheduler.answers(1)[10])


@pytest.mark.parametrize("in_main_thread", [True, False])
def test_only_the_named_task_is_stopped(scheduler: FakeScheduler, process: Any, in_main_thread: bool) -> None:
    """A stop at any time around the end of its task never hits the next task."""
    if not in_main_thread:
        suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, spin)
    chance = random.Random(7)
    for number in range(1000, 1120, 2):
        # Above 10 ms the long-task watcher handles the stop while the task runs; it looks every 20 ms.
        scheduler.dispatch(3, (number, chance.uniform(0.008, 0.034)), (number + 1, 0.0))
        scheduler.stop(number)
        answers = scheduler.answers(2)
        assert answers[number + 1][0] == Outcome.VALUE
        # Whether the stop hits depends on the moment. Other tests show that a running task is hit.
        if answers[number][0] != Outcome.VALUE:
            assert_stopped(answers[number])


def test_a_stop_of_a_task_that_does_not_run_does_nothing(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.dispatch(1, (10, 3))
    assert scheduler.answers(1) == {10: (0, 9)}
    scheduler.stop(10, 99)
    scheduler.dispatch(2, (11, 0.05))
    scheduler.stop(10, 99)
    assert scheduler.answers(1) == {11: (0, None)}


# ------------------------------------------------------------------------------------------------ unsafe points


@pytest.mark.parametrize("in_main_thread", [True, False])
def test_an_import_ends_before_its_task_is_stopped(
    scheduler: FakeScheduler, process: Any, tmp_path: Path, in_main_thread: bool
) -> None:
    write_slow_module(tmp_path, 0.3)
    if not in_main_thread:
        suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, import_and_spin)
    scheduler.send_function(4, import_slow_module)
    scheduler.dispatch(3, (20, str(tmp_path)))
    scheduler.await_start(20)
    scheduler.stop(20)
    assert_stopped(scheduler.answers(1)[20])
    scheduler.dispatch(4, (21, str(tmp_path)))
    assert scheduler.answers(1) == {21: (0, 17)}


def test_a_process_whose_import_was_interrupted_ends(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Its task is answered. Queued and suspended tasks are not. The worker says no goodbye: its agent reports its end,
    so that the suspended tasks count an attempt."""
    write_slow_module(tmp_path, 60.0)
    suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, import_as_if_it_could_be_stopped)
    scheduler.dispatch(3, (20, str(tmp_path)))
    scheduler.dispatch(1, (21, 3))
    scheduler.await_start(20)
    scheduler.stop(20)
    assert_stopped(scheduler.answers(1)[20])
    assert process.wait(WAIT_SECONDS) == DAMAGED_STATUS
    assert not [name for name, _ in scheduler.read_all(0) if name in ("results", "goodbye")]


def test_a_task_that_waits_in_a_module_of_the_standard_library_is_stopped(
    scheduler: FakeScheduler, process: Any
) -> None:
    scheduler.send_function(3, wait_in_threading)
    scheduler.dispatch(3, (10, None))
    scheduler.await_start(10)
    scheduler.stop(10)
    assert_stopped(scheduler.answers(1)[10])
    scheduler.dispatch(1, (11, 3))
    assert scheduler.answers(1) == {11: (0, 9)}


@pytest.mark.parametrize("in_main_thread", [True, False])
def test_a_stop_leaves_no_lock_of_logging_held(scheduler: FakeScheduler, process: Any, in_main_thread: bool) -> None:
    if not in_main_thread:
        suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, hold_lock_of_logging)
    for number in range(20, 40):
        # In another thread the task is stopped when the watcher finds it outside of logging. A thread that writes more
        # often than the interpreter switches threads (5 ms) is always found within the write; its process is killed.
        scheduler.dispatch(3, (number, 0.0 if in_main_thread else 0.02))
        scheduler.await_start(number)
        scheduler.stop(number)
        assert_stopped(scheduler.answers(1)[number])


# ------------------------------------------------------------------------------------------------------ waiting parents


def test_a_parents_own_signal_does_not_break_its_wait(scheduler: FakeScheduler, process: Any) -> None:
    """The signal comes while the parent waits for its children, and while it waits for its slot."""
    scheduler.send_function(3, parent_with_an_alarm)
    scheduler.send_function(4, child_that_takes_long)
    scheduler.dispatch(3, (10, None))
    scheduler.dispatch(4, (11, None))
    answers = scheduler.answers(2)
    assert answers[10] == (0, ["in the wait", "in the return"])
    scheduler.dispatch(1, (12, 3))
    assert scheduler.answers(1) == {12: (0, 9)}


def test_a_chain_of_parents_in_one_worker(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, link_of_chain)
    usage = psutil.Process(process.pid)
    scheduler.dispatch(1, (5000, 3))
    scheduler.answers(1)
    before = usage.memory_info().rss
    scheduler.dispatch(3, *((number, number) for number in range(CHAIN)))
    wait_until(lambda: usage.num_threads() > CHAIN)
    grown = usage.memory_info().rss - before
    scheduler.dispatch(3, (CHAIN, CHAIN))
    assert scheduler.answers(CHAIN + 1) == {number: (0, number) for number in range(CHAIN + 1)}
    assert grown < CHAIN * 200_000
    scheduler.send_function(4, thread_of_task)
    scheduler.dispatch(4, (6000, None))
    assert scheduler.answers(1) == {6000: (0, "main")}, "which signals can interrupt"
    wait_until(lambda: usage.num_threads() < 20)


def test_many_parents_wait_at_once(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, parent)
    scheduler.send_function(4, child)
    names = range(64)
    scheduler.dispatch(3, *((number, number) for number in names))
    scheduler.dispatch(4, *((100 + number, number) for number in names))
    answers = scheduler.answers(128)
    assert all(answers[number] == (0, f"{number} on") for number in names)


# -------------------------------------------------------------------------------------------------------------- the end


def test_sigterm_lets_the_running_task_finish(scheduler: FakeScheduler, process: subprocess.Popen[bytes]) -> None:
    scheduler.dispatch(2, (10, 2.0), (11, 60.0), flags=[FLAG_REPORT_START, 0])
    scheduler.await_start(10)
    process.terminate()
    assert scheduler.answers(1) == {10: (0, None)}
    scheduler.receive("goodbye")
    assert process.wait(WAIT_SECONDS) == 0


def test_sigterm_ends_an_idle_worker(scheduler: FakeScheduler, process: subprocess.Popen[bytes]) -> None:
    scheduler.dispatch(1, (10, 3))
    scheduler.answers(1)
    process.terminate()
    scheduler.receive("goodbye")
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.parametrize("busy", [True, False])
def test_sigterm_ends_a_worker_with_a_suspended_task(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], busy: bool
) -> None:
    suspended_parent(scheduler, 10, "first")
    if busy:
        scheduler.dispatch(2, (20, 0.2))
        scheduler.await_start(20)
    process.terminate()
    if busy:
        assert scheduler.answers(1) == {20: (0, None)}
    scheduler.receive("goodbye")
    assert process.wait(WAIT_SECONDS) == 0


def test_sigterm_ends_a_worker_with_a_suspended_task_in_a_thread(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes]
) -> None:
    suspended_parent(scheduler, 10, "first")
    scheduler.dispatch(8, (20, "second"))
    scheduler.dispatch(9, (21, "first"))
    assert scheduler.answers(2) == {21: (0, "first released"), 10: (0, "first on")}
    process.terminate()
    scheduler.receive("goodbye")
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_by_a_task_is_no_worker(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, fork_a_child_that_waits)
    scheduler.dispatch(3, (10, None))
    assert scheduler.answers(1) == {10: (0, -signal.SIGTERM)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("in_main_thread", [True, False])
def test_a_forked_child_that_returns_from_its_task_ends(
    scheduler: FakeScheduler, process: Any, tmp_path: Path, in_main_thread: bool
) -> None:
    """Only the worker answers the tasks, once each."""
    if not in_main_thread:
        suspended_parent(scheduler, 10, "first")
    scheduler.send_function(3, fork_a_child_that)
    whats = {20: ("returns", 0), 21: ("raises", 1), 22: ("exits", 7), 23: ("exits with a text", 1)}
    log = tmp_path / "log"
    scheduler.dispatch(3, *((number, (what, str(log))) for number, (what, _) in whats.items()))
    assert scheduler.answers(4) == {number: (0, status) for number, (_, status) in whats.items()}
    scheduler.dispatch(1, (30, 3))
    assert scheduler.answers(1) == {30: (0, 9)}
    assert not [name for name, _ in scheduler.read_all(0) if name == "results"]
    told = log.read_text()
    assert re.search(r"a child that task \S*fork_a_child_that has forked, returned from it: .* with status 0", told)
    assert "raised ValueError in it: it ends with status 1" in told and "ValueError: in the child" in told
    assert "the child is over" in told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_sigterm_ends_a_process_that_a_task_has_just_forked(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, count_forks_that_survive_sigterm)
    scheduler.dispatch(3, (10, 300))
    assert scheduler.answers(1) == {10: (0, 0)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_task_may_use_a_pool_of_processes(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, run_in_a_pool)
    scheduler.dispatch(3, (10, [-1, 2, -3]))
    assert scheduler.answers(1) == {10: (0, [1, 2, 3])}


# ------------------------------------------------------------------------------------------------------------- the rest


def test_the_cost_of_a_profiled_task(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, grow)
    scheduler.dispatch(3, (10, 1), (11, 100), flags=[0, FLAG_PROFILE])
    results = scheduler.receive("results")
    while 11 not in results["ids"]:
        assert results["cpuTimes"] == results["peaks"] == []
        results = scheduler.receive("results")
    row = results["ids"].index(11)
    assert 20_000_000 < results["cpuTimes"][row] < 10_000_000_000
    assert 10 << 20 < results["peaks"][row] < 10 << 30


def test_a_new_scheduler_at_the_same_address_gets_a_hello_at_once(scheduler: FakeScheduler, process: Any) -> None:
    """The worker's heartbeats are a minute apart."""
    scheduler.dispatch(2, (10, 1.0))
    scheduler.await_start(10)
    for is_busy in (True, False):
        scheduler.close()
        scheduler.__init__(scheduler.address)  # type: ignore[misc]
        scheduler.receive("heartbeat", 5.0)
        scheduler.say("helloWanted")
        hello = scheduler.welcome()
        assert (hello["running"]["ids"], hello["finished"]) == ([10], 0 if is_busy else 1)
        if is_busy:
            assert scheduler.answers(1) == {10: (0, None)}


def test_output_is_sent_before_the_results_of_its_tasks(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, say)
    scheduler.dispatch(3, (10, "one"), (11, "two"), (12, "three"), flags=[4, 0, 4])
    scheduler.answers(3)
    lines: list[str] = []
    while len(lines) < 4:
        output = scheduler.receive("output")
        ends = list(accumulate(of_rows(output, "sizes")))
        texts = [output["text"][begin:end].decode() for begin, end in zip([0, *ends], ends)]
        lines += [line for text, label in zip(texts, of_rows(output, "labels")) for line in text[label:].split("\n")]
    assert sorted(lines) == ["and half", "and half", "one", "three"]
    assert scheduler.received.index("output") < scheduler.received.index("results")
    last = len(scheduler.received) - 1 - scheduler.received[::-1].index("output")
    assert "results" in scheduler.received[last:], "no output behind the last results"


def test_output_of_a_suspended_task_has_its_own_name(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_function(3, say_while_waiting)
    scheduler.send_function(4, say)
    scheduler.dispatch(3, (10, "parent"), flags=[4])
    scheduler.dispatch(4, (11, "child"), flags=[4])
    scheduler.answers(1)
    scheduler.send_function(9, child)
    scheduler.dispatch(9, (12, "parent"))
    scheduler.answers(2)
    printed = ""
    while "goes on" not in printed:
        printed += scheduler.receive("output")["text"].decode()
    assert re.search(r"say_while_waiting#10parent waits", printed)
    assert re.search(r"say#11child", printed)
