"""What raises a task's exception leaves no reference cycle: exception, traceback and frames are freed at once."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client


class Failure(Exception):
    pass


def fail(*_: Any) -> NoReturn:
    raise Failure("no")


WAYS: dict[str, Callable[[Client], Any]] = {
    "result": lambda client: client.submit(fail).result(),
    "gather": lambda client: client.gather([client.submit(abs, 1), client.submit(fail), client.submit(abs, 1)]),
    "gather of one": lambda client: client.gather([client.submit(fail)]),
    "get": lambda client: client.get({"a": (fail,)}, ["a"]),
    "map": lambda client: client.map(fail, [(1,)] * 10),
    "imap": lambda client: list(client.imap(fail, [(1,)] * 10)),
    "imap_unordered": lambda client: list(client.imap_unordered(fail, [(1,)] * 10)),
    "executor": lambda client: list(client.executor().map(fail, range(10))),
    "kept": lambda client: client.options(keep=True).submit(fail).result(),
    "gather of kept": lambda client: client.gather([client.options(keep=True).submit(fail)]),
    "kept map": lambda client: client.options(keep=True).map(fail, [(1,)] * 10),
}

ASYNC_WAYS: dict[str, Callable[[AsyncClient], Any]] = {
    "submit": lambda client: client.submit(fail),
    "gather": lambda client: client.gather([client.submit(abs, 1), client.submit(fail)]),
    "get": lambda client: client.get({"a": (fail,)}, ["a"]),
    "map": lambda client: client.map(fail, [(1,)] * 10),
    "kept": lambda client: client.options(keep=True).submit(fail),
}


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


UNPICKLABLE: dict[str, Callable[[Client], Any]] = {
    "argument": lambda client: client.submit(len, threading.Lock()),
    "keyword": lambda client: client.submit(dict, a=[threading.Lock()]),
    "function": lambda client: client.submit(functools.partial(len, threading.Lock())),
    "item": lambda client: client.map(len, [([threading.Lock()],)] * 3),
    "object": lambda client: client.send_object([threading.Lock()]),
    "graph": lambda client: client.get({"a": (len, threading.Lock())}, ["a"]),
}


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("way", UNPICKLABLE)
def test_the_error_of_an_unpicklable_value_is_freed(running_client: Client, way: str) -> None:
    class Local:
        """Lives as long as the frame of the program that made the call."""

    def call() -> weakref.ref[Local]:
        local = Local()
        with pytest.raises(TypeError, match="can't be pickled"):
            UNPICKLABLE[way](running_client)
        return weakref.ref(local)

    local = call()
    wait_until(lambda: local() is None)


def raised_by(call: Callable[[], Any]) -> weakref.ref[Failure]:
    try:
        call()
    except Failure as error:
        return weakref.ref(error)
    raise AssertionError("nothing was raised")


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("way", WAYS)
def test_the_exception_is_freed_with_its_last_reference(running_client: Client, way: str) -> None:
    error = raised_by(lambda: WAYS[way](running_client))
    wait_until(lambda: error() is None)  # the I/O thread may have it for a moment


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("way", ASYNC_WAYS)
def test_the_exception_is_freed_in_an_event_loop(running: RunningScheduler, way: str) -> None:
    async def main() -> weakref.ref[Failure]:
        async with AsyncClient(running.address) as client:
            try:
                await ASYNC_WAYS[way](client)
            except Failure as caught:
                error = weakref.ref(caught)
            for _ in range(3):
                await asyncio.sleep(0)  # the loop drops what it holds until its next turn
            return error

    error = asyncio.run(main())
    wait_until(lambda: error() is None)
