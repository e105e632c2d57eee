"""A thread for work that may wait for a disk or for a lock, so that the agent's loop never does."""

from __future__ import annotations

import logging
import queue
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ..objects.host_storage import unlink_files

_log = logging.getLogger(__name__)


class DiskThread:
    """Runs jobs one after another. The loop polls `fileno()`, and calls `finish`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]]] = queue.SimpleQueue()
        self._ended: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._thread: threading.Thread | None = None

    def fileno(self) -> int:
        return self._reader.fileno()

    def run(self, job: Callable[[], Any], then: Callable[[Any], None] = lambda result: None) -> None:
        """Run a job in the thread, and then, in `finish`, call `then` with its result. An OSError is logged."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((job, then))

    def unlink(self, paths: Iterable[str]) -> None:
        """Remove these files."""
        if paths := list(paths):
            self.run(lambda: unlink_files(paths))

    def finish(self) -> None:
        """Call `then` for the jobs that have ended."""
        try:
            self._reader.recv(4096)
        except BlockingIOError:
            return
        while self._ended:
            then, result = self._ended.popleft()
            then(result)

    def _serve(self) -> None:
        while True:
            job, then = self._jobs.get()
            try:
                self._ended.append((then, job()))
            except OSError as error:
                _log.error("a file of a value can't be used: %s", error)
                continue
            finally:
                del job, then  # a job may hold the bytes of a value, and the next one may come late
            try:
                self._writer.send(b"e")
            except BlockingIOError:
                pass  # the loop is about to read what was written before
