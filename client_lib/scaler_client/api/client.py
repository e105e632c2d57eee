"""The client: what applications use."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ..commands.addresses import ADDRESS_VARIABLE, parse_connect_address
from ..futures.notebook import Link, count_text, html_table, snapshot_rows
from ..io import nested_connections
from ..io.connection import Connection
from ..nested import slot_wait, task_host
from ..pickling.custom_serializer import Serializer, call_dumper
from .client_settings import ClientSettings, checked_settings
from .data_api import DataApi, shutdown_scheduler
from .local_cluster import LocalCluster, page_address
from .submit import DISCONNECTED, NestedHandle

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
        settings = checked_settings(
            address,
            profiling=profiling,
            timeout_seconds=timeout_seconds,
            heartbeat_interval_seconds=heartbeat_interval_seconds,
            serializer=serializer,
            graph_backend=graph_backend,
            stream_output=stream_output,
            keys=keys,
        )
        self._set_up(settings)

    def _set_up(self, settings: ClientSettings, scheduler: int = 0) -> None:
        """Connect, with settings that are checked.

        Args:
            scheduler: the incarnation of the scheduler of a pickled client; 0 for a new client.
        """
        self._settings = settings
        self._own_cluster: LocalCluster | None = None
        nested_handle = None
        if task_host.host is not None:
            self._connection = nested_connections.attach(
                task_host.host,
                settings.address or "",
                settings.timeout_seconds,
                settings.heartbeat_interval_seconds,
                scheduler,
                settings.keys,
            )
            nested_handle = NestedHandle()
        else:
            self._connect(settings.address or os.environ.get(ADDRESS_VARIABLE))
        super().__init__(
            self._connection.io_thread,
            self._connection.functions(settings.serializer),
            call_dumper(settings.serializer, self._connection.io_thread),
            settings.serializer,
            settings.options,
            nested_handle,
        )

    def _connect(self, address: str | None) -> None:
        if not address:
            if task_host.is_forked_by_task:
                raise ValueError(f"no address: a process forked by a task needs one, given or in {ADDRESS_VARIABLE}")
            self._own_cluster = LocalCluster()
            self._settings = dataclasses.replace(self._settings, keys=self._own_cluster.keys)
            address = self._own_cluster.address
            _log.info("no scheduler address was given: a local cluster for this client runs at %s", address)
        settings = self._settings
        try:
            self._connection = Connection(
                parse_connect_address(address),
                settings.timeout_seconds,
                settings.heartbeat_interval_seconds,
                keys=settings.keys,
            )
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
        if self._nested_handle is None:
            self._connection.close(DISCONNECTED)
            if self._own_cluster is not None:
                self._own_cluster.shutdown()
        else:
            self._nested_handle.is_closed = True

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
        settings = dataclasses.replace(self._settings, address=self.address, options=self._options)
        attributes = {name: value for name, value in self.__dict__.items() if name not in CONNECTION_ATTRIBUTES}
        return _restore, (type(self), settings, self._connection.scheduler, attributes)

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
        return self._io_thread.is_closed or (self._nested_handle is not None and self._nested_handle.is_closed)

    def _status(self) -> str:
        if self._is_disconnected:
            return "disconnected"
        tasks = count_text(self._connection.open_tasks, "open task")
        return tasks if self._connection.has_joined else f"{tasks}, not connected"


CONNECTION_ATTRIBUTES = frozenset({
    "_connection", "_dump_call", "_functions", "_io_thread", "_nested_handle", "_options", "_own_cluster",
    "_sends_no_options", "_serializer", "_settings",
})  # fmt: skip
"""The attributes that are made anew when a client is unpickled. All others belong to a subclass and are pickled."""


def _restore(kind: type[C], settings: ClientSettings, scheduler: int, attributes: dict[str, Any]) -> C:
    client: C = object.__new__(kind)
    client._set_up(settings, scheduler)
    client.__dict__.update(attributes)
    return client
