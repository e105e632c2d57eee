"""Pickles of small calls that refer to objects, put together by hand.

Pickle calls a reference's `__reduce__` and looks up what it names: 3 us a call where a plain one takes 0.4, which is
most of what a node of a large graph costs. What is written here is what pickle would have written, less its frames and
memo: references become `load_input(k)`, and values of simple types the opcodes that pickle itself makes of them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from struct import pack
from typing import Any

from .input_lookup import LOAD_INPUT_CODE
from .references import REFERENCES, Reference

SIMPLE_TYPES = frozenset({int, float, str, bytes, bool, type(None)})
"""Types whose pickles name nothing and refer to nothing."""

_dumps = pickle.dumps
_FRAMELESS = 3
"""The newest protocol whose pickles have no frames, which would not fit behind one another."""

_LOAD_INPUT = pickle.EXT4 + pack("<I", LOAD_INPUT_CODE)


def _load_input_pickle(position: int) -> bytes:
    """What pickle writes for `load_input(position)`."""
    return _LOAD_INPUT + _dumps(position, _FRAMELESS)[2:-1] + pickle.TUPLE1 + pickle.REDUCE


CALL_BEGIN = pickle.PROTO + b"\x05" + pickle.MARK
CALL_END = pickle.TUPLE + pickle.STOP
"""What stands around the parts of a call's arguments."""

INPUT_PICKLES = tuple(map(_load_input_pickle, range(256)))
"""The parts of arguments that are inputs, for the first positions."""


def simple_pickle(value: Any) -> bytes:
    """The part of an argument of a simple type."""
    return _dumps(value, _FRAMELESS)[2:-1]


def dump_simple_call(args: Iterable[Any], position: Callable[[Reference], int]) -> bytes | None:
    """The payload of a call whose arguments are references and values of simple types; None where they aren't.

    Args:
        position: which input a reference is. What it raises, this raises.
    """
    parts = [CALL_BEGIN]
    for value in args:
        kind = type(value)
        if kind in SIMPLE_TYPES:
            parts.append(simple_pickle(value))
        elif kind in REFERENCES:
            place = position(value)
            parts.append(INPUT_PICKLES[place] if place < len(INPUT_PICKLES) else _load_input_pickle(place))
        else:
            return None
    parts.append(CALL_END)
    return b"".join(parts)
