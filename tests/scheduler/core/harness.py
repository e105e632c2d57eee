"""A test harness for the core: events in, effects out. Runs under PyPy and CPython.

All tables are recounted after every event. Effects are compared as plain tuples. A test fails at its end if it has not
taken all effects.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from scaler_scheduler.core import effects, events, invariants
from scaler_scheduler.core.ids import file_id, value_id
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.report.unschedulable import JOINING_SECONDS
from scaler_scheduler.core.scheduler import Scheduler

VERSION = 1
EPOCH = 1 << 40
"""The scheduler's incarnation."""

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND

Sent = tuple[Any, ...]
"""The effect's name, its route, its fields; of batches the rows."""

Row = tuple[int, int, int]
"""Of a dispatched task: client's incarnation, id, attempt."""

C, C2, W, W2, A = b"client", b"client 2", b"worker", b"worker 2", b"agent"
"""Connections that most tests have."""

VALUE, EXCEPTION, RETRYABLE = effects.OUTCOME_VALUE, effects.OUTCOME_EXCEPTION, effects.OUTCOME_RETRYABLE
WORKER_DIED, CANCELLED, TIMED_OUT = effects.OUTCOME_WORKER_DIED, effects.OUTCOME_CANCELLED, effects.OUTCOME_TIMED_OUT


def payloads(rows: effects.Rows) -> list[bytes]:
    """Each row's payload, as on the wire."""
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
        return ("welcome", route)
    if effect.kind == effects.REFUSED:
        return ("refused", route, effect.reason, effect.text)
    if effect.kind == effects.HELLO_WANTED:
        return ("hello wanted", route)
    if effect.kind == effects.HEARTBEAT_ECHO:
        return ("echo", route, effect.sequence, *(["drained"] if effect.is_drained else []))
    if effect.kind == effects.FUNCTION:
        return ("function", route, effect.number, effect.payload)
    if effect.kind == effects.FORGET_FUNCTIONS:
        return ("forget", route, list(effect.numbers))
    if effect.kind == effects.DISPATCH:
        assert len(effect.ids) == len(effect.clients) == len(effect.attempts) == len(effect.functions)
        rows = zip(effect.clients, effect.ids, effect.attempts, effect.functions, payloads(effect.rows))
        more = [each for each in (effect.row_options, effect.names) if each]
        return ("dispatch", route, list(rows), *more)
    if effect.kind == effects.RESOLVED:
        assert len(effect.ids) == len(effect.outcomes) == len(effect.rows.sizes)
        bodies = [
            body[:8] + body[16:] if outcome == effects.OUTCOME_KEPT else body  # without the id of the file
            for outcome, body in zip(effect.outcomes, payloads(effect.rows))
        ]
        rows = zip(effect.ids, effect.outcomes, bodies)
        return ("resolved", route, list(rows), *([effect.profiles] if effect.profiles else []))
    if effect.kind == effects.STARTED:
        return ("started", route, list(effect.ids))
    if effect.kind == effects.CANCEL_REFUSED:
        return ("cancel refused", route, list(effect.ids))
    if effect.kind == effects.GOODBYE:
        return ("goodbye", route, effect.reason)
    if effect.kind in (effects.RETRACT, effects.STOP):
        name = "retract" if effect.kind == effects.RETRACT else "stop"
        return (name, route, list(zip(effect.clients, effect.ids, effect.attempts)))
    if effect.kind == effects.END_WORKER:
        return ("end worker", route, effect.incarnation, (effect.client, effect.id, effect.attempt), effect.reason)
    if effect.kind == effects.OBJECT:
        return ("object", route, effect.client, value_id(effect.id), list(effect.frames))
    if effect.kind == effects.FORGET_OBJECTS:
        return ("forget objects", route, list(zip(effect.clients, map(value_id, effect.ids))))
    if effect.kind == effects.OUTPUT:
        texts = zip(effect.labels, effect.sizes, effect.texts)
        assert all(len(text) == size for _, size, text in texts)
        cut = [(text[:label], text[label:]) for label, text in zip(effect.labels, effect.texts)]
        return (
            "output",
            route,
            [(*row, *text) for row, text in zip(zip(effect.ids, effect.streams), cut)],
            effect.dropped,
        )
    if effect.kind == effects.FETCH_OBJECTS:
        return ("fetch objects", route, list(zip(effect.clients, map(value_id, effect.ids))))
    if effect.kind == effects.ENVIRONMENT:
        return ("environment", route, effect.name, list(effect.contents), effect.manifest)
    if effect.kind == effects.CONTENTS_WANTED:
        return ("contents wanted", route, list(effect.names))
    if effect.kind == effects.CONTENTS:
        return ("contents", route, list(effect.frames))
    if effect.kind == effects.CHANGE_WORKER:
        mode = [{effects.CHANGE_BESIDE: "beside", effects.CHANGE_END: "end"}[effect.mode]] if effect.mode else []
        return ("change worker", route, effect.worker, effect.environment, *mode)
    if effect.kind == effects.GANG_MEMBER:
        return ("gang member", route, (effect.client, effect.id, effect.attempt), effect.rank, list(effect.hosts))
    if effect.kind == effects.EXCHANGE and effect.ended:
        name = effect.client, effect.id, effect.attempt
        return ("ended member", route, name, effect.round, effect.ended - 1, list(effect.values))
    if effect.kind == effects.EXCHANGE:
        return ("exchange", route, (effect.client, effect.id, effect.attempt), effect.round, list(effect.values))
    if effect.kind == effects.SHUTDOWN:
        return ("shutdown", route)
    if effect.kind == effects.CREDIT:
        return ("credit", route, effect.bytes)
    assert effect.kind == effects.ERROR
    return ("error", route, effect.text)


def warnings_of(core: Core) -> list[str]:
    """The operator log's warnings since the last call."""
    return [text for is_warning, text in core.scheduler.operator_log.drain() if is_warning]


def submit_event(
    route: bytes, ids: Sequence[int], functions: Sequence[int], bodies: Sequence[bytes], large: Iterable[int]
) -> events.Submit:
    """`large` are the rows whose payloads have a frame of their own."""
    alone = {row: bodies[row] for row in large}
    small = [b"" if row in alone else body for row, body in enumerate(bodies)]
    sizes = array("I", [len(body) for body in small])
    return events.Submit(route, array("q", ids), array("I", functions), sizes, b"".join(small), alone)


class Core:
    """A scheduler, its clock, and the effects that it has sent."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.now = 100.0
        self.scheduler = Scheduler(limits or Limits(), VERSION, self.now, incarnation=EPOCH)
        self.scheduler.outbox.kept_seconds = 0.0  # so that tests see each answer at once
        self.welcomes: dict[bytes, effects.Welcome] = {}
        """The last one to each connection."""
        self.echoes: dict[bytes, effects.HeartbeatEcho] = {}
        """The last one to each connection."""
        self.errors: list[effects.Error] = []
        """All that were sent."""
        self.notices: list[tuple[bytes, str]] = []
        """The answers that clients got for their tasks, each on its connection."""
        self._sent: list[Sent] = []
        self.probes: list[bytes] = []
        """Connections of workers that were quiet, as all are in tests, and had to show that they are there."""
        self.gone: set[bytes] = set()
        """Connections that are lost, which the core learns when it sends something there."""

    def feed(self, *fed: events.Event) -> None:
        """Handle the events of one turn of the daemon's loop."""
        for event in fed:
            self._name_files(event)
            self.scheduler.handle(event, self.now)
            invariants.check(self.scheduler)
        self._collect()

    def _name_files(self, event: Any) -> None:
        """Put the ids of files into what a host says, in the place of the ids of their values. A test that gives the
        id of a file itself keeps it. In `take`, files have the ids of their values."""
        if isinstance(event, events.Hello) and event.role == events.AGENT:
            event.running = [(client, self._file_id(client, each), 0) for client, each, _ in event.running]
        elif isinstance(event, events.Transferred) or (
            isinstance(event, events.ForgetObjects) and event.clients and event.route not in self._client_routes()
        ):
            event.ids = array("q", map(self._file_id, event.clients, event.ids))
        elif isinstance(event, events.Object) and event.route not in self._client_routes():
            event.id = self._file_id(event.client, event.id)

    def _client_routes(self) -> set[bytes]:
        return {client.route for client in self.scheduler.tables.clients.by_incarnation.values()}

    def _file_id(self, client: int, value: int) -> int:
        tables = self.scheduler.tables
        known = tables.clients.by_incarnation.get(client)
        stored = None if known is None else known.objects.get(value)
        if value != value_id(value):
            return value
        if stored is not None and stored.file_id != value:
            return stored.file_id
        if stored is not None and stored.is_from_client:
            return value
        name = client, value
        made = tables.unclaimed.get(name) or tables.early.get(name) or tables.find_open(*name)
        return file_id(value, 1 if made is None else made.attempt)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        # Second by second: a very late check looks like a stall of the scheduler itself.
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 1)
            self.scheduler.tick(self.now)
            invariants.check(self.scheduler)
            self._collect()

    def wait_for_hosts(self) -> None:
        """Let so much time pass that no further hosts are expected: what tasks lack is reported."""
        self.wait(JOINING_SECONDS + 2)

    def _collect(self) -> None:
        is_any_lost = False
        for effect in self.scheduler.collect():
            if effect.route in self.gone:
                self.scheduler.undelivered(effect)
                is_any_lost = True
                continue
            if effect.kind == effects.WELCOME:
                self.welcomes[effect.route] = effect
            if isinstance(effect, effects.HeartbeatEcho):
                self.echoes[effect.route] = effect
            if effect.kind == effects.NOTICE:
                self.notices.append((effect.route, effect.text))
            elif isinstance(effect, effects.HeartbeatEcho) and not effect.sequence:
                self.probes.append(effect.route)
            elif isinstance(effect, effects.TransferObjects):
                data = effect.data.address, effect.data.key, effect.data.ticket
                for client, each, size in zip(effect.clients, effect.ids, effect.bytes):
                    order = "transfer object", effect.route, (client, value_id(each)), size, effect.source, data
                    self._sent.append(order)
            else:
                self._sent.append(plain(effect))
                if effect.kind == effects.ERROR:
                    assert isinstance(effect, effects.Error)
                    self.errors.append(effect)
        invariants.check(self.scheduler)
        if is_any_lost:
            self._collect()
        invariants.check_collected(self.scheduler)

    def take(self) -> list[Sent]:
        """The effects since the last call."""
        sent, self._sent = self._sent, []
        return sent

    def take_one(self, *expected: Any) -> None:
        """Take this effect, which must have been sent, and leave the others."""
        assert expected in self._sent
        self._sent.remove(expected)

    def take_dispatched(self, route: bytes) -> list[Row]:
        """The rows that went to this worker. There must be no other effects except functions."""
        rows: list[Row] = []
        for sent in self.take():
            assert sent[0] in ("dispatch", "function"), sent
            assert sent[1] == route, sent
            if sent[0] == "dispatch":
                rows.extend(row[:3] for row in sent[2])
        return rows

    # ------------------------------------------------------------------------------------------------------- messages

    def hello(
        self,
        route: bytes,
        role: int,
        incarnation: int,
        agent: int = 0,
        version: int = VERSION,
        worker: int = 0,
        capabilities: Iterable[tuple[str, int]] = (),
        running: Sequence[Row] = (),
        user: str = "",
        kinds: Iterable[str] = (),
        scheduler: int = 0,
        name: str = "name",
        host: str = "host",
        **more: Any,
    ) -> None:
        """`more` are further arguments of `events.Hello`."""
        who = (incarnation, agent, "python 3", "1", host, 4711, name, worker, frozenset(capabilities), running)
        event = events.Hello(route, version, role, *who, frozenset(kinds), scheduler, **more)
        event.user = user
        self.feed(event)

    def client(self, route: bytes, incarnation: int, worker: int = 0, scheduler: int = 0) -> int:
        """Let a client join whose last welcome came from this scheduler. Returns its incarnation."""
        self.hello(route, events.CLIENT, incarnation, worker=worker, scheduler=scheduler)
        return self._welcomed(route, incarnation)

    def worker(
        self,
        route: bytes,
        incarnation: int,
        agent: int = 0,
        capabilities: Iterable[tuple[str, int]] = (),
        running: Sequence[Row] = (),
        kinds: Iterable[str] = (),
        **more: Any,
    ) -> int:
        """A worker joins. Returns its incarnation. The effects that follow are left to be taken."""
        who = {"capabilities": capabilities, "running": running, "kinds": kinds}
        self.hello(route, events.WORKER, incarnation, agent, **who, **more)
        return self._welcomed(route, incarnation)

    def agent(self, route: bytes, incarnation: int, **more: Any) -> int:
        self.hello(route, events.AGENT, incarnation, **more)
        return self._welcomed(route, incarnation)

    def _welcomed(self, route: bytes, incarnation: int) -> int:
        self.take_one("welcome", route)
        return incarnation

    def function(
        self, route: bytes, number: int, payload: bytes, kind: str = "cloudpickle", environment: str = ""
    ) -> None:
        digest = b"digest of " + payload + environment.encode()
        self.feed(events.Function(route, number, f"function {number}", kind, digest, payload, environment))

    def forget(self, route: bytes, *numbers: int) -> None:
        self.feed(events.ForgetFunctions(route, array("I", numbers)))

    def submit(
        self,
        route: bytes,
        ids: Sequence[int],
        function: int = 1,
        body: bytes = b"",
        large: Iterable[int] = (),
        **options: Any,
    ) -> None:
        """`options` are those of `events.Options`."""
        event = submit_event(route, ids, [function], [body] * len(ids), large)
        if options:
            event.options = events.Options(**options)
        self.feed(event)

    def results(
        self, route: bytes, rows: Sequence[Row], nanoseconds: int = 1000, outcome: int = 0, body: bytes = b""
    ) -> None:
        self.feed(results_event(route, rows, nanoseconds, outcome, body))

    def started(self, route: bytes, *rows: Row) -> None:
        clients, ids, attempts = zip(*rows)
        self.feed(events.Started(route, array("q", clients), array("q", ids), array("I", attempts)))

    def suspended(self, route: bytes, *rows: Row) -> None:
        clients, ids, attempts = zip(*rows)
        self.feed(events.Suspended(route, array("q", clients), array("q", ids), array("I", attempts)))

    def resumed(self, route: bytes, *rows: Row) -> None:
        clients, ids, attempts = zip(*rows)
        self.feed(events.Resumed(route, array("q", clients), array("q", ids), array("I", attempts)))

    def retracted(self, route: bytes, rows: Sequence[Row], given: int) -> None:
        clients, ids, attempts = zip(*rows)
        answer = array("B", [given] * len(rows))
        self.feed(events.Retracted(route, array("q", clients), array("q", ids), array("I", attempts), answer))

    def received(self, route: bytes, count: int) -> None:
        self.feed(events.Received(route, count))

    def cancel(self, route: bytes, *ids: int, force: bool = False) -> None:
        self.feed(events.Cancel(route, array("q", ids), force))

    def exchange(self, route: bytes, row: Row, number: int, value: bytes) -> None:
        """A member of a gang gives a value to the others."""
        self.feed(events.Exchange(route, *row, number, value))

    def died(self, route: bytes, incarnation: int, running: Row | None = None, peak_bytes: int = 0) -> None:
        client, task_id, attempt = running or (0, 0, 0)
        cause = "signal 9 (SIGKILL)"
        self.feed(events.WorkerDied(route, incarnation, 4711, cause, peak_bytes, client, task_id, attempt))

    def goodbye(self, route: bytes) -> None:
        self.feed(events.Goodbye(route, "done"))

    def heartbeat(self, route: bytes, *workers: int) -> None:
        """Send a heartbeat and remove its echo from the sent effects."""
        self.feed(events.Heartbeat(route, 77, list(workers)))
        self.take_one("echo", route, 77)

    # ---------------------------------------------------------------------------------------------------------- states

    def tables(self) -> dict[str, int]:
        """The sizes of all containers that must be empty when all peers have left."""
        scheduler = self.scheduler
        return {
            "clients": len(scheduler.tables.clients),
            "clients by incarnation": len(scheduler.tables.clients.by_incarnation),
            "nested clients": len(scheduler.tables.clients._nested),
            "workers": len(scheduler.tables.workers),
            "agents": len(scheduler.tables.agents),
            "functions": len(scheduler.tables.functions),
            "objects": len(scheduler.tables.objects),
            "timers": len(scheduler.tables.timers),
            "unclaimed": len(scheduler.tables.unclaimed),
            "waiting": scheduler.counts.waiting,
            "dispatched": scheduler.counts.dispatched,
            "ranks": sum(len(queue.ranks) for queue in scheduler.core_state.queues.by_share.values()),
            "shares": len(scheduler.tables.clients.shares),
            "ready": len(scheduler.core_state.pool.idle) + len(scheduler.core_state.pool.partial),
        }

    def teach(self, client: bytes, worker: bytes, number: int, payload: bytes, nanoseconds: int, task_id: int) -> None:
        """Send a function and run one task of it on the worker, so that its run time is known."""
        self.function(client, number, payload)
        self.submit(client, [task_id], number)
        self.results(worker, self.take_dispatched(worker), nanoseconds)
        assert [sent[0] for sent in self.take()] == ["resolved"]


def joined(core: Core) -> int:
    """A client with function 1, and an agent with one worker. Returns the client's incarnation."""
    client = core.client(C, 11)
    core.agent(A, 33)
    core.worker(W, 22, agent=33)
    core.function(C, 1, b"f")
    return client


def running(core: Core, task_id: int = 1, **options: Any) -> Row:
    """Of `joined`: a task that the worker has reported as running. Returns its name. Takes all effects."""
    core.submit(C, [task_id], **options)
    (row,) = core.take_dispatched(W)
    core.started(W, row)
    assert core.take() == [("started", C, [task_id])]
    return row


def resolved(*ids: int, outcome: int = VALUE, body: bytes = b"", route: bytes = C) -> Sent:
    """The effects for a client when these tasks end with the same outcome."""
    return ("resolved", route, [(task_id, outcome, body) for task_id in ids])


def dispatched(core: Core) -> dict[bytes, int]:
    """How many tasks went to each worker. Takes all effects."""
    counts: dict[bytes, int] = {}
    for sent in core.take():
        if sent[0] == "dispatch":
            counts[sent[1]] = counts.get(sent[1], 0) + len(sent[2])
    return counts


def rows_of(core: Core) -> list[Row]:
    """The names of all dispatched tasks. Takes all effects."""
    return [row[:3] for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]


def results_event(
    route: bytes, rows: Sequence[Row], nanoseconds: int = 1000, outcome: int = VALUE, body: bytes = b""
) -> events.Results:
    clients, ids, attempts = zip(*rows)
    count = len(rows)
    return events.Results(
        route, array("q", clients), array("q", ids), array("I", attempts), array("B", [outcome] * count),
        array("q", [nanoseconds] * count), array("I", [len(body)] * count), body * count, {},
    )  # fmt: skip
