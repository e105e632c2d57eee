"""How an agent ends workers (by order, by memory limit) and itself."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from tests.worker.agent.agent_host import AGAIN, BUSY, HELLO, IDLE, MIB, TASK, UNREADY, WELCOME, Host, lines, only, sent

from scaler_client.protocol import messages
from scaler_client.protocol.messages import Goodbye, HeartbeatEcho, HelloWanted, TaskAttempt, Welcome, WorkerDied
from scaler_worker.agent.effects import (
    Effect,
    Exit,
    MeasureMemory,
    Send,
    SendHeartbeat,
    SendObjects,
    SignalWorker,
    StartWorker,
)
from scaler_worker.fork_server.process_events import PRELOAD_FAILED_STATUS
from scaler_worker.fork_server.state_page import WorkerState

# ------------------------------------------------------------------------------------------------------- failed starts


def test_the_cause_of_a_failed_start_is_logged_once_in_one_line() -> None:
    host = Host(workers=1)
    state = WorkerState(start_error="ValueError: no (/x.py:3)")
    effects = host.ends(101, status=1, state=state)
    line = "worker w0 (process 1010) failed to start: ValueError: no (/x.py:3); trying again, at most 5 s apart"
    assert lines(effects, logging.ERROR) == [line]
    assert sent(effects) == [WorkerDied(101, 1010, "ValueError: no (/x.py:3)")]
    assert lines(host.ends(102, status=1, state=state), logging.ERROR) == []


def test_a_start_that_fails_late_is_a_failed_start() -> None:
    host = Host(workers=1)
    host.with_echoes_until(60.0)
    assert lines(host.ends(101, status=1, state=WorkerState(start_error="E")), logging.ERROR)
    assert only(StartWorker, host.ends(102, status=1, state=WorkerState(start_error="E"))) == []


def preload_fails(host: Host, incarnation: int) -> list[Effect]:
    state = WorkerState(start_error="--preload a:b: ValueError: no (/x.py:3)")
    return host.ends(incarnation, status=PRELOAD_FAILED_STATUS, state=state)


def test_a_preload_that_fails_in_the_first_worker_ends_the_agent() -> None:
    host = Host(workers=2)
    host.states[:] = [UNREADY, UNREADY]
    effects = preload_fails(host, 101)
    line = "the first worker could not be prepared: --preload a:b: ValueError: no (/x.py:3): giving up"
    assert lines(effects, logging.ERROR) == [line]
    assert only(SignalWorker, effects) == [SignalWorker(102, kill=False)]
    effects = preload_fails(host, 102) + host.echo()
    assert sent(effects) == [Goodbye("preload failed")]
    assert only(Exit, effects) == [Exit(PRELOAD_FAILED_STATUS)]
    assert lines(effects, logging.ERROR) == [] == only(StartWorker, effects)


def test_a_preload_that_ends_its_process() -> None:
    host = Host(workers=1)
    host.states[:] = [UNREADY]
    effects = host.ends(101, status=-6, state=WorkerState(start_error="--preload a:b"))
    line = "the first worker could not be prepared: --preload a:b: signal 6 (SIGABRT): giving up"
    assert lines(effects, logging.ERROR) == [line]


def test_a_preload_that_fails_beside_a_ready_worker_is_repeated() -> None:
    host = Host(workers=2)
    effects = preload_fails(host, 101)
    assert only(StartWorker, effects) and not only(Exit, effects)
    assert "trying again" in lines(effects, logging.ERROR)[0]


def test_a_preload_that_has_worked_before_is_repeated() -> None:
    host = Host(workers=1)
    host.ends(101, status=-9)
    effects = preload_fails(host, 102)
    assert only(StartWorker, effects) and not only(Exit, effects)


# --------------------------------------------------------------------------------------------------- tasks to be ended


def end_worker(incarnation: int, task: TaskAttempt = TASK) -> messages.EndWorker:
    return messages.EndWorker(incarnation, task, "cancelled")


def test_a_worker_that_runs_the_task_is_killed_with_the_reason() -> None:
    host = Host()
    host.states[1] = BUSY
    assert host.receive(end_worker(102)) == [SignalWorker(102, kill=True)]
    effects = host.ends(102, status=-9, state=BUSY, peak=5 * MIB)
    assert sent(effects) == [WorkerDied(102, 1020, "stopped: cancelled", 5 * MIB, *TASK)]
    assert "died: stopped: cancelled, peak memory 5 MiB" in lines(effects, logging.INFO)[0]
    assert only(StartWorker, effects) == [StartWorker(1, "w1", 103)]
    assert sent(host.ends(103, status=-9)) == [WorkerDied(103, 1030, "signal 9 (SIGKILL)")], "a new death"


def test_another_scheduler_is_not_told_of_the_task_of_a_worker_that_was_to_end() -> None:
    """It does not know that this task was stopped: the worker's death would count as a failed attempt."""
    host = Host()
    host.states[1] = BUSY
    host.receive(end_worker(102))
    (died,) = sent(host.ends(102, status=-9, state=BUSY))
    assert sent(host.receive(WELCOME)) == [died], "its scheduler knows it"
    for _ in range(2):
        assert sent(host.receive(replace(WELCOME, incarnation=WELCOME.incarnation + 1))) == [
            WorkerDied(102, 1020, "stopped: cancelled")
        ]


@pytest.mark.parametrize("state", [IDLE, UNREADY, WorkerState(5, 55, 2), WorkerState(4, 56, 2), WorkerState(4, 55, 3)])
def test_a_worker_that_runs_another_task_is_not_killed(state: WorkerState) -> None:
    host = Host()
    host.states[1] = state
    assert host.receive(end_worker(102)) == []
    assert sent(host.ends(102, status=1)) == [WorkerDied(102, 1020, "exit code 1")]


def test_a_worker_that_has_ended_already_is_not_killed() -> None:
    host = Host()
    host.ends(102, status=-9, state=BUSY)
    host.states[1] = BUSY  # the next worker in this slot runs the task
    assert host.receive(end_worker(102)) == []
    assert host.receive(end_worker(999)) == []


def test_a_kill_does_not_blame_the_next_task() -> None:
    host = Host()
    host.states[0] = BUSY
    host.receive(end_worker(101))
    effects = host.ends(101, status=-9, state=WorkerState(4, 56, 1, ready=True))
    assert sent(effects) == [WorkerDied(101, 1010, "stopped: cancelled")]


def test_a_repeated_order_to_end_a_worker_changes_nothing() -> None:
    host = Host()
    host.states[0] = BUSY
    for _ in range(2):
        assert host.receive(end_worker(101)) == [SignalWorker(101, kill=True)]
    assert len(sent(host.ends(101, status=-9, state=BUSY))) == 1


# -------------------------------------------------------------------------------------------------------------- memory


def test_workers_with_a_limit_are_measured_four_times_a_second() -> None:
    assert only(MeasureMemory, Host().with_echoes_until(10.0)) == []
    host = Host(workers=2, memory_limit=512 * MIB)
    measured = only(MeasureMemory, host.with_echoes_until(10.1))
    assert measured == 40 * [MeasureMemory(((101, 1010), (102, 1020)))]


def test_a_worker_above_the_memory_limit_is_killed() -> None:
    host = Host(memory_limit=512 * MIB)
    host.states[0] = BUSY
    effects = host.measure((101, 600 * MIB), (102, 512 * MIB))
    assert effects == [SignalWorker(101, kill=True)]
    assert host.measure((101, 700 * MIB)) == [], "one kill is enough"
    effects = host.ends(101, status=-9, state=BUSY, peak=700 * MIB)
    cause = "memory limit of 512 MiB exceeded: 600 MiB"
    assert sent(effects) == [WorkerDied(101, 1010, cause, 700 * MIB, *TASK)]
    assert cause in lines(effects, logging.INFO)[0]


def test_a_task_that_began_after_the_measurement_is_not_blamed() -> None:
    host = Host(memory_limit=512 * MIB)
    host.with_echoes_until(5.0)
    assert host.measure((101, 600 * MIB)) == [SignalWorker(101, kill=True)]
    effects = host.ends(101, status=-9, state=BUSY)
    assert sent(effects) == [WorkerDied(101, 1010, "memory limit of 512 MiB exceeded: 600 MiB")]
    assert only(StartWorker, effects) and lines(effects, logging.ERROR) == []


def test_workers_too_large_from_the_start_back_off() -> None:
    host = Host(workers=1, memory_limit=10 * MIB)
    starts = 0
    while host.now < 1010.0:
        effects = host.with_echoes_until(host.session.deadline() - 1000.0)
        for measure in only(MeasureMemory, effects):
            for incarnation, _ in measure.workers:
                host.measure((incarnation, 20 * MIB))
                effects += host.ends(incarnation, status=-9)
        starts += len(only(StartWorker, effects))
    assert starts < 8


def test_a_size_of_an_ended_worker_is_ignored() -> None:
    host = Host(memory_limit=512 * MIB)
    host.ends(101, status=1)
    assert host.measure((101, 600 * MIB)) == []


# ---------------------------------------------------------------------------------------------------------- connections


def test_a_new_connection_gets_a_heartbeat_at_once() -> None:
    host = Host()
    host.at(1.0)
    assert host.session.connected(host.now) == [SendHeartbeat(2, ((101, 1010), (102, 1020)))]
    assert sent(host.receive(HelloWanted())) == [AGAIN]
    host.receive(Welcome(1, "0.9", 6000, 60.0))
    assert len(only(SendHeartbeat, host.at(1.0))) == 1
    assert only(SendHeartbeat, host.at(2.9)) == [], "the next one an interval later"
    assert len(only(SendHeartbeat, host.at(3.0))) == 1


def test_a_new_connection_without_a_welcome_gets_one_hello() -> None:
    host = Host(welcomed=False)
    assert host.session.connected(host.now) == []
    assert sent(host.at(0.05)) == [] and sent(host.at(0.15)) == [HELLO]
    host.at(1.0)
    assert host.session.connected(host.now) == [Send(HELLO)]


# ------------------------------------------------------------------------------------------------------------ retiring


def busy_host() -> Host:
    """An agent that was ended while a worker ran a task."""
    host = Host(workers=2)
    host.states[0] = BUSY
    assert only(SignalWorker, host.session.stop("SIGTERM", host.now)) == [
        SignalWorker(101, False),
        SignalWorker(102, False),
    ]
    host.at(0.5)
    assert host.ends(102) == []
    return host


def last_beat(effects: list[Effect]) -> SendHeartbeat:
    return only(SendHeartbeat, effects)[-1]


def test_the_goodbye_follows_the_workers_last_messages() -> None:
    host = busy_host()
    assert host.ends(101) == []
    assert host.receive(HeartbeatEcho(1)) == [], "what it answers was sent before the workers' end"
    beat = last_beat(host.at(0.6))
    assert beat.workers == () and beat.is_retiring
    assert host.receive(HeartbeatEcho(beat.sequence, is_drained=True)) == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_the_goodbye_follows_last_results_that_come_late() -> None:
    """A worker's connection is slower than the agent's: the scheduler still counts a task as held by the worker."""
    host = busy_host()
    assert host.ends(101) == []
    beat = last_beat(host.at(0.6))
    assert host.receive(HeartbeatEcho(beat.sequence)) == []
    later = last_beat(host.at(0.7))
    assert later.sequence > beat.sequence
    assert host.receive(HeartbeatEcho(later.sequence, is_drained=True)) == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_an_echo_of_an_earlier_heartbeat_does_not_count() -> None:
    host = busy_host()
    early = last_beat(host.at(2.0))
    assert early.workers == ((101, 1010),)
    assert host.ends(101) == []
    assert host.receive(HeartbeatEcho(early.sequence)) == []
    late = last_beat(host.at(2.1))
    assert late.workers == ()
    assert host.receive(HeartbeatEcho(early.sequence)) == []
    assert host.receive(HeartbeatEcho(late.sequence, is_drained=True))[-1] == Exit(0)


def test_an_ending_agent_waits_briefly_for_a_silent_scheduler() -> None:
    host = busy_host()
    host.ends(101)
    assert last_beat(host.at(0.99)).workers == ()
    assert host.at(1.01)[-2:] == [Send(Goodbye("SIGTERM")), Exit(0)]
    assert host.echo() == []


def test_an_ending_agent_renews_leases_until_the_end() -> None:
    host = Host(workers=1, interval=0.5)
    host.states[0] = BUSY
    effects = host.session.stop("SIGTERM", host.now)
    beats = only(SendHeartbeat, effects + host.at(1.9))
    assert beats == [SendHeartbeat(number, ((101, 1010),), is_retiring=True) for number in (2, 3, 4, 5)]


def test_the_goodbye_covers_workers_that_were_killed() -> None:
    host = busy_host()
    assert SignalWorker(101, kill=True) in host.at(2.0)
    assert host.ends(101, status=-9, state=BUSY) == [], "no death: the task counts none"
    host.at(2.1)
    assert host.echo()[-2:] == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_the_goodbye_follows_the_requested_objects() -> None:
    host = Host(workers=1)
    host.session.stop("SIGTERM", host.now)
    fetch = messages.FetchObjects([7], [4])
    assert only(SendObjects, host.receive(fetch)) == [SendObjects(((4, 7),), 0)]
    host.is_sending = True
    assert host.ends(101) == host.echo() == []
    assert not only(Exit, host.at(2.9))
    host.is_sending = False
    assert host.session.tick(host.now)[-2:] == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_an_ending_agent_waits_a_limited_time_for_objects() -> None:
    host = Host(workers=1)
    host.session.stop("SIGTERM", host.now)
    host.is_sending = True
    host.ends(101)
    host.echo()
    effects = host.at(5.0)
    assert effects[-2:] == [Send(Goodbye("SIGTERM")), Exit(0)]
    assert host.now - 1000.0 < 3.5


def test_slow_workers_leave_no_time_for_objects() -> None:
    host = busy_host()
    host.is_sending = True
    host.at(3.2)
    host.ends(101, status=-9)
    host.at(3.3)
    host.echo()
    assert Exit(0) in host.at(3.8)


def test_an_ending_agent_ignores_orders_to_end_a_worker() -> None:
    host = busy_host()
    assert host.receive(end_worker(101)) == []


@pytest.mark.parametrize("number, words", [(1, "ending 1 worker"), (2, "ending 2 workers")])
def test_a_number_of_workers_in_words(number: int, words: str) -> None:
    host = Host(workers=number)
    assert lines(host.session.stop("SIGTERM", host.now), logging.INFO) == [f"SIGTERM: {words}"]
