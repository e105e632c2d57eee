"""The client's I/O thread: moves messages between the session and the socket.

User threads append work to a deque and wake the thread once per burst, not once per task.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import zmq

from ..commands.addresses import Address
from ..commands.key_files import PeerKeys
from ..commands.object_files import SHARED_BYTES
from ..errors import ClientClosedError, SchedulerLostError
from ..futures.future import TaskFuture
from ..futures.kept_results import FetchedValue, KeptFuture, KeptResult
from ..nested import slot_wait
from ..net.bounded_listener import is_file_shortage
from ..net.curve import apply_keys, is_local_address
from ..net.file_limit import check_free_files, file_shortage
from ..net.sockets import ReconnectWatcher, keep_freed_memory, receive
from ..net.wakeup import WakeupFd
from ..pickling.call_rows import CallBlock
from ..pickling.references import StoredObject
from ..protocol import messages, wire
from ..protocol.messages import TaskAttempt
from ..session.map_feed import MapFeed
from ..session.session import Session, State
from .callbacks import Callbacks
from .client_files import ClientFiles
from .host_questions import HostAnswer, HostQuestions
from .output_display import OutputDisplay
from .process_exit import close_at_exit

LOCAL_BYTES = 16 << 20
"""On the scheduler's own host, the way through the scheduler is quicker for smaller arguments. Larger ones would keep
the scheduler from all other work: 1.7 s for 256 MiB, 16 s for 1 GiB (PyPy)."""

UNSENT_SECONDS = 0.01
"""If ZeroMQ did not take a message, the pause before the next attempt."""

MAX_RECONNECT_MILLISECONDS = 250
"""The longest pause between two attempts to connect, and so the delay until a restarted scheduler is noticed."""

GOODBYE_MILLISECONDS = 1000
"""How long the last messages may take to be sent when the client leaves."""

_log = logging.getLogger(__name__)


class IoThread:
    """Starts a thread that connects to the scheduler and carries a session's messages.

    Args:
        address: the scheduler's address.
        session: decides which messages are sent. After this call, only the I/O thread uses it.
        keys: the CURVE keys; None: the connection is not encrypted.
        is_nested: whether the client serves tasks that this process runs as a worker of the same scheduler.
        data_address: where agents get large objects; `auto`: a free port; empty: nowhere.

    Raises:
        OSError: too few file descriptors are left.
        DataAddressError: the data address can't be bound.
    """

    def __init__(
        self,
        address: Address,
        session: Session,
        keys: PeerKeys | None = None,
        is_nested: bool = False,
        data_address: Address | str = "",
    ) -> None:
        check_free_files("a client")
        keep_freed_memory()
        session.file_shortage = file_shortage
        session.objects.files = self._files = ClientFiles(session.incarnation, address, keys, data_address)
        self.is_nested = is_nested
        self._address = address
        self._keys = keys
        self._session = session
        self._inbox: deque[Any] = deque()
        self._wake = WakeupFd()
        self._is_asleep = False
        self._is_over = False
        """Whether the I/O thread has ended."""
        self._has_data_address = data_address != ""
        self._reject_lock = threading.RLock()  # reentrant: a signal handler may submit in a thread that holds it
        self._closed: str | None = None
        """Why nothing can be submitted any more; None: the client is open."""
        self._on_end: Callable[[], None] | None = None
        """Called when this thread has ended because its client was dropped; None: the client was not dropped."""
        self._joined = threading.Event()
        session.on_join_result = self._joined.set
        self._callbacks = Callbacks()
        self._display = OutputDisplay()
        session.on_output = self._display.put
        self.hosts = HostQuestions(self._ask_hosts)
        """What the scheduler tells about the hosts."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IPV6, int(address.is_ipv6))
        self._socket.setsockopt(zmq.LINGER, 0)
        apply_keys(self._socket, keys)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, MAX_RECONNECT_MILLISECONDS)
        # A short queue in ZeroMQ: unsent tasks wait in the session, where they can still be cancelled.
        self._socket.setsockopt(zmq.SNDHWM, 100)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._unsent: deque[messages.Frames] = deque()
        self._is_short_of_files = False
        """Whether it has logged that no further file can be opened."""
        self._reconnects = ReconnectWatcher(self._socket, endpoint=str(address))
        # The argument of zmq_poll. zmq.Poller would build this list again at each call.
        self._sources: list[Any] = [
            (self._socket, int(zmq.POLLIN)),
            (self._wake.fileno(), int(zmq.POLLIN)),
            (self._reconnects.fileno(), int(zmq.POLLIN)),
        ]
        self._thread = threading.Thread(target=self._run, name="scaler-client", daemon=True)
        self._socket.connect(str(address))
        self._thread.start()
        close_at_exit(self)

    # ------------------------------------------------------------------------------------------------ for user threads

    @property
    def frame_limit(self) -> int:
        """The most bytes of a frame that the scheduler takes; 0: no limit."""
        return self._session.frame_limit.bytes

    def least_shared_argument(self) -> int | None:
        """Return from how many bytes on arguments are objects that hosts get from this client
        (`io/large_arguments.py`). None: all arguments go through the scheduler.

        Call it when the client has joined: it looks up the name of the scheduler's host.
        """
        if not self._has_data_address or self.is_nested:
            return None
        return LOCAL_BYTES if is_local_address(self._address) else SHARED_BYTES

    def submit(self, future: TaskFuture[Any]) -> None:
        """Submit a task without options.

        Repeats `call_soon` inline: two calls less per task (benchmarks/submit_rate.py).

        Raises:
            ClientClosedError: the client is closed.
        """
        if self._closed is not None:
            raise ClientClosedError(self._closed)
        self._inbox.append(future)
        if self._is_asleep:
            self._wake_up()

    def submit_with_options(self, future: TaskFuture[Any]) -> None:
        """Submit a task with options."""
        self._call_soon(lambda: self._submit_with_options(future))

    def submit_kept(self, futures: Sequence[KeptFuture[Any]]) -> None:
        """Submit tasks whose results stay on their hosts.

        Raises:
            ClientClosedError: the client is closed.
        """

        def submit_all() -> None:
            for future in futures:
                self._session.submit_kept(future)

        self._call_soon(submit_all)

    def fetch_values(self, wanted: Sequence[tuple[KeptResult, FetchedValue[Any]]]) -> None:
        """Fetch the values of kept results, each for a future.

        Raises:
            ClientClosedError: the client is closed.
        """
        self._call_soon(lambda: self._session.fetch_values(wanted))

    def submit_calls(self, feed: MapFeed, blocks: list[CallBlock], is_last: bool) -> None:
        """Hand calls of a map to its feed.

        Args:
            feed: submits the calls.
            blocks: the next calls.
            is_last: whether no more follow.
        """
        self._call_soon(lambda: feed.add(self._session, blocks, is_last))

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        """Cancel a task that has not begun, and wait for the outcome.

        Args:
            force: interrupt the task if it runs.
        """
        answered = slot_wait.Event(self)

        def ask() -> None:
            if future.done():
                answered.set()
            else:
                self._session.cancel([future.task_id], answered.set, force)

        self._call_soon(ask)
        answered.wait()

    def cancel_many(self, ids: Callable[[], Sequence[int]], force: bool = False) -> None:
        """Cancel tasks that have not begun. Does not wait.

        Args:
            ids: called by the I/O thread, when everything that was submitted before has its ids.
            force: interrupt tasks that run.
        """
        self._call_soon(lambda: self._session.cancel(ids(), lambda: None, force))

    def clear(self, parent: TaskAttempt | None, on_done: Callable[[], None]) -> None:
        """Cancel all tasks that have not begun, and drop all objects. Does not wait.

        A nested client serves all tasks of its worker. It clears only the tasks and objects of one of them.

        Args:
            parent: the task that clears; None: a call outside of tasks.
            on_done: called when the outcome of all these tasks is known.
        """
        if self.is_nested:
            self._call_soon(lambda: self._session.clear_children(parent, on_done))
        else:
            self._call_soon(lambda: self._session.clear(on_done))

    def stop_children(self, parent: TaskAttempt) -> None:
        """Cancel and interrupt all tasks that this task has submitted. Does not wait."""
        if self._is_asleep and not self._inbox and not self._session.has_open_tasks:
            return  # most parents have waited for their children
        self._enqueue(lambda: self._session.stop_children(parent))

    def suspend(self, name: TaskAttempt) -> None:
        """Report that the calling thread's task gives up its slot.

        The report is sent after everything that the task has submitted.
        """
        self._enqueue(lambda: self._session.suspend(name))

    def resume(self, name: TaskAttempt) -> None:
        """Report that the task has its slot again."""
        self._enqueue(lambda: self._session.resume(name))

    def forget_function(self, number: int) -> None:
        """Drop a function that no task calls any more. The garbage collector calls this in any thread, at any time."""
        # No wake-up: the message is not urgent and goes out with the next one. No lock may be taken here.
        self._inbox.append(lambda: self._session.forget_function(number))

    def forget_object(self, stored: StoredObject) -> None:
        """Drop an object without references. The garbage collector calls this, like `forget_function`."""
        self._inbox.append(stored)  # no function: there may be one for each task

    def call_soon(self, command: Callable[[Session], None]) -> None:
        """Let the I/O thread call `command` with the session, after everything that was submitted before.

        Raises:
            ClientClosedError: the client is closed.
        """
        self._call_soon(lambda: command(self._session))

    def wait_joined(self, timeout_seconds: float) -> bool:
        """Wait until the scheduler has accepted or refused the client; return False if it did neither in time."""
        return self._joined.wait(timeout_seconds)

    def forward_output(self, forward: Callable[[list[TaskAttempt], messages.Output], None]) -> None:
        """From now on forward the output of child tasks, instead of showing it in this process.

        Args:
            forward: called by the I/O thread with the parent task of each row, and the rows. It must not block.
        """

        self._session.forward_output(forward)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be submitted any more."""
        return self._closed is not None

    @property
    def close_reason(self) -> str:
        """Why the client takes no more tasks; empty: it takes tasks."""
        return self._closed or ""

    @property
    def loss(self) -> SchedulerLostError | None:
        """Why the client last gave up its open tasks; None: it never did."""
        return self._session.loss

    def check_can_wait(self) -> None:
        """Check that waiting for a future of this client can end.

        Raises:
            ClientClosedError: the client is closed.
            RuntimeError: the caller is the I/O thread itself.
        """
        if self._closed is not None and not self._thread.is_alive():
            raise ClientClosedError(self._closed)
        if threading.current_thread() is self._thread:
            raise RuntimeError("a future was waited for in the client's own I/O thread")

    def _ask_hosts(self, on_answer: HostAnswer) -> bool:
        if self._closed is not None or threading.current_thread() is self._thread:
            return False
        self._enqueue(lambda: self._session.ask_hosts(on_answer, time.monotonic()))
        return True

    def schedule_callbacks(self, future: TaskFuture[Any]) -> None:
        """Run the future's callbacks in the callback thread."""
        self._callbacks.add(future)

    def close(self, reason: str) -> None:
        """Leave the scheduler; unfinished futures are cancelled. Further calls do nothing."""
        if self._closed is not None:
            return
        self._closed = reason
        self._inbox.append(lambda: self._session.close(reason))
        self._wake_up()
        if threading.current_thread() is self._thread:
            return  # in a `__del__` of the program: this thread ends when the call returns
        self._thread.join()
        self._callbacks.join()  # the shutdown of an executor does the same
        self._display.join()

    def end_when_unused(self, on_end: Callable[[], None]) -> None:
        """Leave the scheduler when the open tasks are done, because the client has no references any more.

        The garbage collector calls this, in any thread, at any time: it takes no lock.

        Args:
            on_end: called by the I/O thread when it has left. Not called if the client is closed otherwise.
        """
        if self._closed is None:
            self._on_end = on_end
            self._wake.set()

    def mark_forked(self) -> None:
        """Close this client in a forked child, without a message: thread and connection belong to the parent."""
        self._closed = (
            "this client belongs to the parent process: a forked process needs a Client of its own "
            f"(process {os.getpid()})"
        )
        self._thread = threading.Thread()
        self._files.mark_forked()

    def _call_soon(self, command: Callable[[], None]) -> None:
        if self._closed is not None:
            raise ClientClosedError(self._closed)
        self._enqueue(command)

    def _enqueue(self, command: Callable[[], None]) -> None:
        """Append a command and wake the thread. A closed session ignores the command."""
        self._inbox.append(command)
        if self._is_asleep:
            self._wake_up()

    def _wake_up(self) -> None:
        if self._is_over:
            self._reject_inbox()
            return
        self._is_asleep = False
        self._wake.set()

    # -------------------------------------------------------------------------------------------------- the I/O thread

    def _run(self) -> None:
        try:
            while self._session.state is not State.CLOSED or self._session.refused is not None:
                self._step()
                if self._on_end is not None and self._closed is None and not self._inbox and not self._session.is_used:
                    self._closed = "the program has dropped the client"
                    self._session.close(self._closed)
                if self._session.refused is not None and self._closed is not None:
                    break
            # Without a scheduler the goodbye has no receiver, so do not wait until it is sent (no linger).
            self._socket.setsockopt(zmq.LINGER, GOODBYE_MILLISECONDS if self._session.scheduler is not None else 0)
            self._send()
        except Exception:
            _log.exception("the client's I/O thread failed")
            self._closed = "the client's I/O thread failed; see the log"
            self._session.close(self._closed)
        finally:
            self._joined.set()
            self._reject_inbox()
            self._reconnects.close()
            self._socket.close()
            self._context.term()
            self._files.close()
            self._callbacks.end()
            self._display.end()
            on_end, self._on_end = self._on_end, None
            if on_end is not None:
                on_end()

    def _reject_inbox(self) -> None:
        """Process commands that arrive while the client closes, or later. The closed session fails their tasks."""
        with self._reject_lock:
            self._is_over = True
            self._is_asleep = True  # from now on `_wake_up` rejects each new command
            while self._inbox:
                with contextlib.suppress(IndexError):  # a signal handler in this thread has taken the last commands
                    self._process_inbox()

    def _step(self) -> None:
        self._process_inbox()
        now = time.monotonic()
        if now >= self._session.next_deadline:
            self._session.tick(now)
            self._reconnects.retry()
        self._send()
        # No wake-up is lost: this thread sets the flag first and then looks at the inbox; a submitter does the reverse.
        self._is_asleep = True
        ready = zmq.zmq_poll(self._sources, int(self._seconds_to_sleep(now) * 1000 + 0.999))
        self._is_asleep = False
        for source, _events in ready:
            if source is self._socket:
                self._receive(now)
            elif source == self._wake.fileno():
                self._wake.clear()
            elif self._reconnects.has_reconnected():
                self._session.reconnected(now)
            elif self._reconnects.failure is not None:
                self._session.reject_connection(self._reconnects.failure.text(self._keys), now)

    def _seconds_to_sleep(self, now: float) -> float:
        if self._inbox or self._closed is not None:
            return 0.0
        if self._unsent:
            return UNSENT_SECONDS
        return max(0.0, self._session.next_deadline - now)

    def _process_inbox(self) -> None:
        inbox = self._inbox
        submit = self._session.submit
        # Process only the commands that have arrived by now. Later commands wait for the next turn, so that answers are
        # read in between.
        for _ in range(len(inbox)):
            item = inbox.popleft()
            if type(item) is TaskFuture:
                item.task_id = submit(item, item._function, item._payload)  # type: ignore[arg-type]
            elif isinstance(item, StoredObject):  # it has no references any more
                self._session.forget_object(item)
            else:
                item()

    def _submit_with_options(self, future: TaskFuture[Any]) -> None:
        future.task_id = self._session.submit_with_options(future, *future.row(-1))

    def _receive(self, now: float) -> None:
        """Process one message."""
        try:
            message = wire.decode(receive(self._socket))
        except wire.WireError as error:
            _log.error("dropped a message of the scheduler at %s: %s", self._address, error)
            return
        self._session.handle(message, now)

    def _send(self) -> None:
        unsent = self._unsent
        unsent += self._session.pop_frames()
        while unsent:
            frames = unsent[0]
            try:
                if len(frames) == 1:
                    self._socket.send(frames[0], zmq.NOBLOCK)
                else:
                    self._socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            except OSError as error:  # PyZMQ may import a module at its first large message
                if not is_file_shortage(error):
                    raise
                if not self._is_short_of_files:
                    self._is_short_of_files = True
                    _log.error("no further file can be opened, trying again: %s", error)
                return
            unsent.popleft()
