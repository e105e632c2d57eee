"""How an agent gets environments and changes its workers: messages in, effects out."""

from __future__ import annotations

import logging
import signal

import pytest
from tests.worker.agent.agent_host import BUSY, UNREADY, Host, lines, only, sent

from scaler_client.environments.manifest import this_platform
from scaler_client.protocol.messages import (
    ChangeWorker,
    Contents,
    ContentsWanted,
    Environment,
    EnvironmentReady,
    Welcome,
    WorkerDied,
)
from scaler_worker.agent.effects import PrepareEnvironment, RemoveEnvironment, SignalWorker, StartWorker, StoreContents
from scaler_worker.agent.environments import CONTENT_SECONDS, MAX_ATTEMPTS, MAX_ENVIRONMENTS
from scaler_worker.agent.worker_table import CHANGE_SECONDS, MAX_FAILED_STARTS

NAME, OTHER = "e" * 64, "f" * 64
PREPARE = PrepareEnvironment(NAME, b"manifest")
READY = EnvironmentReady(NAME)


def order(name: str = NAME, level: int = 1, platform: str = "") -> Environment:
    return Environment(name, ["a", "b"], 10, level, platform, b"manifest")


def prepared(host: Host, name: str = NAME) -> None:
    host.missing = []
    host.receive(order(name))
    assert sent(host.follow(host.session.environment_prepared(name, "", [], host.now))) == [EnvironmentReady(name)]


def test_an_environment_whose_contents_are_here() -> None:
    host = Host()
    assert host.receive(order()) == [PREPARE]
    assert host.receive(order()) == [], "it is being prepared"
    assert sent(host.session.environment_prepared(NAME, "", [], host.now)) == [READY]
    assert sent(host.receive(order())) == [READY]


def test_missing_contents_are_asked_for() -> None:
    host = Host()
    host.missing = ["b"]
    assert sent(host.receive(order())) == [ContentsWanted(["b"])]
    assert host.receive(Contents([b"B"])) == [StoreContents((b"B",))]
    assert host.session.contents_stored(["x"], "", host.now) == []
    assert host.session.contents_stored(["b"], "", host.now) == [PREPARE]
    assert only(StoreContents, host.receive(Contents([b"B"]))) == [], "nothing is missing now"


def test_contents_are_asked_for_again_after_a_lost_connection() -> None:
    """The scheduler repeats its orders when the agent joins again. Contents or the request for them may be lost."""
    host = Host()
    host.missing = ["a", "b"]
    assert sent(host.receive(order())) == [ContentsWanted(["a", "b"])]
    host.session.contents_stored(["a"], "", host.now)
    assert sent(host.receive(order())) == [ContentsWanted(["b"])]
    assert host.session.contents_stored(["b"], "", host.now) == [PREPARE]


@pytest.mark.parametrize(
    "wanted, why",
    [
        (order(level=2), r"this cluster does not allow it \(modules is set\): scaler_cluster --environments locked"),
        (order(level=3), r"this cluster does not allow it \(modules is set\): scaler_cluster --environments any"),
        (order(platform="windows"), f"it has native extensions for windows: this host is {this_platform()}"),
    ],
)
def test_what_the_host_does_not_take(wanted: Environment, why: str) -> None:
    host = Host()
    (answer,) = sent(host.receive(wanted))
    assert isinstance(answer, EnvironmentReady)
    pytest.raises(ValueError, _raise, answer.error).match(why)


def _raise(text: str) -> None:
    raise ValueError(text)


def test_a_host_without_environments() -> None:
    host = Host(environments="none")
    (answer,) = sent(host.receive(order()))
    assert isinstance(answer, EnvironmentReady)
    assert answer.error == "this cluster does not allow it (none is set): scaler_cluster --environments modules"


def test_this_platform_is_taken() -> None:
    assert Host().receive(order(platform=this_platform())) == [PREPARE]


def test_contents_that_do_not_come() -> None:
    host = Host()
    host.missing = ["a", "b"]
    host.receive(order())
    host.session.contents_stored(["a"], "", host.now)
    assert host.session.deadline() <= host.now + CONTENT_SECONDS
    effects = host.at(CONTENT_SECONDS + 1)
    assert EnvironmentReady(NAME, "1 contents did not come from the scheduler") in sent(effects)
    host.missing = []
    assert host.receive(order()) == [PREPARE], "a later order tries again"


def test_contents_that_cannot_be_stored() -> None:
    host = Host()
    host.missing = ["a"]
    host.receive(order())
    effects = host.session.contents_stored([], "No space left on device: /cache", host.now)
    assert sent(effects) == [EnvironmentReady(NAME, "No space left on device: /cache")]


def test_contents_that_vanish() -> None:
    host = Host()
    host.receive(order())
    host.missing = ["a"]
    for _ in range(MAX_ATTEMPTS - 1):
        assert sent(host.session.environment_prepared(NAME, "", ["a"], host.now)) == [ContentsWanted(["a"])]
        assert host.session.contents_stored(["a"], "", host.now) == [PREPARE]
    (answer,) = sent(host.session.environment_prepared(NAME, "", ["a"], host.now))
    assert answer == EnvironmentReady(NAME, "1 contents vanish from the cache of this host")


def test_a_failed_preparation_is_told_once() -> None:
    host = Host()
    host.receive(order())
    assert sent(host.session.environment_prepared(NAME, "disk full", [], host.now)) == [
        EnvironmentReady(NAME, "disk full")
    ]
    assert host.session.environment_prepared(NAME, "disk full", [], host.now) == []


def test_a_failed_installation_is_in_the_log_of_the_agent() -> None:
    host = Host(environments="any")
    host.receive(order(level=3))
    error = "pip failed (exit code 1):\nERROR: No matching distribution found for numpyy\nLooking in indexes"
    effects = host.session.environment_prepared(NAME, error, [], host.now)
    text = f"cannot prepare environment {NAME[:12]}: {error}".replace("\n", "\n    ")
    assert lines(effects, logging.WARNING) == [text]
    assert host.session.environment_prepared(NAME, error, [], host.now) == []


def test_a_worker_changes() -> None:
    host = Host(workers=2)
    prepared(host)
    assert host.receive(ChangeWorker(101, NAME)) == [SignalWorker(101, kill=False)]
    assert host.receive(ChangeWorker(101, NAME)) == [], "once"
    effects = host.ends(101, status=0)
    assert only(StartWorker, effects) == [StartWorker(0, "w0", 103, NAME)] and sent(effects) == []
    assert host.receive(ChangeWorker(103, "")) == [SignalWorker(103, kill=False)]
    assert only(StartWorker, host.ends(103, status=-signal.SIGTERM)) == [StartWorker(0, "w0", 104)]


def test_a_worker_of_an_environment_that_dies_starts_in_it_again() -> None:
    host = Host(workers=1)
    prepared(host)
    host.receive(ChangeWorker(101, NAME))
    host.ends(101, status=0)
    host.now += 5
    assert only(StartWorker, host.ends(102, status=-9)) == [StartWorker(0, "w0", 103, NAME)]


def test_a_change_of_an_unknown_worker_is_ignored() -> None:
    host = Host()
    assert host.receive(ChangeWorker(999, "")) == []


def test_a_worker_that_dies_before_it_changes() -> None:
    host = Host(workers=1)
    prepared(host)
    host.states[0] = BUSY
    host.receive(ChangeWorker(101, NAME))
    effects = host.ends(101, status=-11)
    (died,) = [message for message in sent(effects) if isinstance(message, WorkerDied)]
    assert died.cause == "signal 11 (SIGSEGV)"
    assert only(StartWorker, effects) == [StartWorker(0, "w0", 102, NAME)]


def test_a_worker_that_does_not_end_is_killed() -> None:
    host = Host(workers=1)
    prepared(host)
    host.receive(ChangeWorker(101, NAME))
    assert only(SignalWorker, host.at(CHANGE_SECONDS + 0.1)) == [SignalWorker(101, kill=True)]


def test_an_environment_whose_workers_cannot_start() -> None:
    host = Host(workers=1)
    prepared(host)
    host.receive(ChangeWorker(101, NAME))
    host.ends(101, status=0)
    answers = []
    for number in range(MAX_FAILED_STARTS):
        answers += sent(host.ends(102 + number, status=1, state=UNREADY))
        host.at(0.3 * (number + 1))
    error = "its workers cannot start: exit code 1"
    assert EnvironmentReady(NAME, error) in answers
    host.at(2.0)
    assert [effect.environment for effect in host.started][-1] == "", "it returns to no environment"


def test_a_change_waits_for_an_environment_that_was_removed() -> None:
    host = Host(workers=1)
    for number in range(MAX_ENVIRONMENTS + 1):
        prepared(host, f"{number:064x}")
    removed = only(RemoveEnvironment, host.change(101, f"{MAX_ENVIRONMENTS:064x}"))
    assert removed == [], "all but one may stay"
    prepared(host, NAME)
    prepared(host, OTHER)
    removed = only(RemoveEnvironment, host.change(102, NAME))
    assert [effect.name for effect in removed] == [f"{0:064x}", f"{1:064x}"]
    assert only(PrepareEnvironment, host.receive(ChangeWorker(103, f"{0:064x}"))) != []
    effects = host.session.environment_prepared(f"{0:064x}", "", [], host.now)
    assert effects == [SignalWorker(103, kill=False)], "the scheduler knows it as ready: no second answer"


def test_a_change_to_an_environment_that_the_agent_does_not_know() -> None:
    host = Host(workers=1)
    (answer,) = sent(host.receive(ChangeWorker(101, NAME)))
    assert answer == EnvironmentReady(NAME, "the agent does not have this environment any more")


def test_a_new_scheduler_orders_again() -> None:
    host = Host(workers=1)
    host.missing = ["a"]
    host.receive(order())
    host.receive(Welcome(1, "0.9", 6000, 60.0))
    assert host.session.contents_stored(["a"], "", host.now) == []
    assert sent(host.receive(order())) == [ContentsWanted(["a"])]


def test_contents_that_nobody_asked_for() -> None:
    host = Host()
    effects = host.receive(Contents([b"x"]))
    assert lines(effects, logging.DEBUG) == ["dropped contents that nobody asked for"]


def test_no_worker_changes_while_the_agent_retires() -> None:
    host = Host(workers=1, retire_seconds=60.0)
    prepared(host)
    host.session.retire("SIGTERM", host.now)
    assert host.receive(ChangeWorker(101, NAME)) == []
