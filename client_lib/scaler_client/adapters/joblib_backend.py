"""A backend of joblib: batches of calls become tasks. Batching is joblib's own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import joblib
from joblib.parallel import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend

from ..api.client import Client
from ..errors import ClientClosedError
from . import joblib_calls
from .joblib_calls import Initializer, ParallelCall

NAME = "scaler"

SNAPSHOT_SECONDS = 2.0
"""How long to wait for the scheduler to say how many workers it has; it does so once a second."""

JOIN_SECONDS = 10.0
"""How long to wait for the first worker, where it says that there is none yet."""

COMMON_SETTINGS = {"temp_folder", "mmap_mode", "prefer", "require", "verbose", "context"}
"""What joblib hands to every backend."""

_worker_counts: dict[int, int] = {}
"""How many each scheduler, by its incarnation, had when it was asked last."""


class ScalerBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """What `joblib.parallel_config(backend="scaler", ...)` makes, after `register_joblib()`.

    By default it uses all workers (n_jobs=-1). Calls of joblib inside its tasks go to the same cluster where they ask
    for more than one job; a task that waits for them gives up its slot.

    Args:
        address: the scheduler's, for a client of the backend's own; None: as for `Client`.
        client: a client to use instead, or a view of one whose options its tasks are to have.
        n_workers: how many workers there are; None: what the scheduler says, if it runs on this machine.
        inner_max_num_threads: how many threads BLAS and OpenMP may start in a task; needs threadpoolctl there.
        initializer, initargs: a function and its arguments. Each worker process calls it before the first batch of
            this backend there; what it raises, the call of joblib raises. `Parallel` takes them as well.
        nesting_level: how many calls of joblib there are around those of this backend.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or out of range, or there are both client and address.
        ConnectionError: as for Client.
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
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        _check_arguments(address, client, n_workers)
        self._initializer = _make_initializer(initializer, initargs)
        if client is None:
            client = Client(address)
            weakref.finalize(self, _disconnect_in_thread, client).atexit = False
        self._client = client
        self._n_workers = n_workers
        self._array_bytes: int | None = None
        self._call: ParallelCall | None = None
        self._origin: ScalerBackend | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """How many batches are to run at once: `n_jobs`; where it is negative, -1 is for all workers, -2 for one less.

        That is at least 2: what has one job only, joblib runs in this process.
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
            # Between two results the task does other things, for which it needs its slot.
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        if self._origin is None:
            for name in sorted(settings.keys() - COMMON_SETTINGS):
                warnings.warn(f"the joblib backend {NAME} ignores the setting {name}=", stacklevel=2)
            # All Parallel objects in one parallel_config share this backend, also at the same time (generators).
            raise FallbackToBackend(
                self._derive(parallel, _make_initializer(initializer, initargs) or self._initializer)
            )
        self._array_bytes = max_nbytes
        return self.effective_n_jobs(n_jobs)

    def _derive(self, parallel: Any, initializer: Initializer | None) -> ScalerBackend:
        """A backend with the same client, for one Parallel object."""
        derived = _make_backend(
            self._client,
            self.nesting_level,
            self._n_workers,
            self.inner_max_num_threads,
            self.default_n_jobs,
            initializer,
        )
        derived._origin = self  # a client of the backend's own leaves when that backend is gone
        derived.parallel = weakref.proxy(parallel)  # which refers to this backend: no circle
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
        # In it joblib looks for results over and over, and a task would keep its slot meanwhile.
        assert self._call is not None
        self._call.wait_in_task()
        yield

    def abort_everything(self, ensure_ready: bool = True) -> None:
        if self._call is not None:
            self._call.stop()

    def terminate(self) -> None:
        self.reset_batch_stats()

    def get_nested_backend(self) -> tuple[ScalerBackend, None]:
        """For calls of joblib inside the batches: the same cluster, which the batches themselves keep busy, so that
        they have one job unless they ask for more."""
        n_workers = self._n_workers or _worker_counts.get(self._client._connection.scheduler)
        level = (self.nesting_level or 0) + 1
        return _make_backend(self._client, level, n_workers, self.inner_max_num_threads, 1, self._initializer), None

    def __reduce__(self) -> Any:
        return _unpickled, (
            self._client,
            self.nesting_level,
            self._n_workers,
            self.inner_max_num_threads,
            self.default_n_jobs,
            self._initializer,
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
                f"how many workers the scheduler at {self._client.address} has is not known here: taking {known}, the "
                "number of this machine's cores; n_workers= or n_jobs= say otherwise",
                stacklevel=2,
            )
        _worker_counts[scheduler] = known
        return known


def register() -> None:
    """See `register_joblib`."""
    joblib.register_parallel_backend(NAME, ScalerBackend)


def _make_backend(
    client: Client,
    nesting_level: int | None,
    n_workers: int | None,
    threads: int | None,
    default_n_jobs: int,
    initializer: Initializer | None,
) -> ScalerBackend:
    backend = ScalerBackend(None, client, n_workers, threads, nesting_level)
    backend.default_n_jobs = default_n_jobs
    backend._initializer = initializer
    return backend


def _unpickled(*arguments: Any) -> ScalerBackend:
    """Part of each batch: calls in the batch may name the backend again, so the worker's joblib must know it."""
    register()
    return _make_backend(*arguments)


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


def _disconnect_in_thread(client: Client) -> None:
    # By another thread: the garbage collector, which calls this, may have interrupted one that the client waits for.
    threading.Thread(target=client.disconnect, name="scaler-joblib-leaves", daemon=True).start()
