"""Finds the task that prints. It does so at each print: a task that prints nothing costs nothing.

- The thread that has the run token prints for the running task.
- The thread of a suspended task prints for that task.
- A thread that a task has started prints for this task until it is over.
- All other output belongs to the running task, for example of a thread that outlives its task.
"""

from __future__ import annotations

import functools
import os
import socket
import threading
from collections.abc import Callable

from scaler_client.protocol.messages import FLAG_STREAM_OUTPUT
from scaler_worker.output.task_output import OutputOrigin
from scaler_worker.task_rows import Row, attempt_of, flags_of, task_name_of
from scaler_worker.worker.run_token import RunToken
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.session import WorkerSession

_STARTED_BY = "_scaler_task"
"""The attribute of a thread that names the task which has started it."""


class OriginFinder:
    """Finds the origin of output, for one worker."""

    def __init__(
        self, session: WorkerSession, token: RunToken, task: RunningTask, name_of_function: Callable[[int], str]
    ) -> None:
        self._session = session
        self._token = token
        self._task = task
        self._name_of_function = name_of_function
        self._where = f"{socket.gethostname()}/{os.getpid()}"
        self.no_task = OutputOrigin(None, self._where, False)
        self._last = self.no_task

    def current(self) -> OutputOrigin:
        """The origin of the calling thread's output."""
        row = self._row()
        if row is None:
            return self.no_task
        name = attempt_of(row)
        origin = self._last
        if origin.task != name:
            label = f"{self._where} {task_name_of(row) or self._name_of_function(row[3])}#{name[1]}"
            origin = self._last = OutputOrigin(name, label, bool(flags_of(row) & FLAG_STREAM_OUTPUT))
        return origin

    def describe_running(self, where: str) -> str:
        """Describe the running task for errors: "task square#3", then `where`. Empty between tasks."""
        row = self._session.running
        if row is None:
            return ""
        return f"task {task_name_of(row) or self._name_of_function(row[3])}#{row[1]} {where}"

    def is_over(self, origin: OutputOrigin) -> bool:
        """Whether the task of this origin has ended, or there is none."""
        running = self._session.running
        if origin.task is None or origin.task in self._session.suspended:
            return origin.task is None
        return running is None or attempt_of(running) != origin.task

    def track_threads(self) -> None:
        """Note in each thread that is started from now on which task has started it."""
        start = threading.Thread.start

        @functools.wraps(start)
        def start_noted(thread: threading.Thread) -> None:
            row = self._row()
            if row is not None:
                setattr(thread, _STARTED_BY, attempt_of(row))
            start(thread)

        threading.Thread.start = start_noted  # type: ignore[method-assign, assignment]

    def _row(self) -> Row | None:
        running = self._session.running
        ident = threading.get_ident()
        if running is not None and ident == self._token.holder:
            return running
        row = self._task.suspended_rows.get(ident)
        if row is not None:
            return row
        starter = getattr(threading.current_thread(), _STARTED_BY, None)
        return running if starter is None else self._session.suspended.get(starter, running)
