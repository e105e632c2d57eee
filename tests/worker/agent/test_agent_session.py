"""The decisions of a host agent: messages, process events and a clock go in, effects come out."""

from __future__ import annotations

import logging

import pytest
from tests.worker.agent.agent_host import AGAIN, BUSY, HELLO, IDLE, UNREADY, WELCOME, Host, lines, only, sent

from scaler_client.protocol.messages import (
    Dispatch,
    Error,
    Goodbye,
    HeartbeatEcho,
    Hello,
    HelloWanted,
    Message,
    Refused,
    Started,
    Welcome,
    WorkerDied,
)
from scaler_worker.agent.effects import Effect, Exit, Log, Send, SendHeartbeat, SignalWorker, StartWorker, TakeTicket
from scaler_worker.agent.session import AgentSession, AgentSettings, HostAccess
from scaler_worker.fork_server.process_events import DAMAGED, DAMAGED_STATUS, SCHEDULER_LOST_STATUS
from scaler_worker.fork_server.state_page import WorkerState


def test_start_says_hello_and_starts_every_worker() -> None:
    host = Host(workers=2, welcomed=False)
    assert sent(host.start_effects) == [HELLO]
    assert only(StartWorker, host.start_effects) == [StartWorker(0, "w0", 101), StartWorker(1, "w1", 102)]


def test_hello_is_repeated_until_there_is_a_welcome() -> None:
    host = Host(welcomed=False)
    assert sent(host.at(1.9)) == []
    assert sent(host.at(5.0)) == [HELLO, HELLO]
    host.receive(WELCOME)
    assert sent(host.at(9.0)) == []


def test_a_rejected_agent_logs_it_once_and_logs_its_acceptance() -> None:
    host = Host(welcomed=False)
    error = Error("there are 2 peers already")
    line = "the scheduler does not accept this agent yet; the agent keeps trying: there are 2 peers already"
    assert lines(host.receive(error), logging.WARNING) == [line]
    assert lines(host.receive(error), logging.WARNING) == []
    assert lines(host.receive(WELCOME), logging.WARNING) == [], "the welcome is logged anyway, but not as a warning"
    host.receive(HelloWanted())
    assert lines(host.receive(error), logging.WARNING) == [line]
    assert lines(host.receive(WELCOME), logging.WARNING) == ["the scheduler at tcp://s:1 accepts this agent now"]
    assert lines(host.receive(error), logging.WARNING)[0].startswith("the scheduler dropped a message of this agent")


def test_heartbeats_name_the_living_workers() -> None:
    host = Host(workers=2)
    assert only(SendHeartbeat, host.at(2.5)) == [SendHeartbeat(2, ((101, 1010), (102, 1020)))]
    host.ends(101, status=-9)
    assert only(SendHeartbeat, host.at(4.5)) == [SendHeartbeat(3, ((102, 1020), (103, 1030)))]


def test_a_scheduler_that_welcomes_the_agent_gets_a_heartbeat_at_once() -> None:
    """It says how much room the host has for values."""
    host = Host(workers=1)
    assert only(SendHeartbeat, host.first_beat) == [SendHeartbeat(1, ((101, 1010),))]
    host.receive(WELCOME)
    assert only(SendHeartbeat, host.at(1.9)) == [], "the same scheduler knows it"
    host.receive(Welcome(WELCOME.incarnation + 1, "0.9", 6000, 60.0))
    assert len(only(SendHeartbeat, host.at(1.9))) == 1


def test_a_worker_whose_process_is_not_known_yet_is_in_no_heartbeat() -> None:
    settings = AgentSettings("tcp://s:1", ["w0"], 2.0, 300.0)
    session = AgentSession(HELLO, settings, HostAccess(lambda: 101, lambda _: IDLE), 0.0)
    session.start(0.0)
    session.received(WELCOME, 0.0)
    assert only(SendHeartbeat, session.tick(2.0)) == [SendHeartbeat(1, ())]


def test_a_short_lease_makes_heartbeats_more_frequent() -> None:
    host = Host(welcomed=False, interval=10.0)
    host.receive(Welcome(1, "0.9", 5000, 3.0))
    assert len(only(SendHeartbeat, host.at(3.5))) == 4, "one at once, and one a second"


def test_hello_wanted_is_answered_at_once_and_only_once() -> None:
    host = Host()
    host.at(2.5)
    assert sent(host.receive(HelloWanted())) == [AGAIN]
    assert sent(host.receive(HelloWanted())) == []
    assert sent(host.at(4.5)) == [AGAIN], "still without a welcome: hello instead of a heartbeat"


def test_the_agent_continues_with_a_new_scheduler() -> None:
    host = Host()
    effects = host.receive(Welcome(1, "0.9", 6000, 60.0))
    assert sent(effects) == [] and only(StartWorker, effects) == [] and only(SignalWorker, effects) == []
    assert "new one" in lines(effects, logging.WARNING)[0]


def test_a_death_is_reported_and_the_worker_replaced_at_once() -> None:
    host = Host(workers=2)
    host.at(1.5)
    effects = host.ends(101, status=-9, state=BUSY, peak=3 << 20)
    assert sent(effects) == [WorkerDied(101, 1010, "signal 9 (SIGKILL)", 3 << 20, 4, 55, 2)]
    assert only(StartWorker, effects) == [StartWorker(0, "w0", 103)]
    (line,) = lines(effects, logging.INFO)
    for part in ("w0", "1010", "signal 9 (SIGKILL)", "3 MiB", "task 4/55", "attempt 2"):
        assert part in line


def test_a_worker_that_ran_nothing_is_reported_without_a_task() -> None:
    host = Host()
    assert sent(host.ends(102, status=1)) == [WorkerDied(102, 1020, "exit code 1", 0, 0, 0, 0)]


def test_a_worker_that_a_stop_has_damaged_is_replaced_at_once() -> None:
    host = Host()
    effects = host.ends(102, status=DAMAGED_STATUS)
    assert sent(effects) == [WorkerDied(102, 1020, DAMAGED)]
    assert only(StartWorker, effects) == [StartWorker(1, "w1", 103)]
    assert not lines(effects, logging.WARNING)


def test_a_repeated_end_is_ignored() -> None:
    host = Host()
    assert host.ends(101, status=1)
    assert host.ends(101, status=1) == []


def test_deaths_before_the_welcome_are_reported_after_it() -> None:
    host = Host(welcomed=False)
    assert sent(host.ends(101, status=1)) == []
    assert sent(host.receive(WELCOME)) == [WorkerDied(101, 1010, "exit code 1")]


def test_a_report_is_repeated_after_each_welcome_until_two_later_heartbeats_are_echoed() -> None:
    """The scheduler may be killed before the clients have read its answers to the report."""
    host = Host()
    host.at(2.5)
    died = WorkerDied(101, 1010, "exit code 1")
    assert sent(host.ends(101, status=1)) == [died]
    host.receive(HeartbeatEcho(2))  # of the heartbeat before the report: does not confirm it
    assert sent(host.receive(WELCOME)) == [died]
    assert only(SendHeartbeat, host.at(4.5))[0].sequence == 3
    host.receive(HeartbeatEcho(3))
    assert sent(host.receive(WELCOME)) == [died]
    assert only(SendHeartbeat, host.at(6.5))[0].sequence == 4
    host.receive(HeartbeatEcho(4))
    assert sent(host.receive(WELCOME)) == []


def test_a_new_ticket_of_the_data_address_is_taken_and_named_in_the_next_hello() -> None:
    host = Host()
    assert only(TakeTicket, host.receive(HeartbeatEcho(0, ticket="new"))) == [TakeTicket("new")]
    assert only(TakeTicket, host.receive(HeartbeatEcho(0))) == []
    host.at(2.5)
    (hello,) = sent(host.receive(HelloWanted()))
    assert isinstance(hello, Hello) and hello.data.ticket == "new"


def test_workers_that_keep_failing_to_start_back_off() -> None:
    host = Host(workers=1)
    starts: list[float] = []
    errors: list[str] = []
    incarnation = 101
    while host.now < 1030.0:
        effects = host.ends(incarnation, status=1, state=UNREADY)
        while not only(StartWorker, effects):
            effects += host.with_echoes_until(host.session.deadline() - 1000.0)
        incarnation = only(StartWorker, effects)[0].incarnation
        starts.append(host.now - 1000.0)
        errors += lines(effects, logging.ERROR)
    assert starts[:7] == [0.0, 0.25, 0.75, 1.75, 3.75, 7.75, 12.75]
    assert starts[-1] - starts[-2] == 5.0
    assert len(errors) == 1 and "w0" in errors[0] and "exit code 1" in errors[0], "plainly, and once"


def test_a_new_cause_and_the_end_of_failed_starts_are_logged() -> None:
    host = Host(workers=1)
    assert len(lines(host.ends(101, status=1, state=UNREADY), logging.ERROR)) == 1
    assert "exit code 2" in lines(host.ends(102, status=2, state=UNREADY), logging.ERROR)[0]
    assert lines(host.with_echoes_until(5.0), logging.WARNING) == ["all workers start again"]
    assert only(StartWorker, host.ends(103, status=-9)), "and the next death is made good at once"


def test_a_worker_killed_in_its_first_second_after_it_was_ready_did_not_fail_to_start() -> None:
    host = Host(workers=1)
    for incarnation in range(101, 120):
        assert only(StartWorker, host.ends(incarnation, status=-9, state=IDLE))


def test_a_failed_start_of_a_process_is_repeated_and_not_reported() -> None:
    host = Host(workers=1)
    error = "could not be started: [Errno 11] Resource temporarily unavailable"
    effects = host.ends(101, error=error)
    assert sent(effects) == []
    assert error in lines(effects, logging.ERROR)[0]
    assert only(StartWorker, effects)


def test_a_worker_that_lost_the_scheduler_is_no_death() -> None:
    host = Host(workers=1)
    effects = host.ends(101, status=SCHEDULER_LOST_STATUS)
    assert sent(effects) == [] and lines(effects, logging.WARNING) == []
    assert only(StartWorker, effects) == []
    assert only(StartWorker, host.at(1.0)) == [StartWorker(0, "w0", 102)]


def test_stop_ends_workers_then_says_goodbye_then_exits() -> None:
    host = Host(workers=2)
    effects = host.session.stop("SIGTERM", host.now)
    assert only(SignalWorker, effects) == [SignalWorker(101, kill=False), SignalWorker(102, kill=False)]
    assert only(SendHeartbeat, effects) == [SendHeartbeat(2, ((101, 1010), (102, 1020)), is_retiring=True)]
    assert host.echo() == host.ends(101) == []
    effects = host.ends(102, status=-15)
    assert effects == [Send(Goodbye("SIGTERM")), Exit(0)], "no death, no restart"
    assert host.session.tick(host.now + 10) == []


def test_stop_kills_after_the_grace_and_then_leaves() -> None:
    host = Host(workers=1)
    host.session.stop("SIGTERM", host.now)
    assert only(SignalWorker, host.at(1.99)) == []
    assert only(SignalWorker, host.at(2.0)) == [SignalWorker(101, kill=True)]
    effects = host.at(5.0)
    assert host.now - 1000.0 < 4.0
    assert effects[-2:] == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_a_second_signal_kills_at_once() -> None:
    host = Host(workers=1)
    host.session.stop("SIGINT", host.now)
    assert host.session.stop("SIGINT", host.now) == [SignalWorker(101, kill=True)]
    assert host.ends(101, status=-9) == []
    assert host.echo()[-1] == Exit(0)


def test_stop_while_a_worker_waits_to_be_started_again() -> None:
    host = Host(workers=1)
    host.ends(101, status=SCHEDULER_LOST_STATUS)
    host.session.stop("SIGTERM", host.now)
    assert host.echo() == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_no_scheduler_for_the_death_timeout() -> None:
    host = Host(workers=1, death_timeout=30.0, welcomed=False)
    effects = host.at(29.9)
    assert len(lines(effects, logging.WARNING)) == 1, "silence is logged once"
    effects = host.at(30.0)
    assert lines(effects, logging.ERROR) == ["no scheduler answered at tcp://s:1 for 30 s: giving up"]
    assert only(SignalWorker, effects) == [SignalWorker(101, kill=False)]
    assert host.ends(101)[-1] == Exit(1)


@pytest.mark.parametrize("answer", [WELCOME, HelloWanted(), HeartbeatEcho(1), Error("x"), Goodbye("restart")])
def test_any_answer_restarts_the_death_timeout(answer: Message) -> None:
    host = Host(workers=1, death_timeout=30.0)
    host.at(29.0)
    assert "answers again" in lines(host.receive(answer), logging.WARNING)[0]
    assert lines(host.at(58.9), logging.ERROR) == []
    assert len(lines(host.at(59.0), logging.ERROR)) == 1


def test_time_while_the_agent_was_stopped_is_no_silence() -> None:
    host = Host(workers=1, death_timeout=30.0)
    host.with_echoes_until(10.0)
    host.now += 600.0
    assert only(SignalWorker, host.session.tick(host.now)) == []
    assert len(lines(host.at(641.0), logging.ERROR)) == 1, "but silence after it is"


def test_refused_names_both_versions_and_exits_with_status_1() -> None:
    host = Host(workers=1, welcomed=False)
    effects = host.receive(Refused("protocolVersion", "too old", 9, "4.2"))
    (line,) = lines(effects, logging.ERROR)
    assert all(part in line for part in ("4.2", "protocol version 9", "0.1.0", "protocol version 1", "tcp://s:1"))
    assert host.ends(101)[-1] == Exit(1)


def test_after_the_schedulers_goodbye_the_agent_waits_for_another() -> None:
    host = Host(workers=1)
    effects = host.receive(Goodbye("SIGTERM"))
    assert only(SignalWorker, effects) == []
    assert "SIGTERM" in lines(effects, logging.WARNING)[0]
    assert sent(host.at(2.5)) == [AGAIN]


def test_errors_are_logged_and_other_messages_ignored() -> None:
    host = Host()
    assert "bad column" in lines(host.receive(Error("bad column")), logging.WARNING)[0]
    assert [type(effect) for effect in host.receive(Dispatch([], [], [], [], []))] == [Log]


def test_the_death_of_the_fork_server_is_the_death_of_all_workers() -> None:
    host = Host(workers=2)
    host.states[0] = BUSY
    effects = host.session.fork_server_lost()
    cause = "the agent's fork server died"
    assert sent(effects) == [WorkerDied(101, 1010, cause, 0, 4, 55, 2), WorkerDied(102, 1020, cause), Goodbye(cause)]
    assert effects[-1] == Exit(1)


def test_the_death_of_the_fork_server_while_the_agent_ends() -> None:
    host = Host(workers=1)
    host.session.stop("SIGTERM", host.now)
    assert host.session.fork_server_lost() == [Send(Goodbye("SIGTERM")), Exit(0)]


def test_a_task_that_runs_from_one_heartbeat_to_the_next_is_reported():
    """The worker may be unable to report it."""
    host = Host(workers=3, interval=2.0)
    host.states[1] = BUSY
    host.states[2] = WorkerState(4, 56, 1, ready=True)
    assert only_started(host.at(2.5)) == []
    host.states[2] = WorkerState(4, 57, 1, ready=True)
    assert only_started(host.at(4.5)) == [Started([55], [4], [2])]
    host.states[1] = IDLE
    assert only_started(host.at(6.5)) == [Started([57], [4], [1])]
    host.states[2] = IDLE
    assert only_started(host.at(20)) == []


def test_running_tasks_are_not_reported_before_the_welcome():
    host = Host(workers=1, interval=2.0, welcomed=False)
    host.states[0] = BUSY
    assert only_started(host.at(10)) == []


def only_started(effects: list[Effect]) -> list[Message]:
    return [message for message in sent(effects) if isinstance(message, Started)]
