"""Short lists of many owners in shared columns."""

from __future__ import annotations

from array import array
from typing import Generic, TypeVar

Item = TypeVar("Item")

NO_ENTRY = 0
"""In place of an entry of `Chains`: the end of a chain, or a chain without items."""

_ENTRY_BITS = 10
"""A block of `Chains` has 2 to the power of this many entries."""

_ENTRY_MASK = (1 << _ENTRY_BITS) - 1


class Chains(Generic[Item]):
    """Short lists as chains in shared columns, because in PyPy each list costs three objects and its spare room.

    An entry takes 12 bytes. The columns are blocks of fixed size, because PyPy copies a list that grows.
    """

    __slots__ = ("_free", "_items", "_next", "_used")

    def __init__(self) -> None:
        self._items: list[list[Item | None]] = []
        self._next: list[array[int]] = []
        """The following entry of the chain, or of the free entries."""
        self._free = NO_ENTRY
        self._used = 0

    def __len__(self) -> int:
        """The number of entries in use."""
        return self._used

    def add(self, item: Item, first: int) -> int:
        """Put the item before the entry `first` of a chain. Returns its entry."""
        if not self._free:
            self._grow()
        entry = self._free
        block, place = entry >> _ENTRY_BITS, entry & _ENTRY_MASK
        following = self._next[block]
        self._free = following[place]
        following[place] = first
        self._items[block][place] = item
        self._used += 1
        return entry

    def items(self, first: int) -> list[Item]:
        """Return the items of a chain in the order in which they were added."""
        found: list[Item] = []
        while first:
            block, place = first >> _ENTRY_BITS, first & _ENTRY_MASK
            item = self._items[block][place]
            assert item is not None
            found.append(item)
            first = self._next[block][place]
        found.reverse()
        return found

    def only_item(self, first: int) -> Item | None:
        """Return the item of a chain of one; None if it has none, or several."""
        block, place = first >> _ENTRY_BITS, first & _ENTRY_MASK
        return None if not first or self._next[block][place] else self._items[block][place]

    def pop(self, first: int) -> list[Item]:
        """Free the entries of a chain; return its items in the order in which they were added."""
        found: list[Item] = []
        free = self._free
        while first:
            entry = first
            block, place = entry >> _ENTRY_BITS, entry & _ENTRY_MASK
            items, following = self._items[block], self._next[block]
            item = items[place]
            assert item is not None
            found.append(item)
            items[place] = None
            first = following[place]
            following[place] = free
            free = entry
        self._free = free
        self._used -= len(found)
        if not self._used and len(self._items) > 1:  # one block stays, for chains that come and go one by one
            self._items, self._next, self._free = [], [], NO_ENTRY
        found.reverse()
        return found

    def _grow(self) -> None:
        """Add a block of free entries."""
        begin = len(self._items) << _ENTRY_BITS
        end = begin + _ENTRY_MASK + 1
        self._items.append([None] * (end - begin))
        self._next.append(array("I", range(begin + 1, end + 1)))
        self._next[-1][-1] = NO_ENTRY
        self._free = begin or 1  # the first entry of all is never used: its number is NO_ENTRY
