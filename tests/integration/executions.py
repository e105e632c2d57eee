"""A log of task executions: tasks append lines to one file, and tests read it."""

from __future__ import annotations

import os
import sys
import time

import cloudpickle

# Workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def note(path: str, event: str, task: object = "") -> None:
    """Append a line in one write, so that lines of several processes do not mix. Event and task have no spaces."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{event} {os.getpid()} {time.monotonic():.6f} {task}\n".encode())
    finally:
        os.close(descriptor)


class Note:
    """A line of the log: the event, the task, the process, and the time in seconds of the monotonic clock."""

    __slots__ = ("event", "pid", "time", "task")

    def __init__(self, line: str) -> None:
        self.event, pid, moment, self.task = line.split(" ")
        self.pid = int(pid)
        self.time = float(moment)


def notes(path: str, event: str = "") -> list[Note]:
    """Return the lines so far, in order: all of them, or one kind of event."""
    try:
        with open(path) as file:
            # A last line without a newline is being written.
            found = [Note(line[:-1]) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [each for each in found if not event or each.event == event]
