"""What a worker knows and says, without sockets, threads or clock: messages in, messages out.

Two threads share a session: the one that runs tasks, and the attendant, which minds the connection while a task runs
long. What they share are deques, whose ends are safe to use from both; everything else happens under the worker's I/O
lock.
"""

from __future__ import annotations

import logging
from collections import deque

from scaler_client import messages
from scaler_client.messages import Payload

_log = logging.getLogger(__name__)


Row = tuple[int, int, int, int, Payload]
"""A task to run: client, id, attempt, function, payload. A plain tuple: a named one costs as much as a whole no-op."""

Answer = tuple[int, int, int, int, int, Payload]
"""A task that has run: client, id, attempt, outcome, duration in nanoseconds, payload."""


class WorkerSession:
    def __init__(self, hello: messages.Hello, heartbeat_interval_seconds: float, now: float) -> None:
        self.queue: deque[Row] = deque()
        self.answers: deque[Answer] = deque()
        self.functions: dict[int, messages.Function] = {}
        """What the scheduler has sent, by its numbers."""
        self.forgotten: deque[int] = deque()
        """Numbers whose loaded functions the executor may drop."""
        self.refused: messages.Refused | None = None
        self._hello = hello
        self._is_joined = False
        self._heartbeat_interval_seconds = heartbeat_interval_seconds
        self._next_heartbeat = now + heartbeat_interval_seconds
        self._sequence = 0
        self._outgoing: list[messages.Message] = [hello]

    def handle(self, message: messages.Message) -> None:
        """Take a message of the scheduler's."""
        if isinstance(message, messages.Dispatch):
            self.queue.extend(zip(message.clients, message.ids, message.attempts, message.functions, message.payloads))
        elif isinstance(message, messages.Function):
            self.functions[message.number] = message
        elif isinstance(message, messages.ForgetFunctions):
            for number in message.numbers:
                self.functions.pop(number, None)
                self.forgotten.append(number)
        elif isinstance(message, messages.Welcome):
            self._join()
        elif isinstance(message, messages.HelloWanted):
            if self._is_joined:
                self._is_joined = False
                self._outgoing.append(self._hello)
        elif isinstance(message, messages.Refused):
            self.refused = message
        elif isinstance(message, messages.Error):
            _log.error("the scheduler refused a message: %s", message.text)

    def started(self, client: int, task_id: int, attempt: int) -> None:
        """This task has been running for long enough to tell."""
        self._outgoing.append(messages.Started([task_id], [client], [attempt]))

    def tick(self, now: float) -> None:
        """Send a heartbeat when one is due: a scheduler that was started anew answers that it wants a hello."""
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + self._heartbeat_interval_seconds
            self._sequence += 1
            self._outgoing.append(messages.Heartbeat(self._sequence))

    @property
    def next_deadline(self) -> float:
        return self._next_heartbeat

    def close(self) -> None:
        # The answers first: the scheduler takes none of a worker that has left.
        self._outgoing = [*self.take_outgoing(), messages.Goodbye("the worker ends")]

    def take_outgoing(self) -> list[messages.Message]:
        """What to send now, in this order."""
        outgoing, self._outgoing = self._outgoing, []
        answers = self.answers
        if answers:
            # One at a time from the left: the running thread may append to the right meanwhile.
            taken = [answers.popleft() for _ in range(len(answers))]
            clients, ids, attempts, outcomes, durations, payloads = map(list, zip(*taken))
            outgoing.append(messages.Results(clients, ids, attempts, outcomes, durations, payloads))
        return outgoing

    def _join(self) -> None:
        # The scheduler counts on nothing that was sent to this worker before: it gives out those tasks again, and may
        # use their names for others. The running thread still holds the old deques: it finds nothing more in the one,
        # and what it puts into the other is never sent. It looks at `queue` first, so that one is replaced last.
        self._is_joined = True
        self.forgotten.extend(self.functions)
        self.functions.clear()
        self.queue.clear()
        self.answers = deque()
        self.queue = deque()
