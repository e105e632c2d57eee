"""Makes the small arrays of an input read-only."""

from __future__ import annotations

import sys
from collections import deque
from itertools import islice
from typing import Any

MOST_PARTS = 10_000
"""At most so many parts of a value are looked at."""


def make_read_only(value: Any) -> None:
    """Make a NumPy array read-only, and arrays in lists, tuples and dicts, as deep as they are.

    The memory of large arrays is shared by tasks, so it is read-only. If small ones were not, a task that changes its
    input would work in tests and fail with the data of production.
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
