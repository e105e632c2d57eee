"""Runs commands with a mark in their environment, so that a test finds all descendants and sees that none remains."""

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
"""Not a variable of Scaler: tests remove those from the environment of commands."""


def marked(mark: str) -> list[int]:
    """Return the processes with this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:  # the process has ended, or belongs to another user
                continue
    return found


class MarkedProcess:
    """A module that runs as a command, with a mark."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._mark = uuid.uuid4().hex
        # The folder for temporary files. Its path is short: ZeroMQ's ipc addresses have some 100 characters.
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
        """Return the marked processes except the command itself."""
        return [process for process in marked(self._mark) if process != self.process.pid]

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not self.descendants(), what="the end of its processes")
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
