"""The connection to the scheduler, with the lock that a thread holds to use it.

`Connection` has the operations of a worker's connection. `SocketConnection` carries them out by ZeroMQ. The simulation
has another subclass.
"""

from __future__ import annotations

import logging
import math
import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import zmq

from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.key_files import WORKER
from scaler_client.net.curve import SERVING_CUT_SECONDS, apply_keys, load_keys
from scaler_client.net.sockets import ReconnectWatcher, keep_freed_memory, receive, receive_rest
from scaler_client.net.wakeup import WakeupFd
from scaler_client.protocol import messages, wire
from scaler_client.session.frame_limit import encode_or_log, result_frames
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.run_token import Wakeup
from scaler_worker.worker.session import WorkerSession

WAIT_MILLISECONDS = 200
"""The longest wait for a message in one call into ZeroMQ, and while tasks are suspended. After it the worker rests: it
waits until its next heartbeat. A thousand idle workers that each woke up five times a second took 86 % of a core."""

REST_WITH_FILES_SECONDS = 1.0
"""The longest rest of a worker that has mapped files of objects. It must unmap them soon if memory becomes scarce."""

RECONNECT_MILLISECONDS = 50
MAX_RECONNECT_MILLISECONDS = 250
"""Between two attempts to connect: the first pause, and the longest."""

GOODBYE_MILLISECONDS = 500

_log = logging.getLogger(__name__)


class _Interrupted(BaseException):
    """Ends the running thread's wait for messages."""


class Connection(ABC):
    """All methods but `interrupt`, `await_signal` and `end_signal_wait` need `lock`, which also guards the session."""

    def __init__(self, session: WorkerSession, interruption: Interruption, now: Callable[[], float]) -> None:
        """`now` returns the time in seconds, by which the session counts."""
        self.lock = threading.Lock()
        self._session = session
        self._interruption = interruption
        self.now = now

    def send(self) -> bool:
        """Send the session's outgoing messages. Returns whether there were any."""
        outgoing = self._session.pop_outgoing()
        for message in outgoing:
            self._send(message)
        return bool(outgoing)

    def exchange(self) -> None:
        """Send the outgoing messages and handle all that have arrived."""
        self._session.tick(self.now())
        self.send()
        has_sent = True
        while has_sent:
            while (frames := self._receive_now()) is not None:
                self._handle(frames)
            has_sent = self.send()  # sending may consume the signal of a message (`await_signal`): receive once more

    def await_message(self) -> None:
        """Wait for a message, until the next heartbeat at most. The lock stays held: the long-task watcher needs no
        lock while no task runs."""
        if self._session.suspended:
            self._poll()
        elif not self._receive():
            self.look_for_scheduler()

    def look_for_scheduler(self) -> None:
        """If a lost connection was made again, ask the scheduler whether it knows this worker."""
        if self._has_reconnected():
            self._session.reconnected(self.now())

    @abstractmethod
    def interrupt(self) -> None:
        """End a wait for messages. A signal handler calls it; if a thread waits, it is the thread of the handler."""

    def close(self) -> None:
        """Leave the scheduler, after the outgoing messages."""
        self._session.close(self._interruption.is_process_damaged)
        self._close()

    def _handle(self, frames: messages.Frames) -> None:
        session = self._session
        try:
            session.handle(wire.decode(frames))
        except wire.WireError as error:
            _log.error("dropped a message of the scheduler: %s", error)
        if session.stops:
            self._interruption.stop(session.pop_stops())

    @abstractmethod
    def _send(self, message: messages.Message) -> None: ...

    @abstractmethod
    def _receive_now(self) -> messages.Frames | None:
        """A message that has arrived; None if there is none."""

    @abstractmethod
    def await_signal(self, seconds: float) -> None:
        """Wait until a message may have come, a lost connection was made again, or `end_signal_wait` was called.

        Only the long-task watcher calls this, and only while no other thread waits for messages.

        Args:
            seconds: the longest wait.
        """

    @abstractmethod
    def end_signal_wait(self) -> None:
        """End the present or the next `await_signal`."""

    @abstractmethod
    def _receive(self) -> bool:
        """Wait for a message and handle it. Returns whether one came."""

    @abstractmethod
    def _poll(self) -> None:
        """Wait for a message or a wakeup by any thread, and handle all messages that have arrived."""

    @abstractmethod
    def _has_reconnected(self) -> bool:
        """Whether a lost connection was made again since the last call."""

    @abstractmethod
    def _close(self) -> None:
        """Send the outgoing messages, and close the socket."""


class SocketConnection(Connection):
    """A connection by a ZeroMQ socket."""

    def __init__(
        self, address: str, session: WorkerSession, interruption: Interruption, wakeup: Wakeup, keys: str
    ) -> None:
        """`address` is the scheduler's. `keys` is the folder of keys; empty: none."""
        super().__init__(session, interruption, time.monotonic)
        self._wakeup = wakeup
        self._is_receiving = False
        self._is_resting = False
        self.has_mapped_files: Callable[[], bool] = lambda: False
        """Whether the worker must look soon if memory is scarce."""
        keep_freed_memory()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        where = parse_connect_address(address)
        self._socket.setsockopt(zmq.IPV6, int(where.is_ipv6))
        self._socket.setsockopt(zmq.LINGER, 0)
        apply_keys(self._socket, load_keys(keys, WORKER))
        self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MILLISECONDS)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, MAX_RECONNECT_MILLISECONDS)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, WAIT_MILLISECONDS)
        self._reconnects = ReconnectWatcher(self._socket, SERVING_CUT_SECONDS)
        self._sources: list[Any] = [
            (source, int(zmq.POLLIN)) for source in (self._socket, wakeup.fileno(), self._reconnects.fileno())
        ]
        # ZeroMQ's descriptors: readable from a signal until the socket is used. Any thread may poll them.
        self._signals = select.poll()
        self._signal_end = WakeupFd()
        for descriptor in (int(self._socket.getsockopt(zmq.FD)), self._reconnects.fileno(), self._signal_end.fileno()):
            self._signals.register(descriptor, select.POLLIN)
        self._socket.connect(str(where))

    def interrupt(self) -> None:
        """End a wait for messages.

        Raises:
            _Interrupted: the thread waits in a call that only an exception ends.
        """
        if self._is_receiving:
            raise _Interrupted

    def _send(self, message: messages.Message) -> None:
        if type(message) is messages.Results:
            sent = result_frames(message, self._session.frame_limit)
        else:
            sent = encode_or_log(message)
        for frames in sent:
            if len(frames) == 1:
                self._socket.send(frames[0])
            else:
                self._socket.send_multipart(frames, copy=False)

    def _receive_now(self) -> messages.Frames | None:
        try:
            return receive(self._socket, zmq.NOBLOCK)
        except zmq.Again:
            return None

    def _receive(self) -> bool:
        if self._is_resting:
            return self._rest()
        # One call into ZeroMQ where a poll and a receive are three: 14 us less of a round trip.
        # _Interrupted may come in the one call that waits: in others, the end of a zmq.Frame for one, it would only be
        # printed.
        first: Any = None
        try:
            self._is_receiving = True
            if not self._wakeup.is_set:
                first = self._socket.recv(copy=False)
        except zmq.Again:
            self._is_resting = True
        except _Interrupted:
            pass
        finally:
            self._is_receiving = False
        if first is None:
            return False
        self._handle(receive_rest(self._socket, first))
        return True

    def _rest(self) -> bool:
        """Wait for a message, a wakeup or a new connection, until the next heartbeat. Handle a message that has come.
        Returns whether one came."""
        if self._wakeup.begin_wait():
            seconds = self._session.next_deadline - self.now()
            if self.has_mapped_files():
                seconds = min(seconds, REST_WITH_FILES_SECONDS)
            zmq.zmq_poll(self._sources, max(0, math.ceil(seconds * 1000)))
        self._wakeup.end_wait()
        frames = self._receive_now()
        if frames is None:
            return False
        self._is_resting = False
        self._handle(frames)
        return True

    def await_signal(self, seconds: float) -> None:
        self._signals.poll(seconds * 1000)
        self._signal_end.clear()

    def end_signal_wait(self) -> None:
        self._signal_end.set()

    def _poll(self) -> None:
        if self._wakeup.begin_wait():
            zmq.zmq_poll(self._sources, WAIT_MILLISECONDS)
        self._wakeup.end_wait()
        self.look_for_scheduler()
        self.exchange()

    def _has_reconnected(self) -> bool:
        return self._reconnects.has_reconnected()

    def _close(self) -> None:
        self._socket.setsockopt(zmq.LINGER, GOODBYE_MILLISECONDS)
        self.send()
        self._reconnects.close()
        self._socket.close()
        self._context.term()
