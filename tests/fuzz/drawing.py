"""What a fuzzer's bytes say: numbers and choices, drawn one after another. At the end everything is 0."""

from __future__ import annotations

from typing import List, Sequence, TypeVar

Choice = TypeVar("Choice")

FAR = (
    0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
"""Numbers at which something may end."""

_FAR_FROM = 0xF0
"""A byte from here on stands for one of these."""


class Drawing:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def below(self, limit: int) -> int:
        """From 0 to `limit` - 1, which is at most 255."""
        if self._at >= len(self._data):
            return 0
        byte = self._data[self._at]
        self._at += 1
        return byte % limit

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        return choices[self.below(len(choices))]

    def number(self, bits: int) -> int:
        """A small one, or one at which something may end; below 2 to the power of `bits`."""
        byte = self.below(256)
        return byte if byte < _FAR_FROM else min(FAR[byte % len(FAR)], (1 << bits) - 1)

    def bytes(self, most: int) -> bytes:
        """At most so many, which is at most 255."""
        size = self.below(most + 1)
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def rest(self) -> bytes:
        taken = self._data[self._at :]
        self._at = len(self._data)
        return taken


def frames_of(data: bytes) -> List[bytes]:
    """A message's: how many there are behind the first one, these with their sizes, and the first one."""
    drawing = Drawing(data)
    further = [drawing.bytes(255) for _ in range(drawing.below(4))]
    return [drawing.rest(), *further]


def data_of(frames: Sequence[bytes]) -> bytes:
    """The reverse, as far as they are not too many or too long for it."""
    further = [frame[:255] for frame in frames[1:4]]
    return b"".join([bytes([len(further)]), *(bytes([len(frame)]) + frame for frame in further), frames[0]])
