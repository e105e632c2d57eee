"""A hello with the incarnation of a connected peer: accepted at once, after some seconds, or rejected.

Runs under PyPy and CPython.
"""

from __future__ import annotations

import random

import pytest
from tests.scheduler.core.harness import A, C, Core, W, joined

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler

NEW, OTHER = b"new", b"another"
TEXT = "incarnation 11 is already connected by another connection"


class Connected(Core):
    """A core whose test decides which connections exist."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: set[bytes] = {C, W, A, NEW, OTHER}
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


def test_a_peer_that_has_lost_its_connection_is_accepted_at_once(core: Connected) -> None:
    core.connections.discard(C)
    core.client(NEW, 11)
    assert core.at() == NEW


@pytest.mark.parametrize("role, incarnation, old", [(0, 11, C), (1, 22, W), (2, 33, A)])
def test_a_hello_is_rejected_while_the_old_connection_is_alive(
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


def test_a_hello_is_accepted_after_some_seconds_of_silence(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.wait(3)
    assert core.take() == [] and core.at() == C
    core.wait(1)
    assert core.take() == [("welcome", NEW)] and core.at() == NEW


def test_a_hello_is_accepted_as_soon_as_the_old_connection_has_ended(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.wait(1)
    core.connections.discard(C)
    core.wait(1)
    assert core.take() == [("welcome", NEW)]


def test_earlier_messages_of_the_old_connection_prove_nothing(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.submit(C, [1])
    core.take()
    core.wait(4)
    assert ("welcome", NEW) in core.take()


def test_a_goodbye_of_the_old_connection_frees_the_incarnation(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.goodbye(C)
    core.wait(1)
    assert core.take() == [("welcome", NEW)]


def test_only_one_of_two_duplicate_hellos_waits(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.hello(OTHER, events.CLIENT, 11)
    core.hello(NEW, events.CLIENT, 11)
    assert core.take() == [("error", OTHER, TEXT)]
    core.wait(4)
    assert core.take() == [("welcome", NEW)]


def test_a_connection_that_changes_its_incarnation_may_be_contested_for_both(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.hello(C, events.CLIENT, 12)
    core.hello(OTHER, events.CLIENT, 12)
    core.take()
    core.wait(1.5)
    core.heartbeat(C)
    core.wait(1)
    assert core.at(11) == NEW and core.at(12) == C
    text = "incarnation 12 is already connected by another connection"
    assert core.take() == [("welcome", NEW), ("error", OTHER, text)]
    assert not core.scheduler._duplicate_hellos.contested


def test_hellos_for_all_incarnations_that_a_connection_has_had_are_decided_at_once(core: Connected) -> None:
    core.hello(NEW, events.CLIENT, 11)
    core.hello(C, events.CLIENT, 12)
    core.hello(OTHER, events.CLIENT, 12)
    core.hello(C, events.CLIENT, 13)
    core.take()
    core.wait(1)
    assert (core.at(11), core.at(12), core.at(13)) == (NEW, OTHER, C)
    assert not core.scheduler._duplicate_hellos.contested


@pytest.mark.parametrize("seed", range(20))
def test_random_hellos_heartbeats_and_lost_connections(seed: int) -> None:
    chance = random.Random(seed)
    core = Connected()
    routes = [C, W, A, NEW, OTHER]
    for _ in range(300):
        step = chance.randrange(10)
        if step < 4:
            core.hello(chance.choice(routes), chance.randrange(3), chance.randrange(11, 15), agent=33)
        elif step < 7:
            core.feed(events.Heartbeat(chance.choice(routes), 77, []))
        elif step < 9:
            core.wait(chance.choice([0.1, 0.5, 1.5]))
        else:
            core.connections.symmetric_difference_update([chance.choice(routes)])
    core.wait(5)
    assert not core.scheduler._duplicate_hellos.contested, "each hello is decided after some seconds"


def test_a_repeated_hello_on_its_own_connection_is_accepted_at_once(core: Connected) -> None:
    core.client(C, 11)
    assert core.at() == C
