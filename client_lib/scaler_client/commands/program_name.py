"""The name of this process's program, for people. The scheduler shows clients by this name."""

from __future__ import annotations

import os
import sys

LONGEST = 60
"""Characters of a program's name."""


def program_name() -> str:
    """For example `report.py`, `notebook` or `python`; `pricing` for `python -m pricing`. UTF-8 can encode it."""
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
    """Program, process and host of a client in this process, for example `report.py[4711]@node-1`."""
    return f"{program_name()}[{pid}]@{host}"
