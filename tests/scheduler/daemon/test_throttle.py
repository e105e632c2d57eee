"""Connections that waste the scheduler's time are blocked for a second. Messages of honest peers are not waste."""

from __future__ import annotations

import pytest
from tests.wire.vectors import ALL

from scaler_scheduler.core import effects
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.daemon.message_pump import BLOCKED_MESSAGES, DRAIN_MESSAGES, MessagePump
from scaler_scheduler.daemon.throttle import BLOCK_SECONDS, BURST_SECONDS, Throttle
from scaler_scheduler.publish.snapshots import Traffic
from scaler_scheduler.wire.encode import Identity
from scaler_scheduler.wire.schema import Message

BY_NAME = {vector.name: vector for vector in ALL}
BAD, GOOD = b"bad", b"good"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Port:
    """A router for the pump: messages that wait, and messages that were sent."""

    def __init__(self) -> None:
        self.waiting: list[list[bytes]] = []
        self.sent: list[list[bytes]] = []
        self.full: set[bytes] = set()
        """Connections with a full queue."""
        self.stuck: set[bytes] = set()

    def receive(self) -> list[bytes] | None:
        return self.waiting.pop(0) if self.waiting else None

    def user(self, route: bytes) -> str:
        return ""

    def send(self, route: bytes, frames: list[bytes]) -> bool:
        if route in self.full:
            self.stuck.add(route)
            return False
        self.sent.append([route, *frames])
        return True

    def pop_stuck(self) -> set[bytes]:
        stuck, self.stuck = self.stuck, set()
        return stuck


class Rig:
    def __init__(self) -> None:
        self.clock = Clock()
        self.core = Scheduler(Limits(), 1, self.clock.now)
        self.port = Port()
        self.throttle = Throttle(2)
        self.traffic = Traffic()
        identity = Identity(1, "0")
        router: object = self.port
        self.pump = MessagePump(
            router,  # type: ignore[arg-type]
            self.core,
            self.traffic,
            identity=identity,
            throttle=self.throttle,
            clock=self.clock,
        )

    def say(self, route: bytes, *names: str, times: int = 1) -> None:
        """Receive golden messages at once, in as many steps as are needed."""
        for name in names * times:
            self.port.waiting.append([route, *BY_NAME[name].frames])
        self.turn()

    def turn(self) -> None:
        while self.port.waiting:
            assert self.pump.receive(None, self.clock.now)
            self.pump.send(self.core.collect())
            self.pump.drop_stuck_peers(self.clock.now)

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.pump.release_blocked(self.clock.now)

    def answers(self, route: bytes) -> list[int]:
        """The kinds of messages that were sent to a connection since the last call."""
        kinds = [Message.loads(frames[1]).__which__() for frames in self.port.sent if frames[0] == route]
        self.port.sent = [frames for frames in self.port.sent if frames[0] != route]
        return [int(kind) for kind in kinds]


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.say(GOOD, "hello-client")
    assert effects.WELCOME in rig.answers(GOOD)
    return rig


def test_flood_of_heartbeats(rig: Rig) -> None:
    rig.say(GOOD, "heartbeat", times=20_000)
    echoed = rig.answers(GOOD).count(effects.HEARTBEAT_ECHO)
    assert echoed < 20_000 and rig.traffic.dropped["ignored"] == 20_000 - echoed
    assert echoed * 50e-6 == pytest.approx(BURST_SECONDS, abs=0.01)


def test_heartbeats_of_honest_peers_cost_nothing_for_a_day(rig: Rig) -> None:
    for _ in range(0, 86_400, 2):
        rig.say(GOOD, "heartbeat")
        rig.pass_time(2)
    assert rig.traffic.dropped["ignored"] == 0
    assert set(rig.answers(GOOD)) == {effects.HEARTBEAT_ECHO}


@pytest.mark.parametrize("name", ["submit", "results", "heartbeat", "started-from-worker", "object-from-client"])
def test_flood_of_an_unknown_peer_gets_limited_answers(rig: Rig, name: str) -> None:
    rig.say(BAD, name, times=15_000)
    answers = rig.answers(BAD)
    assert set(answers) == {effects.HELLO_WANTED}
    assert len(answers) <= BURST_SECONDS / 50e-6 + 1
    assert BAD in rig.throttle.blocked


def test_flood_of_malformed_messages(rig: Rig) -> None:
    rig.port.waiting = [[BAD, b"garbage"] for _ in range(8000)]
    rig.turn()
    assert set(rig.answers(BAD)) == {effects.ERROR}
    malformed = rig.traffic.dropped["malformed"]
    assert 4000 < malformed < 6000 and rig.traffic.dropped["ignored"] == 8000 - malformed


def test_flood_of_hellos(rig: Rig) -> None:
    rig.say(BAD, "hello-client", "hello-worker", times=2000)
    assert rig.answers(BAD).count(effects.WELCOME) <= BURST_SECONDS / 500e-6 + 1
    assert rig.traffic.dropped["ignored"] > 2000


def test_flood_of_cancels_of_unknown_tasks(rig: Rig) -> None:
    frame = BY_NAME["cancel"].frames
    rows = len(Message.loads(frame[0]).cancel.ids)
    rig.say(GOOD, "cancel", times=int(BURST_SECONDS * 1e6) // rows + 1000)
    assert rig.traffic.dropped["ignored"] > 900


def test_other_connections_are_served_while_one_is_blocked(rig: Rig) -> None:
    rig.say(BAD, "heartbeat", times=11_000)
    rig.answers(BAD)
    assert rig.throttle.blocked.keys() == {BAD}
    for _ in range(100):
        rig.port.waiting += [[BAD, *BY_NAME["heartbeat"].frames], [GOOD, *BY_NAME["heartbeat"].frames]]
    rig.turn()
    assert rig.answers(BAD) == []
    assert rig.answers(GOOD) == [effects.HEARTBEAT_ECHO] * 100


def test_step_ends_after_few_messages_of_blocked_connections(rig: Rig) -> None:
    rig.throttle.block(BAD, rig.clock.now)
    rig.port.waiting = [[BAD, b"anything"] for _ in range(100)]
    assert rig.pump.receive(None, rig.clock.now) == BLOCKED_MESSAGES < DRAIN_MESSAGES
    assert rig.pump.is_only_blocked
    rig.port.waiting.insert(0, [GOOD, *BY_NAME["heartbeat"].frames])
    assert rig.pump.receive(None, rig.clock.now) == BLOCKED_MESSAGES + 1
    assert not rig.pump.is_only_blocked


def test_released_connection_must_say_hello(rig: Rig) -> None:
    rig.say(GOOD, "heartbeat", times=11_000)
    rig.answers(GOOD)
    rig.pass_time(BLOCK_SECONDS / 2)
    assert rig.answers(GOOD) == [] and GOOD in rig.throttle.blocked
    rig.pass_time(BLOCK_SECONDS / 2)
    assert rig.answers(GOOD) == [effects.HELLO_WANTED]
    rig.say(GOOD, "submit")  # earlier messages may have been dropped
    assert rig.answers(GOOD) == [effects.HELLO_WANTED]
    assert rig.core.counts.waiting == 0
    rig.say(GOOD, "hello-client")
    assert effects.WELCOME in rig.answers(GOOD)
    rig.say(GOOD, "function-from-client", "submit")
    assert rig.core.counts.waiting > 0
    assert rig.core.tables.clients.by_route.keys() == {GOOD}


def test_repeated_flood_is_blocked_sooner(rig: Rig) -> None:
    rig.say(BAD, "heartbeat", times=11_000)
    first = len(rig.answers(BAD))
    rig.pass_time(BLOCK_SECONDS)
    rig.say(BAD, "heartbeat", times=11_000)
    assert len(rig.answers(BAD)) < first / 10


def test_ended_connections_are_forgotten(rig: Rig) -> None:
    rig.say(GOOD, "heartbeat", times=11_000)
    rig.pass_time(BLOCK_SECONDS)
    assert rig.throttle.awaiting_hello == {GOOD}
    rig.say(GOOD, "goodbye")
    assert rig.throttle.awaiting_hello == set()
    rig.say(GOOD, "hello-client")
    rig.pass_time(BURST_SECONDS / 0.02)
    assert rig.throttle._wasted == {}


def test_peer_that_does_not_read_is_given_up(rig: Rig) -> None:
    rig.say(GOOD, "function-from-client", "submit")
    rig.port.full.add(GOOD)
    rig.say(GOOD, "heartbeat")
    assert rig.core.counts.waiting == 0 and len(rig.core.tables.clients) == 0
    assert GOOD in rig.throttle.blocked
    assert rig.traffic.dropped["unreachable"] == 1
