"""The screen in a terminal, by urwid: styles, keys, mouse, signals, and the monitor socket in its event loop."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import urwid

from ..monitor.socket import MonitorSocket
from .banner import Banner
from .screen import render
from .screen_state import ScreenState
from .text_width import Line

REFRESH_SECONDS = 0.5
"""How often silence is checked and elapsed times are redrawn."""

PALETTE = [
    # name, colour, background, and the attributes used on terminals without colours
    ("title", "black", "dark cyan", "standout"),
    ("section", "dark cyan,bold", "default", "bold"),
    ("focus", "yellow,bold", "default", "bold,underline"),
    ("header", "black", "dark green", "standout"),
    ("selected", "black", "light gray", "standout"),
    ("label", "dark cyan", "default", "default"),
    ("rule", "dark gray", "default", "default"),
    ("shortcuts", "default", "default", "default"),
    ("keys", "black", "dark cyan", "standout"),
    ("bad", "white,bold", "dark red", "standout,bold"),
    ("good", "black", "dark green", "standout"),
]
COLOURS = 16
EXIT_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class ScreenWidget(urwid.Widget):
    """The whole screen as a urwid widget. It makes its lines when urwid draws it."""

    _sizing = frozenset([urwid.BOX])
    _selectable = True

    def __init__(self, state: ScreenState, socket: MonitorSocket, banner: Banner) -> None:
        super().__init__()
        self._state = state
        self._socket = socket
        self._banner = banner

    def render(self, size: Any, focus: bool = False) -> urwid.Canvas:
        width, height = size
        reader = self._socket.reader
        self._banner.update(reader)
        problem = "" if reader.view is not None else self._socket.connection_problem()
        message = self._banner.text(reader, time.monotonic(), problem)
        lines = render(
            self._state,
            reader.view,
            address=str(self._socket.address),
            message=message,
            width=width,
            height=height,
        )
        return urwid.CanvasCombine([(_canvas(line, width), None, False) for line in lines])

    def keypress(self, size: Any, key: str) -> Any:
        if not self._state.handle_key(key):
            return key
        if self._state.is_closed:
            raise urwid.ExitMainLoop
        self.refresh()
        return None

    def mouse_event(self, size: Any, event: str, button: int, col: int, row: int, focus: bool) -> bool:
        if event != "mouse press" or button not in (4, 5):
            return False
        self._state.handle_wheel(-1 if button == 4 else 1)
        self.refresh()
        return True

    def refresh(self) -> None:
        self._invalidate()


def _canvas(line: Line, width: int) -> urwid.Canvas:
    markup: list[Any] = [(style, text) if style else text for style, text in line if text]
    return urwid.Text(markup or " ", wrap="clip").render((width,))


def show(socket: MonitorSocket, sorted_by: str) -> int:
    """Show the screen until the user or a signal ends it. Returns the exit status."""
    state = ScreenState()
    state.sorted_by = sorted_by
    widget = ScreenWidget(state, socket, Banner())
    screen = urwid.raw_display.Screen()
    has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in _COLOURLESS
    screen.set_terminal_properties(colors=COLOURS if has_colours else 1)
    loop = urwid.MainLoop(widget, PALETTE, screen=screen, event_loop=urwid.SelectEventLoop(), handle_mouse=True)
    events = loop.event_loop

    def refresh(*_: object) -> None:
        socket.read()
        widget.refresh()

    def refresh_periodically() -> None:
        refresh()
        events.alarm(REFRESH_SECONDS, refresh_periodically)

    events.watch_file(socket.fileno(), refresh)
    events.alarm(0, refresh_periodically)
    with _ExitSignals(loop):
        loop.run()
    return 0


_COLOURLESS = ("vt100", "vt102", "vt220", "dumb")


class _ExitSignals:
    """Ends the loop on a signal, between two events, so that urwid restores the terminal."""

    def __init__(self, loop: urwid.MainLoop) -> None:
        self._pipe = loop.watch_pipe(self._exit_loop)
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> None:
        for name in EXIT_SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                self._previous_handlers[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def _on_signal(self, *_: object) -> None:
        os.write(self._pipe, b"x")

    def _exit_loop(self, _data: bytes) -> bool:
        raise urwid.ExitMainLoop


def is_terminal() -> bool:
    """Whether standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()
