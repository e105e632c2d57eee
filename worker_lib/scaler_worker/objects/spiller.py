"""The policy of spilling: which values of a host go from memory to disk, and when.

The host agent runs it in a thread of its own, so that a slow disk holds up nothing else.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from scaler_client.commands.object_files import WAKE_PIPE, ObjectName

from .host_storage import SPILL_ABOVE, SPILL_DOWN_TO, HostStorage, LimitReachedError

RETRY_SECONDS = 0.25
"""The time to the next attempt if too much memory stays in use: workers unmap values, and the disk may get room."""

SKIP_SECONDS = 60.0
"""How long a value that could not be written to disk stays in memory."""

LOG_SECONDS = 60.0
"""The least time between two log lines about failed writes."""

_log = logging.getLogger(__name__)


class Spiller:
    """Moves the least recently read values to disk while much of the memory is in use."""

    def __init__(self, storage: HostStorage, now: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._now = now
        self._skipped: dict[ObjectName, float] = {}
        """Until when each of these values stays in memory."""
        self._log_at = 0.0

    def spill(self) -> bool:
        """Spill values until enough memory is free. Returns whether that was reached."""
        usage = self._storage.usage()
        if usage is None or not usage.disk_limit:
            return True
        excess = usage.memory_bytes - usage.memory_limit * SPILL_DOWN_TO
        if usage.memory_bytes <= usage.memory_limit * SPILL_ABOVE:
            return True
        now = self._now()
        self._skipped = {name: until for name, until in self._skipped.items() if until > now}
        for _, size, name in self._storage.in_memory():
            if excess <= 0:
                break
            if name in self._skipped:
                continue
            try:
                excess -= self._storage.spill(name)
            except OSError as error:
                if not isinstance(error, LimitReachedError):  # a smaller value may still be within the limit
                    self._skipped[name] = now + SKIP_SECONDS
                self._log_failure(name, size, error)
        return excess <= 0

    def _log_failure(self, name: ObjectName, size: int, error: OSError) -> None:
        now = self._now()
        if now < self._log_at:
            return
        self._log_at = now + LOG_SECONDS
        client, object_id = name
        reason = error.strerror or error
        # A limit that is reached is no error: the value stays in memory.
        level = logging.INFO if isinstance(error, LimitReachedError) else logging.ERROR
        text = "object %d of client %d, %d bytes, can't be written to disk: %s"
        _log.log(level, text, object_id, client, size, reason)


class SpillerThread:
    """Runs a Spiller when a process of the host wakes it."""

    def __init__(self, storage: HostStorage) -> None:
        """
        Raises:
            OSError: the host's directory has no pipe to wait at.
        """
        self._storage = storage
        self._spiller = Spiller(storage)
        self._is_over = False
        path = os.path.join(storage.directory, WAKE_PIPE)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="spiller", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after the value that it writes. A disk that does not answer is not waited for."""
        self._is_over = True
        self._storage.wake_spiller()
        self._thread.join(timeout=RETRY_SECONDS)

    def _serve(self) -> None:
        timeout: float | None = None
        while not self._is_over:
            select.select([self._pipe], [], [], timeout)
            with suppress(BlockingIOError):
                os.read(self._pipe, 4096)
            try:
                timeout = None if self._is_over or self._spiller.spill() else RETRY_SECONDS
            except OSError as error:  # the directory is gone
                _log.debug("values can't be spilled: %s", error)
                timeout = RETRY_SECONDS
