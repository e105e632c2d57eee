"""The first page of PROTOCOL.md: its listings are the messages of its text, and its program sends them."""

from __future__ import annotations

import re

import pytest
from tests.wire.vectors import FOLDER

from scaler_scheduler.core import events
from scaler_scheduler.wire.decode import decode

PAGE = (FOLDER.parent / "PROTOCOL.md").read_text("utf-8").partition("\n## Reference\n")[0]
HEX_LINE = re.compile(r"^((?:[0-9a-f]{2} )*[0-9a-f]{2})(?: {1,}.*)?$", re.MULTILINE)
MESSAGES = ("hello", "function", "submit", "heartbeat", "goodbye")


def bytes_of(block: str) -> bytes:
    """The bytes of a listing, without the explanations after them."""
    return b"".join(bytes.fromhex(found[1]) for found in HEX_LINE.finditer(block))


def listing(message: str) -> bytes:
    """The listing of a message."""
    found = re.search(rf"^`{message}`: .*?^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, message
    return bytes_of(found[1])


def in_program(message: str) -> bytes:
    """The bytes that the program sends."""
    found = re.search(rf"^{message.upper()} = bytes\.fromhex\(\n(.*?)^\)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, message
    return bytes.fromhex("".join(re.findall(r'"([0-9a-f ]*)"', found[1])))


def decoded(message: str) -> events.Event:
    frames = [listing(message)]
    return decode(b"route", [*frames, b""] if message == "function" else frames)


@pytest.mark.parametrize("message", MESSAGES)
def test_program_sends_the_bytes_of_the_listing(message: str) -> None:
    assert in_program(message) == listing(message)


def test_listings_are_the_messages_of_the_text() -> None:
    hello, function, submit = decoded("hello"), decoded("function"), decoded("submit")
    assert isinstance(hello, events.Hello)
    assert (hello.protocol_version, hello.incarnation, hello.name) == (1, 0x1122334455667788, "first")
    assert isinstance(function, events.Function)
    assert (function.number, function.name, function.function_kind) == (1, "add", "named json add")
    assert isinstance(submit, events.Submit)
    assert (list(submit.ids), list(submit.functions), list(submit.sizes)) == ([0], [1], [6])
    assert bytes(submit.payload) == b"[1, 2]"
    heartbeat, goodbye = decoded("heartbeat"), decoded("goodbye")
    assert isinstance(heartbeat, events.Heartbeat) and heartbeat.sequence == 1
    assert isinstance(goodbye, events.Goodbye) and goodbye.reason == "done"


def test_handshake_of_the_program_is_that_of_the_listings() -> None:
    greeting, ready = (
        bytes_of(block) for block in re.findall(r"^```text\n((?:ff|04 1c).*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )
    assert len(greeting) == 64 and len(ready) == 2 + ready[1]
    lines = re.findall(r"^(?:GREETING|READY) = .*$", PAGE, re.MULTILINE)
    program: dict[str, bytes] = {}
    exec("\n".join(lines), program)
    assert (program["GREETING"], program["READY"]) == (greeting, ready)
