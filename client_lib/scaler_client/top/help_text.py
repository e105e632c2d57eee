"""What the keys do, and what the letters mean."""

from __future__ import annotations

from typing import List, Tuple

from .text_width import Line, left
from .worker_table import SORT_KEYS, STATE_LETTERS

SORTING = " ".join(f"{column.name}[{key}]" for key, column in SORT_KEYS.items())
"""The shortcuts of the workers' table."""

KEYS: Tuple[Tuple[str, str], ...] = (
    (" ".join(SORT_KEYS), "sort by a column, as above the table; again: reversed"),
    ("up down j k", "move; also PgUp, PgDn, Home, End, the mouse's wheel"),
    ("Enter", "all about a worker, function, object or client; Esc or Enter goes back"),
    ("/", "filter the table with the > by words in its rows; Enter keeps it, Esc drops it"),
    ("Tab", "the next table on the screen: workers, functions, objects, clients"),
    ("o", "objects in place of functions, and back"),
    ("? h", "this page"),
    ("q Ctrl-C", "leave"),
)


def help_lines() -> List[Line]:
    lines: List[Line] = [[("section", "Keys")]]
    lines += [[("label", "  " + left(keys, 20)), ("", text)] for keys, text in KEYS]
    lines += [[], [("section", "State of a worker")]]
    lines += [[("label", "  " + left(letter, 20)), ("", meaning)] for _, letter, meaning in STATE_LETTERS]
    lines += [
        [],
        [("section", "Figures")],
        [("label", "  " + left("cpu", 20)), ("", "percent of one core")],
        [("label", "  " + left("susp", 20)), ("", "suspended: tasks that wait for tasks of their own")],
        [("label", "  " + left("lag", 20)), ("", "from a heartbeat of the host's agent to its answer")],
        [("label", "  " + left("loop", 20)), ("", "of the time, what the scheduler's loop is busy")],
        [("label", "  " + left("unreachable", 20)), ("", "dropped messages to peers that were not connected any more")],
        [("label", "  " + left("unassigned", 20)), ("", "tasks that wait for a worker; blocked: for what they read")],
    ]
    return lines
