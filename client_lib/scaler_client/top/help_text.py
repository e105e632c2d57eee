"""The help page: what the keys do, and what the letters mean."""

from __future__ import annotations

from .states import STATE_LETTERS
from .text_width import Line, align_left
from .worker_table import SORT_KEYS

SORTING = " ".join(f"{column.name}[{key}]" for key, column in SORT_KEYS.items())
"""The keys that sort the table of workers."""

KEYS: tuple[tuple[str, str], ...] = (
    (" ".join(SORT_KEYS), "sort by a column; the same key again reverses"),
    ("up down j k", "move; also PgUp, PgDn, Home, End and the mouse wheel"),
    ("Enter", "details of the selected row; Esc or Enter goes back"),
    ("/", "filter the table marked >; Enter keeps it, Esc drops it"),
    ("Tab", "go to the next table"),
    ("o", "show objects instead of functions, and back"),
    ("s", "show shares, limits, or pools of hosts; then clients again"),
    ("? h", "this help"),
    ("q Ctrl-C", "leave"),
)


def help_lines() -> list[Line]:
    lines: list[Line] = [[("section", "Keys")]]
    lines += [[("label", "  " + align_left(keys, 20)), ("", text)] for keys, text in KEYS]
    lines += [[], [("section", "State of a worker")]]
    lines += [[("label", "  " + align_left(letter, 20)), ("", meaning)] for _, letter, meaning in STATE_LETTERS]
    lines += [
        [],
        [("section", "Figures")],
        [("label", "  " + align_left("cpu", 20)), ("", "percent of one core")],
        [("label", "  " + align_left("susp", 20)), ("", "suspended: tasks that wait for their own child tasks")],
        [("label", "  " + align_left("lag", 20)), ("", "time from a heartbeat of the host's agent to its echo")],
        [("label", "  " + align_left("loop", 20)), ("", "percent of time in which the scheduler's loop is busy")],
        [
            ("label", "  " + align_left("unreachable", 20)),
            ("", "messages dropped as the receiver had disconnected"),
        ],
        [
            ("label", "  " + align_left("unassigned", 20)),
            ("", "tasks waiting for a worker; blocked: waiting for inputs"),
        ],
    ]
    return lines
