"""Tasks that a worker under test can run, and answers that a client under test can read."""

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
    """The function's bytes; none where it is offered by name."""
    payload: bytes

    @classmethod
    def parse(cls, text: str) -> Call:
        """Of "named json add [1, 2]": kind and arguments. Raises ArgumentTypeError, whose text argparse shows."""
        words = text.split(" ", 3)
        if len(words) < 3 or words[0] != "named":
            raise argparse.ArgumentTypeError(f"{text!r} is not KIND PAYLOAD, as in: named json add [1, 2]")
        return cls(" ".join(words[:3]), b"", words[3].encode() if len(words) > 3 else b"")


OWN_PYTHON = f"cloudpickle {sys.version_info[0]}.{sys.version_info[1]}"


def _runs_on() -> None:
    while True:
        time.sleep(0.01)


def python_calls() -> tuple[Call, Call]:
    """For workers that read this Python's pickles: one that returns at once, and one that runs until it is stopped."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    arguments = pickle.dumps(())
    return Call(OWN_PYTHON, cloudpickle.dumps(int), arguments), Call(OWN_PYTHON, cloudpickle.dumps(_runs_on), arguments)


def answer_to(kind: str) -> bytes:
    """A result that clients of this kind can read: nothing, as they have it."""
    if kind.startswith("cloudpickle"):
        return pickle.dumps(None)
    codec = kind.split(" ")[1] if kind.startswith("named ") else ""
    return {"json": b"null", "msgpack": b"\xc0"}.get(codec, b"")
