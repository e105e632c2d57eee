"""A fake I/O thread, and futures in each state, for tests of the parts of the client."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

from scaler_client.futures.future import TaskFuture
from scaler_client.pickling.functions import Function
from scaler_client.protocol.messages import Outcome


class FakeIoThread:
    """Grants or refuses cancels, and runs callbacks in the thread that finishes the future."""

    is_nested = False
    frame_limit = 0

    def __init__(self, grants_cancel: bool = True) -> None:
        self.grants_cancel = grants_cancel
        self.cancels = 0
        self.forced_cancels = 0
        self.problem: Exception | None = None
        """The error that waiting for a future raises."""

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        self.cancels += 1
        self.forced_cancels += force
        if self.grants_cancel:
            future.resolve(future.task_id, Outcome.CANCELLED, b"")

    def check_can_wait(self) -> None:
        if self.problem is not None:
            raise self.problem

    def schedule_callbacks(self, future: TaskFuture[Any]) -> None:
        future.run_callbacks()


def pending(io_thread: FakeIoThread | None = None) -> TaskFuture[Any]:
    return TaskFuture(io_thread or FakeIoThread(), Function(1, "function", b""), b"arguments")  # type: ignore[arg-type]


def end_with_value(future: TaskFuture[Any], value: Any = 42) -> None:
    future.resolve(future.task_id, Outcome.VALUE, pickle.dumps(value))


def end_with_exception(future: TaskFuture[Any], error: BaseException, text: str = "remote frames\n") -> None:
    future.resolve(future.task_id, Outcome.EXCEPTION, pickle.dumps((error, text)))


def end_cancelled(future: TaskFuture[Any]) -> None:
    future.resolve(future.task_id, Outcome.CANCELLED, b"")


def with_value(value: Any = 42) -> TaskFuture[Any]:
    future = pending()
    end_with_value(future, value)
    return future


def with_exception(error: BaseException) -> TaskFuture[Any]:
    future = pending()
    end_with_exception(future, error)
    return future


def cancelled() -> TaskFuture[Any]:
    future = pending()
    end_cancelled(future)
    return future


def running() -> TaskFuture[Any]:
    future = pending()
    future.start()
    return future


def in_threads(count: int, run: Callable[[int], Any], seconds: float = 30.0) -> list[Any]:
    """Call `run(number)` in `count` threads at once; return the results, or raise the first error."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def enter(number: int) -> None:
        barrier.wait(seconds)
        try:
            results[number] = run(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=enter, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results
