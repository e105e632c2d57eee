"""A hello in the name of a peer that is here: taken at once, after some seconds, or not at all."""

from __future__ import annotations

from typing import Set

import pytest
from tests.scheduler.core.harness import A, C, Core, W, joined

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler

NEW, OTHER = b"new", b"another"
TEXT = "incarnation 11 is already connected by another connection"


class Connected(Core):
    """A core that is told which connections are there."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: Set[bytes] = {C, W, A, NEW, OTHER}
        self.scheduler = Scheduler(Limits(), 1, self.now, self.connections.__contains__)
        joined(self)
        self.take()

    def at(self, incarnation: int = 11) -> bytes:
        client = self.scheduler.tables.clients.find(incarnation)
        assert client is not None
        return client.route


@pytest.fixture
def core() -> Connected:
    return Connected()


def test_a_peer_that_has_lost_its_connection_is_welcome_at_once(core: Connected) -> None:
    core.connections.discard(C)
    core.client(NEW, 11)
    assert core.at() == NEW


@pytest.mark.parametrize("role, incarnation, old", [(0, 11, C), (1, 22, W), (2, 33, A)])
def test_the_name_of_who_is_here_and_speaks_is_not_given_away(
    core: Connected, role: int, incarnation: int, old: bytes
) -> None:
    core.hello(NEW, role, incarnation, agent=33)
    assert core.take() == []
    for _ in range(2):
        core.wait(1)
        core.heartbeat(old)
    core.wait(1)
    text = f"incarnation {incarnation} is already connected by another connection"
    assert core.take() == [("error", NEW, text)]
    core.heartbeat(old)
    assert any(text in warning for _, warning in core.scheduler.operator_log.drain())
    core.hello(NEW, role, incarnation, agent=33)
    assert core.take() == []


def test_a_peer_whose_old_connection_is_dead_and_unnoticed_comes_in_after_some_seconds(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.wait(3)
    assert core.take() == [] and core.at() == C
    core.wait(1)
    assert core.take() == [("welcome", NEW)] and core.at() == NEW


def test_or_as_soon_as_it_is_noticed(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.wait(1)
    core.connections.discard(C)
    core.wait(1)
    assert core.take() == [("welcome", NEW)]


def test_what_the_old_connection_has_said_before_proves_nothing(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.submit(C, [1])
    core.take()
    core.wait(4)
    assert ("welcome", NEW) in core.take()


def test_who_leaves_meanwhile_leaves_the_name(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.goodbye(C)
    core.wait(1)
    assert core.take() == [("welcome", NEW)]


def test_of_two_who_want_the_name_one_waits(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.hello(OTHER, events.CLIENT, 11)
    core.hello(NEW, events.CLIENT, 11)
    assert core.take() == [("error", OTHER, TEXT)]
    core.wait(4)
    assert core.take() == [("welcome", NEW)]


def test_a_hello_on_its_own_connection_is_taken_at_once(core: Connected) -> None:
    core.client(C, 11)
    assert core.at() == C
