"""Makes the arrays of a value read-only, which all tasks of a worker share."""

from __future__ import annotations

import sys
from collections import deque
from itertools import islice
from typing import Any

MOST_PARTS = 10_000
"""At most so many parts of a value are looked at."""


def make_read_only(value: Any) -> None:
    """Make a NumPy array read-only, and arrays in lists, tuples and dicts, as deep as they are.

    A task that changed an array in place would change it for the next task of this worker. Arrays whose bytes are not
    in the pickle need no help: they are views of read-only memory.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    kinds = (numpy.ndarray, list, tuple, dict)
    found = deque([value])
    left = MOST_PARTS
    while found:
        each = found.popleft()
        if isinstance(each, numpy.ndarray):
            each.flags.writeable = False
        elif isinstance(each, (list, tuple, dict)):
            parts = list(islice(each.values() if isinstance(each, dict) else each, left))
            left -= len(parts)
            found.extend(part for part in parts if isinstance(part, kinds))
