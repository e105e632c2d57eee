"""The client's public API, called with arbitrary values against a scheduler that answers each task at once.

Each call works, or raises in the call itself. No argument may end the client's threads: behind the calls a plain task
is answered, and a callback is called.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import os
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.client.scheduler_stand_in import WAIT_SECONDS, FakeScheduler
from tests.fuzz.drawing import Drawing

from scaler_client import AsyncClient, Client, TaskFuture, named
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol.messages import Keep, Outcome
from scaler_client.session.shutdown_request import PROTECTED

MAX_CALLS = 24
_DEEPEST = 3
_ANSWER = dumps(None)


class AnsweringScheduler(FakeScheduler):
    """Answers every task with None, and refuses to end."""

    def _take(self, peer: bytes, frame: bytes, *payloads: bytes) -> None:
        super()._take(peer, frame, *payloads)
        while not self._received.empty():
            _, kind, body, _ = self._received.get()
            if kind == "submit":
                self._answer(peer, body)
            elif kind == "shutdown":
                self._say(peer, "error", text=f"{PROTECTED} not by clients")

    def _answer(self, peer: bytes, body: dict[str, Any]) -> None:
        ids = body["ids"]
        keep = list(body.get("keep", b"")) or [0]
        kept = [each == Keep.YES.value for each in keep * (len(ids) // len(keep))]
        outcomes = [int(Outcome.KEPT if each else Outcome.VALUE) for each in kept]
        answers = [b"" if each else _ANSWER for each in kept]
        self._say(
            peer, "resolved", ids=ids, outcomes=outcomes, sizes=list(map(len, answers)), payload=b"".join(answers)
        )


class _Text(str):
    def __hash__(self) -> int:
        raise LookupError("no hash")

    def __str__(self) -> str:
        return "another text"


class _Number(enum.IntEnum):
    FEW = 3


class _Float(float):
    def __mul__(self, _other: Any) -> Any:
        return "a product"


class _Hostile:
    """Raises in every operation."""

    def _raise(self, *_: Any) -> Any:
        raise LookupError("hostile")

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __reduce_ex__ = __index__ = _raise  # type: ignore[assignment]
    __call__ = __float__ = __lt__ = __getitem__ = __enter__ = _raise


def _plain(*_args: Any, **_kwargs: Any) -> None: ...


def _odd_function(name: str) -> Callable[..., Any]:
    def function(*_args: Any) -> None: ...

    function.__qualname__ = function.__name__ = name
    return function


async def _coroutine_function() -> None: ...


def _containing_itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


_MAKERS: list[Callable[[], Any]] = [
    lambda: None, lambda: True, lambda: 0, lambda: 1, lambda: -1, lambda: 2**31, lambda: -(2**31) - 1, lambda: 2**64,
    lambda: 10**5000, lambda: float("nan"), lambda: float("inf"), lambda: -0.0, lambda: 1e300, lambda: 5e-324,
    lambda: 0.01, lambda: _Float(0.01), lambda: _Number.FEW, lambda: "", lambda: "a", lambda: "b\0c\n",
    lambda: os.fsdecode(b"\xff"), lambda: "x\ud800\udc80", lambda: "n" * 70_000, lambda: _Text("text"),
    lambda: b"bytes", lambda: bytearray(100_000), lambda: memoryview(b"view"), lambda: 1j, lambda: ..., object,
    threading.Lock, lambda: range(3), lambda: (each for each in (1, 2)), _Hostile, lambda: _Hostile, lambda: _plain,
    lambda: abs, lambda: len, lambda: int, lambda: _odd_function(os.fsdecode(b"f\xff")), lambda: _coroutine_function,
    lambda: functools.partial(_odd_function("p\udcff"), 1), lambda: [].append, lambda: OSError, lambda: KeyError("k"),
    lambda: (OSError, ValueError), _containing_itself, lambda: named("by_name"), lambda: pickle, asyncio.Event,
]  # fmt: skip
"""Odd values. Each call makes new ones."""

_TEXTS = "", "a", "b\0c\n", os.fsdecode(b"\xff"), "x\ud800\udc80", "n" * 70_000, _Text("text")
_NUMBERS = 0, 1, -1, 2**31, -(2**31) - 1, 10**5000, float("nan"), float("inf"), 1e300, 5e-324, _Float(0.01), _Number.FEW
_BOOLS = True, False
_POOLS: dict[str, Any] = {
    "name": _TEXTS, "timeout": _NUMBERS, "retries": _NUMBERS, "priority": _NUMBERS, "chunksize": (1, 2, _Number.FEW),
    "heartbeat_interval_seconds": _NUMBERS, "profiling": _BOOLS, "progress": (False,), "force": _BOOLS, "wait": _BOOLS,
    "cancel_futures": _BOOLS, "stream_output": _BOOLS, "retry_on": (OSError, (OSError, ValueError)),
    "capabilities": [
        {"gpu": 1}, ["a", os.fsdecode(b"\xff")], [_Text("b")], {"b": _Number.FEW}, {"c": 2**32}, {"n" * 70_000: 1},
    ],
}  # fmt: skip
"""Values of the right type, which keywords of these names get half of the time."""


class _Scene:
    """A scheduler and a client, for many runs."""

    def __init__(self) -> None:
        self.scheduler = AnsweringScheduler()
        self.client = Client(self.scheduler.address, timeout_seconds=WAIT_SECONDS)

    def client_again(self) -> Client:
        if self.client._io_thread.is_closed:
            self.client = Client(self.scheduler.address, timeout_seconds=WAIT_SECONDS)
        return self.client


@functools.cache
def _scene() -> _Scene:
    return _Scene()


def close() -> None:
    """End the scheduler and its client, if there are any. The next run makes new ones."""
    if _scene.cache_info().currsize:
        scene = _scene()
        _scene.cache_clear()
        scene.client.disconnect()
        scene.scheduler.close()


class ClientCalls:
    """The calls of one run."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._scene = _scene()
        self._client: Any = self._scene.client_again()
        self._values: list[Any] = [self._client]
        """Results of earlier calls."""
        self.raised: list[BaseException] = []

    def run(self) -> None:
        for _ in range(MAX_CALLS):
            if self._drawing.is_over:
                break
            call = self._drawing.one_of(self._CALLS)
            try:
                result = call(self)
                if result is not None:
                    self._values.append(result)
            except (Exception, SystemExit) as error:
                self.raised.append(error)
        self.check()

    def check(self) -> None:
        """Check that the client's threads live and work."""
        client = self._scene.client
        assert client._io_thread._thread.is_alive() and not client._io_thread.is_closed, (
            "the client's I/O thread has ended"
        )
        called = threading.Event()
        future = client.submit(_plain, 1)
        future.add_done_callback(lambda _: called.set())
        assert future.result(WAIT_SECONDS) is None
        assert called.wait(WAIT_SECONDS), "the thread of callbacks has ended"

    # ----------------------------------------------------------------------------------------------------------- values

    def _value(self, depth: int = 0) -> Any:
        kind = self._drawing.below(8)
        if kind == 0 and depth < _DEEPEST:
            items = [self._value(depth + 1) for _ in range(self._drawing.below(4))]
            wrap = self._drawing.one_of((tuple, list, iter, self._dict, set))
            try:
                return wrap(items)
            except Exception:  # not hashable
                return items
        if kind == 1:
            return self._drawing.one_of(self._values)
        return self._drawing.one_of(_MAKERS)()

    def _dict(self, items: list[Any]) -> dict[Any, Any]:
        return {self._drawing.one_of(("a", "b", "c", 1)): each for each in items}

    def _arguments(self) -> list[Any]:
        return [self._value() for _ in range(self._drawing.below(4))]

    def _keywords(self, *names: str) -> dict[str, Any]:
        return {name: self._keyword(name) for name in names if self._drawing.below(3) == 0}

    def _keyword(self, name: str) -> Any:
        return self._drawing.one_of(_POOLS[name]) if name in _POOLS and self._drawing.below(2) else self._value()

    def _future(self) -> TaskFuture[Any]:
        futures = [each for each in self._values if isinstance(each, TaskFuture)]
        return self._drawing.one_of(futures) if futures else self._client.submit(_plain)

    def _function(self) -> Any:
        return _plain if self._drawing.below(2) else self._value()

    # ------------------------------------------------------------------------------------------------------------ calls

    def _submit(self) -> Any:
        keywords = self._keywords("profiling", "x", "fn", "self", os.fsdecode(b"\xff"))
        return self._client.submit(self._function(), *self._arguments(), **keywords)

    def _map(self) -> Any:
        items = self._value() if self._drawing.below(2) else [(each,) for each in self._arguments()]
        return self._client.map(self._function(), items, **self._keywords("progress"))

    def _options(self) -> Any:
        names = ("timeout", "retries", "retry_on", "priority", "name", "capabilities", "profiling")
        view = self._client.options(**self._keywords(*names))
        view.submit(_plain, 1)
        return view

    def _capable(self) -> Any:
        view = self._client.options(capabilities=self._keyword("capabilities"), name=self._keyword("name"))
        return view.submit(_plain, 1)

    def _turn_to_view(self) -> None:
        views = [each for each in self._values if isinstance(each, Client)]
        self._client = self._drawing.one_of(views)

    def _send_object(self) -> Any:
        reference = self._client.send_object(*self._arguments()[:2], **self._keywords("name"))
        self._values.append(reference)
        return self._client.submit(_plain, reference, self._value())

    def _graph(self) -> Any:
        graph: Any = {
            "a": self._value(),
            "b": (self._function(), "a"),
            "c": ("b", self._value()),
            1: (_plain, "c", self._value()),
            "key\udcff": 1,
        }
        if self._drawing.below(4) == 0:
            graph = self._value()
        keys = self._drawing.one_of((["a"], ["b", "c"], [1, "key\udcff"], self._value()))
        if self._drawing.below(2):
            return self._client.get(graph, keys)
        self._values += self._client.submit_graph(graph, keys)
        return None

    def _executor_map(self) -> Any:
        items = self._value()
        if isinstance(items, (str, bytearray)):
            items = items[:10]  # watching a task for each would take too long
        with self._client.executor() as executor:
            results = executor.map(self._function(), items, **self._keywords("timeout", "chunksize"))
            return list(results)

    def _executor_submit(self) -> Any:
        executor = self._client.executor()
        future = executor.submit(self._function(), *self._arguments(), **self._keywords("profiling", "x"))
        executor.shutdown(**self._keywords("wait", "cancel_futures"))
        return future

    def _of_many(self) -> Any:
        futures: Any = [self._future(), self._client.submit(_plain)]
        if self._drawing.below(3) == 0:
            futures = self._value()
        way = self._drawing.below(3)
        if way == 0:
            return self._client.gather(futures)
        keywords = {"timeout": self._drawing.one_of((None, 5.0, 0, self._value()))}
        if way == 1:
            return list(self._client.as_completed(futures, **keywords))
        return self._client.wait(futures, **keywords, **self._keywords("return_when"))

    def _of_one(self) -> Any:
        future = self._future()
        way = self._drawing.below(7)
        if way == 0:
            future.add_done_callback(self._value())
        elif way == 1:
            return future.result(self._drawing.one_of((WAIT_SECONDS, 0, self._value())))
        elif way == 2:
            return future.exception(self._drawing.one_of((WAIT_SECONDS, 0, self._value())))
        elif way == 3:
            future.cancel(**self._keywords("force"))
        elif way == 4:
            future.profiling_info()
        elif way == 5:
            future.add_done_callback(_exit)
        else:
            repr(future), future._repr_html_(), future.running(), future.done(), future.cancelled()
        return None

    def _of_client(self) -> Any:
        client = self._client
        way = self._drawing.below(5)
        if way == 0:
            client.clear()
        elif way == 1:
            repr(client), client._repr_html_(), client.address
        elif way == 2:
            client.shutdown()  # the scheduler refuses
        elif way == 3:
            pickle.dumps(client)
        else:
            client.dask_get(self._value(), self._value())

    def _new_client(self) -> None:
        # No empty address, because that would start a cluster.
        own = self._scene.scheduler.address
        addresses = (own, own, 1, "x\udcff", "ipc:///tmp/\udcff", "ipc:///\ud800", object(), "tcp://")
        names = ("profiling", "serializer", "graph_backend", "stream_output", "heartbeat_interval_seconds")
        keywords = self._keywords(*names)
        keywords["timeout_seconds"] = self._drawing.one_of((WAIT_SECONDS, WAIT_SECONDS, _patience(self._value())))
        client = Client(self._drawing.one_of(addresses), **keywords)  # type: ignore[arg-type]
        try:
            client.submit(_plain, self._value())
        finally:
            client.disconnect()

    def _async_client(self) -> None:
        async def body() -> None:
            async with AsyncClient(self._scene.scheduler.address, timeout_seconds=WAIT_SECONDS) as client:
                future = client.submit(self._function(), *self._arguments(), **self._keywords("profiling", "x"))
                await client.options(**self._keywords("name", "priority")).map(_plain, [self._value(), (1,)])
                await client.send_object(self._value(), name=self._keyword("name"))
                await client.get({"a": self._value(), "b": (_plain, "a")}, ["b"])
                await client.gather([future])

        asyncio.run(body())

    def _named(self) -> Any:
        function = named(self._keyword("name"), self._drawing.one_of(("json", "msgpack", "raw", self._value())))
        return self._client.submit(function, *self._arguments())

    _CALLS: Any = (
        _submit, _submit, _map, _options, _options, _capable, _turn_to_view, _send_object, _graph, _graph,
        _executor_map, _executor_submit, _of_many, _of_one, _of_one, _of_client, _new_client, _async_client, _named,
    )  # fmt: skip


def _patience(value: Any) -> Any:
    """Bound a timeout by the time of the test."""
    return min(value, time.monotonic()) if type(value) is float and value == value else value


def _exit(_future: Any) -> None:
    raise SystemExit("a callback leaves")
