"""Warns once about large data that travels with many tasks. `send_object` would send it a single time."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..protocol.messages import Payload

LARGE_ARGUMENTS = 1_000_000
"""A call with this many bytes or more counts as large."""

MANY_TASKS = 10
MANY_BYTES = 100_000_000
"""The warning comes after this many large calls with this many bytes together."""

LARGE_FUNCTION = 10_000_000
"""A function of at least this many bytes gets a warning, because it is sent to each worker."""

_log = logging.getLogger(__name__)


class LargePayloads:
    """The counts of one client. Only the I/O thread calls `count_frames`; any thread may call `note_function`."""

    def __init__(self) -> None:
        self._tasks = 0
        self._bytes = 0
        self._has_warned = False
        self._has_warned_of_function = False

    def count_frames(self, frames: Sequence[Payload]) -> None:
        """Count the large payloads of a Submit that is sent."""
        if self._has_warned:
            return
        large = [size for size in map(len, frames) if size >= LARGE_ARGUMENTS]
        self._tasks += len(large)
        self._bytes += sum(large)
        if self._tasks >= MANY_TASKS and self._bytes >= MANY_BYTES:
            self._has_warned = True
            _log.warning(
                "%d tasks had arguments of %.3g MB each. If they are the same, send them once: "
                "ref = client.send_object(value), and pass ref in their place",
                self._tasks,
                self._bytes / self._tasks / 1e6,
            )

    def note_function(self, name: str, size: int) -> None:
        """Check the size of a pickled function, in bytes."""
        if size >= LARGE_FUNCTION and not self._has_warned_of_function:
            self._has_warned_of_function = True
            _log.warning(
                "function %s has %.3g MB, which go to each worker. It contains data: a global, a closure, or the "
                "object of a method. Send the data once: ref = client.send_object(value), and pass ref instead",
                name,
                size / 1e6,
            )
