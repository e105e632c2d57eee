"""Texts for people: names that other peers have chosen do not control a terminal or fill a log."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from scaler_client.protocol import messages
from scaler_client.protocol.decode import MAX_TEXT_CHARACTERS, decode
from scaler_scheduler.core import effects
from scaler_scheduler.wire.encode import Identity, encode

IDENTITY = Identity(1, "0.1.0")


@pytest.mark.parametrize(
    "effect, field",
    [
        (lambda text: effects.Notice(b"", text), "text"),
        (lambda text: effects.Error(b"", text), "text"),
        (lambda text: effects.Goodbye(b"", text), "reason"),
        (lambda text: effects.Refused(b"", effects.REFUSED_NOT_AUTHORIZED, text), "text"),
        (lambda text: effects.EndWorker(b"", 1, 2, 3, 4, text), "reason"),
    ],
)
def test_texts_are_cut_and_printable(effect, field):
    def read(text: str) -> str:
        message = decode([bytes(frame) for frame in encode(effect(text), IDENTITY)])
        assert isinstance(
            message, (messages.Notice, messages.Error, messages.Goodbye, messages.Refused, messages.EndWorker)
        )
        return getattr(message, field)

    assert read("host café: 3 workers") == "host café: 3 workers"
    assert read("\x1b[2Jhost\nERROR all is lost\u202e") == r"\x1b[2Jhost\nERROR all is lost\u202e"
    long = read("a" * 100_000 + " the cause")
    assert len(long) <= MAX_TEXT_CHARACTERS and long.startswith("aaa") and long.endswith("the cause")
