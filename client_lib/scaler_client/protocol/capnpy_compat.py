"""Reads messages with capnpy behind pycapnp's interface, for interpreters without pycapnp (PyPy).

It serves programs that only read published messages, such as scaler_top. Structs have attributes named as in the
schema, and lists of numbers are Python lists. Enumerators keep capnpy's spelling: published messages have none.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from struct import error as StructError
from sys import byteorder
from typing import Any

from .capnpy_import import import_capnpy

import_capnpy()

from capnpy import ptr  # noqa: E402
from capnpy.list import List as CapnpyList  # noqa: E402
from capnpy.struct_ import Struct as CapnpyStruct  # noqa: E402

from .capnpy_schema import Message as CapnpyMessage  # noqa: E402

MALFORMED = (
    AssertionError,
    AttributeError,
    EOFError,
    IndexError,
    OverflowError,
    StructError,
    SystemError,
    TypeError,
    ValueError,
)
"""The exceptions that reading raises for truncated, contradictory or hostile bytes."""

_TYPECODES = {ptr.LIST_SIZE_8: "B", ptr.LIST_SIZE_32: "I", ptr.LIST_SIZE_64: "Q"}


class _ReadLimit:
    """Limits the bytes that are read from one message.

    Reason: many pointers may refer to the same bytes, or to no bytes.
    """

    __slots__ = ("_left",)

    def __init__(self, words: int) -> None:
        self._left = words * 8

    def consume(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueError("the message refers to the same bytes too often")


class _Struct:
    """A capnpy struct with pycapnp's attributes."""

    __slots__ = ("_limit", "_struct")

    def __init__(self, struct: Any, limit: _ReadLimit) -> None:
        self._struct = struct
        self._limit = limit

    def which(self) -> str:
        """Return the union's member, or its number if only a newer schema has it."""
        number = int(self._struct.__which__())
        members: tuple[str, ...] = self._struct.__tag__.__members__
        return _camel_case(members[number]) if 0 <= number < len(members) else str(number)

    def __getattr__(self, name: str) -> Any:
        own = _snake_case(name)
        # For a null pointer this returns the default, as pycapnp does, not None.
        getter = getattr(self._struct, f"get_{own}", None)
        value = getattr(self._struct, own) if getter is None else getter()
        if isinstance(value, (bytes, str)):
            self._limit.consume(len(value))
            return value
        if isinstance(value, CapnpyList):
            return self._list(value)
        if isinstance(value, CapnpyStruct):
            self._limit.consume(8)
            return _Struct(value, self._limit)
        return value

    def _list(self, values: Any) -> list[Any]:
        self._limit.consume(8 + len(values) * max(1, values._item_length))
        typecode = _TYPECODES.get(values._size_tag)
        if typecode is None:
            return [_Struct(one, self._limit) if isinstance(one, CapnpyStruct) else one for one in values]
        begin = values._offset
        end = begin + values._item_count * values._item_length
        if begin < 0 or end > len(values._seg.buf):
            raise ValueError("a list reaches beyond the message")
        numbers = array(typecode)
        numbers.frombytes(values._seg.buf[begin:end])
        if byteorder == "big":
            numbers.byteswap()
        return numbers.tolist()


class _Message:
    """Stands in for pycapnp's class of the schema's Message."""

    @staticmethod
    @contextmanager
    def from_bytes(frame: bytes, traversal_limit_in_words: int) -> Iterator[_Struct]:
        yield _Struct(CapnpyMessage.loads(frame), _ReadLimit(traversal_limit_in_words))


class _Schema:
    Message = _Message


SCHEMA = _Schema()


@cache
def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def _camel_case(name: str) -> str:
    return re.sub("_([a-z])", lambda letter: letter.group(1).upper(), name)
