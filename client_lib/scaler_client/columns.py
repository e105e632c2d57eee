"""Batch messages straight from and to their bytes.

A batch is a struct of nothing but lists. Their elements lie in the message as packed little-endian numbers, which
`array` and `memoryview` copy whole. pycapnp reads and writes such lists element by element through several layers: of a
single task's round trip that was a third, and of each task of a long batch 0.3 us (`make bench`, one task; map).

The layout is Cap'n Proto's own (its encoding specification: stream framing, struct and list pointers). Whatever is
legal and not plain (several segments, far pointers) is brought into one segment by pycapnp first.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Union

Values = Union[Sequence[int], bytes]

_SIZE_TAGS = {"B": 2, "I": 4, "Q": 5}
_TYPECODES = {2: "B", 4: "I", 5: "Q"}
_ITEM_SIZES = {"B": 1, "I": 4, "Q": 8}
_SWAP = sys.byteorder == "big"

_WORDS = 1 << 29
"""A struct or list pointer's offset is a signed number of 30 bits: at or above this it is negative."""

_HEADER = Struct("<IIQQQ")
_WORD = Struct("<Q")


class NotPlainError(Exception):
    """The bytes are no message in one segment with near pointers; they may be a message all the same, or garbage."""


def write_batch(tag: int, columns: Sequence[tuple[str, Values]]) -> bytes:
    """A message whose union's member `tag` is a struct of these lists.

    Args:
        columns: a typecode (B, I or Q, as in `array`) and numbers for each field, in field order; an empty one becomes
            a null pointer. Bytes stand for a Data field.
    """
    count = len(columns)
    pointers = []
    bodies = []
    words = 0
    for field, (typecode, values) in enumerate(columns):
        length = len(values)
        if not length:
            pointers.append(0)
            continue
        if type(values) is bytes:
            body = values
        else:
            numbers = array(typecode, values)
            if _SWAP:
                numbers.byteswap()
            body = numbers.tobytes()
        offset = count - field - 1 + words
        pointers.append(offset << 2 | 1 | (length << 3 | _SIZE_TAGS[typecode]) << 32)
        bodies.append(body)
        padding = -len(body) & 7
        if padding:
            bodies.append(b"\0" * padding)
        words += len(body) + padding >> 3
    # Segment count - 1 and size; the root pointer to a struct of one data and one pointer word; the union's tag; the
    # pointer to the batch, a struct of `count` pointers.
    head = _HEADER.pack(0, 3 + count + words, 1 << 32 | 1 << 48, tag, count << 48)
    return b"".join([head, *map(_WORD.pack, pointers), *bodies])


class Batch:
    """A message in one segment, read by field. Every method raises NotPlainError where a pointer is anything unusual."""

    __slots__ = ("_frame", "_pointers", "_start", "tag")

    def __init__(self, frame: bytes) -> None:
        length = len(frame)
        if (
            length < 16
            or length & 7
            or frame[:4] != b"\0\0\0\0"
            or int.from_bytes(frame[4:8], "little") + 1 != length >> 3
        ):
            raise NotPlainError
        self._frame = frame
        start, data, pointers = self._struct(8)
        if not data or not pointers:
            raise NotPlainError
        self.tag = frame[start] | frame[start + 1] << 8
        start, data, self._pointers = self._struct(start + 8 * data)
        self._start = start + 8 * data

    def _struct(self, at: int) -> tuple[int, int, int]:
        """Follow the struct pointer at a byte: where it begins, its data words, its pointer words."""
        (pointer,) = _WORD.unpack_from(self._frame, at)
        offset = pointer >> 2 & 0x3FFFFFFF
        data = pointer >> 32 & 0xFFFF
        pointers = pointer >> 48
        start = at + 8 + 8 * offset
        if pointer & 3 or offset >= _WORDS or start + 8 * (data + pointers) > len(self._frame):
            raise NotPlainError
        return start, data, pointers

    def _list(self, field: int) -> tuple[int, int, int]:
        """Where the field's list begins, its element size's tag and its length."""
        if field >= self._pointers:
            return 0, 0, 0
        at = self._start + 8 * field
        (pointer,) = _WORD.unpack_from(self._frame, at)
        if not pointer:
            return 0, 0, 0
        offset = pointer >> 2 & 0x3FFFFFFF
        if pointer & 3 != 1 or offset >= _WORDS:
            raise NotPlainError
        return at + 8 + 8 * offset, pointer >> 32 & 7, pointer >> 35

    def numbers(self, field: int, typecode: str) -> list[int]:
        """The field's numbers; none for a null pointer."""
        start, tag, length = self._list(field)
        if not length:
            return []
        end = start + length * _ITEM_SIZES[typecode]
        if _TYPECODES.get(tag) != typecode or end > len(self._frame):
            raise NotPlainError
        numbers = array(typecode)
        numbers.frombytes(self._frame[start:end])
        if _SWAP:
            numbers.byteswap()
        return numbers.tolist()

    def data(self, field: int) -> bytes:
        """The field's bytes; none for a null pointer."""
        start, tag, length = self._list(field)
        if not length:
            return b""
        if tag != 2 or start + length > len(self._frame):
            raise NotPlainError
        return self._frame[start : start + length]
