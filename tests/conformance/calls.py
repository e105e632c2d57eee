"""Calls for a worker under test, and results for a client under test."""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from typing import NamedTuple

import cloudpickle


class Call(NamedTuple):
    kind: str
    function: bytes
    """The function's bytes; empty: workers offer it by name."""
    payload: bytes

    @classmethod
    def parse(cls, text: str) -> Call:
        """Parse kind and arguments, for example "named json add [1, 2]".

        Raises:
            ArgumentTypeError: the text is wrong; argparse shows the error.
        """
        words = text.split(" ", 3)
        if len(words) < 3 or words[0] != "named":
            raise argparse.ArgumentTypeError(f"{text!r} is not KIND PAYLOAD, as in: named json add [1, 2]")
        return cls(" ".join(words[:3]), b"", words[3].encode() if len(words) > 3 else b"")


OWN_PYTHON = f"cloudpickle {sys.version_info[0]}.{sys.version_info[1]}"


def _runs_on() -> None:
    while True:
        time.sleep(0.01)


def python_calls() -> tuple[Call, Call]:
    """Return two calls for workers with this version of Python: one returns at once, one runs until it is stopped."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    arguments = pickle.dumps(())
    return Call(OWN_PYTHON, cloudpickle.dumps(int), arguments), Call(OWN_PYTHON, cloudpickle.dumps(_runs_on), arguments)


def answer_to(kind: str) -> bytes:
    """Return a result that clients of this kind can read: None, null or no bytes."""
    if kind.startswith("cloudpickle"):
        return pickle.dumps(None)
    codec = kind.split(" ")[1] if kind.startswith("named ") else ""
    return {"json": b"null", "msgpack": b"\xc0"}.get(codec, b"")
