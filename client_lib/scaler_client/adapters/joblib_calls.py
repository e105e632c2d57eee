"""One call of joblib.Parallel on a cluster: runs its batches as tasks."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ..api.client import Client
from ..errors import ClientClosedError
from ..futures.future import TaskFuture
from ..nested import slot_wait
from ..nested.task_host import RunningTask
from .joblib_arrays import SharedArrays

Future = concurrent.futures.Future
Callback = Callable[[Any], object]

MAX_REMEMBERED_INITIALIZERS = 1000
"""How many called initializers a worker remembers."""


class Initializer:
    """A function that each worker process calls before its first batch: joblib's `initializer=`.

    Args:
        function: the function.
        arguments: its arguments.
    """

    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self._name = uuid.uuid4().hex

    def run(self) -> None:
        """Call the function, unless this process has called it.

        Raises:
            BaseException: the exception of the function. The next batch calls the function again.
        """
        # No lock is needed, because a worker runs one task at a time. If the function waits for tasks that it has
        # submitted, the next batch on this worker calls the function too. To wait for the first call would keep the
        # slot that these tasks need.
        if self._name in _initialized:
            _initialized.move_to_end(self._name)
            return
        self.function(*self.arguments)
        _initialized[self._name] = None
        if len(_initialized) > MAX_REMEMBERED_INITIALIZERS:
            _initialized.popitem(last=False)


_initialized: collections.OrderedDict[str, None] = collections.OrderedDict()
"""The initializers that this process has called; the most recently used one is at the end."""


class ParallelCall:
    """One call of joblib.Parallel. The calling thread and the client's callback thread submit its batches.

    Args:
        client: the client that submits the batches.
        timeout: how many seconds each batch may take; None: no limit.
        array_bytes: arrays of at least this size are sent as objects; None: no arrays are.
        initializer: called in each worker process before its first batch; None: no initializer.
    """

    def __init__(
        self, client: Client, timeout: float | None, array_bytes: int | None, initializer: Initializer | None = None
    ) -> None:
        self._client = client
        # One partial for all batches, so that its bytes go to each worker once.
        self._run = run_batch if initializer is None else functools.partial(run_batch, initializer=initializer)
        self._arrays = SharedArrays(client, array_bytes)
        self._timeout = timeout
        self._task = slot_wait.current_task(client._io_thread)
        self._changed = None if self._task is None else slot_wait.Event(client._io_thread)
        self._lock = threading.RLock()
        self._open_futures: set[TaskFuture[Any]] = set()
        """Futures whose callbacks have not returned."""
        self._has_failed = False

    def submit(self, batch: Any, threads: int | None, callback: Callback) -> Future[Any]:
        """Submit a batch; returns its future. Never raises: an error goes into the future.

        Args:
            batch: the batch, a callable.
            threads: the most threads that BLAS and OpenMP may start; None: no limit.
            callback: called with the future when it is done.
        """
        # joblib does not expect an error here: after an error in a callback, joblib would wait for the batch for ever.
        try:
            self._arrays.share(batch)
            future = self._client.submit(self._run, batch, threads)
        except Exception as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            failed.add_done_callback(callback)
            return failed
        with self._lock:
            self._open_futures.add(future)
        future.add_done_callback(functools.partial(self._batch_done, callback))
        return future

    def wait_in_task(self) -> None:
        """If a task makes the call, give up its slot until all batches are done or one has failed.

        Returns also if no batch is done within the timeout.

        Raises:
            TaskStoppedError: the task was stopped.
        """
        if self._changed is None:
            return
        while not self._is_done():
            if not self._changed.wait(self._timeout):
                return
            self._changed.clear()

    def stop(self) -> None:
        """Stop running batches and cancel the others. Does not wait."""
        with self._lock:
            futures = list(self._open_futures)
        try:
            self._client._io_thread.cancel_many(lambda: [future.task_id for future in futures], force=True)
        except ClientClosedError:
            pass  # closing the client has cancelled them

    def _batch_done(self, callback: Callback, future: Any) -> None:
        try:
            with _on_behalf_of(self._task, self._client):
                callback(future)  # may submit further batches
        finally:
            with self._lock:
                self._open_futures.discard(future)
            if future.cancelled() or future.exception() is not None:
                self._has_failed = True
            if self._changed is not None and (self._timeout is not None or self._is_done()):
                self._changed.set()

    def _is_done(self) -> bool:
        return not self._open_futures or self._has_failed


def is_inside_task(client: Client) -> bool:
    """Return whether the calling thread runs a task that gives up its slot while it waits for this client."""
    return slot_wait.current_task(client._io_thread) is not None


@contextlib.contextmanager
def _on_behalf_of(task: RunningTask | None, client: Client) -> Iterator[None]:
    """During the block, tasks that the calling thread submits are children of this task."""
    if task is None or slot_wait.current_task(client._io_thread) is not None:
        yield
        return
    awaits = slot_wait.Awaits(client._io_thread, task)
    awaits.count = 1
    slot_wait.set_awaits(awaits)
    try:
        yield
    finally:
        awaits.count = 0


def run_batch(batch: Callable[[], Any], threads: int | None, initializer: Initializer | None = None) -> Any:
    """Run a batch, on the worker."""
    if initializer is not None:
        initializer.run()
    if threads is None:
        return batch()
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        return batch()
