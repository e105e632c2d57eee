"""Numbers and choices, drawn from a fuzzer's bytes one after another. After the end of the bytes, all numbers are 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")

FAR = (
    0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
"""Numbers at which a range may end."""

_FAR_FROM = 0xF0
"""A byte of at least this value stands for one of these."""


class Drawing:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1. `limit` is at most 256."""
        if self._at >= len(self._data):
            return 0
        byte = self._data[self._at]
        self._at += 1
        return byte % limit

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        return choices[self.below(len(choices))]

    def number(self, bits: int) -> int:
        """Return a small number, or one at which a range may end, below 2 to the power of `bits`."""
        byte = self.below(256)
        return byte if byte < _FAR_FROM else min(FAR[byte % len(FAR)], (1 << bits) - 1)

    def bytes(self, most: int) -> bytes:
        """Return at most `most` bytes; `most` is at most 255."""
        size = self.below(most + 1)
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def rest(self) -> bytes:
        taken = self._data[self._at :]
        self._at = len(self._data)
        return taken


def frames_of(data: bytes) -> list[bytes]:
    """Return a message's frames: their number, the frames but the first with their sizes, and the first one."""
    drawing = Drawing(data)
    further = [drawing.bytes(255) for _ in range(drawing.below(4))]
    return [drawing.rest(), *further]


def data_of(frames: Sequence[bytes]) -> bytes:
    """The reverse of `frames_of`, as far as the number and the sizes of the frames allow."""
    further = [frame[:255] for frame in frames[1:4]]
    return b"".join([bytes([len(further)]), *(bytes([len(frame)]) + frame for frame in further), frames[0]])
