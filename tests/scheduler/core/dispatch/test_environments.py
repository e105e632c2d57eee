"""Environments: contents travel once, and workers change to the environments whose tasks wait. PyPy and CPython."""

from __future__ import annotations

import hashlib

import pytest
from tests.scheduler.core.harness import (
    C2,
    EPOCH,
    MILLISECOND,
    SECOND,
    W2,
    A,
    C,
    Core,
    W,
    dispatched,
    resolved,
    rows_of,
    submit_event,
    warnings_of,
)

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.environments.worker_changes import (
    CHANGE_SECONDS,
    RETRY_SECONDS,
    RETURN_SECONDS,
    TURN_SECONDS,
)
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.placement.host_choice import PATIENCE_SECONDS
from scaler_scheduler.core.state.environments import CLIENT_ENVIRONMENTS, EnvironmentTable
from scaler_scheduler.core.state.records import AgentEnvironment

HELPERS, PACKAGE = b"def helper(): ...", b"VERSION = 1"
W3 = b"worker 3"
FAILED = effects.OUTCOME_ENVIRONMENT_FAILED


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def environment_event(
    route: bytes, *contents: bytes, level: int = 1, platform: str = "", tag: bytes = b""
) -> events.Environment:
    names = [sha(content) for content in contents]
    manifest = b"manifest of " + ",".join(names).encode() + tag
    return events.Environment(route, sha(manifest), names, sum(map(len, contents)), level, platform, manifest)


def contents_event(route: bytes, *contents: bytes) -> events.Contents:
    return events.Contents(route, {sha(content): content for content in contents})


def host(core: Core, *workers: bytes, level: int = 1, agent: bytes = A, incarnation: int = 33) -> None:
    core.agent(agent, incarnation, environments=level, platform="linux")
    for number, route in enumerate(workers):
        core.worker(route, 22 + number, agent=incarnation, kinds=["cloudpickle"])


def declare(core: Core, route: bytes = C, *, tag: bytes = b"", level: int = 1, platform: str = "") -> str:
    """A client names an environment and sends what is missing. Returns its name."""
    event = environment_event(route, HELPERS, PACKAGE, tag=tag, level=level, platform=platform)
    core.feed(event)
    for sent in core.take():
        assert sent[:2] == ("contents wanted", route)
        core.feed(contents_event(route, *[each for each in (HELPERS, PACKAGE) if sha(each) in sent[2]]))
    return event.name


def prepared(core: Core, name: str, agent: bytes = A) -> None:
    """The agent was asked for this environment, and answers."""
    sent = [each for each in core.take() if each[0] == "environment"]
    assert [each[1:3] for each in sent] == [(agent, name)]
    core.feed(events.EnvironmentReady(agent, name, ""))


def changed(core: Core, incarnation: int, new: int, route: bytes, name: str, agent: int = 33) -> None:
    """The agent was asked to change this worker, and does it."""
    assert ("change worker", A, incarnation, name) in core.take()
    old = core.scheduler.tables.workers.find(incarnation)
    assert old is not None
    core.goodbye(old.route)
    core.worker(route, new, agent=agent, kinds=["cloudpickle"], environment=name)


def test_the_first_task_of_an_environment(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    event = environment_event(C, HELPERS, PACKAGE)
    core.feed(event)
    core.function(C, 1, b"f", environment=event.name)
    core.submit(C, [1])
    assert core.take() == [("contents wanted", C, sorted([sha(HELPERS), sha(PACKAGE)]))]
    core.feed(contents_event(C, HELPERS))
    core.wait(0.1)
    assert core.take() == []  # the other content is missing
    core.feed(contents_event(C, PACKAGE))
    core.wait(0.1)
    assert core.take() == [("environment", A, event.name, [sha(HELPERS), sha(PACKAGE)], event.manifest)]
    core.feed(events.ContentsWanted(A, [sha(PACKAGE), sha(b"something else")]))
    assert core.take() == [("contents", A, [PACKAGE])]
    core.feed(events.EnvironmentReady(A, event.name, ""))
    changed(core, 22, 23, W2, event.name)
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    core.results(W2, [(11, 1, 1)])
    assert core.take() == [resolved(1)]


def test_a_content_is_asked_for_once(core: Core) -> None:
    """Of a changed tree only the changed file travels, and a second client of the same tree sends nothing."""
    core.client(C, 11)
    core.client(C2, 12)
    declare(core)
    core.feed(environment_event(C2, HELPERS, PACKAGE))
    assert core.take() == []
    core.feed(environment_event(C2, HELPERS, PACKAGE, b"new"))
    assert core.take() == [("contents wanted", C2, [sha(b"new")])]


def test_tasks_keep_the_environment_that_they_were_submitted_with(core: Core) -> None:
    host(core, W, W2)
    core.client(C, 11)
    first = declare(core)
    core.function(C, 1, b"f", environment=first)
    core.submit(C, [1])
    core.wait(0.1)
    prepared(core, first)
    changed(core, 22, 24, W3, first)
    core.take()
    second = declare(core, tag=b"changed")
    core.function(C, 2, b"f", environment=second)
    core.submit(C, [2], function=2)
    core.wait(0.1)
    prepared(core, second)
    changed(core, 23, 25, W, second)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_workers_of_an_environment_run_nothing_else(core: Core) -> None:
    core.agent(A, 33, environments=1)
    core.client(C, 11)
    name = declare(core)
    core.worker(W, 22, agent=33, kinds=["cloudpickle"], environment=name)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    core.wait(0.1)  # the worker has nothing to do: it returns to no environment
    changed(core, 22, 23, W2, "")
    assert core.take_dispatched(W2) == [(11, 1, 1)]


def test_a_worker_that_runs_all_kinds_runs_no_task_of_an_environment(core: Core) -> None:
    core.client(C, 11)
    core.worker(W, 22)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait_for_hosts()
    assert core.take() == []
    assert core.notices and "--environments" in core.notices[0][1]


@pytest.mark.parametrize(
    "level, platform, is_taken", [(0, "", False), (1, "", True), (1, "linux", True), (1, "windows", False)]
)
def test_a_host_takes_what_it_allows(core: Core, level: int, platform: str, is_taken: bool) -> None:
    host(core, W, level=level)
    core.client(C, 11)
    name = declare(core, platform=platform)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait_for_hosts()
    sent = [each[0] for each in core.take()]
    assert sent == (["environment"] if is_taken else [])
    assert bool(core.notices) is not is_taken


def test_of_two_hosts_only_the_one_with_the_platform_is_asked(core: Core) -> None:
    core.agent(b"elsewhere", 44, environments=1, platform="windows")
    core.worker(W3, 50, agent=44, kinds=["cloudpickle"])
    host(core, W)
    core.client(C, 11)
    name = declare(core, platform="linux")
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(2)
    prepared(core, name)
    core.wait(0.1)
    changed(core, 22, 23, W2, name)
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    assert not core.notices


@pytest.mark.parametrize(
    "level, platform, says", [(2, "", "locked"), (3, "", "any"), (3, "windows", "any on windows"), (7, "", "")]
)
def test_the_warning_says_what_a_host_must_allow(core: Core, level: int, platform: str, says: str) -> None:
    host(core, W, level=1)
    core.client(C, 11)
    core.function(C, 1, b"f", environment=declare(core, platform=platform, level=level))
    core.submit(C, [1])
    core.wait_for_hosts()
    option = f"scaler_cluster --environments {says}".rstrip()
    text = f"1 task(s) wait: no connected worker takes the modules or packages of this client ({option})"
    assert warnings_of(core) == [text]


def test_the_warning_names_only_what_is_missing(core: Core) -> None:
    """The workers take the environment, and lack a capability."""
    host(core, W)
    core.client(C, 11)
    core.function(C, 1, b"f", environment=declare(core))
    core.submit(C, [1], capabilities=frozenset({("zz", 1)}))
    core.wait_for_hosts()
    assert warnings_of(core) == [
        "1 task(s) wait: no connected worker has zz=1 (scaler_cluster --capabilities zz=1)",
    ]


def test_one_task_changes_one_worker(core: Core) -> None:
    host(core, W, W2)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    prepared(core, name)
    core.wait(1)
    assert [sent for sent in core.take() if sent[0] == "change worker"] == [("change worker", A, 22, name)]


def test_short_tasks_change_few_workers(core: Core) -> None:
    host(core, W, W2)
    core.client(C, 11)
    name = declare(core)
    core.worker(W3, 24, agent=33, kinds=["cloudpickle"], environment=name)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    assert core.take_dispatched(W3) == [(11, 1, 1)]
    core.results(W3, [(11, 1, 1)], MILLISECOND)
    core.take()
    core.submit(C, list(range(2, 40)))
    core.wait(0.2)
    assert set(dispatched(core)) <= {W3}  # 38 ms of work: no other worker changes for it


def test_a_failed_preparation_fails_the_tasks(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1, 2])
    core.wait(0.1)
    core.take()
    core.feed(events.EnvironmentReady(A, name, "no space left on device"))
    text = f"no host could prepare the environment {name[:12]}: host host: no space left on device".encode()
    assert core.take() == [resolved(1, 2, outcome=FAILED, body=text)]
    core.submit(C, [3])
    core.wait(1)
    assert core.take() == []  # not at once again
    core.wait(RETRY_SECONDS)
    prepared(core, name)
    assert ("change worker", A, 22, name) in core.take()


def test_the_log_has_both_ends_of_a_long_failure(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    core.take()
    middle = "\n".join(["Looking in indexes"] * 200)
    core.feed(events.EnvironmentReady(A, name, f"pip failed:\nERROR: no numpyy\n{middle}\nit ended so"))
    core.take()
    (line,) = warnings_of(core)
    assert f"cannot prepare environment {name[:12]}: pip failed: ERROR: no numpyy Looking" in line
    assert line.endswith(" it ended so") and len(line) < 1200


def test_another_host_prepares_what_one_could_not(core: Core) -> None:
    core.agent(A, 33, environments=1)
    core.agent(b"agent 2", 34, environments=1)
    core.worker(W, 22, agent=33, kinds=["cloudpickle"])
    core.worker(W2, 23, agent=34, kinds=["cloudpickle"])
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    (asked,) = [sent[1] for sent in core.take()]
    core.feed(events.EnvironmentReady(asked, name, "no space left on device"))
    core.wait(0.1)
    (other,) = [sent[1] for sent in core.take() if sent[0] == "environment"]
    assert {asked, other} == {A, b"agent 2"}


def test_a_lost_change_gives_the_worker_back(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    prepared(core, name)
    assert ("change worker", A, 22, name) in core.take()
    core.cancel(C, 1)
    core.take()
    core.function(C, 2, b"g")
    core.submit(C, [2], function=2)
    core.wait(1)
    assert core.take() == []
    for _ in range(2):
        core.wait(CHANGE_SECONDS / 2)
        core.heartbeat(A, 22)
        core.heartbeat(C)
    assert (11, 2, 1) in rows_of(core)


def test_an_agent_that_is_lost_takes_its_changes_with_it(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    prepared(core, name)
    core.take()
    core.goodbye(A)
    host(core, W2, agent=b"agent 2", incarnation=34)
    core.wait(0.1)
    prepared(core, name, b"agent 2")
    assert core.take() == [("change worker", b"agent 2", 22, name)]


def test_an_agent_with_a_new_connection_is_asked_again(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    core.take()
    core.agent(b"agent again", 33, environments=1)
    core.wait(0.1)
    prepared(core, name, b"agent again")
    assert core.take() == [("change worker", b"agent again", 22, name)]
    core.agent(A, 33, environments=1)
    assert core.take() == [("change worker", A, 22, name)]


def test_a_busy_cluster_shares_its_workers_between_environments(core: Core) -> None:
    """Tasks without an environment keep all workers busy. The environment of another user gets its part."""
    host(core, W, W2)
    core.client(C, 11)
    who = (12, 0, "python 3", "1", "host", 4711, "name")
    core.feed(events.Hello(C2, 1, events.CLIENT, *who, account="other"))
    core.take()
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (row,) = rows_of(core)
    core.results(W2, [row], SECOND)
    core.submit(C, list(range(2, 100)))
    core.take()
    name = declare(core, C2)
    core.function(C2, 1, b"g", environment=name)
    core.submit(C2, [1])
    core.wait(0.1)
    prepared(core, name)
    core.wait(0.1)
    busy = core.scheduler.tables.workers
    changing = [worker for worker in busy if worker.is_changing]
    assert len(changing) == 1
    assert not [sent for sent in core.take() if sent[0] == "change worker"]  # it finishes its task before
    tasks = [(task.client.incarnation, task.id, task.attempt) for task in changing[0].tasks.values()]
    core.results(changing[0].route, tasks, SECOND)
    core.wait(0.1)
    assert ("change worker", A, changing[0].incarnation, name) in core.take()


def test_the_only_worker_serves_environments_in_turn(core: Core) -> None:
    host(core, W)
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2, 3])
    (row,) = rows_of(core)
    name = declare(core)
    core.function(C, 2, b"g", environment=name)
    core.submit(C, [4], function=2)
    core.wait(0.1)
    core.wait(TURN_SECONDS)
    prepared(core, name)
    core.wait(TURN_SECONDS)
    core.results(W, [row], SECOND)
    core.wait(0.1)
    changed(core, 22, 23, W2, name)
    assert core.take_dispatched(W2) == [(11, 4, 1)]
    core.results(W2, [(11, 4, 1)], SECOND)
    core.wait(0.1)
    changed(core, 23, 24, W, "")
    assert rows_of(core)


def test_idle_workers_leave_an_environment_that_nobody_uses(core: Core) -> None:
    core.agent(A, 33, environments=1)
    core.client(C, 11)
    name = declare(core)
    core.worker(W, 22, agent=33, environment=name)
    core.wait(2)
    assert core.take() == []
    core.goodbye(C)
    core.wait(RETURN_SECONDS / 2)
    core.heartbeat(A, 22)
    core.wait(RETURN_SECONDS / 2 - 2)
    core.heartbeat(A, 22)
    assert core.take() == []
    core.wait(4)
    assert core.take() == [("change worker", A, 22, "")]


def test_a_restarted_scheduler_learns_environments_in_any_order(core: Core) -> None:
    """A nested client names the environment of its parent's client, which may join later."""
    core.client(C2, 12, worker=22, scheduler=EPOCH - 1)
    name = environment_event(C, HELPERS, PACKAGE).name
    core.function(C2, 1, b"g", environment=name)
    core.submit(C2, [1])
    host(core, W)
    core.client(C, 11)
    assert declare(core) == name
    core.wait(0.1)
    core.wait(4)
    assert "environment" in [sent[0] for sent in core.take()]


def test_unused_environments_give_room() -> None:
    table = EnvironmentTable(limit_bytes=200)
    first = environment_event(C, HELPERS)
    assert table.declare(11, first) == [sha(HELPERS)]
    assert table.add_content(sha(HELPERS), HELPERS)
    assert not table.add_content(sha(HELPERS), HELPERS) and not table.add_content(sha(b"x"), b"x")
    table.remove_client(11)
    assert table.find(first.name) is not None  # it is kept for the next client
    large = bytes(100)
    table.declare(12, environment_event(C, large))
    assert table.add_content(sha(large), large)
    assert table.find(first.name) is None and table.content(sha(HELPERS)) is None
    with pytest.raises(ProtocolError, match=r"exceeds the scheduler's limit of 200 bytes \(--environment-limit\)"):
        table.declare(12, environment_event(C, bytes(300)))
    other = bytes(99)
    table.declare(12, environment_event(C, other))
    with pytest.raises(ProtocolError, match="have more than 200 bytes"):
        table.add_content(sha(other), other)


def test_a_client_holds_few_environments() -> None:
    table = EnvironmentTable()
    names = []
    for number in range(CLIENT_ENVIRONMENTS + 1):
        event = environment_event(C, tag=b"%d" % number)
        table.declare(11, event)
        names.append(event.name)
    first = table.find(names[0])
    assert first is not None and not first.is_used
    table.remove_client(11)
    assert not any(environment.is_used for environment in table)


def test_a_worker_whose_task_waits_for_its_children_does_not_change(core: Core) -> None:
    """Its children need a worker of the same environment, and there may be no other."""
    core.agent(A, 33, environments=1)
    core.client(C, 11)
    name = declare(core)
    core.worker(W, 22, agent=33, kinds=["cloudpickle"], environment=name)
    core.function(C, 1, b"f", environment=name)
    core.function(C, 2, b"g")
    core.submit(C, [1])
    row = core.take_dispatched(W)[0]
    core.submit(C, [2], function=2)
    core.wait(0.1)
    core.wait(TURN_SECONDS)
    worker = core.scheduler.tables.workers.find(22)
    assert worker is not None and worker.is_changing
    core.client(C2, 12, worker=22)
    core.started(W, row)
    core.take()
    core.suspended(C2, row)
    core.function(C2, 1, b"child", environment=name)
    core.submit(C2, [1])
    core.wait(0.1)
    assert core.take_dispatched(W) == [(12, 1, 1)]
    core.results(W, [(12, 1, 1)])
    core.resumed(C2, row)
    core.results(W, [row])
    core.wait(0.1)
    assert ("change worker", A, 22, "") in core.take()


def idle_worker_of_environment(core: Core, incarnation: int, route: bytes) -> str:
    """Worker 22 has given way to one of an environment, which has run a task. Returns the environment's name."""
    core.client(C, 11)
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1])
    core.wait(0.1)
    prepared(core, name)
    changed(core, 22, incarnation, route, name)
    core.take()
    core.results(route, [(11, 1, 1)])
    core.take()
    return name


def test_a_task_with_resources_waits_for_a_host_that_has_them(core: Core) -> None:
    """An idle worker of its environment on a host without the resource does not serve it."""
    host(core, W)
    name = idle_worker_of_environment(core, 23, W2)
    core.agent(b"agent 2", 34, environments=1, platform="linux", resources=(("gpu", 1000, True),), slots=1)
    core.worker(W3, 32, agent=34, kinds=["cloudpickle"])
    core.submit(C, [2], resources=(("gpu", 1000),))
    core.wait(0.1)
    assert ("environment", b"agent 2", name) in [each[:3] for each in core.take()]
    core.feed(events.EnvironmentReady(b"agent 2", name, ""))
    assert ("change worker", b"agent 2", 32, name) in core.take()
    core.goodbye(W3)
    core.worker(W, 33, agent=34, kinds=["cloudpickle"], environment=name)
    assert core.take_dispatched(W) == [(11, 2, 1)]
    assert not core.notices


def test_a_gang_gets_as_many_workers_of_its_environment(core: Core) -> None:
    host(core, W, W2)
    name = idle_worker_of_environment(core, 24, W3)
    core.submit(C, [2], gang_size=2)
    core.wait(0.1)
    changed(core, 23, 25, b"worker 4", name)
    sent = core.take()
    assert sorted(each[1] for each in sent if each[0] == "dispatch") == [W3, b"worker 4"]
    assert not core.notices


def test_a_host_is_reserved_for_a_task_whose_environment_no_worker_has(core: Core) -> None:
    """Tasks of another environment use all its workers, and always a part of the GPU. The task must not starve, and
    no worker changes before the GPU is free: it could not begin, and the worker would change again."""
    core.agent(A, 33, environments=1, platform="linux", resources=(("gpu", 1000, True),), slots=2)
    for route, incarnation in ((W, 22), (W2, 23)):
        core.worker(route, incarnation, agent=33, kinds=["cloudpickle"])
    core.client(C, 11)
    core.client(C2, 12)
    core.function(C2, 1, b"g")
    name = declare(core)
    core.function(C, 1, b"f", environment=name)
    core.submit(C, [1, 2, 3, 4, 5, 6], resources=(("gpu", 500),))
    core.wait(0.1)
    prepared(core, name)
    sent = core.take()
    assert [each for each in sent if each[0] == "change worker"] == [
        ("change worker", A, 22, name),
        ("change worker", A, 23, name),
    ]
    core.goodbye(W)
    core.goodbye(W2)
    for route, incarnation in ((W3, 24), (b"worker 4", 25)):
        core.worker(route, incarnation, agent=33, kinds=["cloudpickle"], environment=name)
    assert rows_of(core) == [(11, 1, 1), (11, 2, 1)]
    core.submit(C2, [1], resources=(("gpu", 1000),))
    core.wait(PATIENCE_SECONDS / 2)
    core.results(W3, [(11, 1, 1)], SECOND)
    assert rows_of(core) == [(11, 3, 1)], "others fill what is free meanwhile"
    core.wait(PATIENCE_SECONDS)
    core.results(b"worker 4", [(11, 2, 1)], SECOND)
    assert not [each for each in core.take() if each[0] in ("dispatch", "change worker")], "the rest is not free yet"
    core.wait(0.1)
    core.results(W3, [(11, 3, 1)], SECOND)
    core.wait(0.1)
    (change,) = [each for each in core.take() if each[0] == "change worker"]
    assert change[3] == ""
    core.goodbye(W3 if change[2] == 24 else b"worker 4")
    core.worker(W, 26, agent=33, kinds=["cloudpickle"])
    assert rows_of(core) == [(12, 1, 1)]
    core.results(W, [(12, 1, 1)], SECOND)
    assert (11, 4, 1) in rows_of(core)


def test_workers_of_all_environments_stand_aside_for_a_task_with_several_cpus(core: Core) -> None:
    """One of them runs it. The further ones need not have its environment."""
    core.agent(A, 33, environments=1, platform="linux", slots=3)
    core.client(C, 11)
    name = declare(core)
    for number, route in enumerate((W, W2)):
        core.worker(route, 22 + number, agent=33, kinds=["cloudpickle"])
    core.worker(W3, 24, agent=33, kinds=["cloudpickle"], environment=name)
    core.function(C, 1, b"f")
    core.function(C, 2, b"g", environment=name)
    core.submit(C, range(1, 20))
    core.submit(C, range(21, 40), function=2)
    running = {sent[1]: sent[2] for sent in core.take() if sent[0] == "dispatch"}
    assert running.keys() == {W, W2, W3}
    core.submit(C, [50], function=2, resources=(("cpus", 3000),))
    begun: list[int] = []
    while 50 not in begun and len(begun) < 10:
        worker = next(iter(running))
        core.results(worker, [row[:3] for row in running.pop(worker)], SECOND)
        core.wait(2 * PATIENCE_SECONDS)
        for sent in core.take():
            if sent[0] == "dispatch":
                running[sent[1]] = sent[2]
                begun += [row[1] for row in sent[2]]
    assert begun[-1] == 50
    assert len(begun) <= 4  # before it, each worker has at most one more task


def reserving(core: Core) -> tuple[str, tuple[int, int, int]]:
    """Worker W2 has an environment and runs a task with the only GPU, which another task waits for. Only the idle
    worker W can run that one. Returns the environment's name and the row that runs."""
    gpu = (("gpu", 1000),)
    core.agent(A, 33, environments=1, platform="linux", slots=2, resources=(("gpu", 1000, True),))
    core.client(C, 11)
    name = declare(core)
    core.worker(W, 22, agent=33, kinds=["cloudpickle"])
    core.worker(W2, 23, agent=33, kinds=["cloudpickle"], environment=name)
    core.function(C, 1, b"f")
    core.function(C, 2, b"g", environment=name)
    core.submit(C, [1], function=2, resources=gpu)
    (row,) = core.take_dispatched(W2)
    core.feed(*[events.EnvironmentReady(A, each[2], "") for each in core.take() if each[0] == "environment"])
    core.submit(C, [2], resources=gpu)
    core.wait(2 * PATIENCE_SECONDS)
    core.take()
    return name, row


def test_a_worker_changes_if_a_suspended_task_has_what_is_reserved(core: Core) -> None:
    """This task may wait for tasks that only this worker can run after its change."""
    _, row = reserving(core)
    core.client(C2, 12, worker=23)
    core.started(W2, row)
    core.take()
    core.suspended(C2, row)
    other = declare(core, C2, tag=b"other")
    core.function(C2, 1, b"child", environment=other)
    core.submit(C2, [1])
    core.wait(0.1)
    prepared(core, other)
    core.wait(0.1)
    core.wait(TURN_SECONDS)
    assert [sent[3] for sent in core.take() if sent[0] == "change worker"] == [other]


@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.06])
def test_workers_change_for_one_gang_after_another(core: Core, seconds: float) -> None:
    """Gangs of several environments wait, and each needs most workers. They do not take workers from one another, also
    while changes take time."""
    able = frozenset([("linux", 1)])
    core.agent(A, 33, environments=1, platform="linux")
    core.client(C, 11)
    names = ["", *[declare(core, tag=b"%d" % number) for number in range(3)]]
    for number, name in enumerate(names):
        core.function(C, number + 1, b"f%d" % number, environment=name)
        agent = core.scheduler.tables.agents.find(33)
        assert agent is not None
        agent.environments[name] = AgentEnvironment()
        agent.environments[name].is_ready = True
    for number, name in enumerate(["", "", "", *5 * [names[2]]]):
        core.worker(
            b"first %d" % number, 100 + number, agent=33, kinds=["cloudpickle"], environment=name, capabilities=able
        )
    gangs = [submit_event(C, [10 * (number + 1)], [number + 1], [b""], ()) for number in range(4)]
    for each, size, priority in zip(gangs, (6, 6, 6, 5), (0, 0, 1, -3)):
        each.options = events.Options(gang_size=size, priority=priority, capabilities=able)
    core.feed(*gangs)
    orders: list[tuple[float, int, str]] = []
    changes = ended = 0
    for _ in range(1000):
        for sent in core.take():
            if sent[0] == "change worker":
                orders.append((core.now + seconds * (1 + changes % 3), sent[2], sent[3]))
                changes += 1
            elif sent[0] == "dispatch":
                core.results(sent[1], [row[:3] for row in sent[2]], MILLISECOND)
                ended += len(sent[2])
        for order in [each for each in orders if each[0] <= core.now]:
            orders.remove(order)
            _, worker, name = order
            old = core.scheduler.tables.workers.find(worker)
            assert old is not None
            core.goodbye(old.route)
            new = worker + 1000
            core.worker(b"later %d" % new, new, agent=33, kinds=["cloudpickle"], environment=name, capabilities=able)
        if ended == 23:
            break
        core.wait(0.01)
    core.take()
    assert ended == 23
    assert changes <= 4 * 8
