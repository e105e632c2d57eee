"""Writes the pickles of small calls with references by hand. benchmarks/graph_rate.py pays for it.

For a reference, pickle calls `__reduce__` and looks up the name of the returned function: 3 us per call, where a plain
call takes 0.4. That would be most of the cost of a node in a large graph. This module writes what pickle would write,
without frames and memo: references become calls of `load_input(k)`, small values of futures that are done calls of
`load_value`, and values of simple types pickle's own opcodes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from struct import pack
from typing import Any

from .input_lookup import LOAD_INPUT_CODE, LOAD_VALUE_CODE
from .references import REFERENCES, STAND_INS, InputCollector

SIMPLE_TYPES = frozenset({int, float, str, bytes, bool, type(None)})
"""Types whose pickles contain no names and no references."""

_dumps = pickle.dumps
_FRAMELESS = 3
"""The newest protocol without frames. Pickles with frames can't be concatenated."""

_LOAD_INPUT = pickle.EXT4 + pack("<I", LOAD_INPUT_CODE)
_LOAD_VALUE = pickle.EXT4 + pack("<I", LOAD_VALUE_CODE)
_CALL_END = pickle.TUPLE1 + pickle.REDUCE


def _load_input_pickle(position: int) -> bytes:
    """Return what pickle writes for `load_input(position)`."""
    return _LOAD_INPUT + _dumps(position, _FRAMELESS)[2:-1] + _CALL_END


CALL_BEGIN = pickle.PROTO + b"\x05" + pickle.MARK
CALL_END = pickle.TUPLE + pickle.STOP
"""The bytes before and after the parts of a call's arguments."""

INPUT_PICKLES = tuple(map(_load_input_pickle, range(256)))
"""The parts of arguments that are inputs, by position, for the first positions."""


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
            else:
                parts.append(INPUT_PICKLES[place] if place < len(INPUT_PICKLES) else _load_input_pickle(place))
        else:
            return None
    parts.append(CALL_END)
    return b"".join(parts)
