"""The client's I/O thread: moves messages between the session and the socket.

User threads hand work over through a deque and wake the thread once a burst, not once a task.
"""

from __future__ import annotations

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
from ..errors import ClientClosedError, SchedulerLostError
from ..futures.future import TaskFuture
from ..nested import slot_wait
from ..net.curve import apply_keys
from ..net.file_limit import check_free_files, file_shortage
from ..net.sockets import ReconnectWatcher, receive
from ..net.wakeup import WakeupFd
from ..pickling.functions import Function
from ..pickling.references import StoredObject
from ..protocol import messages, wire
from ..protocol.messages import Payload, TaskName
from ..session.result_sinks import ChunkSink
from ..session.session import Session, State
from .callbacks import Callbacks
from .output_display import OutputDisplay
from .process_exit import close_at_exit

UNSENT_SECONDS = 0.01
"""How soon to try again to send what ZeroMQ did not take."""

MAX_RECONNECT_MILLISECONDS = 250
"""Between two tries to connect, at the most: so much later a scheduler that was started anew is noticed."""

GOODBYE_MILLISECONDS = 1000
"""How long a last message may take to get out when the client leaves."""

_log = logging.getLogger(__name__)


class IoThread:
    def __init__(
        self, address: Address, session: Session, keys: PeerKeys | None = None, is_nested: bool = False
    ) -> None:
        """`is_nested`: it serves the tasks that this process runs as a worker of the same scheduler.

        Raises:
            OSError: too few file descriptors are left.
        """
        check_free_files("a client")
        session.file_shortage = file_shortage
        self.is_nested = is_nested
        self._address = address
        self._keys = keys
        self._session = session
        self._inbox: deque[Any] = deque()
        self._wake = WakeupFd()
        self._is_asleep = False
        self._is_over = False
        """The I/O thread has ended."""
        self._reject_lock = threading.Lock()
        self._closed: str | None = None
        """Why nothing can be submitted any more."""
        self._joined = threading.Event()
        session.on_join_result = self._joined.set
        self._callbacks = Callbacks()
        self._display = OutputDisplay()
        session.on_output = self._display.put
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IPV6, int(address.is_ipv6))
        self._socket.setsockopt(zmq.LINGER, 0)
        apply_keys(self._socket, keys)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, MAX_RECONNECT_MILLISECONDS)
        # What is unsent waits in the session, which can still change its mind about it.
        self._socket.setsockopt(zmq.SNDHWM, 100)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._unsent: deque[messages.Frames] = deque()
        self._reconnects = ReconnectWatcher(self._socket, endpoint=str(address))
        # What ZeroMQ's poll wants; its Poller builds this list anew at every call.
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
        """Bytes of one frame that the scheduler takes; 0: any."""
        return self._session.frame_limit.bytes

    def submit(self, future: TaskFuture[Any]) -> None:
        """Hand a new task over."""
        if self._closed is not None:
            raise ClientClosedError(self._closed)
        self._inbox.append(future)
        if self._is_asleep:
            self._wake_up()

    def submit_with_options(self, future: TaskFuture[Any]) -> None:
        """Hand over a new task that has options."""
        self._call_soon(lambda: self._submit_with_options(future))

    def submit_chunk(self, sink: ChunkSink, function: Function, payloads: list[Payload]) -> None:
        """Hand over tasks of one function, whose first id is told to the sink."""
        self._call_soon(lambda: sink.set_first_id(self._session.submit_chunk(sink, function, payloads)))

    def cancel(self, future: TaskFuture[Any], force: bool) -> None:
        """Ask that the task never runs, with `force` that it is stopped if it does, and wait for the answer."""
        answered = slot_wait.make_event(self)

        def ask() -> None:
            if future.done():
                answered.set()
            else:
                self._session.cancel([future.task_id], answered.set, force)

        self._call_soon(ask)
        answered.wait()

    def cancel_many(self, ids: Callable[[], Sequence[int]], force: bool = False) -> None:
        """Ask that these tasks, named once all before has been handed over, never run, with `force` that they are
        stopped if they do. Does not wait."""
        self._call_soon(lambda: self._session.cancel(ids(), lambda: None, force))

    def clear(self, parent: TaskName | None, on_done: Callable[[], None]) -> None:
        """Ask that no open task runs that has not begun, and forget all objects; does not wait. `over` is called when
        the fate of all is known.

        A nested client serves all tasks of its worker: there it is what this one has submitted.
        """
        if self.is_nested:
            self._call_soon(lambda: self._session.clear_children(parent, on_done))
        else:
            self._call_soon(lambda: self._session.clear(on_done))

    def stop_children(self, parent: TaskName) -> None:
        """Ask that everything is stopped that this task has submitted. Does not wait."""
        self._enqueue(lambda: self._session.stop_children(parent))

    def suspend(self, name: TaskName) -> None:
        """The calling thread's task is about to give up its slot; what it has submitted goes before this."""
        self._enqueue(lambda: self._session.suspend(name))

    def resume(self, name: TaskName) -> None:
        """It has its slot again."""
        self._enqueue(lambda: self._session.resume(name))

    def forget_function(self, number: int) -> None:
        """No task names this function any more. Called by the garbage collector, in any thread, at any time."""
        # Not worth a wake-up, and no lock may be taken here: it goes out with whatever is sent next.
        self._inbox.append(lambda: self._session.forget_function(number))

    def forget_object(self, stored: StoredObject) -> None:
        """Nothing refers to this object any more. Called as `forget_function` is."""
        self._inbox.append(lambda: self._session.forget_object(stored))

    def call_soon(self, command: Callable[[Session], None]) -> None:
        """Have this called by the I/O thread, behind all that was handed over before."""
        self._call_soon(lambda: command(self._session))

    def wait_joined(self, timeout_seconds: float) -> bool:
        """Wait until the scheduler has accepted or refused the client; False when it did neither in time."""
        return self._joined.wait(timeout_seconds)

    def forward_output(self, forward: Callable[[list[TaskName], messages.Output], None]) -> None:
        """From now on what tasks print is not shown here, but handed over together with their parents' names."""

        self._session.forward_output(forward)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be submitted any more."""
        return self._closed is not None

    @property
    def loss(self) -> SchedulerLostError | None:
        """Why tasks were given up last, if they ever were."""
        return self._session.loss

    def check_can_wait(self) -> None:
        """Raise where waiting for this client's futures could never end."""
        if self._closed is not None and not self._thread.is_alive():
            raise ClientClosedError(self._closed)
        if threading.current_thread() is self._thread:
            raise RuntimeError("a future was waited for in the client's own I/O thread")

    def schedule_callbacks(self, future: TaskFuture[Any]) -> None:
        """Have the future's callbacks run, in the callback thread."""
        self._callbacks.add(future)

    def close(self, reason: str) -> None:
        """Leave the scheduler; unfinished futures are cancelled. Idempotent."""
        if self._closed is not None:
            return
        self._closed = reason
        self._inbox.append(lambda: self._session.close(reason))
        self._wake_up()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._callbacks.join()  # as an executor's shutdown does: the callbacks of what has ended have run
        self._display.join()

    def mark_forked(self) -> None:
        """This is a child process: the thread and the connection are its parent's."""
        self._closed = (
            "this client belongs to the parent process: a forked process needs a Client of its own "
            f"(process {os.getpid()})"
        )
        self._thread = threading.Thread()

    def _call_soon(self, command: Callable[[], None]) -> None:
        if self._closed is not None:
            raise ClientClosedError(self._closed)
        self._enqueue(command)

    def _enqueue(self, command: Callable[[], None]) -> None:
        """The same, of no use to a client that is closed."""
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
                if self._session.refused is not None and self._closed is not None:
                    break
            # Without a scheduler there is nobody to wait for.
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
            self._callbacks.end()
            self._display.end()

    def _reject_inbox(self) -> None:
        """What is handed over while the client closes, and later: the closed session turns it away."""
        with self._reject_lock:
            self._is_over = True
            self._is_asleep = True  # for good: whoever hands over from now on comes to see that it is over
            self._process_inbox()

    def _step(self) -> None:
        self._process_inbox()
        now = time.monotonic()
        if now >= self._session.next_deadline:
            self._session.tick(now)
            self._reconnects.retry()
        self._send()
        # The order is what makes it safe: asleep first, then one more look. A submitter appends first, then looks.
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
        # As many as there are now: what comes meanwhile waits for the next turn, so that answers are read in between.
        for _ in range(len(inbox)):
            item = inbox.popleft()
            if type(item) is TaskFuture:
                item.task_id = submit(item, item._function, item._payload)  # type: ignore[arg-type]
            else:
                item()

    def _submit_with_options(self, future: TaskFuture[Any]) -> None:
        future.task_id = self._session.submit_with_options(future, *future.row(-1))

    def _receive(self, now: float) -> None:
        """Take the message that has arrived."""
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
            unsent.popleft()
