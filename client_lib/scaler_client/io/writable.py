"""Whether writing to a stream would wait for whoever reads it."""

from __future__ import annotations

import select
from typing import Any

SURE_BYTES = 4096
"""So many bytes at once can be written where `is_writable` says so: what a pipe has room for at least (PIPE_BUF)."""


def is_writable(stream: Any) -> bool:
    """Whether up to SURE_BYTES go out at once; of what is no file of the system it is taken for granted."""
    if not hasattr(select, "poll"):
        return True
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return bool(poll.poll(0))  # an error counts: writing then raises
    except (AttributeError, OSError, TypeError, ValueError):
        return True
