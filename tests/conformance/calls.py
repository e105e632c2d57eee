"""Calls for a worker under test, and results for a client under test."""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

import cloudpickle

from scaler_client.pickling.input_lookup import load_input


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


class _Input:
    """Stands for an input, by position, in pickled arguments."""

    def __reduce__(self) -> Any:
        return load_input, (0,)


def with_input(call: Call) -> tuple[bytes, bytes] | None:
    """Return a payload, and the bytes of an input behind it, that make the same call; None: it has no argument.

    Blanks behind the bytes of the input change nothing, except with the codec raw.
    """
    codec = call.kind.split(" ")[1]
    if call.kind == OWN_PYTHON and call.payload == pickle.dumps(()):
        return pickle.dumps((_Input(),)), pickle.dumps(0)  # int(0) for int()
    if codec == "raw" and call.payload:
        return call.payload[:-1], call.payload[-1:]
    if codec == "json":
        with suppress(ValueError):
            *first, last = json.loads(call.payload)
            return json.dumps(first).encode(), json.dumps(last).encode()
    return None


def answer_to(kind: str) -> bytes:
    """Return a result that clients of this kind can read: None, null or no bytes."""
    if kind.startswith("cloudpickle"):
        return pickle.dumps(None)
    codec = kind.split(" ")[1] if kind.startswith("named ") else ""
    return {"json": b"null", "msgpack": b"\xc0"}.get(codec, b"")
