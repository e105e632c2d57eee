"""What this process's program is called, for people: the scheduler shows its clients by it."""

from __future__ import annotations

import os
import sys

LONGEST = 60
"""Characters of a program's name."""


def program_name() -> str:
    """As in `report.py`, `python -m pricing` as `pricing`, `notebook`, `python`; text that can be encoded."""
    path = sys.argv[0] if sys.argv and isinstance(sys.argv[0], str) else ""
    folder, name = os.path.split(path)
    if name == "__main__.py":
        name = os.path.basename(folder)
    elif name.startswith("ipykernel"):
        name = "notebook"
    elif name in ("", "-c", "-m", "-"):
        name = "python"
    return "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST])


def client_name(pid: int, host: str) -> str:
    """Program, process and host of a client in this process, as in `report.py[4711]@node-1`."""
    return f"{program_name()}[{pid}]@{host}"
