"""The connection to the scheduler, and the lock that says which thread has it."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import zmq

from scaler_client.commands.addresses import parse_connect_address
from scaler_client.commands.key_files import WORKER
from scaler_client.net.curve import SERVING_CUT_SECONDS, given_keys, secure
from scaler_client.net.sockets import Reconnects, all_frames, receive
from scaler_client.protocol import messages, wire
from scaler_client.session.frame_limit import encode_or_log, result_frames
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.session import WorkerSession
from scaler_worker.worker.wakeup import Wakeup

WAIT_MILLISECONDS = 200
"""The longest wait for a message: how late a heartbeat, a collection, or the look for a new connection can be."""

RECONNECT_MILLISECONDS = 50
MOST_RECONNECT_MILLISECONDS = 250
"""Between two tries to connect, from the first to the latest."""

GOODBYE_MILLISECONDS = 500

_log = logging.getLogger(__name__)


class _Interrupted(BaseException):
    """Gets the running thread out of its wait for messages."""


class Connection:
    """All but `interrupt` is for whoever holds `lock`, which guards the session as well."""

    def __init__(
        self, address: str, session: WorkerSession, interruption: Interruption, wakeup: Wakeup, keys: str
    ) -> None:
        """`keys` is the folder of keys; empty: none."""
        self.lock = threading.Lock()
        self._session = session
        self._interruption = interruption
        self._wakeup = wakeup
        self._is_receiving = False
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        where = parse_connect_address(address)
        self._socket.setsockopt(zmq.IPV6, int(where.is_ipv6))
        self._socket.setsockopt(zmq.LINGER, 0)
        secure(self._socket, given_keys(keys, WORKER))
        self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MILLISECONDS)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, MOST_RECONNECT_MILLISECONDS)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, WAIT_MILLISECONDS)
        self._reconnects = Reconnects(self._socket, SERVING_CUT_SECONDS)
        self._sources: list[Any] = [
            (source, int(zmq.POLLIN)) for source in (self._socket, wakeup.fileno(), self._reconnects.fileno())
        ]
        self._socket.connect(str(where))

    def send(self) -> None:
        """Send what there is."""
        for message in self._session.take_outgoing():
            if type(message) is messages.Results:
                sent = result_frames(message, self._session.frame_limit)
            else:
                sent = encode_or_log(message)
            for frames in sent:
                self._send(frames)

    def _send(self, frames: messages.Frames) -> None:
        if len(frames) == 1:
            self._socket.send(frames[0])
        else:
            self._socket.send_multipart(frames, copy=False)

    def exchange(self) -> None:
        """Send what there is and take what has arrived."""
        self._session.tick(time.monotonic())
        self.send()
        while True:
            try:
                frames = receive(self._socket, zmq.NOBLOCK)
            except zmq.Again:
                break
            self._take(frames)
        self.send()

    def await_message(self) -> None:
        """Wait for a message, for a while. The lock stays held: the watcher has nothing to do while nothing runs."""
        if self._session.suspended:
            self._poll()
        elif not self._receive():
            self.look_for_scheduler()

    def look_for_scheduler(self) -> None:
        """Where the connection was lost and is there again, ask the scheduler whether it knows this worker."""
        if self._reconnects.take():
            self._session.reconnected(time.monotonic())

    def interrupt(self) -> None:
        """End a wait for messages. Called by a signal handler, in the thread that waits if any does.

        Raises:
            _Interrupted: it is waiting in a call that goes on unless this raises.
        """
        if self._is_receiving:
            raise _Interrupted

    def close(self) -> None:
        """Leave the scheduler, and send what there is before that."""
        self._session.close()
        self._socket.setsockopt(zmq.LINGER, GOODBYE_MILLISECONDS)
        self.send()
        self._reconnects.close()
        self._socket.close()
        self._context.term()

    def _receive(self) -> bool:
        """The quick way: one call into ZeroMQ where a poll and a receive are three, 14 us less of a round trip.

        Returns:
            Whether a message came.
        """
        # _Interrupted may come in the one call that waits: in others, the end of a zmq.Frame for one, it would only be
        # printed.
        first: Any = None
        try:
            self._is_receiving = True
            if not self._wakeup.is_set:
                first = self._socket.recv(copy=False)
        except (zmq.Again, _Interrupted):
            pass
        finally:
            self._is_receiving = False
        if first is None:
            return False
        self._take(all_frames(self._socket, first))
        return True

    def _poll(self) -> None:
        """The way that any thread can end, by ringing the wakeup."""
        if self._wakeup.begin_wait():
            zmq.zmq_poll(self._sources, WAIT_MILLISECONDS)
        self._wakeup.end_wait()
        self.look_for_scheduler()
        self.exchange()

    def _take(self, frames: messages.Frames) -> None:
        session = self._session
        try:
            session.handle(wire.decode(frames))
        except wire.WireError as error:
            _log.error("dropped a message of the scheduler: %s", error)
        if session.stops:
            self._interruption.stop(session.pop_stops())
