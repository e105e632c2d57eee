"""Reads and writes batches directly from and to their bytes, a whole column at a time.

A batch is a struct of lists only. Their elements are packed little-endian numbers, which `array` copies as a whole.
pycapnp reads and writes such lists element by element through several layers. That took a third of a single task's
round trip (benchmarks/latency.py), and 0.3 us per task of a long batch (benchmarks/map_rate.py).

The layout is Cap'n Proto's (its encoding specification: stream framing, struct and list pointers). A legal message with
an unusual layout (several segments, far pointers) goes through pycapnp first, which brings it into one segment.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple, Union

_SIZE_TAGS = {"B": 2, "I": 4, "Q": 5}
_SHIFTS = {"B": 0, "I": 2, "Q": 3}
_SWAP = sys.byteorder == "big"

_WORDS = 1 << 29
"""The offset in a struct or list pointer is a signed number of 30 bits: from this value on it is negative."""

_ROOT = 1 << 32 | 1 << 48
_HEADER = Struct("<IIQQQ")
_FIRST = Struct("<IIQ")
_SEGMENT = Struct("<II")
_WORD = Struct("<Q")
_POINTERS = [Struct(f"<{count}Q") for count in range(64)]

# Most columns of a single task's messages have one element. An array for it costs three times as much as a Struct.
_ONE = {"B": Struct("<B"), "I": Struct("<I"), "Q": Struct("<Q")}


class WireError(Exception):
    """The bytes are not a message of this protocol."""


class UnusualLayoutError(Exception):
    """The bytes are not a message in one segment with near pointers. They may still be a legal message."""


class StructBody(NamedTuple):
    """A struct with everything it refers to. Pointers are relative, so it fits anywhere in a message."""

    sizes: int
    """The number of data words, and the number of pointer words << 16."""
    content: bytes


Values = Union[Sequence[int], bytes, StructBody]


def body_of(frame: bytes) -> StructBody:
    """Return the root struct of a message in one segment.

    Raises:
        UnusualLayoutError: the message has several segments or an offset of its root.
    """
    segments, size, root = _FIRST.unpack_from(frame)
    if segments or size + 1 << 3 != len(frame) or root & 0xFFFFFFFF:
        raise UnusualLayoutError
    return StructBody(root >> 32, frame[16:])


def write_batch(tag: int, columns: Sequence[tuple[str, Values]]) -> bytes:
    """Return a message with a batch.

    Args:
        tag: the ordinal of the batch in the union of the schema's Message.
        columns: for each field, in order, a typecode (B, I or Q, as in `array`) and the numbers. An empty column
            becomes a null pointer. Bytes are a Data field, a StructBody is a struct.
    """
    count = len(columns)
    pointers = []
    bodies = []
    offset = count  # of the next body, in words from the pointer before this one
    for typecode, values in columns:
        offset -= 1
        length = len(values)
        if not length:
            pointers.append(0)
            continue
        if type(values) is bytes:
            body = values
        elif isinstance(values, StructBody):
            pointers.append(offset << 2 | values.sizes << 32)
            bodies.append(values.content)
            offset += len(values.content) >> 3
            continue
        elif length == 1:
            body = _ONE[typecode].pack(values[0])
        else:
            numbers = array(typecode, values)
            if _SWAP:
                numbers.byteswap()
            body = numbers.tobytes()
        pointers.append(offset << 2 | 1 | (length << 3 | _SIZE_TAGS[typecode]) << 32)
        size = len(body)
        words = size + 7 >> 3
        bodies.append(body if not size & 7 else body.ljust(words << 3, b"\0"))
        offset += words
    # Number of segments - 1, and size. The root pointer, to a struct of one data word and one pointer. The union's tag.
    # The pointer to the batch, which is a struct of `count` pointers.
    head = _HEADER.pack(0, 3 + count + offset, _ROOT, tag, count << 48)
    return b"".join((head, _POINTERS[count].pack(*pointers), *bodies))


class BatchReader:
    """Reads a message in one segment, field by field.

    Raises:
        UnusualLayoutError: a pointer is unusual or reaches beyond the message. Every method raises this.
    """

    __slots__ = ("_frame", "_pointers", "_start", "tag")

    def __init__(self, frame: bytes) -> None:
        length = len(frame)
        if length < 16 or length & 7:
            raise UnusualLayoutError
        segments, size = _SEGMENT.unpack_from(frame)
        if segments or size + 1 << 3 != length:
            raise UnusualLayoutError
        self._frame = frame
        start, data, pointers = self._struct(8)
        if not data or not pointers:
            raise UnusualLayoutError
        self.tag = frame[start] | frame[start + 1] << 8
        start, data, pointers = self._struct(start + 8 * data)
        if pointers >= len(_POINTERS):
            raise UnusualLayoutError
        self._start = start + 8 * data
        self._pointers = _POINTERS[pointers].unpack_from(frame, self._start)

    def _struct(self, at: int) -> tuple[int, int, int]:
        """Follow the struct pointer at byte `at`; return the struct's offset, its data words and its pointer words."""
        (pointer,) = _WORD.unpack_from(self._frame, at)
        offset = pointer >> 2 & 0x3FFFFFFF
        data = pointer >> 32 & 0xFFFF
        pointers = pointer >> 48
        start = at + 8 + 8 * offset
        if pointer & 3 or offset >= _WORDS or start + 8 * (data + pointers) > len(self._frame):
            raise UnusualLayoutError
        return start, data, pointers

    def _list(self, field: int, tag: int, shift: int) -> tuple[int, int]:
        """Return the offsets of the begin and end of a field's list; both are 0 for a null pointer.

        Args:
            field: the field's number.
            tag: the expected size tag of the list.
            shift: an element has 2 ** shift bytes.
        """
        if field >= len(self._pointers):
            return 0, 0
        pointer = self._pointers[field]
        if not pointer:
            return 0, 0
        offset = pointer >> 2 & 0x3FFFFFFF
        start = self._start + 8 * (field + 1 + offset)
        end = start + (pointer >> 35 << shift)
        if pointer & 3 != 1 or offset >= _WORDS or pointer >> 32 & 7 != tag or end > len(self._frame):
            raise UnusualLayoutError
        return start, end

    def numbers(self, field: int, typecode: str) -> list[int]:
        """Return the numbers of a field; none for a null pointer."""
        shift = _SHIFTS[typecode]
        start, end = self._list(field, _SIZE_TAGS[typecode], shift)
        if end - start == 1 << shift:
            return list(_ONE[typecode].unpack_from(self._frame, start))
        numbers = array(typecode)
        numbers.frombytes(self._frame[start:end])
        if _SWAP:
            numbers.byteswap()
        return numbers.tolist()

    def data(self, field: int) -> bytes:
        """Return the bytes of a field; none for a null pointer."""
        start, end = self._list(field, 2, 0)
        return self._frame[start:end]


def expand_column(values: list[int], rows: int, name: str) -> list[int]:
    """Return the column at full length. A column of one element holds it for every row.

    Args:
        values: the column as it travels.
        rows: the number of rows of its batch.
        name: the column's name in the schema, for the error.

    Raises:
        WireError: the column has neither one element nor one for each row.
    """
    if len(values) == rows:
        return values
    if len(values) == 1:
        return values * rows
    raise WireError(f"column {name} has {len(values)} elements for {rows} rows")
