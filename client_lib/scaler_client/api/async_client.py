"""`AsyncClient`: a client for programs that run in an event loop of asyncio."""

from __future__ import annotations

import asyncio
import copy
import functools
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, NoReturn, TypeVar, overload

from ..futures.notebook import html_table
from ..nested.slot_await import SlotFreeAwait
from ..pickling.custom_serializer import Serializer
from ..pickling.references import ObjectRef
from . import async_graphs
from .async_future import AsyncTaskFuture, CompletionQueue
from .client import Client
from .client_settings import checked_settings
from .event_loop import LoopEvent, run_in_thread
from .graph import submit_graph
from .local_cluster import LocalCluster
from .map import Arguments, MapRun, check_one_iterable
from .progress import REFRESH_SECONDS, progress_bar
from .submit import NOT_GIVEN, split_profiling_argument
from .wait import checked_futures

A = TypeVar("A", bound="AsyncClient")
T = TypeVar("T")


class AsyncClient:
    """A `Client` whose futures are the event loop's, and which never blocks the loop.

    Used in `async with`, or between `await client.connect()` and `await client.disconnect()`, in one event loop.

    Args:
        address, profiling, timeout_seconds, heartbeat_interval_seconds, serializer, graph_backend, stream_output,
            keys: as for Client.

    Raises:
        TypeError, ValueError, RuntimeError, ImportError: as for Client, of its arguments.
    """

    def __init__(
        self,
        address: str | LocalCluster | None = None,
        profiling: bool = False,
        timeout_seconds: float = 60.0,
        heartbeat_interval_seconds: float = 2.0,
        serializer: Serializer | type | None = None,
        graph_backend: str = "python",
        stream_output: bool = False,
        keys: str | os.PathLike[str] | None = None,
    ) -> None:
        arguments: dict[str, Any] = {
            "profiling": profiling,
            "timeout_seconds": timeout_seconds,
            "heartbeat_interval_seconds": heartbeat_interval_seconds,
            "serializer": serializer,
            "graph_backend": graph_backend,
            "stream_output": stream_output,
            "keys": keys,
        }
        checked_settings(address, **arguments)
        self._make_client = functools.partial(Client, address, **arguments)
        self._client: Client | None = None
        self._completions: CompletionQueue | None = None

    async def connect(self) -> None:
        """Find the scheduler.

        Raises:
            RuntimeError: it is connected already, or as for Client.
            ConnectionError, ModuleNotFoundError: as for Client.
        """
        if self._client is not None and not self._client._io_thread.is_closed:
            raise RuntimeError(f"{self!r} is connected already")
        connecting = run_in_thread(self._make_client)
        try:
            self._client = await asyncio.wrap_future(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_disconnect_unclaimed)
            raise
        self._completions = CompletionQueue(asyncio.get_running_loop())

    async def disconnect(self) -> None:
        """Leave the scheduler; unfinished tasks are cancelled. A second call does nothing."""
        if self._client is not None:
            await asyncio.wrap_future(run_in_thread(self._client.disconnect))

    async def __aenter__(self: A) -> A:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()

    @property
    def _connected(self) -> Client:
        if self._client is None:
            raise RuntimeError("the client is not connected: use it in 'async with', or await its connect() first")
        return self._client

    @property
    def address(self) -> str:
        """The scheduler's address. Raises RuntimeError where the client was never connected."""
        return self._connected.address

    def options(
        self: A,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        priority: int | None = None,
        name: str | None = None,
        capabilities: Mapping[str, int] | Iterable[str] | None = None,
        profiling: bool | None = None,
    ) -> A:
        """A view of this client whose tasks ask for more; arguments and errors are those of `Client.options`."""
        view = copy.copy(self)
        view._client = self._connected.options(
            timeout=timeout,
            retries=retries,
            retry_on=retry_on,
            priority=priority,
            name=name,
            capabilities=capabilities,
            profiling=profiling,
        )
        return view

    def submit(
        self, fn: Callable[..., T], /, *args: Any, profiling: Any = NOT_GIVEN, **kwargs: Any
    ) -> AsyncTaskFuture[T]:
        """Have `fn(*args, **kwargs)` called on a worker.

        Args:
            profiling: as for `Client.submit`.

        Returns:
            Its future, an `asyncio.Future`: to be awaited, or cancelled, which stops the task.

        Raises:
            TypeError: the function or an argument can't be pickled, or `fn` can't be called.
            RuntimeError: the client is not connected, as ClientClosedError where it was.
        """
        client = self._connected
        assert self._completions is not None
        keywords, is_profiled = split_profiling_argument(fn, profiling, kwargs)
        return AsyncTaskFuture(
            client._io_thread, client._submit_call(fn, args, keywords, is_profiled), self._completions
        )

    async def map(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *others: NoReturn, progress: bool = False
    ) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments; returns the results, in order.

        Arguments and errors are those of `Client.map`. Cancelled, it cancels its tasks.
        """
        check_one_iterable("AsyncClient", others, "client.map(fn, zip(xs, ys))")
        io_thread = self._connected._io_thread
        plan = self._connected._map_plan(fn, iterable, progress)
        changed = LoopEvent(io_thread)
        with progress_bar(progress, iterable) as bar:
            run = MapRun(io_thread, plan, changed, bar)
            try:
                for _ in run.submit():
                    await asyncio.sleep(0)  # the loop's others have their turn
                for _ in run.collect():
                    await changed.wait(REFRESH_SECONDS if progress else None)
                return run.results
            except BaseException:
                run.cancel_rest()
                raise

    async def gather(self, futures: Iterable[asyncio.Future[T]]) -> list[T]:
        """The futures' results, in order. Cancelled, it cancels them all.

        Raises:
            TypeError: one is no future of an event loop.
            BaseException: what the first one that fails has raised, at once; the others are left as they are.
        """
        gathered: asyncio.Future[list[T]] = asyncio.gather(*checked_futures(futures, asyncio.Future))
        return await SlotFreeAwait(self._connected._io_thread, gathered)

    def as_completed(self, futures: Iterable[asyncio.Future[T]]) -> AsyncIterator[asyncio.Future[T]]:
        """The futures in the order in which they end, for `async for`.

        Raises:
            TypeError: one is no future of an event loop.
        """
        return self._completed(list(dict.fromkeys(checked_futures(futures, asyncio.Future))))

    async def _completed(self, futures: list[asyncio.Future[T]]) -> AsyncIterator[asyncio.Future[T]]:
        done_futures: deque[asyncio.Future[T]] = deque()
        completed = LoopEvent(self._connected._io_thread)

        def on_done(future: asyncio.Future[T]) -> None:
            done_futures.append(future)
            completed.set_in_loop()

        for future in futures:
            future.add_done_callback(on_done)
        try:
            for _ in futures:
                while not done_futures:
                    completed.clear()
                    await completed.wait()
                yield done_futures.popleft()
        finally:
            for future in futures:
                future.remove_done_callback(on_done)

    @overload
    async def send_object(self, obj: Any, /, *, name: str = "") -> ObjectRef: ...

    @overload
    async def send_object(self, name: str, obj: Any, /) -> ObjectRef: ...

    async def send_object(self, first: Any, second: Any = NOT_GIVEN, /, *, name: str = "") -> ObjectRef:
        """Have the scheduler keep an object, as `Client.send_object` does; it is pickled in another thread."""
        return await async_graphs.send_object(self._connected, first, second, name)

    def submit_graph(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> list[AsyncTaskFuture[Any]]:
        """Have a graph's nodes run on the workers, as far as these keys need them; returns a future for each key.

        The graph is analysed here and now, some microseconds a node; `get` does that in another thread. Arguments and
        errors are those of `Client.submit_graph`.
        """
        client = self._connected
        assert self._completions is not None
        futures: dict[Any, AsyncTaskFuture[Any]] = {}
        return [
            futures.get(task) or futures.setdefault(task, AsyncTaskFuture(client._io_thread, task, self._completions))
            for task in submit_graph(client, graph, keys)
        ]

    async def get(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of a graph's keys, as a dict. Cancelled, it cancels what of the graph has not begun.

        The graph is analysed in another thread, and must not change meanwhile. Arguments and errors are those of
        `Client.get`.
        """
        return await async_graphs.get(self._connected, graph, keys)

    async def clear(self) -> None:
        """Cancel this client's tasks that have not begun, as `Client.clear` does."""
        cleared = LoopEvent(self._connected._io_thread)
        self._connected._begin_clear(cleared.set)
        await cleared.wait()

    async def shutdown(self) -> None:
        """End the scheduler, its clusters, and this client with them. Raises as `Client.shutdown` does."""
        await async_graphs.shutdown_scheduler(self._connected)
        await self.disconnect()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'not connected' if self._client is None else repr(self._client)}>"

    def _repr_html_(self) -> str:
        if self._client is None:
            return html_table(type(self).__name__, {"address": "not connected"})
        return self._client._repr_html_()


def _disconnect_unclaimed(connecting: Future[Client]) -> None:
    """Nobody waits for this client any more."""
    if connecting.exception() is None:
        connecting.result().disconnect()
