"""Text that UTF-8 can't encode, in messages."""

from __future__ import annotations

import os
import socket

import pytest
from tests.client.running_scheduler import RunningScheduler
from tests.client.scheduler_stand_in import WAIT_SECONDS
from tests.schema_messages import SCHEMA

from scaler_client import Client, named
from scaler_client.commands.addresses import AddressError, parse_connect_address
from scaler_client.protocol import messages, wire
from scaler_client.protocol.utf8_text import checked_text, escaped

SURROGATE = os.fsdecode(b"\xff")


class Text(str):
    def __str__(self) -> str:
        return "another"


def test_escaped() -> None:
    assert escaped("größe") == "größe"
    assert escaped(f"a{SURROGATE}b\ud800") == "a\\udcffb\\ud800"


def test_checked_text() -> None:
    text = checked_text("name", Text("größe"))
    assert type(text) is str and text == "größe"
    with pytest.raises(ValueError, match="^name must be text that UTF-8 can encode, not 'a.udcff': character 1 is"):
        checked_text("name", "a" + SURROGATE)


@pytest.mark.parametrize(
    "message",
    [
        messages.Hello(
            messages.Role.WORKER, 1, SURROGATE, SURROGATE, SURROGATE, 1, SURROGATE, 0, SURROGATE,
            capabilities={SURROGATE: 1}, kinds=[SURROGATE],
        ),
        messages.Goodbye(SURROGATE),
        messages.Function(1, SURROGATE, SURROGATE, b""),
        messages.WorkerDied(1, 1, SURROGATE),
        messages.Object(1, [b""], name=SURROGATE),
        messages.Submit([1], [1], [b"a"], messages.Options(name=SURROGATE, capabilities=((SURROGATE, 1),))),
        messages.Results([1], [1], [1], [1], [1], [b""], errors=[SURROGATE]),
    ],
    ids=lambda message: type(message).__name__,
)  # fmt: skip
def test_no_text_stops_a_message(message: messages.Message) -> None:
    frame = wire.encode(message)[0]
    with SCHEMA.Message.from_bytes(bytes(frame)) as read:
        assert "udcff" in str(read) or "?" in str(read)


def test_the_callers_thread_raises_for_bad_text(client: Client) -> None:
    for call, name in (
        (lambda: client.options(name=SURROGATE), "name"),
        (lambda: client.options(capabilities=[SURROGATE]), "a capability's name"),
        (lambda: client.options(capabilities={SURROGATE: 1}), "a capability's name"),
        (lambda: client.send_object(1, name=SURROGATE), "an object's name"),
        (lambda: client.send_object(SURROGATE, 1), "an object's name"),
        (lambda: named(SURROGATE), "a function's name"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be text that UTF-8 can encode"):
            call()
    with pytest.raises(AddressError, match="UTF-8"):
        parse_connect_address(f"ipc:///tmp/{SURROGATE}")


def test_a_functions_name_is_escaped(running: RunningScheduler, running_client: Client) -> None:
    def function(text: str) -> str:
        return text + SURROGATE

    function.__qualname__ = function.__name__ = f"f{SURROGATE}"
    future = running_client.submit(function, SURROGATE)
    assert future.result(WAIT_SECONDS) == SURROGATE * 2, "arguments and results are any text"
    assert running.names == ["f\\udcff"]


def test_a_host_name_with_surrogates_is_escaped(monkeypatch: pytest.MonkeyPatch, running: RunningScheduler) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: f"host{SURROGATE}")
    with Client(running.address, timeout_seconds=WAIT_SECONDS) as client:
        assert client.submit(abs, -1).result(WAIT_SECONDS) == 1
    assert running.hellos[-1]["host"] == "host\\udcff"


def test_subclasses_of_numbers_and_text(running: RunningScheduler, running_client: Client) -> None:
    class Priority(int):
        pass

    few = running_client.options(name=Text("mine"), priority=Priority(3))
    view = few.options(retries=Priority(1), capabilities=[Text("gpu")])
    assert view.submit(abs, -1).result(WAIT_SECONDS) == 1
    options = running.options[-1]
    assert (options["name"], options["priority"], options["retries"]) == ("mine", 3, 1)
    assert options["capabilities"] == [{"name": "gpu", "amount": 1}]
