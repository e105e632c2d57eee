"""The functions that the fuzzer calls with its bytes. They may raise only the exceptions that this module catches."""

from __future__ import annotations

from tests.fuzz.drawing import Drawing, frames_of
from tests.fuzz.events_of_bytes import ROUTES, Maker

from scaler_scheduler.core import effects, events, invariants
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.publish.snapshots import SnapshotWriter
from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.encode import Identity, encode
from scaler_scheduler.wire.errors import WireError

MAX_STEPS = 200
_HISTORY_ROWS = 100
_IDENTITY = Identity(4711, "0")
_MAX_ANSWER_BYTES = 1 << 24
"""The most bytes of an answer. The events hold far less."""


def scheduler_wire(data: bytes) -> None:
    """The bytes are a message for the scheduler."""
    try:
        decode(b"route", frames_of(data))
    except WireError as error:
        _expect_one_line(str(error))


def scheduler_core(data: bytes) -> None:
    """The bytes are events, one after another, and the passing of time."""
    Conversation(Drawing(data)).run()


def peers_wire(data: bytes) -> None:
    """The bytes are a message for a client, a worker, a host agent or a monitor."""
    from scaler_client.protocol import wire  # not under PyPy

    try:
        wire.decode(frames_of(data))
    except wire.WireError as error:
        _expect_one_line(str(error))


def client_api(data: bytes) -> None:
    """The bytes are calls of the client's public API and their arguments."""
    from tests.fuzz.client_api import ClientCalls  # not under PyPy

    ClientCalls(Drawing(data)).run()


def data_address(data: bytes) -> None:
    """The bytes are a message to the data addresses of a client and of a host agent."""
    from tests.fuzz.data_servers import ask  # not under PyPy

    ask(frames_of(data))


TARGETS = {
    "scheduler_wire": scheduler_wire,
    "scheduler_core": scheduler_core,
    "peers_wire": peers_wire,
    "client_api": client_api,
    "data_address": data_address,
}
NOT_UNDER_PYPY = {"peers_wire", "client_api", "data_address"}


def _expect_one_line(text: str) -> None:
    assert text and "\n" not in text and len(text) < 500, text


class Conversation:
    """A scheduler's core, and peers that send what the fuzzer wants."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._maker = Maker(drawing)
        self._now = 100.0
        limits = Limits(
            client_timeout_seconds=30.0,
            worker_timeout_seconds=30.0,
            queue_size=drawing.one_of((1000, 1, 4)),
            task_retries=1,
            memory_limit_bytes=drawing.one_of((1 << 32, 0)),
            is_protected=bool(drawing.below(2)),
        )
        # Half of the routes stay connected, so that a second hello of their peer is contested.
        self._core = Scheduler(limits, 1, self._now, lambda route: route[-1] % 2 == 0)
        self._is_watched = bool(drawing.below(2))
        self._next_row = 0
        self._status = SnapshotWriter(self._core, _IDENTITY, "tcp://127.0.0.1:1", self._now)

    def run(self) -> None:
        for _ in range(MAX_STEPS):
            if self._drawing.is_over:
                break
            kind = self._drawing.below(16)
            if kind < 13:
                self._handle(self._maker.event())
            elif kind == 13:
                self._handle_message(self._drawing.bytes(255))
            elif kind == 14:
                self._wait(self._drawing.one_of((0.1, 1.0, 2.5, 29.0, 31.0)))
            if kind % 2:
                self._collect()
        self._collect()
        self._publish()
        self._core.goodbyes("the end")

    def _handle(self, event: events.Event) -> None:
        self._core.handle(event, self._now)
        invariants.check(self._core)

    def _handle_message(self, frame: bytes) -> None:
        try:
            event = decode(b"%d" % self._drawing.below(ROUTES), [frame])
        except WireError:
            return
        self._handle(event)

    def _wait(self, seconds: float) -> None:
        end = self._now + seconds
        while self._now < end:
            self._now = min(end, self._now + 1)
            self._core.tick(self._now)
            self._collect()

    def _publish(self) -> None:
        self._status.snapshot(self._now, 0.0)
        self._status.graphs()
        self._next_row, _ = self._status.history(self._next_row, _HISTORY_ROWS)
        for client, task_id, _ in self._maker.rows[-1:]:
            self._status.story(client, task_id)

    def _collect(self) -> None:
        for effect in self._core.collect():
            frames = encode(effect, _IDENTITY)
            assert frames and sum(map(len, frames)) < _MAX_ANSWER_BYTES
            if isinstance(effect, effects.Dispatch):
                self._maker.rows.extend(zip(effect.clients, effect.ids, effect.attempts))
        self._core.operator_log.drain()
        if self._is_watched:
            self._publish()
        invariants.check(self._core)
        invariants.check_collected(self._core)
