"""The client: what applications use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from . import nested, nesting, suspending
from .addresses import ADDRESS_VARIABLE, parse_connect_address
from .connection import Connection
from .custom_serializer import Serializer, call_dumper, check_serializer
from .errors import ClientClosedError
from .functions import Function
from .future import TaskFuture
from .graph_order import check_backend
from .mapping import run_map
from .messages import Options
from .nesting import RunningTask
from .objects_and_graphs import ObjectsAndGraphs, shut_down
from .task_options import TaskOptions, checked_profiling

T = TypeVar("T")


class Client(ObjectsAndGraphs):
    """A connection to a scheduler, for any number of threads.

    It can be passed to tasks. Inside a worker it is a handle on the one connection that the process has to that
    scheduler: tasks submitted there are children of the task that submits them, which gives up its slot while it waits
    for them, and `disconnect` ends the handle alone.

    Args:
        address: the scheduler's, as in `tcp://127.0.0.1:2345`; None takes it from SCALER_ADDRESS, inside a task from
            the task's worker.
        profiling: whether every task is measured, for its future's `profiling_info()`.
        timeout_seconds: how long to wait for the scheduler, at the start and whenever it is gone.
        heartbeat_interval_seconds: how often the scheduler hears that the client lives.
        serializer: how functions, arguments and results become bytes; None: cloudpickle.
        graph_backend: how graphs are analysed before they are submitted: "python", or "graphblas" for very large ones,
            with the same results; that needs the extra `scaler-client[graphblas]`.

    Raises:
        ValueError: there is no address, or it is none.
        ImportError: the graph backend's library is not installed.
        ConnectionError: no scheduler answers at the address in time, or it refuses the client.
    """

    def __init__(
        self,
        address: str | None = None,
        profiling: bool = False,
        timeout_seconds: float = 60.0,
        heartbeat_interval_seconds: float = 2.0,
        serializer: Serializer | type | None = None,
        graph_backend: str = "python",
    ) -> None:
        if serializer is not None:
            check_serializer(serializer)
        check_backend(graph_backend)
        options = TaskOptions(profiling=checked_profiling(profiling), graph_backend=graph_backend)
        _check_positive("timeout_seconds", timeout_seconds)
        _check_positive("heartbeat_interval_seconds", heartbeat_interval_seconds)
        self._set_up(address, timeout_seconds, heartbeat_interval_seconds, serializer, options)

    def _set_up(
        self,
        address: str | None,
        timeout_seconds: float,
        heartbeat_interval_seconds: float,
        serializer: Any,
        options: TaskOptions,
        scheduler: int = 0,
    ) -> None:
        """`scheduler` is its incarnation, where the client was pickled."""
        self._timeouts = timeout_seconds, heartbeat_interval_seconds
        self._serializer = serializer
        host = nesting.host
        if host is None:
            parsed = parse_connect_address(_given_address(address))
            self._connection = Connection(parsed, *self._timeouts)
            self._handle = None
        else:
            named = "" if address is None else str(parse_connect_address(_given_address(address)))
            self._connection = nested.attach(host, named, *self._timeouts, scheduler)
            self._handle = _Handle()
        self._agent = self._connection.agent
        self._functions = self._connection.functions(serializer)
        self._dump_call = call_dumper(serializer, self._agent)
        self._take_options(options)

    def _take_options(self, options: TaskOptions) -> None:
        self._options = options
        # Looked at once a task: everything else about options is off the way of tasks that ask for nothing.
        self._is_plain = self._handle is None and not options.retry_on and options.wire() is None

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return self._connection.address

    def options(
        self,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        priority: int | None = None,
        name: str | None = None,
        capabilities: Mapping[str, int] | Iterable[str] | None = None,
        profiling: bool | None = None,
    ) -> Client:
        """A view of this client whose tasks ask for more. It shares the connection; what is not given stays as it is.

        Args:
            timeout: seconds a task may run; past them it is stopped, and its future raises TaskTimeoutError.
            retries: how many more times a task is run when its worker died, or it raised one of `retry_on`. Not
                given: as the scheduler has it (`--task-retries`), 3 with `retry_on`.
            retry_on: exceptions that a task is tried again on; the last attempt's is raised.
            priority: higher ones start first; 0 outside of tasks, inside a task the task's own.
            name: for people, in the place of the function's.
            capabilities: what a worker must have: names, or a dict of names and least amounts.
            profiling: whether tasks are measured, for their futures' `profiling_info()`.

        Raises:
            TypeError, ValueError: an option is of a wrong type or out of range; the text names it.
        """
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._take_options(
            self._options.with_given(timeout, retries, retry_on, priority, name, capabilities, profiling)
        )
        return view

    def submit(
        self, fn: Callable[..., T], /, *args: Any, profiling: bool | None = None, **kwargs: Any
    ) -> TaskFuture[T]:
        """Have `fn(*args, **kwargs)` called on a worker.

        Args:
            profiling: whether this task is measured, whatever the client's options say. It is not passed to `fn`.

        Returns:
            Its future, a `concurrent.futures.Future`.

        Raises:
            TypeError: the function or an argument can't be pickled, or `fn` can't be called.
            ClientClosedError: the client is disconnected, or belongs to a parent process.
        """
        if not self._is_plain or profiling is not None:
            return self._submit_with_options(fn, args, kwargs, profiling)
        future: TaskFuture[T] = TaskFuture(self._agent, self._functions.get(fn), self._dump_call(args, kwargs))
        self._agent.submit(future)
        return future

    def _submit_with_options(
        self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], profiling: bool | None
    ) -> TaskFuture[T]:
        if profiling is not None:
            checked_profiling(profiling)
        task = self._current_task()
        options = self._wire_options(task, profiling)
        future: TaskFuture[T] = TaskFuture(self._agent, self._function(fn), self._dump_call(args, kwargs))
        if options is None:
            self._agent.submit(future)
        else:
            future.options = options
            future.parent = None if task is None else task.name
            self._agent.submit_with_options(future)
        return future

    def map(self, fn: Callable[..., T], iterable: Iterable[Iterable[Any]]) -> list[T]:
        """Call `fn(*arguments)` on the workers for each tuple of arguments, and wait for all.

        Returns:
            The results, in the order of the arguments.

        Raises:
            TypeError: as for submit, or an item of the iterable is no tuple of arguments.
            BaseException: what the first failed task raised; the tasks that have not begun are then cancelled.
        """
        if self._is_plain:
            return run_map(self._agent, self._function(fn), self._dump_call, iterable)
        task = self._current_task()
        parent = None if task is None else task.name
        options = self._wire_options(task, None)
        return run_map(self._agent, self._function(fn), self._dump_call, iterable, options, parent)

    def dask_get(self, dsk: Any, keys: Any, **_options: Any) -> Any:
        """dask's graphs on the workers: `dask.compute(collection, scheduler=client.dask_get)`.

        Each node is a task, chains of nodes are one; the values between them pass through the client. The workers need
        dask too. Options that dask hands to its own schedulers, as `num_workers`, mean nothing here.

        Args:
            dsk: a dask graph, or a collection's expression.
            keys: a key of it, or a list of keys and of such lists.

        Returns:
            The key's value, for a list a tuple of what its items ask for.

        Raises:
            TypeError: it is no dask graph, or a node can't be pickled.
            KeyError, ValueError: a key is not in the graph; the text names it.
            RuntimeError: keys need one another in a circle.
            BaseException: whatever a node raised.
        """
        from .dask_graphs import dask_get  # not at the top: dask is an extra

        return dask_get(self, dsk, keys)

    def _function(self, fn: Callable[..., Any]) -> Function:
        if self._options.retry_on:
            return self._functions.get_retrying(fn, self._options.retry_on)
        return self._functions.get(fn)

    def _current_task(self) -> RunningTask | None:
        """The task whose children the calling thread submits."""
        if self._handle is not None and self._handle.is_closed:
            raise ClientClosedError(_DISCONNECTED)
        return suspending.current_task(self._agent)

    def _wire_options(self, task: RunningTask | None, profiling: bool | None) -> Options | None:
        """What travels with a child of this task, or with a task that is nobody's child."""
        if task is None:
            return self._options.wire(profiling=profiling)
        return self._options.wire(task.depth + 1, task.priority, profiling)

    def disconnect(self) -> None:
        """Leave the scheduler; unfinished tasks are cancelled. A second call does nothing.

        A view's is its client's. Inside a worker only this client is ended: its tasks go on.
        """
        if self._handle is None:
            self._agent.close(_DISCONNECTED)
        else:
            self._handle.is_closed = True

    def shutdown(self) -> None:
        """End the scheduler, its clusters, and this client with them.

        Raises:
            ProtectedSchedulerError: the scheduler is not to be ended by clients, which is the default.
            ClientClosedError: the client is disconnected.
        """
        shut_down(self)
        self.disconnect()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disconnect()

    def __reduce__(self) -> Any:
        options = None if self._options == _NO_OPTIONS else self._options
        return _unpickled, (self.address, self._connection.scheduler, self._timeouts, self._serializer, options)

    def __repr__(self) -> str:
        return f"<Client of {self.address}>"


_DISCONNECTED = "the client is disconnected"
_NO_OPTIONS = TaskOptions()


class _Handle:
    """What a client inside a worker, and its views, can disconnect from."""

    is_closed = False


def _unpickled(
    address: str, scheduler: int, timeouts: tuple[float, float], serializer: Any, options: TaskOptions | None
) -> Client:
    client: Client = object.__new__(Client)
    client._set_up(address, *timeouts, serializer, options or _NO_OPTIONS, scheduler)
    return client


def _given_address(address: str | None) -> str:
    given = address or os.environ.get(ADDRESS_VARIABLE)
    if not given:
        raise ValueError(f"no scheduler address: give Client(address=...) or set {ADDRESS_VARIABLE}")
    if not isinstance(given, str):
        raise TypeError(f"address {given!r} is not a string")
    return given


def _check_positive(name: str, value: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0, not {value!r}")
