"""`Client`: connects to a scheduler, and disconnects."""

from __future__ import annotations

import dataclasses
import logging
import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from ..commands.addresses import ADDRESS_VARIABLE, parse_connect_address
from ..commands.key_files import CLIENT
from ..environments.module_upload import ModuleUpload, checked_modules
from ..futures.notebook import Link, count_text, html_table, snapshot_rows
from ..io import nested_connections
from ..io.connection import Connection
from ..io.io_thread import IoThread
from ..io.large_arguments import large_calls
from ..nested import slot_wait, task_host
from ..net.curve import load_keys
from ..pickling.custom_serializer import Serializer, call_dumper
from .client_settings import ClientSettings, checked_settings
from .data_api import DataApi, shutdown_scheduler
from .local_cluster import LocalCluster, page_address
from .map_run import DumpCall
from .submit import DISCONNECTED, NestedHandle

C = TypeVar("C", bound="Client")

_log = logging.getLogger(__name__)


class _Lifetime:
    """Shared by a client and its views. When the last of them is dropped, the client disconnects."""


class Client(DataApi):
    """A connection to a scheduler. Any number of threads may use it.

    Use it in a `with` statement, or call `disconnect` at the end. A client without references disconnects when
    its open tasks are done and its kept results are dropped.

    A client can be passed to tasks. An instance of a subclass keeps its class and its attributes; its `__init__` is not
    called on the worker. Inside a task, all clients of one scheduler share one connection. A task that submits tasks is
    their parent. The parent gives up its slot while it waits for its children. `disconnect` ends this client only.

    Args:
        address: the address of the scheduler, such as `tcp://127.0.0.1:2345`, or a `LocalCluster`. If it is None, a
            client inside a task connects to the scheduler of the task; another client takes the environment variable
            `SCALER_ADDRESS`. Without that variable, the client starts a local cluster, and ends it when it disconnects.
        profiling: whether every task is measured; see `TaskFuture.profiling_info`.
        timeout_seconds: how many seconds to wait for the scheduler, at the start and when the connection is lost. After
            that time, futures raise `SchedulerLostError`.
        heartbeat_interval_seconds: the number of seconds between two heartbeats to the scheduler.
        serializer: the class that turns functions, arguments and results into bytes; None: cloudpickle.
        graph_backend: the library that analyses graphs before they are submitted: `"python"`, or `"graphblas"` for very
            large graphs. Results are the same. `"graphblas"` needs the extra `scaler-client[graphblas]`.
        stream_output: whether to show the output of tasks in this process, each line with its host, process and task.
        keys: the folder of keys (made by `scaler_scheduler keygen`), for a scheduler that requires keys. If it is None,
            the client takes the folder of the local cluster, or the environment variable `SCALER_KEYS`; inside a task,
            the worker's keys. An empty string means no keys. A folder needs an address: a client that starts a local
            cluster itself uses no keys.
        data_address: where host agents get the client's large objects: `tcp://HOST:PORT`, with port `*` for any free
            port; `"auto"`: a free port of the interface that leads to the scheduler. Empty: the client opens no port,
            and large objects go to other hosts through the scheduler. If it is None, the client takes the environment
            variable `SCALER_DATA_ADDRESS`, or else `"auto"`.
        modules: files and folders of the program's own modules, which the tasks import; see `upload_modules`. Inside a
            task it is ignored: child tasks import what their parent imports.
        environment: the packages that the tasks import: a requirements file, a `pylock.toml` or `uv.lock`, a folder of
            wheels, or a PEX file. Each host installs them once. None: the packages of the hosts. Inside a task it is
            ignored.

    Raises:
        TypeError: an argument has a wrong type; the text names it.
        ValueError: an argument is out of range, or keys were given without an address; the text names it.
        AddressError: the address is malformed; the text repeats it. It is a `ValueError`.
        KeyFileError: the folder of keys lacks a file that a client needs. It is a `ValueError`.
        ImportError: the library of the graph backend is not installed.
        ConnectionError: no scheduler answers at the address in time, or the scheduler refuses the client.
        UnauthorizedError: the key is missing or not authorized. It is a `ConnectionError`.
        OSError: the limit of open files of this process is too low, or the data address cannot be bound; the text says
            so.
        RuntimeError: the local cluster is shut down, or cannot start.
        ModuleNotFoundError: a package that a local cluster needs is not installed; the text names it.
        ModulesError: modules cannot be read. It is a `ValueError`.
        PackagesError: `environment` cannot be used. It is a `ValueError`.

    Example:
        ```python
        from scaler_client import Client

        with Client("tcp://127.0.0.1:2345") as client:
            print(client.submit(pow, 2, 10).result())  # 1024
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
        settings = checked_settings(
            address,
            profiling=profiling,
            timeout_seconds=timeout_seconds,
            heartbeat_interval_seconds=heartbeat_interval_seconds,
            serializer=serializer,
            graph_backend=graph_backend,
            stream_output=stream_output,
            keys=keys,
            data_address=data_address,
            modules=modules,
            environment=environment,
        )
        self._set_up(settings)

    def _set_up(self, settings: ClientSettings, scheduler: int = 0) -> None:
        """Connect with checked settings.

        Args:
            scheduler: the incarnation of the scheduler of a pickled client; 0 for a new client.
        """
        self._settings = settings
        self._upload = ModuleUpload(settings.environment)
        self._own_cluster: LocalCluster | None = None
        nested_handle = None
        if task_host.host is not None:
            self._connection = nested_connections.attach(
                task_host.host,
                settings.address or "",
                settings.timeout_seconds,
                settings.heartbeat_interval_seconds,
                scheduler=scheduler,
                keys=settings.keys,
            )
            nested_handle = NestedHandle()
        else:
            self._connect(settings.address or os.environ.get(ADDRESS_VARIABLE))
        super().__init__(
            self._connection.io_thread,
            functions=self._connection.functions(settings.serializer),
            # Not a method: it would refer to the client, which must disconnect when its last reference is gone.
            dump_call_of=partial(_dump_call_of_inputs, settings.serializer, self._connection.io_thread),
            serializer=settings.serializer,
            options=settings.options,
            nested_handle=nested_handle,
        )
        if nested_handle is None:
            self._lifetime = _Lifetime()
            after = None if self._own_cluster is None else self._own_cluster.shutdown
            weakref.finalize(self._lifetime, self._connection.close_when_unused, after).atexit = False

    def upload_modules(self, *paths: str | os.PathLike[str]) -> None:
        """Let tasks that are submitted from now on import the program's own modules. Tasks that were submitted before
        keep the modules that they had.

        Each file is sent once to the scheduler and once to each host. Files of an earlier upload are not sent again. A
        later call adds modules, and reads all modules again. A call without arguments only reads the uploaded modules
        again.

        Args:
            paths: files of modules; folders of packages (with an `__init__.py`), which are imported by the folder's
                name; other folders, for example `"."`, whose modules and packages are uploaded.

        Raises:
            TypeError: a path is not a path.
            ModulesError: modules cannot be read, are too large, or two of them have the same name.
            RuntimeError: this client is inside a task, whose modules its child tasks import.
            ClientClosedError: the client is disconnected.

        Example:
            ```python no-run: it needs modules
            client.upload_modules("mypackage", "helpers.py")
            ```
        """
        if self._nested_handle is not None:
            raise RuntimeError("upload modules outside of tasks: child tasks import what their parent imports")
        self._connection.use_environment(self._upload.read(checked_modules(paths)))

    def _connect(self, address: str | None) -> None:
        modules = self._settings.modules
        read_environment = partial(self._upload.read, modules) if modules or self._settings.environment else None
        if not address:
            if task_host.is_forked_by_task:
                raise ValueError(f"no address: a process forked by a task needs one, given or in {ADDRESS_VARIABLE}")
            if read_environment is not None:
                read_environment()  # so that bad modules are told before a cluster starts
            if self._settings.keys:
                load_keys(self._settings.keys, CLIENT)
                raise ValueError(
                    "keys= needs the address of the scheduler, as an argument or in "
                    f"{ADDRESS_VARIABLE}: the local cluster of a client without an address uses no keys"
                )
            # This machine is the user's own: the packages of its programs need nobody else's permission.
            self._own_cluster = LocalCluster(environments="any") if self._settings.environment else LocalCluster()
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
                data_address=settings.data_address,
                read_environment=read_environment,
            )
        except BaseException:
            if self._own_cluster is not None:
                self._own_cluster.shutdown()
            raise

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self._connection.address

    def clear(self) -> None:
        """Cancel all tasks of this client that have not begun, and free all its objects.

        Waits until the scheduler has confirmed it. Running tasks continue, and the client stays usable. Inside a task,
        only the tasks and objects of the calling task are concerned. On a view, the whole client is concerned.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        cleared = slot_wait.Event(self._io_thread)
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

    def dask_get(self, dsk: Any, keys: Any, **keywords: Any) -> Any:
        """Run a dask graph on the workers. Pass this method to dask as its scheduler.

        Each node is one task; a chain of nodes is one task. Values between tasks go from worker to worker. The workers
        need dask too. dask's annotations `capabilities`, `cpus`, `limit`, `priority`, `resources`, `retries`,
        `retry_on` and `timeout` are options of their nodes. dask's locks hold in the whole cluster.

        Args:
            dsk: a dask graph, or the expression of a collection.
            keys: a key of the graph, or a list of keys, nested to any depth.
            keywords: the same names as of annotations, for all nodes without such an annotation, as in
                `compute(retries=5)`. Options of dask's own schedulers, such as `num_workers`, are ignored. Other
                keywords have no effect, and are logged once.

        Returns:
            The value of the key; for a list of keys a tuple of values, nested like the list.

        Raises:
            ImportError: dask is not installed, or older than 2024.12.
            TypeError: `dsk` is no dask graph, a node cannot be pickled, or an annotation or keyword has a wrong type.
            KeyError: a requested key is not in the graph.
            ValueError: a key that another node needs is not in the graph (the text names both), or an annotation is
                out of range.
            RuntimeError: the graph has a cycle.
            BaseException: the exception of the first node that failed.

        Example:
            ```python
            import dask.array

            total = dask.array.ones((1000, 1000)).sum()
            print(total.compute(scheduler=client.dask_get))  # 1000000.0
            ```
        """
        from ..graphs.dask import dask_get  # not at the top: dask is an extra

        return dask_get(self, dsk, keys, **keywords)

    def disconnect(self) -> None:
        """Leave the scheduler, and cancel all tasks that are not done. A second call does nothing.

        On a view, this disconnects the whole client. Inside a task, it ends this client only, and the client's tasks
        continue. A local cluster that the client started ends too.
        """
        if self._nested_handle is None:
            self._connection.close(DISCONNECTED)
            if self._own_cluster is not None:
                self._own_cluster.shutdown()
        else:
            self._nested_handle.is_closed = True

    def shutdown(self) -> None:
        """Shut down the scheduler and its clusters, and disconnect this client.

        Raises:
            ProtectedSchedulerError: the scheduler does not let clients shut it down, which is the default. The
                scheduler's option `--no-protected` allows it.
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
        settings = dataclasses.replace(
            self._settings, address=self.address, options=self._options, modules=self._upload.paths
        )
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


def _dump_call_of_inputs(own_serializer: Any, io_thread: IoThread, shares_inputs: bool) -> DumpCall:
    return call_dumper(own_serializer, io_thread, shares_inputs, large_calls(io_thread))


CONNECTION_ATTRIBUTES = frozenset({
    "_connection", "_dump_call", "_dump_call_of", "_functions", "_io_thread", "_lifetime", "_nested_handle", "_options",
    "_own_cluster", "_sends_no_options", "_serializer", "_settings", "_upload",
})  # fmt: skip
"""The attributes that unpickling creates again. All other attributes belong to a subclass and are pickled."""


def _restore(kind: type[C], settings: ClientSettings, scheduler: int, attributes: dict[str, Any]) -> C:
    client: C = object.__new__(kind)
    client._set_up(settings, scheduler)
    client.__dict__.update(attributes)
    return client
