"""`AsyncClient`: a client for programs that run in an asyncio event loop."""

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

from ..futures.future import TaskFuture
from ..futures.notebook import html_table
from ..nested.slot_await import SlotFreeAwait
from ..pickling.custom_serializer import Serializer
from ..pickling.references import ObjectRef
from . import async_graphs
from .async_future import AsyncKeptFuture, AsyncTaskFuture, CompletionQueue, async_future, fetch_together
from .client import Client
from .client_settings import checked_settings
from .event_loop import LoopEvent, run_in_thread
from .graph import submit_graph
from .local_cluster import LocalCluster
from .map import check_one_iterable, checked_count, result_parts, start_async_results, submit_buffer
from .map_run import Arguments, MapRun
from .progress import REFRESH_SECONDS, progress_bar
from .submit import NOT_GIVEN, split_profiling_argument
from .wait import checked_futures

A = TypeVar("A", bound="AsyncClient")
T = TypeVar("T")

_FUTURES = (asyncio.Future, AsyncKeptFuture)


class AsyncClient:
    """A `Client` for asyncio: its futures belong to the event loop, and no method blocks the loop.

    Use it in `async with`, or between `await client.connect()` and `await client.disconnect()`, in one event loop.

    Args:
        address: the address of the scheduler, or a `LocalCluster`; as for `Client`.
        profiling: whether every task is measured; see `AsyncTaskFuture.profiling_info`.
        timeout_seconds: how many seconds to wait for the scheduler, at the start and whenever it is gone.
        heartbeat_interval_seconds: the number of seconds between two messages that tell the scheduler that the client
            is alive.
        serializer: the class that turns functions, arguments and results into bytes; None: cloudpickle.
        graph_backend: the library that analyses graphs before they are submitted: `"python"` or `"graphblas"`.
        stream_output: whether to show here what the tasks print.
        keys: the folder of keys, for a scheduler that requires keys; as for `Client`.
        data_address: where host agents get the client's large objects; as for `Client`.
        modules: files and folders of the program's own modules, which the tasks import; as for `Client`.
        environment: the packages that the tasks import; as for `Client`.

    Raises:
        TypeError: an argument has a wrong type; the text names it.
        ValueError: an argument is out of range; the text names it.
        RuntimeError: the local cluster is shut down.
        ImportError: the library of the graph backend is not installed.

    Example:
        ```python
        import asyncio
        from scaler_client import AsyncClient


        async def main():
            async with AsyncClient("tcp://127.0.0.1:2345") as client:
                print(await client.submit(pow, 2, 10))  # 1024


        asyncio.run(main())
        ```
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
        data_address: str | None = None,
        modules: Iterable[str | os.PathLike[str]] | None = None,
        environment: str | os.PathLike[str] | None = None,
    ) -> None:
        arguments: dict[str, Any] = {
            "profiling": profiling,
            "timeout_seconds": timeout_seconds,
            "heartbeat_interval_seconds": heartbeat_interval_seconds,
            "serializer": serializer,
            "graph_backend": graph_backend,
            "stream_output": stream_output,
            "keys": keys,
            "data_address": data_address,
            "modules": None if modules is None else list(modules),
            "environment": environment,
        }
        checked_settings(address, **arguments)
        self._make_client = functools.partial(Client, address, **arguments)
        self._client: Client | None = None
        self._completions: CompletionQueue | None = None

    async def connect(self) -> None:
        """Connect to the scheduler.

        Raises:
            RuntimeError: the client is already connected, or a local cluster cannot be started.
            ConnectionError: no scheduler answers in time, or the scheduler refuses the client.
            UnauthorizedError: the key is missing or not authorized. It is a `ConnectionError`.
            KeyFileError: the folder of keys lacks a file that a client needs. It is a `ValueError`.
            OSError: the process may open too few files, or the data address cannot be bound; the text says so.
            ModuleNotFoundError: a package that a local cluster needs is not installed; the text names it.
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
        """Leave the scheduler, and cancel all tasks that are not done. A second call does nothing."""
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
        """The address of the scheduler.

        Raises:
            RuntimeError: the client was never connected.
        """
        return self._connected.address

    async def upload_modules(self, *paths: str | os.PathLike[str]) -> None:
        """Upload the program's own modules for tasks that are submitted later; as `Client.upload_modules`.

        Args:
            paths: files of modules, folders of packages, or folders whose modules and packages are uploaded.

        Raises:
            RuntimeError: the client is not connected, or is inside a task.
            TypeError: a path is not a path.
            ModulesError: modules cannot be read, are too large, or two of them have the same name.
            ClientClosedError: the client is disconnected.
        """
        client = self._connected
        await asyncio.wrap_future(run_in_thread(functools.partial(client.upload_modules, *paths)))

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
        keep: bool | None = None,
        limit: str | Iterable[str] | None = None,
        resources: Mapping[str, float | str] | None = None,
        cpus: float | None = None,
        release_resources: bool | None = None,
        shared_inputs: bool | None = None,
        leave_processes: bool | None = None,
    ) -> A:
        """Return a view of this client whose tasks have these options.

        The view has the same methods and shares the connection. An option that is None keeps the value of this client
        or view.

        Args:
            timeout: how many seconds a task may run. Then it is stopped, and its future raises `TaskTimeoutError`.
            retries: how many more times a task is run if its worker died, or if it raised an exception of `retry_on`.
            retry_on: an exception class or a tuple of them. A task that raises one is run again.
            priority: tasks with a higher priority start first. The default is 0; inside a task, it is the priority of
                that task.
            name: the task's name in logs, errors and monitors; by default the name of the function.
            capabilities: the capabilities that a worker must have: names, or a dict of names and minimum amounts.
            profiling: whether tasks are measured; see `AsyncTaskFuture.profiling_info`.
            keep: whether results stay on their hosts. `submit` then returns an `AsyncKeptFuture`. `map`, `imap`,
                `submit_graph` and `get` give one for each result. The future is done when the result exists; `await`
                brings the value.
            limit: names of limits in the scheduler's configuration, `[limits]`. A task waits until all these limits
                allow it to begin.
            resources: amounts of the host's resources that a task needs, such as `{"gpu": 0.5, "memory": "4G"}`. No
                other task gets these amounts until the task ends. `current_task().resources` has the ids of its GPUs.
            cpus: how many cpus a task needs. The task takes one worker of a host for each cpu, and libraries for linear
                algebra get one thread for each cpu.
            release_resources: whether a task gives all its resources back when it first waits for its own tasks, and
                does not get them again. By default it gives its cpus back while it waits, and keeps its other
                resources.
            shared_inputs: whether the tasks of a worker share the values of their inputs (objects, and the results of
                other tasks). The value of a large input is then loaded once for each worker, and no task may change
                it. By default, each task gets values of its own.
            leave_processes: whether the processes that a task starts outlive it. By default they end with their worker
                at the latest, and with their task if it is stopped.

        Returns:
            The view.

        Raises:
            RuntimeError: the client is not connected.
            TypeError: an option has a wrong type; the text names it.
            ValueError: an option is out of range; the text names it.
        """
        view = copy.copy(self)
        view._client = self._connected.options(
            timeout=timeout,
            retries=retries,
            retry_on=retry_on,
            priority=priority,
            name=name,
            capabilities=capabilities,
            profiling=profiling,
            keep=keep,
            limit=limit,
            resources=resources,
            cpus=cpus,
            release_resources=release_resources,
            shared_inputs=shared_inputs,
            leave_processes=leave_processes,
        )
        return view

    def _future(self, task: TaskFuture[T]) -> AsyncTaskFuture[T]:
        """Return the future of a task in the loop. With `options(keep=True)` it is an `AsyncKeptFuture`."""
        assert self._completions is not None
        future: Any = async_future(self._connected._io_thread, task, self._completions)
        return future  # type: ignore[no-any-return]

    def _values(self, values: list[T]) -> list[T]:
        """Return these results. If they stay on their hosts, return their futures in the loop."""
        if not self._connected._keeps_results:
            return values
        futures: list[Any] = values
        return [self._future(each) for each in futures]  # type: ignore[misc]

    def submit(
        self, fn: Callable[..., T], /, *args: Any, profiling: Any = NOT_GIVEN, **kwargs: Any
    ) -> AsyncTaskFuture[T]:
        """Call `fn(*args, **kwargs)` on a worker. Returns at once.

        Args:
            fn: the function; any callable, or a function by name (`named`).
            args: the positional arguments. `fn` gets the object of an `ObjectRef`, and the result of a future.
            profiling: whether this task is measured, True or False; as for `Client.submit`.
            kwargs: the keyword arguments.

        Returns:
            The future of the task, an `asyncio.Future`. Await it for the result, or cancel it to stop the task. With
            `options(keep=True)`: an `AsyncKeptFuture`.

        Raises:
            TypeError: the function or an argument cannot be pickled, or `fn` is not callable.
            RuntimeError: the client is not connected.
            ClientClosedError: the client was disconnected. It is a `RuntimeError`.
        """
        client = self._connected
        keywords, is_profiled = split_profiling_argument(fn, profiling, kwargs)
        return self._future(client._submit_call(fn, args, keywords, is_profiled))

    def submit_gang(
        self,
        fn: Callable[..., T],
        /,
        *args: Any,
        size: int,
        resources: Mapping[str, float | str] | None = None,
        cpus: float | None = None,
        **kwargs: Any,
    ) -> AsyncTaskFuture[list[T]]:
        """Call `fn(*args, **kwargs)` on several workers that start together or not at all. Returns at once.

        Args:
            fn: the function; inside it, `current_task().gang` tells the rank, as for `Client.submit_gang`.
            args: the positional arguments, the same for all members.
            size: the number of members, at most 1,024.
            resources: amounts of the host's resources that each member needs, as for `options`.
            cpus: how many processors of its host each member needs, as for `options`.
            kwargs: the keyword arguments.

        Returns:
            The future of the gang, an `asyncio.Future`. Its result is the list of the members' results, by rank.

        Raises:
            TypeError: as for `submit`, or `size` is no whole number.
            ValueError: `size` is out of range, or this view has an option that gangs do not have: `keep`, `profiling`.
            RuntimeError: the client is not connected.
        """
        gang = self._connected.submit_gang(fn, *args, size=size, resources=resources, cpus=cpus, **kwargs)
        return self._future(gang)

    async def map(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *others: NoReturn, progress: bool = False
    ) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments, and wait for all results.

        If this coroutine is cancelled, its tasks are cancelled, or stopped if they run.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call; for one argument `[(x,) for x in items]`.
            others: must be empty. Further iterables raise a `TypeError` that says how to pass them.
            progress: whether to show a progress bar; needs tqdm, the extra `scaler-client[progress]`.

        Returns:
            The results, in the order of the arguments. With `options(keep=True)`: an `AsyncKeptFuture` for each.

        Raises:
            TypeError: as for `submit`, or an item is neither a tuple nor a list; the text names the item.
            ImportError: `progress` is True, but tqdm is not installed.
            RuntimeError: the client is not connected.
            BaseException: the exception of the first task that failed. Tasks that have not begun are then cancelled.
        """
        check_one_iterable("AsyncClient", others, "client.map(fn, zip(xs, ys))")
        io_thread = self._connected._io_thread
        plan = self._connected._map_plan(fn, iterable, progress)
        changed = LoopEvent(io_thread)
        with progress_bar(progress, iterable) as bar:
            run = MapRun(io_thread, plan, changed, True, bar)
            seconds = REFRESH_SECONDS if progress else None
            results: list[T] = []
            try:
                for must_wait in run.submit():
                    if must_wait:
                        await changed.wait(seconds)
                    else:
                        await asyncio.sleep(0)  # other coroutines get their turn
                while not run.is_over:
                    changed.clear()
                    values = run.poll()
                    if values is None:
                        await changed.wait(seconds)
                        run.show()
                    else:
                        results += values
                run.show()
                return self._values(results)
            except BaseException as error:
                run.cancel_rest(force=isinstance(error, asyncio.CancelledError))
                raise

    def imap(self, fn: Callable[..., T], iterable: Iterable[Arguments], *, buffer: int = 10_000) -> AsyncIterator[T]:
        """Call `fn(*arguments)` lazily for each tuple of arguments: calls whose results you do not read may not run.

        The iterable is read while you read the results. So the needed memory does not grow with the number of calls. If
        you drop the iterator, calls that have not begun are cancelled. To run all calls, use `map`.

        If the coroutine that waits for a result is cancelled, running calls are stopped too.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call, as for `map`. It may be endless.
            buffer: the most calls that are submitted before their results are read.

        Returns:
            An iterator for `async for`, in the order of the arguments. If a call fails, the iterator raises the
            exception in place of the result, and ends. When the iterator ends or is closed, calls that have not begun
            are cancelled. With `options(keep=True)`, it yields an `AsyncKeptFuture` for each result, when the result
            exists.

        Raises:
            TypeError: as for `map`, or `buffer` is not a whole number. A wrong item that is read later raises in the
                iterator.
            ValueError: `buffer` is below 1.
            RuntimeError: the client is not connected.
        """
        return self._iterate_map(fn, iterable, buffer, is_ordered=True)

    def imap_unordered(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], *, buffer: int = 10_000
    ) -> AsyncIterator[T]:
        """Call `fn(*arguments)` lazily, like `imap`, and yield each result as soon as it arrives.

        Args:
            fn: the function.
            iterable: one tuple or list of arguments for each call.
            buffer: the most calls that are submitted before their results are read.

        Returns:
            An iterator for `async for`. It raises the exception of a call that fails, and ends.

        Raises:
            TypeError: as for `imap`.
            ValueError: `buffer` is below 1.
            RuntimeError: the client is not connected.
        """
        return self._iterate_map(fn, iterable, buffer, is_ordered=False)

    def _iterate_map(
        self, fn: Callable[..., T], iterable: Iterable[Arguments], buffer: int, is_ordered: bool
    ) -> AsyncIterator[T]:
        checked_count("buffer", buffer)
        io_thread = self._connected._io_thread
        plan = self._connected._map_plan(fn, iterable, False)
        changed = LoopEvent(io_thread)
        run: MapRun[T] = MapRun(io_thread, plan, changed, fails_fast=False)
        if not is_ordered:
            run.feed.ready = deque()
        submit_buffer(run, buffer, 0)
        parts = result_parts(run, buffer, is_ordered)
        return start_async_results(run, (None if each is None else self._values(each) for each in parts), changed)

    async def gather(self, futures: Iterable[asyncio.Future[T]]) -> list[T]:
        """Wait for futures and return their results. If this coroutine is cancelled, all the futures are cancelled.

        Args:
            futures: any asyncio futures, and `AsyncKeptFuture`s.

        Returns:
            The results, in the order of the futures.

        Raises:
            TypeError: an item is neither an asyncio future nor an `AsyncKeptFuture`.
            BaseException: the exception of the first future that fails, as soon as it fails. The other futures go on.
        """
        listed = checked_futures(futures, _FUTURES)
        fetch_together(listed)
        gathered: asyncio.Future[list[T]] = asyncio.gather(*listed)
        try:
            return await SlotFreeAwait(self._connected._io_thread, gathered)
        finally:
            del futures, listed, gathered  # breaks the reference cycle of exception, traceback, frame and future

    def as_completed(self, futures: Iterable[asyncio.Future[T]]) -> AsyncIterator[asyncio.Future[T]]:
        """Yield futures in the order in which they are done, for `async for`.

        Args:
            futures: any asyncio futures, and `AsyncKeptFuture`s.

        Returns:
            An asynchronous iterator of the futures.

        Raises:
            TypeError: an item is neither an asyncio future nor an `AsyncKeptFuture`.
        """
        return self._completed(list(dict.fromkeys(checked_futures(futures, _FUTURES))))

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
    async def send_object(self, obj: Any, /, *, name: str = "", shared: bool = False) -> ObjectRef: ...

    @overload
    async def send_object(self, name: str, obj: Any, /, *, shared: bool = False) -> ObjectRef: ...

    async def send_object(
        self, first: Any, second: Any = NOT_GIVEN, /, *, name: str = "", shared: bool = False
    ) -> ObjectRef:
        """Send an object to the scheduler once, so that many tasks can read it. It is pickled in another thread.

        Call it as `send_object(obj)`, `send_object("name", obj)` or `send_object(obj, name="name")`; see
        `Client.send_object`.

        Args:
            first: the object; or its name, if a second argument is given.
            second: the object, if the first argument is its name.
            name: the object's name in `repr` and monitors.
            shared: whether the tasks of a worker share one object, which none of them may change.

        Returns:
            The reference. Pass it in the arguments of `submit`, `map` and graphs: tasks receive the object.

        Raises:
            TypeError: the object cannot be pickled, the name is not a string, or `shared` is not a bool.
            ValueError: UTF-8 cannot encode the name.
            MessageTooLargeError: the object has more bytes in one frame than the scheduler accepts.
            RuntimeError: the client is not connected.
        """
        return await async_graphs.send_object(self._connected, first, second, name, shared)

    def submit_graph(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> list[AsyncTaskFuture[Any]]:
        """Run a graph of tasks on the workers.

        This call analyses the graph in the thread of the event loop, which takes some microseconds for each node. `get`
        analyses the graph in another thread.

        Args:
            graph: a dict of nodes by key; as for `Client.submit_graph`.
            keys: the keys whose values are requested.

        Returns:
            One future for each key, in the order of `keys`. With `options(keep=True)`: an `AsyncKeptFuture`.

        Raises:
            TypeError: the graph is not a dict, or a node cannot be pickled; the text names the node.
            ValueError: a requested key is not in the graph; the text names it.
            GraphCycleError: the graph has a cycle; the text names its nodes. It is a `ValueError`.
            ObjectNotFoundError: a node reads an object that was freed.
            RuntimeError: the client is not connected.
        """
        futures: dict[Any, AsyncTaskFuture[Any]] = {}
        return [
            futures.get(task) or futures.setdefault(task, self._future(task))
            for task in submit_graph(self._connected, graph, keys)
        ]

    async def get(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
        """Run a graph of tasks on the workers, and wait for the values of the requested keys.

        The graph is analysed in another thread: do not change it meanwhile. If this coroutine is cancelled, the nodes
        are cancelled, or stopped if they run.

        Args:
            graph: a dict of nodes by key; as for `Client.submit_graph`.
            keys: the keys whose values are requested.

        Returns:
            The values by key. With `options(keep=True)`: an `AsyncKeptFuture` for each key, at once.

        Raises:
            BaseException: the exception of the first node that failed. Nodes that have not begun are then cancelled.
            TypeError: as for `submit_graph`.
            ValueError: as for `submit_graph`.
            RuntimeError: the client is not connected.
        """
        values = await async_graphs.get(self._connected, graph, keys)
        return dict(zip(values, self._values(list(values.values()))))

    async def clear(self) -> None:
        """Cancel all tasks of this client that have not begun, and forget all its objects.

        Waits until the scheduler has confirmed it. Tasks that run go on, and the client stays usable.

        Raises:
            RuntimeError: the client is not connected.
        """
        cleared = LoopEvent(self._connected._io_thread)
        self._connected._begin_clear(cleared.set)
        await cleared.wait()

    async def shutdown(self) -> None:
        """Shut down the scheduler and its clusters, and disconnect this client.

        Raises:
            ProtectedSchedulerError: the scheduler does not let clients shut it down, which is the default. The
                scheduler's option `--no-protected` allows it.
            RuntimeError: the client is not connected.
        """
        await async_graphs.shutdown_scheduler(self._connected)
        await self.disconnect()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'not connected' if self._client is None else repr(self._client)}>"

    def _repr_html_(self) -> str:
        if self._client is None:
            return html_table(type(self).__name__, {"address": "not connected"})
        return self._client._repr_html_()


def _disconnect_unclaimed(connecting: Future[Client]) -> None:
    """Disconnect a client whose `connect` was cancelled."""
    if connecting.exception() is None:
        connecting.result().disconnect()
