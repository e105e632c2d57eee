"""The core between its events and its effects. Runs under PyPy and CPython.

Every event is followed by a recount of all tables. What comes out is compared as plain tuples, and whatever a test has
not asked for fails it at its end.
"""

from __future__ import annotations

from array import array
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from scaler_scheduler.core import effects, events, invariants
from scaler_scheduler.core.scheduler import Limits, Scheduler

VERSION = 1
MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND

Sent = Tuple[Any, ...]
"""The effect's name, its route, its fields; of batches the rows."""

Row = Tuple[int, int, int]
"""Of a dispatched task: client's number, id, attempt."""


def payloads(rows: effects.Rows) -> List[bytes]:
    """Each row's payload, as the wire would have it."""
    large = dict(zip(rows.large_rows, rows.large_frames))
    joined = b"".join(rows.parts)
    taken = []
    position = 0
    for row, size in enumerate(rows.sizes):
        assert not (row in large and size)
        taken.append(large.get(row, joined[position : position + size]))
        position += size
    assert position == len(joined)
    assert rows.large_rows == sorted(set(rows.large_rows))
    return taken


def plain(effect: Any) -> Sent:
    route = effect.route
    if effect.kind == effects.WELCOME:
        return ("welcome", route, effect.peer)
    if effect.kind == effects.REFUSED:
        return ("refused", route, effect.reason, effect.text)
    if effect.kind == effects.HELLO_WANTED:
        return ("hello wanted", route)
    if effect.kind == effects.HEARTBEAT_ECHO:
        return ("echo", route, effect.sequence)
    if effect.kind == effects.FUNCTION:
        return ("function", route, effect.number, effect.payload)
    if effect.kind == effects.FORGET_FUNCTIONS:
        return ("forget", route, list(effect.numbers))
    if effect.kind == effects.DISPATCH:
        assert len(effect.ids) == len(effect.clients) == len(effect.attempts) == len(effect.functions)
        rows = zip(effect.clients, effect.ids, effect.attempts, effect.functions, payloads(effect.rows))
        return ("dispatch", route, list(rows))
    if effect.kind == effects.RESOLVED:
        assert len(effect.ids) == len(effect.outcomes) == len(effect.rows.sizes)
        return ("resolved", route, list(zip(effect.ids, effect.outcomes, payloads(effect.rows))))
    if effect.kind == effects.STARTED:
        return ("started", route, list(effect.ids))
    if effect.kind == effects.CANCEL_REFUSED:
        return ("cancel refused", route, list(effect.ids))
    if effect.kind == effects.GOODBYE:
        return ("goodbye", route, effect.reason)
    assert effect.kind == effects.ERROR
    return ("error", route, effect.text)


def submit_event(
    route: bytes, ids: Sequence[int], functions: Sequence[int], bodies: Sequence[bytes], large: Iterable[int]
) -> events.Submit:
    """`large` are the rows whose payloads travel alone."""
    alone = {row: bodies[row] for row in large}
    small = [b"" if row in alone else body for row, body in enumerate(bodies)]
    sizes = array("I", [len(body) for body in small])
    return events.Submit(route, array("Q", ids), array("I", functions), sizes, b"".join(small), alone)


class Core:
    """A scheduler, its clock, and what it has sent."""

    def __init__(self, limits: Optional[Limits] = None) -> None:
        self.now = 100.0
        self.scheduler = Scheduler(limits or Limits(), VERSION, self.now)
        self._sent: List[Sent] = []

    def feed(self, *fed: events.Event) -> None:
        """Events of one turn of the daemon's loop."""
        for event in fed:
            self.scheduler.handle(event, self.now)
            invariants.check(self.scheduler)
        self._collect()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        # Second by second: a check that comes much too late is taken for a stall of the scheduler itself.
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 1)
            self.scheduler.tick(self.now)
        invariants.check(self.scheduler)
        self._collect()

    def _collect(self) -> None:
        self._sent.extend(plain(effect) for effect in self.scheduler.collect())
        invariants.check(self.scheduler)

    def take(self) -> List[Sent]:
        """What was sent since the last call."""
        sent, self._sent = self._sent, []
        return sent

    def take_one(self, *expected: Any) -> None:
        """Take this, which must have been sent, and leave the rest."""
        assert expected in self._sent
        self._sent.remove(expected)

    def take_dispatched(self, route: bytes) -> List[Row]:
        """The rows that went to this worker; there must be nothing else but functions."""
        rows: List[Row] = []
        for sent in self.take():
            assert sent[0] in ("dispatch", "function"), sent
            assert sent[1] == route, sent
            if sent[0] == "dispatch":
                rows.extend(row[:3] for row in sent[2])
        return rows

    # ------------------------------------------------------------------------------------------------------- messages

    def hello(self, route: bytes, role: int, incarnation: int, agent: int = 0, version: int = VERSION) -> None:
        self.feed(events.Hello(route, version, role, incarnation, agent, "python 3", "1", "host", 4711, "name"))

    def client(self, route: bytes, incarnation: int) -> int:
        """A client joins; its number."""
        self.hello(route, events.CLIENT, incarnation)
        return self._welcomed(route)

    def worker(self, route: bytes, incarnation: int, agent: int = 0) -> int:
        """A worker joins; its number. Whatever it is sent at once stays to be taken."""
        self.hello(route, events.WORKER, incarnation, agent)
        return self._welcomed(route)

    def agent(self, route: bytes, incarnation: int) -> int:
        self.hello(route, events.AGENT, incarnation)
        return self._welcomed(route)

    def _welcomed(self, route: bytes) -> int:
        position = next(at for at, sent in enumerate(self._sent) if sent[0] == "welcome")
        kind, to, number = self._sent.pop(position)
        assert (kind, to) == ("welcome", route)
        return int(number)

    def function(self, route: bytes, number: int, payload: bytes) -> None:
        self.feed(events.Function(route, number, f"function {number}", "cloudpickle", b"digest of " + payload, payload))

    def forget(self, route: bytes, *numbers: int) -> None:
        self.feed(events.ForgetFunctions(route, array("I", numbers)))

    def submit(
        self, route: bytes, ids: Sequence[int], function: int = 1, body: bytes = b"", large: Iterable[int] = ()
    ) -> None:
        self.feed(submit_event(route, ids, [function], [body] * len(ids), large))

    def results(
        self, route: bytes, rows: Sequence[Row], nanoseconds: int = 1000, outcome: int = 0, body: bytes = b""
    ) -> None:
        self.feed(results_event(route, rows, nanoseconds, outcome, body))

    def started(self, route: bytes, *rows: Row) -> None:
        clients, ids, attempts = zip(*rows)
        self.feed(events.Started(route, array("I", clients), array("Q", ids), array("I", attempts)))

    def cancel(self, route: bytes, *ids: int) -> None:
        self.feed(events.Cancel(route, array("Q", ids)))

    def died(self, route: bytes, incarnation: int, running: Optional[Row] = None, peak_bytes: int = 0) -> None:
        client, task_id, attempt = running or (0, 0, 0)
        cause = "signal 9 (SIGKILL)"
        self.feed(events.WorkerDied(route, incarnation, 4711, cause, peak_bytes, client, task_id, attempt))

    def goodbye(self, route: bytes) -> None:
        self.feed(events.Goodbye(route, "done"))

    def heartbeat(self, route: bytes, *workers: int) -> None:
        """A heartbeat whose echo is taken."""
        self.feed(events.Heartbeat(route, 77, list(workers)))
        echo = ("echo", route, 77)
        assert echo in self._sent
        self._sent.remove(echo)

    # ---------------------------------------------------------------------------------------------------------- states

    def tables(self) -> Dict[str, int]:
        """How full everything is that must be empty when everybody has left."""
        scheduler = self.scheduler
        return {
            "clients": len(scheduler.clients),
            "clients by number": len(scheduler.clients.by_number),
            "workers": len(scheduler.workers),
            "agents": len(scheduler.agents),
            "functions": len(scheduler.functions),
            "waiting": scheduler.counts.waiting,
            "dispatched": scheduler.counts.dispatched,
            "queue": len(scheduler.dispatcher.queue),
            "ready": len(scheduler.dispatcher.idle) + len(scheduler.dispatcher.partial),
        }

    def teach(self, client: bytes, worker: bytes, number: int, payload: bytes, nanoseconds: int, task_id: int) -> None:
        """Send a function and let one task of it run on the worker, so that its run time is known."""
        self.function(client, number, payload)
        self.submit(client, [task_id], number)
        self.results(worker, self.take_dispatched(worker), nanoseconds)
        assert [sent[0] for sent in self.take()] == ["resolved"]


def results_event(route: bytes, rows: Sequence[Row], nanoseconds: int, outcome: int, body: bytes) -> events.Results:
    clients, ids, attempts = zip(*rows)
    count = len(rows)
    return events.Results(
        route, array("I", clients), array("Q", ids), array("I", attempts), array("B", [outcome] * count),
        array("Q", [nanoseconds] * count), array("I", [len(body)] * count), body * count, {},
    )  # fmt: skip
