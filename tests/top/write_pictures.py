"""Writes the pictures that test_screen.py compares to (python -m tests.top.write_pictures): look at what has changed"""

from __future__ import annotations

from pathlib import Path
from typing import Dict

from tests.top.stand_ins import picture, text_of

from scaler_client.top.fitting import ELLIPSIS
from scaler_client.top.screen import page, printed
from scaler_client.top.view import View

FOLDER = Path(__file__).with_name("pictures")
ADDRESS = "ipc:///tmp/127.0.0.1_2345_monitor"
SIZES = ((80, 24, 7), (120, 40, 7), (200, 60, 7), (80, 24, 1000), (132, 50, 1000))
"""Columns, lines, workers."""


def drawn() -> Dict[str, str]:
    """By file."""
    made = {}
    for width, height, workers in SIZES:
        lines = page(View(), picture(workers), ADDRESS, ("", ""), width, height)
        made[f"{width}x{height}-{workers}.txt"] = text_of(lines)
    keys = {"help": ["?"], "detail": ["n", "enter"], "objects": ["tab", "o"], "gone": []}
    for name, pressed in keys.items():
        view = View()
        said = ("bad", "scheduler gone for 12 s") if name == "gone" else ("", "")
        page(view, picture(), ADDRESS, said, 80, 24)
        for key in pressed:
            view.press(key)
            page(view, picture(), ADDRESS, said, 80, 24)
        made[f"{name}.txt"] = text_of(page(view, picture(), ADDRESS, said, 80, 24))
    made["once.txt"] = text_of(printed(View(), picture(), ADDRESS, 100))
    return {
        name: "".join(line.rstrip().replace(ELLIPSIS, "…") + "\n" for line in lines) for name, lines in made.items()
    }


if __name__ == "__main__":
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
