"""Amounts of counted resources, as people write them: for `client.options(resources=...)` and `scaler_cluster
--resources`. They are counted in thousandths of a unit."""

from __future__ import annotations

import math
import numbers
import operator
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

UNIT = 1000
"""The thousandths of one unit."""

MAX_AMOUNT = 1 << 50
"""The largest amount, in units: a pebibyte."""

MAX_NAMES = 16
"""The most resources of a task."""

CPUS = "cpus"
"""The resource that stands for workers of a host."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_AMOUNT = re.compile(
    r"([+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,3})?) ?(?:([KMGTP])(?:i?B)?)?", re.ASCII | re.IGNORECASE
)
_MAX_SHOWN = 40


def checked_resource_name(name: str) -> str:
    """Return the name of a resource.

    Raises:
        ValueError: it is no name.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} is no name of a resource: 1 to 64 letters, digits, '_', '-' and '.'")
    return name


def resource_amount(name: str, given: Any) -> int:
    """Return an amount in thousandths.

    Args:
        name: the resource, for errors.
        given: a number of units, or a text such as `64G` or `0.5`: K, M, G, T and P are powers of 1024.

    Raises:
        TypeError: it is neither a number nor a text.
        ValueError: it is no amount, not above 0, finer than a thousandth, or too large. Sizes such as `0.3G` are
            rounded up.
    """
    factor = 1
    number: int | Decimal | Fraction
    if isinstance(given, str):
        found = _AMOUNT.fullmatch(given.strip())
        if found is None:
            units = "" if name == CPUS else ", or one with K, M, G, T or P"
            raise ValueError(f"{shown(given)} is no amount of {name}: give a number{units}")
        number, factor = Decimal(found.group(1)), _SIZES[(found.group(2) or "").upper()]
        if factor != 1 and name == CPUS:
            raise ValueError(f"{shown(given)} is no amount of {CPUS}: give a number, without K, M, G, T or P")
    elif isinstance(given, bool) or not isinstance(given, (numbers.Real, Decimal)):
        example = "4" if name == CPUS else "4G"
        raise TypeError(f"the amount of {name} must be a number or a text such as '{example}', not {shown(given)}")
    elif isinstance(given, numbers.Integral):  # also NumPy's
        number = operator.index(given)
    elif isinstance(given, Decimal):
        number = given
    elif isinstance(given, numbers.Rational):
        number = Fraction(given)
    else:
        number = Decimal(str(given))  # the shortest digits of the same float, for NumPy's floats too
    if isinstance(number, Decimal) and not number.is_finite():
        raise ValueError(f"{shown(given)} is no amount of {name}")
    if not 0 < number * factor <= MAX_AMOUNT:
        raise ValueError(f"the amount of {name} must be above 0 and at most {MAX_AMOUNT}, not {shown(given)}")
    thousandths = number * factor * UNIT
    if thousandths < 1:
        raise ValueError(f"the amount of {name} must be at least 0.001, not {shown(given)}")
    if factor == 1 and thousandths != int(thousandths):
        raise ValueError(f"amounts of {name} are multiples of 0.001, and {shown(given)} is not")
    return math.ceil(thousandths)


def units_of(thousandths: int) -> int | float:
    """Return an amount in units: a whole number, or else a float."""
    return thousandths / UNIT if thousandths % UNIT else thousandths // UNIT


def shown(given: object) -> str:
    """Return at most 40 characters of a value's text, for an error. Python does not print integers of thousands of
    digits."""
    try:
        text = repr(given)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
