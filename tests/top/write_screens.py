"""Writes the screens that test_screen.py expects (python -m tests.top.write_screens). Review the changes."""

from __future__ import annotations

from pathlib import Path

from tests.top.stand_ins import text_of, view

from scaler_client.top.screen import render, render_plain
from scaler_client.top.screen_state import ScreenState
from scaler_client.top.text_width import ELLIPSIS

FOLDER = Path(__file__).with_name("screens")
ADDRESS = "ipc:///tmp/127.0.0.1_2345_monitor"
SIZES = ((80, 24, 7), (120, 40, 7), (200, 60, 7), (80, 24, 1000), (132, 50, 1000))
"""Columns, lines, workers."""


def render_screens() -> dict[str, str]:
    """The screens by file name."""
    made = {}
    for width, height, workers in SIZES:
        lines = render(ScreenState(), view(workers), address=ADDRESS, message=("", ""), width=width, height=height)
        made[f"{width}x{height}-{workers}.txt"] = text_of(lines)
    keys = {"help": ["?"], "detail": ["n", "enter"], "objects": ["tab", "o"], "shares": ["tab", "tab", "s"], "gone": []}
    for name, pressed in keys.items():
        state = ScreenState()
        message = ("bad", "no scheduler for 12 s") if name == "gone" else ("", "")
        render(state, view(), address=ADDRESS, message=message, width=80, height=24)
        for key in pressed:
            state.handle_key(key)
            render(state, view(), address=ADDRESS, message=message, width=80, height=24)
        made[f"{name}.txt"] = text_of(render(state, view(), address=ADDRESS, message=message, width=80, height=24))
    made["once.txt"] = text_of(render_plain(ScreenState(), view(), ADDRESS, 100))
    return {
        name: "".join(line.rstrip().replace(ELLIPSIS, "…") + "\n" for line in lines) for name, lines in made.items()
    }


if __name__ == "__main__":
    for name, text in render_screens().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
