"""The log names rejected peers and reasons, with a limited number of lines."""

from __future__ import annotations

import logging

import pytest
from tests.scheduler.daemon.test_throttle import Rig

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.daemon.rejection_log import REJECTIONS_LOG_SECONDS, RejectionLog

A, B = b"a", b"b"


def rig_with(**limits: int) -> Rig:
    rig = Rig()
    rig.core = rig.pump._core = Scheduler(Limits(**limits), 1, rig.clock.now)
    return rig


def feed(rig: Rig, event: events.Event) -> None:
    """Give the pump an event in place of a decoded message."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scaler_scheduler.daemon.message_pump.decode", lambda _route, _frames: event)
        rig.port.waiting.append([event.route, b""])
        rig.turn()


def hello(rig: Rig, route: bytes, incarnation: int, user: str = "", version: int = 1) -> None:
    rig.port.user = lambda _route: user  # type: ignore[method-assign]
    feed(rig, events.Hello(route, version, events.CLIENT, incarnation, 0, "python", "3", "host", 7, "alice"))


def test_rejected_hello_is_logged_only_as_rejected(caplog):
    caplog.set_level(logging.INFO)
    rig = rig_with(peers=1)
    hello(rig, A, 11)
    hello(rig, B, 12)
    assert caplog.messages == [
        "client alice says hello: python, process 7 on host",
        "client alice (process 7 on host) is refused: there is 1 peer already, the most that this scheduler serves "
        "(--peer-limit)",
    ]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_rejected_hello_beyond_the_rate(caplog):
    rig = rig_with(hellos_a_second=1)
    hello(rig, A, 11)
    hello(rig, B, 12)
    assert "is refused: more than 1 hello in a second" in caplog.text


def test_rejected_key_and_rejected_version(caplog):
    rig = rig_with()
    rig.pump.key_name = lambda user: user[:4]
    hello(rig, A, 11, "monitor:1")
    assert caplog.messages == [
        "client alice (process 7 on host, by the key of moni) is refused: this key is neither a client's nor a worker's"
    ]
    rig.clock.now += REJECTIONS_LOG_SECONDS
    hello(rig, A, 11, version=2)
    assert "protocol version 2 is not 1" in caplog.messages[-1]


def test_functions_and_objects_have_separate_lines(caplog):
    rig = rig_with(client_functions=1, client_objects=1)
    hello(rig, A, 11)
    for number in range(1, 1000):
        feed(rig, events.Function(A, number, f"f{number}", "cloudpickle", b"%d" % number, b"f"))
        feed(rig, events.Object(A, number, "prices", [b"abc"]))
    assert [line.split(" rejected")[0] for line in caplog.messages] == [
        "a message of client alice is refused: function f2 is",
        "a message of client alice is refused: object prices (2) is",
    ]
    rig.clock.now += REJECTIONS_LOG_SECONDS
    rig.pump.log_rejections(rig.clock.now)
    assert [line.split(" rejected")[0] for line in caplog.messages[2:]] == [
        "a message of client alice is refused (and 996 more since the last such line): function f999 is",
        "a message of client alice is refused (and 996 more since the last such line): object prices (999) is",
    ]
    rig.clock.now += 2 * REJECTIONS_LOG_SECONDS
    rig.pump.log_rejections(rig.clock.now)
    assert len(caplog.messages) == 4, "there are no further rejections"


def test_peer_name_cannot_begin_a_new_line(caplog):
    RejectionLog().note("kind", "client a\n[INFO]", "no\n", 1.0)
    assert caplog.messages == ["client a\\n[INFO] is refused: no\\n"]
