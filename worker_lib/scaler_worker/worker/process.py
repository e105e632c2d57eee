"""A worker process: its parts, its signals, its end."""

from __future__ import annotations

import _thread
import ctypes
import gc
import json
import os
import platform
import signal
import socket
import sys
import threading
import time
from typing import Any

# The clients of tasks that submit tasks. Imported here so that they are loaded once, before workers are forked.
import scaler_client.api.async_client
import scaler_client.api.local_cluster  # noqa: F401
from scaler_client.commands import module_folders
from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.logs import set_up as set_up_logging
from scaler_client.nested import task_host
from scaler_client.net.host_lookup import interface_to
from scaler_client.pickling import retry_policy, serializer
from scaler_client.pickling.input_lookup import current_inputs
from scaler_client.pickling.load_failures import this_process
from scaler_client.protocol import messages
from scaler_client.protocol.utf8_text import escaped
from scaler_worker import __version__
from scaler_worker.fork_server.parent_watch import exit_at_end_of
from scaler_worker.fork_server.preload import PreloadError, error_summary, preload
from scaler_worker.fork_server.process_events import DAMAGED_STATUS, PRELOAD_FAILED_STATUS
from scaler_worker.fork_server.process_usage import resident_bytes
from scaler_worker.fork_server.state_page import READY, private_slot
from scaler_worker.fork_server.task_processes import WorkerProcesses
from scaler_worker.fork_server.worker_settings import WorkerSettings, worker_settings_from
from scaler_worker.objects.cache import Inputs, ObjectCache
from scaler_worker.objects.kept_results import KeptResults
from scaler_worker.output.log import OutputLog
from scaler_worker.output.streams import Capture
from scaler_worker.output.task_output import TaskOutput
from scaler_worker.task_environment import TaskEnvironment
from scaler_worker.task_rows import reads_objects
from scaler_worker.worker.connection import SocketConnection
from scaler_worker.worker.executor import Executor
from scaler_worker.worker.exported_functions import ExportedFunctions, exported_kinds
from scaler_worker.worker.long_task_watcher import LongTaskWatcher
from scaler_worker.worker.output_origin import OriginFinder
from scaler_worker.worker.run_token import RunToken, SystemThreads, Wakeup
from scaler_worker.worker.runner import ProcessExecution, Runner, TaskSlot
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.session import WorkerSession
from scaler_worker.worker.task_host import WorkerIdentity, WorkerTaskHost
from scaler_worker.worker.thread_interruption import ThreadInterruption

END_SECONDS = 1.0
"""How long a damaged process may take to send its last results. Any of its locks may be held for ever."""


class MemoryTrim:
    """Collects garbage between tasks, at an interval, and trims memory if the process is large."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._interval_seconds = settings.garbage_collect_interval_seconds
        self._threshold_bytes = settings.trim_memory_threshold_bytes
        self._next = time.monotonic() + self._interval_seconds

    def run_if_due(self, now: float) -> bool:
        """Collect and trim if the interval is over. Returns whether it did."""
        if now < self._next:
            return False
        self._next = now + self._interval_seconds
        gc.collect()
        if resident_bytes(os.getpid()) > self._threshold_bytes:
            _trim_memory()
        return True


def _trim_memory() -> None:
    """Return free pages of the C library's heap to the system. Does nothing without glibc."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        pass


class Worker:
    """The parts of a worker. Each part knows only the parts that are made before it."""

    def __init__(self, settings: WorkerSettings, page: Any) -> None:
        self.session = WorkerSession(_hello(settings), settings.heartbeat_interval_seconds, time.monotonic())
        wakeup = Wakeup()
        threads = SystemThreads()
        token = RunToken(wakeup, threads)
        self.interruption = ThreadInterruption(self.session, token, wakeup)
        connection = SocketConnection(settings.address, self.session, self.interruption, wakeup, settings.keys)
        task = RunningTask(page, threads, TaskEnvironment(), WorkerProcesses())
        self.watcher = LongTaskWatcher(self.session, connection, self.interruption, task)
        self.slot = TaskSlot(self.session, connection, wakeup, threads, token, self.interruption, task, self.watcher)
        self.exported = ExportedFunctions(settings.offers, self._inputs_of_running, self.session.report_failure)
        where = f"on worker {settings.name}, host {escaped(socket.gethostname())}"
        self.executor = Executor(
            self.session.functions,
            self.session.report_failure,
            self.exported,
            place=f"on worker {settings.name} ({this_process()})",
            task=lambda: self.origins.describe_running(where),
            note_loaded=task.environment.note,
        )
        self.origins = OriginFinder(self.session, token, task, self.executor.name_of)
        self.log = OutputLog()
        self.output = TaskOutput(self.origins, self.log)
        self.log.call(self.output.tick, self.output.wants_ticks)
        self.session.take_output = self.output.take
        objects = ObjectCache(self.session.objects, settings.objects, warn_user)
        kept = KeptResults(settings.objects)
        execution = ProcessExecution(self.executor, objects, kept)
        trim = MemoryTrim(settings)

        def clean_up(now: float) -> bool:
            objects.release_mapped()
            is_trimmed = trim.run_if_due(now)
            return is_trimmed and not objects.may_have_mapped

        connection.has_mapped_files = lambda: objects.may_have_mapped
        self.runner = Runner(self.slot, execution, clean_up, self._end_process)
        self.runner.find_address = lambda: interface_to(parse_connect_address(settings.address))
        identity = WorkerIdentity(settings.address, settings.keys, settings.incarnation, settings.environment)
        self.host = WorkerTaskHost(identity, self.slot, self.runner, self.output)

    def run(self) -> None:
        """Run tasks until the worker must stop, the scheduler refuses it, or its process is damaged."""
        self.slot.token.acquire_first()
        self.watcher.start()
        self.runner.serve()
        if self.interruption.is_process_damaged:
            self._end_process()
        self._close()

    def _inputs_of_running(self) -> list[bytes]:
        """The bytes of the inputs of the running task."""
        inputs = current_inputs.values
        return inputs.contents() if isinstance(inputs, Inputs) and reads_objects(self.session.running) else []

    def stop(self) -> None:
        """End the worker after the running task. A signal handler calls this in the main thread."""
        self.runner.stop()
        self.slot.connection.interrupt()

    def mark_forked(self) -> None:
        """Mark this process as one that a task has forked. The run loop ends it after the task (`_finish_special`)."""
        self.slot.wakeup.is_set = True  # not `set`, whose descriptor is the worker's

    def _close(self) -> None:
        with self.slot.connection.lock:
            self.slot.connection.close()

    def _end_process(self) -> None:
        status = 0
        if self.interruption.is_process_damaged:
            status = DAMAGED_STATUS
            _thread.start_new_thread(_end_after, (END_SECONDS, status))  # not by `threading`, whose locks may be held
        self._close()
        self.output.end()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_after(seconds: float, status: int) -> None:
    time.sleep(seconds)
    os._exit(status)


def warn_user(text: str) -> None:
    """Print a warning as output of the running task. Not by the module `warnings`: a task may make errors of these."""
    print(f"scaler_worker: warning: {text}", file=sys.stderr)


def run_worker(settings: WorkerSettings, page: Any) -> None:
    """Run a worker from its start to its end.

    Args:
        page: the worker's slot of the state page (state_page.py); None: no agent reads it.

    Raises:
        PreloadError: the function of `--preload` has failed, or one of `--offer` can't be imported.
    """
    page = private_slot() if page is None else page
    module_folders.use()
    if settings.module_folder:
        sys.path.insert(0, settings.module_folder)
    worker = Worker(settings, page)
    signal.signal(signal.SIGTERM, lambda _number, _frame: worker.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.interruption.use_signals()
    task_host.host = worker.host
    retry_policy.leave_processes = worker.host.leave_processes
    capture = Capture(worker.output, worker.log)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_leave_worker)
        os.register_at_fork(after_in_child=worker.mark_forked)
        os.register_at_fork(after_in_child=capture.end)
    capture.begin()
    worker.log.start()
    worker.origins.track_threads()
    try:
        if settings.preload:
            preload(settings.preload)
        worker.exported.load()
        page[READY] = 1
        worker.run()
    finally:
        capture.end()
        worker.output.end()


class _HeldSignals(threading.local):
    mask: set[int] | None = None
    """The signals that the forking thread has blocked by itself; None: it does not fork."""


_held = _HeldSignals()


def _hold_signals() -> None:
    """Hold the signals of a process that is about to be forked, until it has its own handlers.

    A signal that came earlier would be lost: the worker's handler takes it. `Pool.terminate` then waits for ever.
    """
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2))


def _release_signals() -> None:
    if _held.mask is not None:
        mask, _held.mask = _held.mask, None
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _leave_worker() -> None:
    """Stop being a worker, in a process that a task has forked. Signals end it like any other process."""
    task_host.host = None
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    _release_signals()


def _hello(settings: WorkerSettings) -> messages.Hello:
    return messages.Hello(
        role=messages.Role.WORKER,
        incarnation=settings.incarnation,
        agent=settings.agent,
        language_version=platform.python_version(),
        version=__version__,
        host=socket.gethostname(),
        pid=os.getpid(),
        name=settings.name,
        capabilities=settings.capabilities,
        kinds=[serializer.CLOUDPICKLE_KIND, *exported_kinds(settings.offers)],
        takes_followers=True,
        environment=settings.environment,
    )


def main() -> None:
    """Run `python -m scaler_worker.worker.process SETTINGS_AS_JSON`. An agent that can't fork starts workers so."""
    module_folders.restore(os.environ)
    settings = worker_settings_from(json.loads(sys.argv[1]))
    set_up_logging(settings.logging_level, settings.logging_paths)
    exit_at_end_of(sys.stdin.fileno())
    try:
        run_worker(settings, None)
    except PreloadError as error:
        print(error_summary(error), file=sys.stderr)
        sys.exit(PRELOAD_FAILED_STATUS)


if __name__ == "__main__":
    main()
