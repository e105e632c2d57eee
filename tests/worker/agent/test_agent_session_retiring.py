"""A retiring agent: its workers get no new tasks, and it ends when no task runs any more."""

from __future__ import annotations

import logging

from scaler_client.protocol.messages import Goodbye, HeartbeatEcho, Welcome
from scaler_worker.agent.effects import Exit, Send, SendHeartbeat, SignalWorker, StartWorker

from .agent_host import BUSY, Host, lines, only, sent


def retiring(seconds: float = 30.0, **options: float) -> Host:
    host = Host(workers=2, retire_seconds=seconds, **options)  # type: ignore[arg-type]
    (beat,) = only(SendHeartbeat, host.session.retire("SIGTERM", host.now))
    assert beat.is_retiring
    return host


def leave(host: Host) -> None:
    host.ends(101)
    host.echo()
    assert host.ends(102) == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_workers_end_when_the_scheduler_reports_them_drained() -> None:
    host = retiring()
    assert host.receive(HeartbeatEcho(1)) == []
    assert only(SignalWorker, host.with_echoes_until(10.0)) == []
    assert only(SignalWorker, host.receive(HeartbeatEcho(99, is_drained=True))) == [
        SignalWorker(101, kill=False),
        SignalWorker(102, kill=False),
    ]
    leave(host)


def test_heartbeats_of_a_retiring_agent_are_more_frequent() -> None:
    host = retiring()
    beats = only(SendHeartbeat, host.with_echoes_until(2.1))
    assert len(beats) == 4 and all(beat.is_retiring for beat in beats)


def test_a_quiet_connection_is_not_silent_because_the_agent_retires() -> None:
    """The last answer may be older than three of the shorter intervals."""
    host = Host(workers=2, retire_seconds=30.0)
    host.with_echoes_until(2.0)
    for seconds in (2.5, 3.0, 3.5, 3.9):  # it wakes up, so the time counts
        host.at(seconds)
        assert host.session.tick(host.now) == []
    effects = host.session.retire("SIGTERM", host.now) + host.session.tick(host.now)
    effects += host.receive(HeartbeatEcho(1 << 20)) + host.with_echoes_until(8.0)
    assert [line for line in lines(effects, logging.WARNING) if "answer" in line] == []


def test_a_retiring_agent_logs_a_silent_scheduler() -> None:
    host = retiring()
    assert lines(host.at(1.4), logging.WARNING) == []
    assert "no answer from a scheduler" in lines(host.at(2.1), logging.WARNING)[0]


def test_tasks_may_run_for_the_retire_time_only() -> None:
    host = retiring(seconds=5.0)
    host.states[0] = BUSY
    assert only(SignalWorker, host.at(4.9)) == []
    assert len(only(SignalWorker, host.at(5.1))) == 2


def test_a_second_signal_ends_a_retiring_agent_at_once() -> None:
    host = retiring()
    assert len(only(SignalWorker, host.session.retire("SIGTERM", host.now))) == 2
    leave(host)


def test_without_a_retire_time_the_agent_ends_at_once() -> None:
    host = Host(workers=2)
    assert len(only(SignalWorker, host.session.retire("SIGTERM", host.now))) == 2
    leave(host)


def test_a_new_scheduler_learns_that_the_agent_retires() -> None:
    host = retiring()
    host.receive(Welcome(2, "0.9", 5000, 60.0))
    assert all(beat.is_retiring for beat in only(SendHeartbeat, host.at(2.0)))


def test_a_worker_that_dies_while_retiring_is_reported_not_replaced() -> None:
    host = retiring()
    effects = host.ends(101, status=-9, state=BUSY)
    assert [type(message).__name__ for message in sent(effects)] == ["WorkerDied"]
    assert only(StartWorker, effects + host.at(20.0)) == []


def test_a_worker_ended_by_the_same_signal_is_no_death() -> None:
    host = retiring()
    assert host.ends(101, status=0) == []
    assert only(Send, host.ends(102, status=-15)) == []
    assert only(Send, host.echo()) == [Send(Goodbye("SIGTERM"))]


def test_a_retiring_agent_ends_with_its_last_worker() -> None:
    host = retiring()
    host.ends(101, status=-9, state=BUSY)
    assert not only(Exit, host.ends(102, status=-9))
    assert Exit(0) in host.echo()


def test_a_retiring_agent_gives_up_a_lost_scheduler() -> None:
    host = retiring(seconds=1000.0, death_timeout=30.0)
    effects = host.at(31.0)
    assert len(only(SignalWorker, effects)) == 2
