"""The judge of the chaos: what explains that a task began again, and what does not."""

from __future__ import annotations

from tests.chaos.judge import OWN_DEATH_SECONDS, SURPRISE_SECONDS, Fault, unexplained
from tests.integration.executions import Note

KILLED = Fault("worker killed", 11.0, 11.0, frozenset({1}), is_end=True)
RESTARTED = Fault("scheduler ended", 11.0, 13.0)
CUT = Fault("network cut", 11.0, 18.0)


def judged(*lines: str, faults: tuple[Fault, ...] = ()) -> list[str]:
    """The tasks that began again without a reason. A line has an event, a process, a time and a task."""
    return [text.partition(" ")[0] for text in unexplained([Note(line) for line in lines], faults)]


def test_a_repeat_without_a_fault() -> None:
    assert judged("begin 1 10.0 a", "begin 2 12.0 a", "begin 1 12.0 b") == ["a"]


def test_a_killed_process() -> None:
    repeat = "begin 1 10.0 a", "begin 2 12.0 a"
    assert judged(*repeat, faults=(KILLED,)) == []
    assert judged("begin 3 10.0 a", "begin 2 12.0 a", faults=(KILLED,)) == ["a"], "another process was killed"
    assert judged("begin 1 11.01 a", "begin 2 12.0 a", faults=(KILLED,)) == [], "the signal came a moment later"


def test_an_answer_that_was_long_there() -> None:
    repeat = "begin 1 2.0 a", "end 1 3.0 a", "begin 2 12.0 a"
    assert judged(*repeat, faults=(KILLED,)) == ["a"]
    assert judged(*repeat, faults=(Fault("scheduler ended", 2.5, 11.5), KILLED)) == [], "it could not be taken"


def test_a_restart_explains_no_plain_task() -> None:
    assert judged("begin 1 10.0 a", "begin 2 14.0 a", faults=(RESTARTED,)) == ["a"]
    assert judged("begin 1 10.0 1-graph2-add3", "begin 2 14.0 1-graph2-add3", faults=(RESTARTED,)) == []
    assert judged("begin 1 10.0 a-gang.rank0", "begin 2 14.0 a-gang.rank0", faults=(RESTARTED,)) == []


def test_a_host_that_is_lost_while_a_graph_runs() -> None:
    """A lost node is made again, and so is what it reads."""
    repeat = "begin 1 12.0 1-graph2-add3", "begin 2 14.0 1-graph2-add3"
    killed = (Fault("agent killed", 10.0, 11.0, frozenset({3}), is_end=True),)
    assert judged(*repeat, faults=killed) == ["1-graph2-add3"], "before its first node"
    assert judged("begin 3 9.0 1-graph2-make0", *repeat, faults=killed) == []
    assert judged("begin 3 9.0 1-graph3-make0", *repeat, faults=killed) == ["1-graph2-add3"], "another graph"


def test_a_silence_of_a_lease() -> None:
    assert judged("begin 1 10.0 a", "begin 2 19.0 a", faults=(CUT,)) == []
    assert judged("begin 1 18.1 a", "begin 2 19.0 a", faults=(CUT,)) == [], "it was sent before the cut"
    assert judged("begin 1 18.1 a", "begin 2 19.0 a", faults=(Fault("network cut", 17.2, 18.0),)) == ["a"], "too short"
    assert judged("begin 1 21.0 a", "begin 2 22.0 a", faults=(CUT,)) == ["a"], "too late"


def test_a_gang_begins_again_with_each_member() -> None:
    first = "begin 1 10.0 a-gang.rank0", "begin 3 10.0 a-gang.rank1"
    second = "begin 4 12.0 a-gang.rank0", "begin 5 12.0 a-gang.rank1"
    assert judged(*first, *second, faults=(KILLED,)) == []
    assert len(judged(*first, *second)) == 2


def test_children_of_a_parent_that_began_again() -> None:
    repeat = "begin 2 10.5 a.0", "begin 3 13.0 a.0"
    assert judged("begin 1 10.0 a", *repeat, "begin 2 12.0 a", faults=(KILLED,)) == []
    assert judged("begin 1 10.0 a", *repeat, faults=(KILLED,)) == ["a.0"]
    late = "begin 1 10.0 a", "begin 2 12.0 a", "begin 2 12.1 a.0", "begin 3 12.2 a.0"
    assert judged(*late, faults=(KILLED,)) == [], "a child of the parent that has died"


def test_a_task_that_ends_its_process() -> None:
    """The first one is a surprise for the tasks that wait in its process. The second one is not."""
    parent = "begin 1 10.0 a", "exit 1 11.0 b", "begin 2 12.0 a"
    assert judged(*parent) == []
    assert judged("exit 9 1.0 c", *parent) == ["a"]
    assert judged(f"exit 9 {11.0 - SURPRISE_SECONDS} c", *parent) == []
    ended = "begin 1 10.0 a", f"end 1 {11.0 - 0.5 * OWN_DEATH_SECONDS} a", "exit 1 11.0 b", "begin 2 12.0 a"
    assert judged("exit 9 1.0 c", *ended) == []


def test_a_frozen_process_begins_what_has_ended_elsewhere() -> None:
    frozen = (Fault("host frozen", 10.0, 14.0, frozenset({2})),)
    assert judged("begin 1 13.0 a", "end 1 13.1 a", "begin 2 14.1 a", faults=frozen) == []
    assert judged("begin 1 13.0 a", "end 1 13.1 a", "begin 2 17.0 a", faults=frozen) == ["a"], "too late"
    assert judged("begin 1 13.0 a", "end 1 13.1 a", "begin 3 14.1 a", faults=frozen) == ["a"], "another process"


def test_a_task_that_was_stopped_when_the_scheduler_ended() -> None:
    assert judged("begin 1 10.9 3_deaf", "begin 2 14.0 3_deaf", faults=(RESTARTED,)) == []
    assert judged("begin 1 13.1 3_deaf", "begin 2 14.0 3_deaf", faults=(RESTARTED,)) == ["3_deaf"], "after the restart"


def test_a_gang_whose_member_died_before_it_could_begin() -> None:
    killed = (Fault("worker killed", 9.9, 9.9, frozenset({7}), is_end=True),)
    assert judged("begin 1 10.0 a-gang.rank0", "begin 1 12.0 a-gang.rank0", faults=killed) == []
    assert len(judged("begin 1 11.0 a-gang.rank0", "begin 1 12.0 a-gang.rank0", faults=killed)) == 1
