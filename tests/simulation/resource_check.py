"""Checks that no resource of a host is given twice, from the texts of bookings alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from scaler_scheduler.core import events

UNIT = 1000


def read_claim(text: str) -> events.Claim:
    """Read a booking, `7 cpus=2 gpu=1.5:0+1`."""
    number, *parts = text.split(" ")
    amounts = []
    for part in parts:
        name, _, rest = part.partition("=")
        amount, _, ids = rest.partition(":")
        units = tuple([int(each) for each in ids.split("+")]) if ids else ()
        amounts.append((name, round(float(amount) * UNIT), units))
    return int(number), tuple(amounts)


def double_booking(claims: Iterable[events.Claim], resources: events.HostResources) -> str:
    """Return what is given twice by these bookings of one host; empty: nothing is. The workers that stand for `cpus`
    are not counted."""
    totals = {name: amount for name, amount, _ in resources}
    with_ids = {name for name, _, has_ids in resources if has_ids}
    used: Counter[str] = Counter()
    units: Counter[tuple[str, int]] = Counter()
    for _, amounts in claims:
        for name, amount, ids in amounts:
            if name == "cpus":
                continue
            used[name] += amount
            whole, part = divmod(amount, UNIT)
            if name in with_ids and len(ids) != whole + (part > 0):
                return f"{amount} of {name} with the ids {ids}"
            for at, unit in enumerate(ids):
                units[name, unit] += UNIT if at < whole else part
                if unit >= totals.get(name, 0) // UNIT:
                    return f"unit {unit} of {name}, which does not exist"
    for name, amount in used.items():
        if amount > totals.get(name, 0):
            return f"{amount} of {totals.get(name, 0)} {name}"
    for (name, unit), amount in units.items():
        if amount > UNIT:
            return f"unit {unit} of {name}"
    return ""
