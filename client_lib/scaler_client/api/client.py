"""The client: what applications use."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ..commands.addresses import ADDRESS_VARIABLE, parse_connect_address
from ..commands.key_files import absolute
from ..futures.notebook import Link, count_text, html_table, snapshot_rows
from ..graphs.order import check_backend
from ..io import nested_connections
from ..io.connection import Connection
from ..nested import slot_wait, task_host
from ..pickling.custom_serializer import Serializer, call_dumper, check_serializer
from .data_api import DataApi, shutdown_scheduler
from .local_cluster import LocalCluster, page_address
from .submit import DISCONNECTED, NestedHandle
from .task_options import MAX_TIMEOUT_SECONDS, TaskOptions, checked_bool, number_text

C = TypeVar("C", bound="Client")

_log = logging.getLogger(__name__)


class Client(DataApi):
    """A connection to a scheduler, for any number of threads.

    It can be passed to tasks. A subclass arrives as itself, with its attributes; its `__init__` is not called there.
    Inside a worker it is a handle on the one connection that the process has to that
    scheduler: tasks submitted there are children of the task that submits them, which gives up its slot while it waits
    for them, and `disconnect` ends the handle alone.

    Args:
        address: the scheduler's, as in `tcp://127.0.0.1:2345`, or a local cluster. None takes it from SCALER_ADDRESS,
            inside a task from the task's worker; where there is none it starts a local cluster, which ends with the
            client.
        profiling: whether every task is measured, for its future's `profiling_info()`.
        timeout_seconds: how long to wait for the scheduler, at the start and whenever it is gone.
        heartbeat_interval_seconds: how often the scheduler hears that the client lives.
        serializer: how functions, arguments and results become bytes; None: cloudpickle.
        graph_backend: how graphs are analysed before they are submitted: "python", or "graphblas" for very large ones,
            with the same results; that needs the extra `scaler-client[graphblas]`.
        stream_output: whether what the tasks print is shown here too, each line with its host, process and task.
        keys: the folder of keys (`scaler_scheduler keygen`), for a scheduler that wants them; None takes it from
            SCALER_KEYS, of a local cluster from that, inside a task from the task's worker. Empty: none.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or out of range; the text names it.
        AddressError (a ValueError): the address is none; the text repeats it.
        ImportError: the graph backend's library is not installed.
        ConnectionError: no scheduler answers at the address in time, or it refuses the client: UnauthorizedError where
            the key is wrong or missing.
        KeyFileError (a ValueError): the folder of keys has not what a client needs.
        OSError: this process may open too few files; the text names the limit.
        RuntimeError, ModuleNotFoundError: a local cluster is shut down, or can't be started.
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
        given = check_arguments(
            address, profiling, timeout_seconds, heartbeat_interval_seconds, serializer, stream_output, keys
        )
        self._keys = _resolve_keys(address, keys)
        check_backend(graph_backend)
        options = TaskOptions(profiling=profiling, graph_backend=graph_backend, stream_output=stream_output)
        self._set_up(given, timeout_seconds, heartbeat_interval_seconds, serializer, options)

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
        self._own_cluster: LocalCluster | None = None
        handle = None
        if task_host.host is not None:
            self._connection = nested_connections.attach(
                task_host.host, address or "", *self._timeouts, scheduler, self._keys
            )
            handle = NestedHandle()
        else:
            self._connect(address or os.environ.get(ADDRESS_VARIABLE))
        functions = self._connection.functions(serializer)
        io_thread = self._connection.io_thread
        super().__init__(io_thread, functions, call_dumper(serializer, io_thread), serializer, options, handle)

    def _connect(self, address: str | None) -> None:
        if not address:
            if task_host.is_forked_by_task:
                raise ValueError(f"no address: a process forked by a task needs one, given or in {ADDRESS_VARIABLE}")
            self._own_cluster = LocalCluster()
            self._keys = self._own_cluster.keys
            address = self._own_cluster.address
            _log.info("no scheduler address was given: a local cluster for this client runs at %s", address)
        try:
            self._connection = Connection(parse_connect_address(address), *self._timeouts, keys=self._keys)
        except BaseException:
            if self._own_cluster is not None:
                self._own_cluster.shutdown()
            raise

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return self._connection.address

    def clear(self) -> None:
        """Cancel this client's tasks that have not begun, and wait until that is done; the client stays usable.

        Tasks that run go on. Inside a task it is what this task has submitted. A view's is its client's.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        cleared = slot_wait.make_event(self._io_thread)
        self._begin_clear(cleared.set)
        cleared.wait()

    def _begin_clear(self, on_done: Callable[[], None]) -> None:
        """Start what `clear` does, without waiting.

        Args:
            on_done: called by the I/O thread when it is done.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        task = self._current_task()
        self._io_thread.clear(None if task is None else task.name, on_done)

    def dask_get(self, dsk: Any, keys: Any, **_options: Any) -> Any:
        """dask's graphs on the workers: `dask.compute(collection, scheduler=client.dask_get)`.

        Each node is a task, a chain of nodes is one; the values between them go from worker to worker. The workers need
        dask too. Options that dask hands to its own schedulers, as `num_workers`, mean nothing here.

        Args:
            dsk: a dask graph, or a collection's expression.
            keys: a key of it, or a list of keys and of such lists.

        Returns:
            The key's value; for a list a tuple of what its items ask for.

        Raises:
            ImportError: dask is not installed, or older than 2024.12.
            TypeError: it is no dask graph, or a node can't be pickled.
            KeyError, ValueError: a key is not in the graph; the text names it.
            RuntimeError: keys need one another in a circle.
            BaseException: whatever a node raised.
        """
        from ..graphs.dask import dask_get  # not at the top: dask is an extra

        return dask_get(self, dsk, keys)

    def disconnect(self) -> None:
        """Leave the scheduler; unfinished tasks are cancelled. A second call does nothing.

        A view's is its client's. Inside a worker only this client is ended: its tasks go on. A local cluster that the
        client has started ends as well.
        """
        if self._handle is None:
            self._connection.close(DISCONNECTED)
            if self._own_cluster is not None:
                self._own_cluster.shutdown()
        else:
            self._handle.is_closed = True

    def shutdown(self) -> None:
        """End the scheduler, its clusters, and this client with them.

        Raises:
            ProtectedSchedulerError: the scheduler is not to be ended by clients, which is the default.
            ClientClosedError: the client is disconnected.
        """
        shutdown_scheduler(self)
        self.disconnect()

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disconnect()

    def __reduce__(self) -> Any:
        options = None if self._options == _NO_OPTIONS else self._options
        # The folder's name, not the keys: another host has its own there, or none.
        told = self.address, self._connection.scheduler, self._timeouts, self._serializer, options, self._keys
        attributes = {name: value for name, value in self.__dict__.items() if name not in CONNECTION_ATTRIBUTES}
        return _unpickled, (type(self), *told, attributes)

    def __repr__(self) -> str:
        page = page_address(self.address)
        return f"<{type(self).__name__} of {self.address}, {self._status()}{', page ' if page else ''}{page}>"

    def _repr_html_(self) -> str:
        rows = {"address": self.address, "this client": self._status()}
        if not self._is_disconnected:
            rows.update(snapshot_rows(self._connection.latest_snapshot()))
        page = page_address(self.address)
        if page:
            rows["page"] = Link(page)
        return html_table(type(self).__name__, rows)

    @property
    def _is_disconnected(self) -> bool:
        return self._io_thread.is_closed or (self._handle is not None and self._handle.is_closed)

    def _status(self) -> str:
        if self._is_disconnected:
            return "disconnected"
        tasks = count_text(self._connection.open_tasks, "open task")
        return tasks if self._connection.has_joined else f"{tasks}, not connected"


_NO_OPTIONS = TaskOptions()


CONNECTION_ATTRIBUTES = frozenset({
    "_connection", "_dump_call", "_functions", "_handle", "_io_thread", "_sends_no_options", "_keys", "_options",
    "_own_cluster", "_serializer", "_timeouts",
})  # fmt: skip
"""What a client has that does not travel as it is; others are a subclass's."""


def _unpickled(
    kind: type[C],
    address: str,
    scheduler: int,
    timeouts: tuple[float, float],
    serializer: Any,
    options: TaskOptions | None,
    keys: str | None,
    attributes: dict[str, Any],
) -> C:
    client: C = object.__new__(kind)
    client._keys = keys
    client._set_up(address, *timeouts, serializer, options or _NO_OPTIONS, scheduler)
    client.__dict__.update(attributes)
    return client


def check_arguments(
    address: Any,
    profiling: Any,
    timeout_seconds: Any,
    heartbeat_interval_seconds: Any,
    serializer: Any,
    stream_output: Any,
    keys: Any = None,
) -> str | None:
    """The address that a client was given, if any. Raises as Client does of its arguments."""
    if serializer is not None:
        check_serializer(serializer)
    checked_bool("profiling", profiling)
    checked_bool("stream_output", stream_output)
    if keys is not None and not isinstance(keys, (str, os.PathLike)):
        raise TypeError(f"keys must be a folder's path, not {keys!r}")
    _check_positive("timeout_seconds", timeout_seconds)
    _check_positive("heartbeat_interval_seconds", heartbeat_interval_seconds)
    return _resolve_address(address)


def _resolve_keys(address: Any, keys: Any) -> str | None:
    if keys is not None:
        return absolute(keys)
    return address.keys if address is not None and isinstance(address, LocalCluster) else None


def _resolve_address(address: Any) -> str | None:
    if address is None:
        return None
    if isinstance(address, LocalCluster):
        if address.is_shut_down:
            raise RuntimeError(f"{address!r} takes no clients any more")
        return address.address
    if not isinstance(address, str):
        raise TypeError(f"address must be a string or a local cluster, not {address!r}")
    return str(parse_connect_address(address))


def _check_positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not 0 < value <= MAX_TIMEOUT_SECONDS:
        wanted = f"a number of seconds above 0 and at most {MAX_TIMEOUT_SECONDS:g}"
        raise ValueError(f"{name} must be {wanted}, not {number_text(value)}")
