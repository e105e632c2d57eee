"""Commands run as processes whose descendants can be told by a mark in their environment, to show that none stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MARK = "MARK_OF_A_TEST"
"""Not one of our own variables: the commands that tests start are kept from those."""


def marked(mark: str) -> list[int]:
    """The processes that carry this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:  # ended meanwhile, or another user's
                continue
    return found


class MarkedProcess:
    """A module run as a command."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._mark = uuid.uuid4().hex
        # Temporary folders lie in it; the path is short, for ZeroMQ's ipc has room for some 100 characters.
        self._temporary = tempfile.TemporaryDirectory(prefix="marked-")
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, MARK: self._mark, "TMPDIR": self._temporary.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def descendants(self) -> list[int]:
        """The marked processes other than its own."""
        return [process for process in marked(self._mark) if process != self.process.pid]

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not self.descendants(), what="its processes to end")
        assert os.listdir(self._temporary.name) == []

    def end(self) -> None:
        for process in [self.process.pid, *self.descendants()]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate()
        self._temporary.cleanup()


@contextmanager
def marked_process(module: str, *arguments: str) -> Iterator[MarkedProcess]:
    started = MarkedProcess(module, *arguments)
    try:
        yield started
    finally:
        started.end()
