"""What the screen shows: the table, its order, filter and scroll position, and how keys change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .side_tables import CLIENTS, COLUMNS, FUNCTIONS, LOWER, OBJECTS
from .worker_table import SORT_KEYS

WORKERS = "workers"
WHEEL_ROWS = 3
MAX_FILTER_LENGTH = 80


@dataclass
class Scroll:
    """The scroll position of a table."""

    selected: int = 0
    first: int = 0
    rows: int = 0
    """The number of rows, and of visible rows, at the last layout."""
    seen: int = 1

    def place(self, rows: int, seen: int) -> range:
        """The rows to show; the selected row is among them."""
        self.rows, self.seen = rows, max(1, seen)
        self.selected = max(0, min(self.selected, rows - 1))
        self.first = min(self.first, self.selected, max(0, rows - self.seen))
        self.first = max(self.first, self.selected - self.seen + 1)
        return range(self.first, min(rows, self.first + seen))

    def move(self, by: int) -> None:
        self.selected = max(0, min(self.selected + by, self.rows - 1))


class ScreenState:
    """The table, order, filter and details that the user has chosen."""

    def __init__(self) -> None:
        self.sorted_by = "cpu"
        self.is_reversed = False
        self.filters: dict[str, str] = {}
        """By table: words that a row must contain."""
        self.is_typing = False
        """Whether the user is typing the filter."""
        self.is_help = False
        self.detail: tuple[str, Any] | None = None
        """The table and key of the row whose details are shown."""
        self.focus = WORKERS
        self.side = FUNCTIONS
        """The table beside the workers: functions or objects."""
        self.lower = CLIENTS
        """The table below it: one of LOWER."""
        self.shown = [WORKERS, FUNCTIONS, CLIENTS]
        """The tables that Tab goes through, from the last layout."""
        self.scrolls: dict[str, Scroll] = {name: Scroll() for name in (WORKERS, *COLUMNS)}
        self.page = Scroll()
        """The position in the help or in a row's details."""
        self.selected: dict[str, Any] = {}
        """By table: the key of the selected row at the last layout. A table without rows is missing."""
        self.is_closed = False

    @property
    def scroll(self) -> Scroll:
        """What the arrow keys move."""
        return self.page if self.is_help or self.detail is not None else self.scrolls[self.focus]

    @property
    def filter_text(self) -> str:
        """The filter of the focused table."""
        return self.filters.get(self.focus, "")

    @filter_text.setter
    def filter_text(self, words: str) -> None:
        self.filters[self.focus] = words

    def handle_key(self, key: str) -> bool:
        """Handle a key, named as urwid does. Returns whether the screen changes."""
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
            self.shown = [WORKERS, other, self.lower]
        elif key == "s":
            following = LOWER[(LOWER.index(self.lower) + 1) % len(LOWER)]
            self.focus = following if self.focus == self.lower else self.focus
            self.lower = following
            self.shown = [WORKERS, self.side, following]
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
        if scroll is self.page:  # there is no selection, so the page itself moves
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
"""How many rows a key moves; for page keys, how many pages."""
