"""A submit that names functions which are not here: its other tasks shall not suffer from that."""

from array import array
from typing import Container, List, Optional, Tuple

from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.events import Submit


def divide(event: Submit, functions: Container[int]) -> Tuple[Optional[Submit], List[int], int]:
    """What of it can be taken, if anything; the ids of the other tasks, and the bytes that these count.

    Of tasks that read others none is taken: what they are for would not come of it.

    Args:
        functions: the numbers of those that are here.
    """
    rows = range(len(event.ids))
    of_graph = bool(event.inputs or event.keep)
    numbers = event.functions if len(event.functions) > 1 else list(event.functions) * len(rows)
    taken: List[int] = [] if of_graph else [row for row in rows if numbers[row] in functions]
    kept = frozenset(taken)
    others = [row for row in rows if row not in kept]
    weight = sum(_size(event, row) + TASK_OVERHEAD for row in others)
    known = _rows_of(event, taken, [numbers[row] for row in taken]) if taken else None
    return known, [event.ids[row] for row in others], weight


def _size(event: Submit, row: int) -> int:
    return len(event.large[row]) if row in event.large else event.sizes[row]


def _rows_of(event: Submit, rows: List[int], numbers: List[int]) -> Submit:
    starts = [0]
    for size in event.sizes:
        starts.append(starts[-1] + size)
    return Submit(
        event.route,
        array("q", [event.ids[row] for row in rows]),
        array("I", numbers),
        array("I", [event.sizes[row] for row in rows]),
        b"".join([event.payload[starts[row] : starts[row + 1]] for row in rows]),
        {place: event.large[row] for place, row in enumerate(rows) if row in event.large},
        event.options,
    )
