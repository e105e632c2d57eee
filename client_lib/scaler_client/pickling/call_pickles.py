"""Writes the pickles of small calls with references by hand. benchmarks/graph_rate.py pays for it.

For a reference, pickle calls `__reduce__` and looks up the name of the returned function: 3 us per call, where a plain
call takes 0.4. That would be most of the cost of a node in a large graph. This module writes what pickle would write,
without frames and memo. References become calls of `load_input(k)` or `load_shared_input(k)`. Small values of futures
that are done become calls of `load_value`. Values of simple types become pickle's own opcodes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any

from ..protocol.messages import Payload
from .input_lookup import LOAD_INPUT_CODE, LOAD_SHARED_CODE, LOAD_VALUE_CODE
from .references import (
    REFERENCES,
    STAND_INS,
    Call,
    CallWithInputs,
    InputCollector,
    ObjectRef,
    Reference,
    read_result,
)

SIMPLE_TYPES = frozenset({int, float, str, bytes, bool, type(None)})
"""Types whose pickles contain no names and no references."""

_dumps = pickle.dumps
_FRAMELESS = 3
"""The newest protocol without frames. Pickles with frames can't be concatenated."""

_LOAD_INPUT = pickle.EXT4 + pack("<I", LOAD_INPUT_CODE)
_LOAD_SHARED = pickle.EXT4 + pack("<I", LOAD_SHARED_CODE)
_LOAD_VALUE = pickle.EXT4 + pack("<I", LOAD_VALUE_CODE)
_CALL_END = pickle.TUPLE1 + pickle.REDUCE


def _load_input_pickle(position: int, load: bytes = _LOAD_INPUT) -> bytes:
    """Return what pickle writes for `load_input(position)`, or for another function with this argument."""
    return load + _dumps(position, _FRAMELESS)[2:-1] + _CALL_END


CALL_BEGIN = pickle.PROTO + b"\x05" + pickle.MARK
CALL_END = pickle.TUPLE + pickle.STOP
"""The bytes before and after the parts of a call's arguments."""

INPUT_PICKLES = tuple(map(_load_input_pickle, range(256)))
"""The parts of arguments that are inputs, by position, for the first positions."""

SHARED_INPUT_PICKLES = tuple(_load_input_pickle(position, _LOAD_SHARED) for position in range(256))
"""The same for inputs that the tasks of a worker share."""


# A name of the standard library: workers of earlier versions know it too.
_LOAD_BEGIN = pickle.PROTO + b"\x05" + pickle.GLOBAL + b"_pickle\nloads\n"
_LOAD_END = _CALL_END + pickle.STOP


def load_arguments_pickle(position: int) -> bytes:
    """Return the payload of a call whose pickled arguments are an input.

    Args:
        position: of the input.
    """
    return _LOAD_BEGIN + _load_input_pickle(position) + _LOAD_END


def arguments_pickle(payload: Payload) -> Payload:
    """Return the pickled arguments of a call that a worker runs now: an input, or the payload itself.

    Args:
        payload: of the call.

    Raises:
        RuntimeError: they are an input, and the thread runs no task.
    """
    begin, end = len(_LOAD_BEGIN), len(payload) - len(_LOAD_END)
    if bytes(payload[:begin]) != _LOAD_BEGIN:
        return payload
    data: Payload = pickle.loads(_LOAD_BEGIN[:2] + bytes(payload[begin:end]) + pickle.STOP)
    return data


SMALL_BYTES = 256
"""Results up to this size go inside the arguments, if the client has them."""


def simple_pickle(value: Any) -> bytes:
    """Return the part of an argument of a simple type."""
    return _dumps(value, _FRAMELESS)[2:-1]


def dump_simple_call(args: Iterable[Any], collector: InputCollector) -> bytes | None:
    """Return the payload of a call with references and values of simple types; None: there are other arguments.

    Args:
        args: the arguments of the call.
        collector: numbers the references. Its errors are passed on.
    """
    parts = [CALL_BEGIN]
    for value in args:
        kind = type(value)
        if kind in SIMPLE_TYPES:
            parts.append(simple_pickle(value))
        elif kind in REFERENCES or kind in STAND_INS:
            place = collector.place(value)
            if isinstance(place, bytes):
                parts += _LOAD_VALUE, simple_pickle(place), _CALL_END
            elif collector.shares_inputs or (kind is ObjectRef and value.stored.is_shared):
                parts.append(_load_input_pickle(place, _LOAD_SHARED))
            else:
                parts.append(INPUT_PICKLES[place] if place < len(INPUT_PICKLES) else _load_input_pickle(place))
        else:
            return None
    parts.append(CALL_END)
    return b"".join(parts)


def with_small_values(call: CallWithInputs) -> Call:
    """Return the call with the small results that the client has by now inside its arguments.

    A task that is submitted one by one often reads results that come before the task is sent. As objects they would
    cost a message each (benchmarks/chains.py).
    """
    values = list(map(_small_value, call.inputs))
    data = call.data
    if not any(values) or len(values) > len(INPUT_PICKLES) or bytes(data[: len(CALL_BEGIN)]) != CALL_BEGIN:
        return call  # a pickle with another beginning has frames with sizes
    data = bytes(data)
    if not all(data.count(INPUT_PICKLES[position]) == 1 for position in range(len(values))):
        return call  # an input is used twice, or a text in the arguments looks like an input
    parts: list[bytes] = []
    left: list[Reference | int] = []
    for position, value in enumerate(values):
        before, _, data = data.partition(INPUT_PICKLES[position])
        if value:
            parts += before, _LOAD_VALUE, simple_pickle(bytes(value)), _CALL_END
        else:
            parts += before, INPUT_PICKLES[len(left)]
            left.append(call.inputs[position])
    parts.append(data)
    data = b"".join(parts)
    return CallWithInputs(data, tuple(left), call.keep) if left or call.keep else data


def _small_value(each: Reference | int) -> Payload:
    """Return the pickle of a result, if the client has it and it is small; else nothing."""
    stored = read_result(each)
    frames: Sequence[Payload] = () if stored is None else stored.frames
    return frames[0] if len(frames) == 1 and len(frames[0]) <= SMALL_BYTES else b""
