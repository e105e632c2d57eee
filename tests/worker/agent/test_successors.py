"""Workers beside workers that have suspended tasks, and workers that end for good."""

from __future__ import annotations

import signal

from tests.worker.agent.agent_host import BUSY, IDLE, Host, only, sent

from scaler_client.protocol.messages import CHANGE_BESIDE, CHANGE_END, ChangeWorker, WorkerDied
from scaler_worker.agent.effects import SignalWorker, StartWorker
from scaler_worker.agent.worker_table import CHANGE_SECONDS, MIN_BESIDE


def beside(host: Host, incarnation: int) -> list[StartWorker]:
    host.states += [IDLE] * MIN_BESIDE
    return only(StartWorker, host.receive(ChangeWorker(incarnation, "", CHANGE_BESIDE)))


def test_a_worker_starts_beside_another() -> None:
    host = Host(workers=2)
    assert beside(host, 101) == [StartWorker(2, "w0", 103)]
    assert host.receive(ChangeWorker(101, "", CHANGE_END)) == [SignalWorker(101, kill=False)]
    assert host.receive(ChangeWorker(101, "", CHANGE_END)) == [], "once"
    effects = host.ends(101, status=-signal.SIGTERM)
    assert only(StartWorker, effects) == [] and sent(effects) == []
    assert beside(host, 102) == [StartWorker(3, "w1", 104)]


def test_the_agent_keeps_its_workers() -> None:
    host = Host(workers=2)
    assert host.receive(ChangeWorker(101, "", CHANGE_END)) == []
    assert host.receive(ChangeWorker(999, "", CHANGE_BESIDE)) == []
    assert only(StartWorker, host.ends(101, status=-9)) == [StartWorker(0, "w0", 103)]


def test_the_number_of_workers_is_bounded() -> None:
    host = Host(workers=1)
    started = [beside(host, 101) for _ in range(MIN_BESIDE + 1)]
    assert [len(each) for each in started] == [1] * MIN_BESIDE + [0]


def test_a_worker_beside_another_dies() -> None:
    """It is started again, as any other."""
    host = Host(workers=1)
    beside(host, 101)
    host.now += 5
    effects = host.ends(102, status=-11, state=BUSY)
    assert [type(each) for each in sent(effects)] == [WorkerDied]
    assert only(StartWorker, effects) == [StartWorker(1, "w0", 103)]


def test_a_worker_that_does_not_end_for_good_is_killed() -> None:
    host = Host(workers=1)
    beside(host, 101)
    host.receive(ChangeWorker(101, "", CHANGE_END))
    assert only(SignalWorker, host.at(CHANGE_SECONDS + 0.1)) == [SignalWorker(101, kill=True)]
    effects = host.ends(101, status=-9, state=BUSY)
    assert [type(each) for each in sent(effects)] == [WorkerDied]
    assert only(StartWorker, effects) == []
