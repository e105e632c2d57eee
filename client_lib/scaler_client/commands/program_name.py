"""The name of this program. The scheduler shows clients by this name."""

from __future__ import annotations

import os
import sys

MAX_NAME_LENGTH = 60
"""The most characters of a program's name."""


def program_name() -> str:
    """The name of this program in UTF-8, for example `report.py`, `notebook`, or `pricing` for `python -m pricing`."""
    path = sys.argv[0] if sys.argv and isinstance(sys.argv[0], str) else ""
    folder, name = os.path.split(path)
    if name == "__main__.py":
        name = os.path.basename(folder)
    elif name.startswith("ipykernel"):
        name = "notebook"
    elif name in ("", "-c", "-m", "-"):
        name = "python"
    return "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_NAME_LENGTH])


def client_name(pid: int, host: str) -> str:
    """The name of a client in this process: program, process id and host, for example `report.py[4711]@node-1`."""
    return f"{program_name()}[{pid}]@{host}"
