"""Messages to a session under test, and sinks that record their answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scaler_client.pickling.functions import Function
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_client.session.session import Session

ADDRESS = "tcp://192.0.2.1:2345"
HEARTBEAT_SECONDS = 2.0
TIMEOUT_SECONDS = 60.0
UNLIMITED = 1 << 62
"""Credit that no test uses up."""
HELLO = messages.Hello(messages.Role.CLIENT, 77, "3.11.7", "0.1.0", "host", 1)
AGAIN = replace(HELLO, scheduler=5)
"""The hello to the scheduler that follows the one of `welcome`."""


def new_session() -> Session:
    return Session(HELLO, ADDRESS, HEARTBEAT_SECONDS, TIMEOUT_SECONDS, 0.0)


def welcome(
    incarnation: int = 5, lease_seconds: float = 60.0, credit: int = UNLIMITED, result_window: int = 0
) -> messages.Welcome:
    return messages.Welcome(1, "0.1.0", incarnation, lease_seconds, credit, result_window)


def joined_session(credit: int = UNLIMITED, result_window: int = 0) -> Session:
    """Return a session that has joined."""
    session = new_session()
    session.handle(welcome(credit=credit, result_window=result_window), 0.0)
    assert session.pop_outgoing() == [HELLO]
    return session


def be_silent(session: Session, since: float, until: float) -> None:
    """Let time pass without a message from the scheduler, with ticks in the meantime."""
    now = since
    while now < until:
        now = min(until, now + HEARTBEAT_SECONDS)
        session.tick(now)


class SinkRecorder:
    """Records in `told` every call that the session makes."""

    def __init__(
        self,
        function: Function | None = None,
        payload: bytes = b"payload",
        options: messages.Options | None = None,
    ) -> None:
        self.function = function or Function(1, "f", b"code")
        self.payload = payload
        self.options = options
        self.told: list[Any] = []

    def row(self, task_id: int) -> tuple[Function, bytes]:
        return self.function, self.payload

    def resolve(self, task_id: int, outcome: int, answer: Any) -> None:
        self.told.append((task_id, outcome, answer))

    def fail(self, task_id: int, error: BaseException) -> None:
        self.told.append((task_id, error))

    def start(self) -> None:
        self.told.append("started")

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        self.told.append((duration, cpu_time, peak))


class MapRows(SinkRecorder):
    """Records the answers of several rows of one function."""

    def __init__(self, function: Function, payloads: list[bytes], options: messages.Options | None = None) -> None:
        super().__init__(function, options=options)
        self.payloads: list[Any] = payloads
        self.ids: list[int] = []

    def submit(self, session: Session) -> int:
        self.ids = [session.submit_with_options(self, self.function, payload) for payload in self.payloads]
        return self.ids[0]

    def row(self, task_id: int) -> tuple[Function, bytes]:
        return self.function, self.payloads[self.ids.index(task_id)]


def submit(session: Session, sink: SinkRecorder) -> int:
    if sink.options is None:
        return session.submit(sink, sink.function, sink.payload)
    return session.submit_with_options(sink, sink.function, sink.payload)


def resolved(*ids: int, outcome: int = Outcome.VALUE) -> messages.Resolved:
    return messages.Resolved(list(ids), [outcome] * len(ids), [b"answer"] * len(ids))


def plain(message: Any) -> Any:
    """Return a Submit with its columns as lists. Other messages stay as they are."""
    if isinstance(message, messages.Submit):
        columns = list(message.ids), list(message.functions), list(message.payloads)
        more = [
            list(column) or () for column in (message.inputs, message.input_counts, message.keep, message.keep_earlier)
        ]
        return messages.Submit(*columns, message.options, *more)
    return message


def sent(session: Session) -> list[Any]:
    return [plain(message) for message in session.pop_outgoing()]


def sent_without_functions(session: Session) -> list[Any]:
    """Return the messages to send, without functions."""
    return [message for message in sent(session) if not isinstance(message, messages.Function)]


class Answered:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
