"""What tasks say of their executions, in one file that all of them append to."""

from __future__ import annotations

import os
import sys
import time

import cloudpickle

# Workers can't import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def note(path: str, event: str, task: object = "") -> None:
    """Append a line. It is one write, so that lines of several processes don't mix; event and task have no spaces."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{event} {os.getpid()} {time.monotonic():.6f} {task}\n".encode())
    finally:
        os.close(descriptor)


class Note:
    """A line: what happened to which task, in which process, and when (by the monotonic clock, in seconds)."""

    __slots__ = ("event", "pid", "time", "task")

    def __init__(self, line: str) -> None:
        self.event, pid, moment, self.task = line.split(" ")
        self.pid = int(pid)
        self.time = float(moment)


def notes(path: str, event: str = "") -> list[Note]:
    """What was noted so far, in order: everything, or one kind of event."""
    try:
        with open(path) as file:
            # A last line without its end is being written.
            found = [Note(line[:-1]) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [each for each in found if not event or each.event == event]
