"""Counted resources of a host: how much there is of each, and what is booked. Amounts are thousandths of a unit.

A resource may have identities, such as GPUs: its units have the ids 0 to n - 1. Whole amounts take whole units. A
fraction takes a part of one unit. `cpus` is no pool: a host's workers are its processors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaler_scheduler.core.events import UNIT, Resources

_SIZES = ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"))


class ResourcePool:
    """One resource of one host."""

    __slots__ = ("has_ids", "total", "units", "used")

    def __init__(self, total: int = 0, has_ids: bool = False) -> None:
        self.total = total
        self.has_ids = has_ids
        self.used = 0
        """May exceed `total`, if the host has less than before, or workers name what they hold after a restart."""
        self.units: dict[int, int] = {}
        """What is used of each unit, if it is not 0."""

    @property
    def free(self) -> int:
        return self.total - self.used

    def fits(self, amount: int, kept: int = 0) -> bool:
        """Whether so much is free, beside what is kept for another task."""
        if amount > self.total - self.used - kept:
            return False
        return not self.has_ids or self.choose(amount, kept) is not None

    def choose(self, amount: int, kept: int = 0) -> list[tuple[int, int]] | None:
        """Return units with the part that is taken of each: whole ones, and for a fraction the fullest that has room.

        Args:
            amount: thousandths.
            kept: thousandths that are kept for another task. Whole units are kept for it.

        Returns:
            Units and parts; None: not so many units are free.
        """
        whole, part = divmod(amount, UNIT)
        units = self.units
        empty = [unit for unit in range(self.total // UNIT) if unit not in units]
        spare = len(empty) - -(-kept // UNIT)
        if whole > spare:
            return None
        chosen = [(unit, UNIT) for unit in empty[:whole]]
        if part:
            shared = [unit for unit, used in units.items() if used + part <= UNIT and unit < self.total // UNIT]
            if shared:
                chosen.append((max(shared, key=lambda unit: (units[unit], -unit)), part))
            elif whole < spare:
                chosen.append((empty[whole], part))
            else:
                return None
        return chosen

    def take(self, amount: int, parts: Iterable[tuple[int, int]]) -> None:
        """Book an amount, with these parts of units, whether so much is free or not."""
        self.used += amount
        for unit, part in parts:
            self.units[unit] = self.units.get(unit, 0) + part

    def give_back(self, amount: int, parts: Iterable[tuple[int, int]]) -> None:
        """Undo a `take`."""
        self.used -= amount
        for unit, part in parts:
            left = self.units[unit] - part
            if left:
                self.units[unit] = left
            else:
                del self.units[unit]

    @property
    def is_exceeded(self) -> bool:
        """Whether more is booked than there is."""
        if self.used > self.total:
            return True
        return any(used > UNIT or unit * UNIT >= self.total for unit, used in self.units.items())


def parts_of(amount: int, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the parts of units that an amount takes of units with these ids: the last one gives the fraction."""
    whole, part = divmod(amount, UNIT)
    return [(unit, UNIT) for unit in ids[:whole]] + ([(ids[whole], part)] if part and len(ids) > whole else [])


def amount_text(amount: int) -> str:
    """Return thousandths as a decimal number: 1500 is 1.5."""
    whole, part = divmod(amount, UNIT)
    return f"{whole}.{part:03}".rstrip("0") if part else str(whole)


def shown_amount(amount: int) -> str:
    """Return thousandths for people: `1.5`, or `3G`. From a mebibyte on, amounts are sizes, as monitors show them."""
    for size, letter in _SIZES:
        if amount >= size * UNIT:
            return f"{amount / UNIT / size:.4g}{letter}"
    return amount_text(amount)


def resources_text(resources: Resources) -> str:
    """Return resources for people: `gpu=0.5, memory=4G`."""
    return ", ".join(f"{name}={shown_amount(amount)}" for name, amount in resources)
