"""Names for processes that have the same command line: an agent, its nursery, its workers."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_SET_NAME = 15  # prctl's PR_SET_NAME


def set_process_name(name: str) -> None:
    """What `ps -e`, `top` and `pstree` call this process, up to 15 bytes. Linux only; elsewhere nothing happens."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_NAME, name.encode(), 0, 0, 0)
