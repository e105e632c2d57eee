"""A fake worker for a client inside a task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.client.stand_ins import FakeIoThread

from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import Output, TaskAttempt

PATIENCE_SECONDS = 20.0


class FakeTask:
    """A task that the thread of the test runs. It records its calls."""

    def __init__(self, depth: int = 0, priority: int = 0, name: TaskAttempt = (7, 3, 1)) -> None:
        self.name = name
        self.depth = depth
        self.priority = priority
        self.stream_output = False
        self.calls: list[Any] = []
        self.is_suspended = threading.Event()
        self.is_stopped = False
        self._latch: threading.Lock | None = None

    def suspend(self) -> None:
        assert not self.is_suspended.is_set()
        self.calls.append("suspend")
        self.is_suspended.set()

    def resume(self) -> None:
        assert self.is_suspended.is_set()
        self.is_suspended.clear()
        self.calls.append("resume")
        if self.is_stopped:
            raise TaskStoppedError("stopped")

    def wait(self, latch: threading.Lock, timeout: float | None) -> None:
        assert self.is_suspended.is_set()
        self._latch = latch
        if not self.is_stopped:
            latch.acquire(timeout=PATIENCE_SECONDS if timeout is None else timeout)
        self._latch = None

    def stop(self) -> None:
        """Stop the task, as the worker does when the scheduler sends Stop."""
        self.is_stopped = True
        if self._latch is not None:
            self._latch.release()

    def when_suspended(self, do: Any) -> threading.Thread:
        """Call a function in another thread as soon as the task has given up its slot."""

        def run() -> None:
            assert self.is_suspended.wait(PATIENCE_SECONDS)
            do()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


class FakeHost:
    """A worker. The thread that makes it runs its task."""

    def __init__(self, task: FakeTask | None, address: str = "tcp://127.0.0.1:1", worker: int = 44) -> None:
        self.address = address
        self.keys = ""
        self.environment = ""
        self.worker = worker
        self.task = task
        self.forwarded: list[tuple[list[TaskAttempt], Output]] = []
        self._thread = threading.get_ident()

    def forward_output(self, parents: list[TaskAttempt], output: Output) -> None:
        self.forwarded.append((parents, output))

    def current(self) -> FakeTask | None:
        is_here = self.task is not None and not self.task.is_suspended.is_set()
        return self.task if is_here and threading.get_ident() == self._thread else None


@contextmanager
def hosted(host: FakeHost) -> Iterator[FakeHost]:
    """Make this process a worker."""
    task_host.host = host
    try:
        yield host
    finally:
        task_host.host = None


class NestedIoThread(FakeIoThread):
    """The I/O thread of a nested client. It records its reports to the scheduler in the task."""

    is_nested = True

    def __init__(self, task: FakeTask) -> None:
        super().__init__()
        self._task = task

    def suspend(self, name: TaskAttempt) -> None:
        self._task.calls.append(("suspended", name))

    def resume(self, name: TaskAttempt) -> None:
        self._task.calls.append(("resumed", name))
