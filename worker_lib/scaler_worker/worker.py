"""A worker process: one thread runs tasks and minds the connection between them, another minds it during long ones.

The running thread reads and writes the socket itself: handing every task over from an I/O thread would cost two thread
switches, a sixth of a round trip. While one task runs for longer than a few milliseconds, the attendant sends what was
finished before it, takes what arrives and tells that the task runs. A lock says who has the socket.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import importlib
import json
import logging
import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import zmq

from scaler_client import messages, wire
from scaler_client.addresses import parse_connect_address
from scaler_client.logs import set_up as set_up_logging
from scaler_client.sockets import all_frames, receive
from scaler_worker import __version__
from scaler_worker.executor import Executor
from scaler_worker.nursery_process import settings_from_plain
from scaler_worker.parent_watch import exit_at_end_of
from scaler_worker.process_resources import process_usage
from scaler_worker.session import Row, WorkerSession
from scaler_worker.settings import WorkerSettings
from scaler_worker.state_page import READY, private_slot

FLUSH_NS = 1_000_000
"""Answers wait at most about this long for others to travel with."""

LONG_TASK_NS = 10_000_000
ATTEND_SECONDS = 0.02
"""How often the attendant looks whether a task runs long, while the worker is busy."""

PARK_AFTER_LOOKS = 50
"""Looks without a long task, and with the worker idle, after which the attendant sleeps until it is needed."""

GOODBYE_MILLISECONDS = 500

WAIT_MILLISECONDS = 500
"""The longest wait for a message: how late a heartbeat or a collection can be."""

_log = logging.getLogger(__name__)


class _Stopped(BaseException):
    """Gets the running thread out of its wait for messages."""


class Worker:
    def __init__(self, settings: WorkerSettings, page: Any) -> None:
        self._settings = settings
        self._page = page
        self._session = WorkerSession(_hello(settings), settings.heartbeat_interval_seconds, time.monotonic())
        self._executor = Executor(self._session.functions)
        self._lock = threading.Lock()
        """Held by whoever uses the socket."""
        self._running: Row | None = None
        self._since = 0
        """When that began, in nanoseconds of the performance counter."""
        self._is_idle = False
        self._needed = threading.Event()
        self._is_parked = False
        self._is_busy = False
        """Set before `_is_parked` is looked at, as that is set before this is: one of the two sees the other."""
        self._next_collection = time.monotonic() + settings.garbage_collect_interval_seconds
        self._is_stopping = False
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        address = parse_connect_address(settings.address)
        self._socket.setsockopt(zmq.IPV6, int(address.is_ipv6))
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        # A receive that waits is one call into ZeroMQ where a poll and a receive are three.
        self._socket.setsockopt(zmq.RCVTIMEO, WAIT_MILLISECONDS)
        self._socket.connect(str(address))

    def run(self) -> None:
        """Serve until told to stop or refused."""
        threading.Thread(target=self._attend, name="attendant", daemon=True).start()
        while not self._is_stopping and self._session.refused is None:
            with self._lock:
                self._send()
                if not self._session.queue:
                    self._await_message()
            self._run_queue()
            self._do_what_is_due()
        with self._lock:
            self._session.close()
            self._socket.setsockopt(zmq.LINGER, GOODBYE_MILLISECONDS)
            self._exchange()
            self._socket.close()
        self._context.term()

    def stop(self) -> None:
        """End after the task that runs. Called by a signal handler: a poll goes on unless it raises."""
        self._is_stopping = True
        if self._is_idle:
            raise _Stopped

    # --------------------------------------------------------------------------------------------------- running tasks

    def _run_queue(self) -> None:
        """Run what is queued; answers go out together while tasks are short, at once when they are long."""
        session, page = self._session, self._page
        queue, answers = session.queue, session.answers
        run = self._executor.run
        clock = time.perf_counter_ns
        if not queue:
            return
        self._is_busy = True
        if self._is_parked:
            self._needed.set()
        while session.forgotten:
            self._executor.forget(session.forgotten.popleft())
        begun = flushed = clock()
        known_client = known_attempt = 0
        while queue and not self._is_stopping:
            try:
                row = queue.popleft()
            except IndexError:  # emptied by the attendant, which has met another scheduler
                break
            client, task_id, attempt, function, payload = row
            page[1] = task_id
            if client != known_client or attempt != known_attempt:
                # Written when they change only: each write costs a tenth of a no-op.
                page[0], page[2], page[3] = client, attempt, 1
                known_client, known_attempt = client, attempt
            self._since = begun
            self._running = row
            outcome, payload = run(function, payload)
            self._running = None
            ended = clock()
            answers.append((client, task_id, attempt, outcome, ended - begun, payload))
            begun = ended
            if ended - flushed > FLUSH_NS:
                with self._lock:
                    self._exchange()
                begun = flushed = clock()
        page[3] = 0
        self._is_busy = False

    def _await_message(self) -> None:
        """Wait for a message, for a while. The lock is held: the attendant has nothing to do while nothing runs."""
        # _Stopped may come in the one call that waits: in others, the end of a zmq.Frame for one, it would be printed.
        first: Any = None
        try:
            self._is_idle = True
            if not self._is_stopping:
                first = self._socket.recv(copy=False)
        except (zmq.Again, _Stopped):
            pass
        finally:
            self._is_idle = False
        if first is not None:
            self._take(all_frames(self._socket, first))

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if now >= self._session.next_deadline:
            self._session.tick(now)
        if now >= self._next_collection:
            self._collect_garbage()

    def _collect_garbage(self) -> None:
        """Between tasks, when nothing waits: what tasks left behind, and memory that the C library keeps."""
        self._next_collection = time.monotonic() + self._settings.garbage_collect_interval_seconds
        gc.collect()
        if process_usage(os.getpid()).resident_bytes > self._settings.trim_memory_threshold_bytes:
            _trim_memory()

    # --------------------------------------------------------------------------------------------------- the connection

    def _exchange(self) -> None:
        """Send what there is and take what has arrived. The lock is held."""
        self._session.tick(time.monotonic())
        self._send()
        while True:
            try:
                frames = receive(self._socket, zmq.NOBLOCK)
            except zmq.Again:
                break
            self._take(frames)
        self._send()

    def _take(self, frames: messages.Frames) -> None:
        try:
            self._session.handle(wire.decode(frames))
        except wire.WireError as error:
            _log.error("dropped a message of the scheduler: %s", error)

    def _send(self) -> None:
        for message in self._session.take_outgoing():
            frames = wire.encode(message)
            if len(frames) == 1:
                self._socket.send(frames[0])
            else:
                self._socket.send_multipart(frames, copy=False)

    def _attend(self) -> None:
        told: Row | None = None
        quiet = 0
        while True:
            time.sleep(ATTEND_SECONDS)
            running = self._running
            if running is None:
                quiet += 1
                if quiet > PARK_AFTER_LOOKS:
                    self._park()
                    quiet = 0
                continue
            quiet = 0
            if time.perf_counter_ns() - self._since < LONG_TASK_NS:
                continue
            with self._lock:
                if self._running is running:
                    if told is not running:
                        told = running
                        self._session.started(*running[:3])
                    self._exchange()

    def _park(self) -> None:
        """Sleep until the worker has something to run."""
        self._needed.clear()
        self._is_parked = True
        if not self._is_busy:
            self._needed.wait()
        self._is_parked = False


def run_worker(settings: WorkerSettings, page: Any) -> None:
    """A worker process's life.

    Args:
        page: where it writes what it runs: client, id, attempt, and 1 while it runs anything; anything indexable.
    """
    page = private_slot() if page is None else page
    worker = Worker(settings, page)
    signal.signal(signal.SIGTERM, lambda _number, _frame: worker.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if settings.preload:
        load_named(settings.preload)()
    page[READY] = 1
    worker.run()


def load_named(name: str) -> Callable[[], Any]:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    found: Callable[[], Any] = getattr(importlib.import_module(module), function)
    return found


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
    )


def _trim_memory() -> None:
    """Give free pages of the C library's heap back, where it can (glibc)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        pass


def main() -> None:
    """Where the agent can't fork: `python -m scaler_worker.worker SETTINGS_AS_JSON`."""
    settings = settings_from_plain(json.loads(sys.argv[1]))
    set_up_logging(settings.logging_level, settings.logging_paths)
    exit_at_end_of(sys.stdin.fileno())
    run_worker(settings, None)


if __name__ == "__main__":
    main()
