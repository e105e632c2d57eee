"""What a signal handler, or a `__del__` method, may do while the same thread is inside of this library."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.stand_ins import FakeIoThread, end_with_value, in_threads, pending
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.futures import future as future_module
from scaler_client.futures.future import TaskFuture
from scaler_client.futures.kept_results import KeptFuture
from scaler_client.io import callbacks as callbacks_module
from scaler_client.io.callbacks import Callbacks
from scaler_client.nested.slot_wait import Event
from scaler_client.pickling.functions import Function

SECONDS = 30.0


class Interrupted:
    """The lock of all futures. A signal handler runs each time that a thread has acquired it."""

    def __init__(self, handler: Any) -> None:
        self._lock = threading.RLock()
        self._handler = handler
        self._is_handling = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._is_handling:
            self._is_handling = True
            self._handler()
            self._is_handling = False

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_the_thread_that_holds_the_lock_of_futures_may_use_futures() -> None:
    future = pending()
    io_thread: Any = SimpleNamespace(forget_object=lambda _: None)
    kept: KeptFuture[Any] = KeptFuture(io_thread, Function(1, "f", b""), b"", options=None, parent=None)

    def use(_: int) -> None:
        with future_module.lazy_lock:
            future.add_done_callback(lambda _: None)
            future.watch(lambda _: None)
            kept.fetched()
            with future._condition:
                end_with_value(future, [1])
                assert future.result(SECONDS) == [1]

    in_threads(1, use)


@pytest.mark.parametrize("way", ["callback", "watch", "condition"])
def test_a_handler_that_uses_the_future_that_its_thread_changes(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    future = pending()
    called: list[str] = []
    conditions: list[Any] = []

    def handle() -> None:
        conditions.append(future._condition)
        future.add_done_callback(lambda _: called.append("callback"))
        future.watch(lambda _: called.append("watch"))

    with monkeypatch.context() as patched:
        patched.setattr(future_module, "lazy_lock", Interrupted(handle))
        if way == "callback":
            future.add_done_callback(lambda _: called.append("outer"))
        elif way == "watch":
            future.watch(lambda _: called.append("outer"))
        else:
            conditions.append(future._condition)
    assert len(set(map(id, [*conditions, future._condition]))) == 1
    end_with_value(future)
    assert sorted(called) == sorted(["callback", "watch", *(["outer"] if way != "condition" else [])])


def test_a_handler_that_adds_a_callback_while_the_callback_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    callbacks = Callbacks()
    ran: queue.SimpleQueue[int] = queue.SimpleQueue()

    def done(number: int) -> TaskFuture[Any]:
        future = pending()
        future._done_callbacks = [lambda _: ran.put(number)]
        return future

    class InterruptedThread(threading.Thread):
        def __init__(self, **named: Any) -> None:
            super().__init__(**named)
            monkeypatch.setattr(callbacks_module.threading, "Thread", real)
            callbacks.add(done(2))

    real = threading.Thread
    monkeypatch.setattr(callbacks_module.threading, "Thread", InterruptedThread)
    callbacks.add(done(1))
    assert sorted([ran.get(timeout=SECONDS), ran.get(timeout=SECONDS)]) == [1, 2]
    callbacks.end()
    callbacks.join()
    callbacks.add(done(3))
    assert ran.get(timeout=SECONDS) == 3


def test_callbacks_that_are_added_after_the_end_without_a_thread() -> None:
    callbacks = Callbacks()
    callbacks.end()
    ran: list[int] = []
    for number in range(2):
        future = pending()
        future._done_callbacks = [lambda _, number=number: ran.append(number)]
        callbacks.add(future)
    callbacks.join()
    assert ran == [0, 1]


def test_an_event_that_is_set_several_times() -> None:
    event = Event(FakeIoThread())  # type: ignore[arg-type]
    assert not event.wait(0)
    for _ in range(3):
        event.set()
    assert event.wait(SECONDS) and event.is_set()
    event.clear()
    assert not event.wait(0)
    setter = threading.Timer(0.01, event.set)
    setter.start()
    assert event.wait(SECONDS)
    setter.join()


@contextlib.contextmanager
def alarms(handle: Callable[..., None]) -> Iterator[None]:
    """Call a signal handler every millisecond."""
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


WAYS = {
    "wait": lambda client, futures: client.wait(futures),
    "as_completed": lambda client, futures: list(client.as_completed(futures)),
    "gather": lambda client, futures: client.gather(futures),
    "map": lambda client, futures: client.map(abs, [(-1,)] * len(futures)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_submits_and_waits_while_its_thread_waits(running_client: Client, way: str) -> None:
    called: list[Any] = []
    results: list[int] = []
    is_handling = False

    def handle(*_: object) -> None:
        nonlocal is_handling
        if is_handling:
            return
        is_handling = True
        future = running_client.submit(abs, -7)
        future.add_done_callback(called.append)
        results.append(future.result(SECONDS))
        is_handling = False

    deadline = time.monotonic() + SECONDS
    with alarms(handle):
        while len(results) < 50:
            futures = [running_client.submit(abs, -each) for each in range(50)]
            for future in futures:
                future.add_done_callback(lambda _: None)
            WAYS[way](running_client, futures)
            assert time.monotonic() < deadline, f"the handler was called {len(results)} times"
    assert results == [7] * len(results)
    wait_until(lambda: len(called) == len(results), what="each callback is called")
