"""The joblib backend: runs joblib's batches of calls as tasks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import joblib
from joblib.parallel import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend

from ..api.client import Client
from ..errors import ClientClosedError
from . import joblib_calls
from .joblib_calls import Initializer, ParallelCall

NAME = "scaler"

SNAPSHOT_SECONDS = 2.0
"""How long to wait for a snapshot, which has the number of workers. The scheduler publishes one a second."""

JOIN_SECONDS = 10.0
"""How long to wait for the first worker."""

COMMON_SETTINGS = {"temp_folder", "mmap_mode", "prefer", "require", "verbose", "context"}
"""Settings that joblib passes to every backend."""

_worker_counts: dict[int, int] = {}
"""The last known number of workers of each scheduler, by incarnation."""


class BackendSettings(NamedTuple):
    """The settings that derived backends and unpickled backends take over."""

    nesting_level: int | None
    n_workers: int | None
    inner_max_num_threads: int | None
    default_n_jobs: int
    initializer: Initializer | None


class ScalerBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """The backend of `joblib.parallel_config(backend="scaler", ...)`, after `register_joblib()`.

    By default it uses all workers (`n_jobs=-1`). joblib calls inside its tasks run on the same cluster if they ask for
    more than one job. The calling task gives up its slot while it waits for them.

    Args:
        address: the address of the scheduler, for a new client of the backend; None: as for `Client`.
        client: a client to use instead, or a view of a client; tasks have the options of the view.
        n_workers: the number of workers; None: the number that the scheduler publishes, if it runs on
            this machine.
        inner_max_num_threads: the most threads that BLAS and OpenMP may start in a task; needs threadpoolctl on the
            workers.
        nesting_level: the number of joblib calls around the calls of this backend.
        initializer: a function that each worker process calls before its first batch of this backend. If it raises an
            exception, the joblib call raises the same exception. `Parallel` accepts this argument too.
        initargs: the arguments of `initializer`.
        modules: files and folders of the program's own modules, for the client that the backend makes; as for `Client`.
        environment: the packages that the tasks import, for the client that the backend makes; as for `Client`.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: an argument is out of range, or `client` is given together with `address`, `modules` or
            `environment`.
        ModulesError: modules cannot be read. It is a `ValueError`.
        PackagesError: `environment` cannot be used. It is a `ValueError`.
        ConnectionError: as for `Client`.
    """

    supports_retrieve_callback = True
    supports_inner_max_num_threads = True
    default_n_jobs = -1

    def __init__(
        self,
        address: Any = None,
        client: Client | None = None,
        n_workers: int | None = None,
        inner_max_num_threads: int | None = None,
        nesting_level: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        modules: Iterable[str | os.PathLike[str]] | None = None,
        environment: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        _check_arguments(address, client, n_workers)
        _check_imports(client, modules, environment)
        self._initializer = _make_initializer(initializer, initargs)
        if client is None:
            client = Client(address, modules=modules, environment=environment)
            weakref.finalize(self, _disconnect_in_thread, client).atexit = False
        self._client = client
        self._n_workers = n_workers
        self._array_bytes: int | None = None
        self._call: ParallelCall | None = None
        self._origin: ScalerBackend | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many batches run at once: `n_jobs`; -1 stands for all workers, -2 for one less, and so on.

        For a negative number the result is at least 2, because joblib runs a single job in this process.
        """
        if n_jobs is None:
            n_jobs = self.default_n_jobs
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return n_jobs if n_jobs > 0 else max(2, self._count_workers() + 1 + n_jobs)

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        max_nbytes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **settings: Any,
    ) -> int:
        if parallel.return_generator and joblib_calls.is_inside_task(self._client):
            # Between two results the task runs its own code, for which it needs its slot.
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        if self._origin is None:
            for name in sorted(settings.keys() - COMMON_SETTINGS):
                warnings.warn(f"the joblib backend {NAME} ignores the setting {name}=", stacklevel=2)
            # All Parallel objects in one parallel_config share this backend, even at the same time (generators).
            raise FallbackToBackend(
                self._derive(parallel, _make_initializer(initializer, initargs) or self._initializer)
            )
        self._array_bytes = max_nbytes
        return self.effective_n_jobs(n_jobs)

    def _derive(self, parallel: Any, initializer: Initializer | None) -> ScalerBackend:
        """Make a backend with the same client for one Parallel object."""
        derived = _make_backend(self._client, self._settings()._replace(initializer=initializer))
        derived._origin = self  # keeps it alive: its own client disconnects when it is collected
        derived.parallel = weakref.proxy(parallel)  # a proxy: the Parallel object refers to this backend
        return derived

    def start_call(self) -> None:
        self._call = ParallelCall(self._client, self.parallel.timeout, self._array_bytes, self._initializer)

    def submit(self, func: Any, callback: Callable[[Any], object]) -> concurrent.futures.Future[Any]:
        assert self._call is not None
        return self._call.submit(func, self.inner_max_num_threads, callback)

    def retrieve_result_callback(self, out: concurrent.futures.Future[Any]) -> Any:
        if out.cancelled() and self._client._io_thread.is_closed:
            raise ClientClosedError("the client was disconnected during a call of joblib")
        return out.result()

    @contextlib.contextmanager
    def retrieval_context(self) -> Iterator[None]:
        # joblib polls for results in this context; a task would keep its slot during the polling.
        assert self._call is not None
        self._call.wait_in_task()
        yield

    def abort_everything(self, ensure_ready: bool = True) -> None:
        if self._call is not None:
            self._call.stop()

    def terminate(self) -> None:
        self.reset_batch_stats()

    def get_nested_backend(self) -> tuple[ScalerBackend, None]:
        """Return the backend for joblib calls inside the batches: the same cluster.

        The batches already keep the cluster busy, so inner calls have one job unless they ask for more.
        """
        settings = self._settings()._replace(
            nesting_level=(self.nesting_level or 0) + 1,
            n_workers=self._n_workers or _worker_counts.get(self._client._connection.scheduler),
            default_n_jobs=1,
        )
        return _make_backend(self._client, settings), None

    def __reduce__(self) -> Any:
        return _restore, (self._client, *self._settings())

    def _settings(self) -> BackendSettings:
        return BackendSettings(
            self.nesting_level, self._n_workers, self.inner_max_num_threads, self.default_n_jobs, self._initializer
        )

    def _count_workers(self) -> int:
        if self._n_workers is not None:
            return self._n_workers
        connection = self._client._connection
        scheduler = connection.scheduler
        known = _worker_counts.get(scheduler)
        if known is not None:
            snapshot = connection.latest_snapshot()
        else:
            snapshot = connection.wait_for_snapshot(SNAPSHOT_SECONDS, lambda _: True)
            if snapshot is not None and not snapshot.workers:
                snapshot = connection.wait_for_snapshot(JOIN_SECONDS, lambda one: one.workers > 0)
        if snapshot is not None and snapshot.workers:
            known = snapshot.workers
        elif known is None:
            known = joblib.cpu_count()
            warnings.warn(
                f"the number of workers of the scheduler at {self._client.address} is unknown: using {known}, the "
                "number of cores of this machine; set n_workers= or n_jobs= to change it",
                stacklevel=2,
            )
        _worker_counts[scheduler] = known
        return known


def register() -> None:
    """Register the backend; see `register_joblib`."""
    joblib.register_parallel_backend(NAME, ScalerBackend)


def _make_backend(client: Client, settings: BackendSettings) -> ScalerBackend:
    backend = ScalerBackend(
        client=client,
        n_workers=settings.n_workers,
        inner_max_num_threads=settings.inner_max_num_threads,
        nesting_level=settings.nesting_level,
    )
    backend.default_n_jobs = settings.default_n_jobs
    backend._initializer = settings.initializer
    return backend


def _restore(client: Client, *settings: Any) -> ScalerBackend:
    """Unpickle a backend on a worker. Calls in the batch may name the backend, so it is registered there too."""
    register()
    return _make_backend(client, BackendSettings(*settings))


def _make_initializer(function: Any, arguments: Any) -> Initializer | None:
    if function is None:
        return None
    if not callable(function):
        raise TypeError(f"initializer must be callable, not {function!r}")
    return Initializer(function, tuple(arguments))


def _check_arguments(address: Any, client: Any, n_workers: Any) -> None:
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"client must be a scaler_client.Client, not {client!r}")
    if client is not None and address is not None:
        raise ValueError(f"both an address ({address}) and a client ({client!r}) are given: give one of them")
    if n_workers is not None and (isinstance(n_workers, bool) or not isinstance(n_workers, int)):
        raise TypeError(f"n_workers must be a whole number, not {n_workers!r}")
    if n_workers is not None and n_workers < 1:
        raise ValueError(f"n_workers must be >= 1, not {n_workers}")


def _check_imports(client: Any, modules: Any, environment: Any) -> None:
    """Raises ValueError if modules or packages are given together with a client: a client has its own."""
    for name, value in (("modules", modules), ("environment", environment)):
        if client is not None and value is not None:
            raise ValueError(f"both a client ({client!r}) and {name}= are given: give {name}= to the client")


def _disconnect_in_thread(client: Client) -> None:
    # Disconnect in another thread: the garbage collector calls this in any thread, maybe in one that the client waits
    # for.
    threading.Thread(target=client.disconnect, name="scaler-joblib-leaves", daemon=True).start()
