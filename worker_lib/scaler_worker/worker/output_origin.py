"""Who prints: found out at the time of the print, so that a task that prints nothing pays nothing.

The thread that has the baton runs `session.running`; a task that waits has its thread; a thread that a task has started
is that task's until it is over. What else prints, as a thread that outlives its task, goes with the task that runs.
"""

from __future__ import annotations

import functools
import os
import socket
import threading
from collections.abc import Callable

from scaler_client.protocol.messages import FLAG_STREAM_OUTPUT
from scaler_worker.output.task_output import Author
from scaler_worker.task_rows import Row, flags_of, given_name_of, name_of
from scaler_worker.worker.run_token import Baton
from scaler_worker.worker.running_task import Present
from scaler_worker.worker.session import WorkerSession

_STARTED_BY = "_scaler_task"
"""The attribute of a thread that names the task which has started it."""


class Authors:
    def __init__(
        self, session: WorkerSession, baton: Baton, present: Present, name_of_function: Callable[[int], str]
    ) -> None:
        self._session = session
        self._baton = baton
        self._present = present
        self._name_of_function = name_of_function
        self._where = f"{socket.gethostname()}/{os.getpid()}"
        self.nobody = Author(None, self._where, False)
        self._last = self.nobody

    def current(self) -> Author:
        """Whose the calling thread is."""
        row = self._row()
        if row is None:
            return self.nobody
        name = name_of(row)
        author = self._last
        if author.task != name:
            label = f"{self._where} {given_name_of(row) or self._name_of_function(row[3])}#{name[1]}"
            author = self._last = Author(name, label, bool(flags_of(row) & FLAG_STREAM_OUTPUT))
        return author

    def running_task(self, where: str) -> str:
        """What runs, for errors, as in "task square#3" and `where`; empty between tasks."""
        row = self._session.running
        if row is None:
            return ""
        return f"task {given_name_of(row) or self._name_of_function(row[3])}#{row[1]} {where}"

    def is_over(self, author: Author) -> bool:
        """Whether its task has ended, or it has none."""
        running = self._session.running
        if author.task is None or author.task in self._session.suspended:
            return author.task is None
        return running is None or name_of(running) != author.task

    def follow_threads(self) -> None:
        """From now on a thread notes which task has started it."""
        start = threading.Thread.start

        @functools.wraps(start)
        def start_noted(thread: threading.Thread) -> None:
            row = self._row()
            if row is not None:
                setattr(thread, _STARTED_BY, name_of(row))
            start(thread)

        threading.Thread.start = start_noted  # type: ignore[method-assign, assignment]

    def _row(self) -> Row | None:
        running = self._session.running
        ident = threading.get_ident()
        if running is not None and ident == self._baton.holder:
            return running
        row = self._present.waiting.get(ident)
        if row is not None:
            return row
        starter = getattr(threading.current_thread(), _STARTED_BY, None)
        return running if starter is None else self._session.suspended.get(starter, running)
