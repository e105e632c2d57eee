"""The fork server: a small process with one thread that forks workers on request and reaps them.

The agent forks it before it has a ZeroMQ context or any thread. The fork server has imported all modules that a worker
needs, so a worker starts in milliseconds and shares the memory of that code. It lives as long as the agent: when the
socket to the agent closes, the fork server ends all workers and itself.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from scaler_client.commands.object_directory import ObjectDirectory

from . import preload
from .json_lines import JsonLines
from .parent_watch import ParentWatch
from .process_events import PRELOAD_FAILED_STATUS, ProcessEnded, ProcessStarted
from .state_page import StatePage
from .task_processes import can_mark, end_processes, mark
from .worker_settings import WorkerSettings, worker_settings_from

WorkerMain = Callable[[WorkerSettings, memoryview], None]
"""Runs a worker process from its start to its end, with its slot of the state page."""

KILL_AFTER_SECONDS = 2.0
"""How long workers may take to end after SIGTERM, when the agent has ended."""

AGENT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if os.name == "posix" else ()
"""Signals that only the agent handles. A terminal or a service manager may send them to every process."""

_SET_NAME = 15  # prctl's PR_SET_NAME
_SET_CHILD_SUBREAPER = 36  # prctl's PR_SET_CHILD_SUBREAPER

_log = logging.getLogger(__name__)


def run_fork_server(
    connection: socket.socket, worker_main: WorkerMain, page: StatePage, objects: ObjectDirectory | None
) -> NoReturn:
    """Run the fork server, in a process that was just forked, with AGENT_SIGNALS blocked."""
    status = 1
    try:
        # No controlling terminal: Ctrl-C, a hang-up and a read in the background can't stop these processes.
        os.setsid()
        set_process_name("scaler_forksrv")
        atexit._clear()  # the agent runs its own exit handlers
        atexit.register(logging.shutdown)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        gc.collect()
        gc.freeze()  # a collection in a worker must not touch, and so copy, the pages inherited from here
        _ForkServerLoop(JsonLines(connection), worker_main, page, objects).serve()
        status = 0
    except BaseException:  # the stack above is the agent's: no exception may unwind into it
        traceback.print_exc()
    finally:
        if objects is not None:
            objects.remove()
        _exit_process(status)


@dataclass(frozen=True)
class _Child:
    """A worker process that was forked and not reaped."""

    slot: int
    incarnation: int


class _ForkServerLoop:
    """The loop of the fork server: requests in, process events out."""

    def __init__(
        self, channel: JsonLines, worker_main: WorkerMain, page: StatePage, objects: ObjectDirectory | None
    ) -> None:
        self._channel = channel
        self._worker_main = worker_main
        self._page = page
        self._objects = objects
        self._parent_watch = ParentWatch()
        self._agent_pid = os.getppid()
        self._has_marks = can_mark()
        if self._has_marks:
            # Processes of tasks without a parent become children of this process, which reaps them. In a container,
            # process 1 may be a program that does not.
            _call_prctl(_SET_CHILD_SUBREAPER, 1)
        self._children: dict[int, _Child] = {}
        self._wake_reader, self._wake_writer = os.pipe()
        for end in (self._wake_reader, self._wake_writer):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)

    def serve(self) -> None:
        while not self._channel.closed:
            self._wait(None)
            self._reap()
            for request in self._channel.receive():
                self._handle(request)
            self._channel.flush()
        self._end_all()

    def _wait(self, timeout_seconds: float | None) -> None:
        """Wait until a child ends or the agent sends a request."""
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        if not self._channel.closed:
            write = select.POLLOUT if self._channel.wants_write else 0
            poll.register(self._channel.fileno(), select.POLLIN | write)
        poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)
        try:
            os.read(self._wake_reader, 4096)
        except BlockingIOError:
            pass

    def _handle(self, request: dict[str, Any]) -> None:
        if "end" in request:
            for pid, child in self._children.items():
                if child.incarnation == request["end"]:
                    self._signal_worker(pid, request["kill"])
        else:
            self._start(request["slot"], worker_settings_from(request["start"]))

    def _start(self, slot: int, settings: WorkerSettings) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
        except OSError as error:
            text = f"could not be started: {error}"
            self._report("ended", ProcessEnded(slot, settings.incarnation, pid=0, error=text))
            return
        if pid == 0:
            self._run_worker(slot, settings)
        _make_process_group(pid)
        self._children[pid] = _Child(slot, settings.incarnation)
        self._report("started", ProcessStarted(slot, settings.incarnation, pid))

    def _run_worker(self, slot: int, settings: WorkerSettings) -> NoReturn:
        status = 1
        try:
            _make_process_group(0)
            set_process_name("scaler_worker")
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._channel.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
            if self._objects is not None:
                self._objects.release_lock()
            self._parent_watch.die_with_parent()
            mark(settings.incarnation, self._agent_pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, AGENT_SIGNALS)
            if settings.preload or settings.offers:  # either may end the process
                self._page.write_start_error(slot, f"--preload {settings.preload}" if settings.preload else "--offer")
            self._worker_main(settings, self._page.slot(slot))
            status = 0
        except SystemExit as leaving:
            status = _exit_status(leaving)
            if not isinstance(leaving.code, (int, type(None))):
                self._report_error(slot, leaving)
        except preload.PreloadError as error:
            status = PRELOAD_FAILED_STATUS
            self._report_error(slot, error)
        except BaseException as error:
            self._report_error(slot, error)
        finally:
            _exit_process(status)

    def _report_error(self, slot: int, error: BaseException) -> None:
        """Report in a worker the error that ends it.

        If a worker can't start, the agent logs the error once, not at each attempt.
        """
        if not self._page.read(slot).ready:
            self._page.write_start_error(slot, preload.error_summary(error))
            _log.debug("a worker can't start", exc_info=error)
        elif isinstance(error, SystemExit):
            print(error.code, file=sys.stderr)
        else:
            traceback.print_exception(error)

    def _reap(self) -> None:
        """Report every child that ended, and end the processes that its tasks have left."""
        events = []
        while (ended := self._wait_for_child()) is not None:
            pid, wait_status, peak = ended
            child = self._children.pop(pid, None)
            if child is not None:  # else its parent was a process of a task
                status = os.waitstatus_to_exitcode(wait_status)
                events.append(ProcessEnded(child.slot, child.incarnation, pid, status, peak))
        if self._has_marks:
            end_processes([event.incarnation for event in events], self._agent_pid)
        for event in events:
            self._report("ended", event)

    def _wait_for_child(self) -> tuple[int, int, int] | None:
        """Reap a child that has ended. Returns its pid, its status and its peak memory in bytes; None: none has."""
        try:
            target = -1 if self._has_marks else _kill_group_of_ended_child()
            if target == 0:
                return None
            pid, wait_status, usage = os.wait4(target, os.WNOHANG)
        except ChildProcessError:
            return None
        return (pid, wait_status, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)) if pid else None

    def _report(self, what: str, event: ProcessStarted | ProcessEnded) -> None:
        self._channel.send({what: asdict(event)})

    def _end_all(self) -> None:
        for kill in (False, True):
            for pid in self._children:
                self._signal_worker(pid, kill)
            deadline = time.monotonic() + KILL_AFTER_SECONDS
            while self._children and time.monotonic() < deadline:
                self._wait(deadline - time.monotonic())
                self._reap()

    def _signal_worker(self, pid: int, kill: bool) -> None:
        """Send SIGTERM or SIGKILL to a worker. Without marks, SIGKILL goes to its whole process group."""
        if kill and not self._has_marks:
            _kill_group(pid)
        else:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)


def set_process_name(name: str) -> None:
    """Set the name of this process in `ps -e`, `top` and `pstree`, up to 15 bytes. Does nothing outside of Linux."""
    _call_prctl(_SET_NAME, name.encode())


def _call_prctl(option: int, value: int | bytes) -> None:
    """Call Linux' prctl. Does nothing where it does not exist or fails."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill_group_of_ended_child() -> int:
    """Kill the processes that the tasks of an ended worker have left in its process group.

    This comes before the worker is reaped: until then no other process can get the number of its group.

    Returns:
        The worker's pid; 0 if none has ended. -1 (any child) if the system can't look without reaping (macOS before
        Python 3.13).
    """
    if not hasattr(os, "waitid"):
        return -1
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return 0
    _kill_group(ended.si_pid)
    return ended.si_pid


def _make_process_group(pid: int) -> None:
    # Both sides of the fork call this, so that the group exists before any signal is sent to it.
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass


def _kill_group(pid: int) -> None:
    """Send SIGKILL to the process group of a worker, with the processes that its tasks have started."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies gives PermissionError
        os.killpg(pid, signal.SIGKILL)


def _exit_status(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    return leaving.code & 0xFF if isinstance(leaving.code, int) else 1


def _exit_process(status: int) -> NoReturn:
    """End this forked process without unwinding the stack that it has inherited."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
