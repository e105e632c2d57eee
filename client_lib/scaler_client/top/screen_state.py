"""What is looked at: which table, sorted how, filtered by what, scrolled where; and what keys do to that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from .side_tables import CLIENTS, FUNCTIONS, OBJECTS
from .worker_table import SORT_KEYS

WORKERS = "workers"
WHEEL_ROWS = 3
MAX_FILTER_LENGTH = 80


@dataclass
class Scroll:
    """Where a table stands."""

    selected: int = 0
    first: int = 0
    rows: int = 0
    """That there are, and that are seen, when it was laid out last."""
    seen: int = 1

    def place(self, rows: int, seen: int) -> range:
        """The rows to show, the chosen one among them."""
        self.rows, self.seen = rows, max(1, seen)
        self.selected = max(0, min(self.selected, rows - 1))
        self.first = min(self.first, self.selected, max(0, rows - self.seen))
        self.first = max(self.first, self.selected - self.seen + 1)
        return range(self.first, min(rows, self.first + seen))

    def move(self, by: int) -> None:
        self.selected = max(0, min(self.selected + by, self.rows - 1))


class ScreenState:
    """The state of the screen beside what is known of the scheduler."""

    def __init__(self) -> None:
        self.sorted_by = "cpu"
        self.is_reversed = False
        self.filters: Dict[str, str] = {}
        """By table: the words that its rows must have."""
        self.is_typing = False
        """The filter is being typed."""
        self.is_help = False
        self.detail: Optional[Tuple[str, Any]] = None
        """The table, and the key in it, of the row whose own page is shown."""
        self.focus = WORKERS
        self.side = FUNCTIONS
        """Functions or objects."""
        self.shown = [WORKERS, FUNCTIONS, CLIENTS]
        """The tables that Tab goes through, as they were laid out last."""
        self.scrolls: Dict[str, Scroll] = {name: Scroll() for name in (WORKERS, FUNCTIONS, OBJECTS, CLIENTS)}
        self.page = Scroll()
        """Of the help or a row's own page."""
        self.selected: Dict[str, Any] = {}
        """By table: the key of the row that the bar is on, as it was laid out last; none where there is no row."""
        self.is_closed = False

    @property
    def scroll(self) -> Scroll:
        """What the arrows move."""
        return self.page if self.is_help or self.detail is not None else self.scrolls[self.focus]

    @property
    def filter_text(self) -> str:
        """The filter of the table in focus."""
        return self.filters.get(self.focus, "")

    @filter_text.setter
    def filter_text(self, words: str) -> None:
        self.filters[self.focus] = words

    def handle_key(self, key: str) -> bool:
        """Take a key, by urwid's name; whether there is something new to show."""
        if self.is_typing:
            return self._handle_filter_key(key)
        if key in ("q", "Q"):
            self.is_closed = True
        elif key in _MOVES:
            self._move(key)
        elif self.is_help:
            self.is_help = key not in ("?", "h", "esc", "enter")
        elif self.detail is not None:
            if key in ("esc", "enter", "backspace", "left"):
                self.detail = None
        else:
            return self._handle_table_key(key)
        return True

    def handle_wheel(self, by: int) -> None:
        self.scroll.move(by * WHEEL_ROWS)

    def _handle_table_key(self, key: str) -> bool:
        if key in SORT_KEYS:
            name = SORT_KEYS[key].name
            self.is_reversed = name == self.sorted_by and not self.is_reversed
            self.sorted_by = name
        elif key in ("?", "h"):
            self.is_help = True
            self.page = Scroll()
        elif key == "/":
            self.is_typing = True
        elif key == "esc":
            self.filter_text = ""
        elif key == "tab":
            at = self.shown.index(self.focus) if self.focus in self.shown else -1
            self.focus = self.shown[(at + 1) % len(self.shown)]
        elif key == "o":
            other = OBJECTS if self.side == FUNCTIONS else FUNCTIONS
            self.focus = other if self.focus == self.side else self.focus
            self.side = other
            self.shown = [WORKERS, other, CLIENTS]
        elif key in ("enter", "right"):
            if self.focus in self.selected:
                self.detail = self.focus, self.selected[self.focus]
                self.page = Scroll()
        else:
            return False
        return True

    def _handle_filter_key(self, key: str) -> bool:
        if key == "esc":
            self.filter_text, self.is_typing = "", False
        elif key == "enter":
            self.is_typing = False
        elif key == "backspace":
            self.filter_text = self.filter_text[:-1]
        elif key == "ctrl u":
            self.filter_text = ""
        elif key in ("up", "down", "page up", "page down"):
            self._move(key)
        elif len(key) == 1 and key.isprintable() and len(self.filter_text) < MAX_FILTER_LENGTH:
            self.filter_text += key
        else:
            return False
        return True

    def _move(self, key: str) -> None:
        scroll = self.scroll
        if scroll is self.page:  # it has no bar: it moves whole
            scroll.selected = scroll.first if _MOVES[key] < 0 else scroll.first + scroll.seen - 1
        scroll.move(_MOVES[key] * (scroll.seen if key.startswith("page") else 1))


_MOVES = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page up": -1,
    "page down": 1,
    " ": 1,
    "home": -(1 << 40),
    "g": -(1 << 40),
    "end": 1 << 40,
    "G": 1 << 40,
}
"""By how many rows, or pages, keys move."""
