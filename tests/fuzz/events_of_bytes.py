"""Events for the core, made from a fuzzer's bytes: exactly the events that the decoder can make."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Callable

from tests.fuzz.drawing import Drawing

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.ids import INCARNATION_LIMIT, DataAddress

Row = tuple[int, int, int]
"""Client's incarnation, id, attempt."""

CLIENTS, WORKERS, AGENTS, NESTED = range(3), range(3, 6), range(6, 8), range(8, 10)
"""Connections, as numbers, by the role that mostly uses them."""

ROUTES = 10
_CAPABILITIES = (frozenset(), frozenset(), frozenset([("gpu", 1)]), frozenset([("gpu", 2), ("linux", 1)]))
_MAX_ROWS = 6
_SIGNED = (1 << 63) - 1


def _route(number: int) -> bytes:
    return b"%d" % number


def incarnation_of(route: int) -> int:
    """The incarnation of the peer that mostly uses this connection."""
    return route + 11


def _content_name(number: int) -> str:
    return f"{number:064x}"


class Maker:
    """Draws events. `rows` are names of tasks that workers were given, the newest last."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.rows: list[Row] = []
        self.newest_id = 0
        self._makers: Sequence[Callable[[], events.Event]] = (
            *[self._hello] * 3, self._goodbye, self._heartbeat, *[self._function] * 2, self._forget_functions,
            *[self._submit] * 6, *[self._results] * 5, self._started, self._cancel, self._died, self._retracted,
            self._suspended, self._resumed, self._received, *[self._object] * 2, self._forget_objects, self._shutdown,
            self._held_results,
            self._output, self._transferred, self._fetch_objects, self._objects,
            self._environment, self._contents_wanted, self._contents, self._environment_ready, self._exchange,
        )  # fmt: skip

    def event(self) -> events.Event:
        return self.drawing.one_of(self._makers)()

    # ------------------------------------------------------------------------------------------------------------ parts

    def _from(self, routes: Sequence[int]) -> bytes:
        """Mostly one of these routes."""
        byte = self.drawing.below(64)
        return _route(routes[byte % len(routes)] if byte < 60 else byte % ROUTES)

    def _incarnation(self, routes: Sequence[int]) -> int:
        byte = self.drawing.below(32)
        return incarnation_of(routes[byte % len(routes)]) if byte < 30 else self.drawing.number(64)

    def _id(self) -> int:
        byte = self.drawing.below(8)
        return max(0, self.newest_id - byte) if byte < 7 else self.drawing.number(63)

    def _name(self) -> Row:
        """Mostly the name of a task that a worker was given."""
        byte = self.drawing.below(32)
        if self.rows and byte < 28:
            return self.rows[-1 - byte % len(self.rows)]
        client = min(self._incarnation(CLIENTS), _SIGNED)
        return client, self._id(), self.drawing.number(32)

    def _names(self, least: int = 0) -> tuple[array[int], array[int], array[int]]:
        names = [self._name() for _ in range(max(least, self.drawing.below(_MAX_ROWS)))]
        return (
            array("q", [name[0] for name in names]),
            array("q", [name[1] for name in names]),
            array("I", [name[2] for name in names]),
        )

    def _bodies(self, rows: int) -> tuple[array[int], bytes, dict[int, bytes]]:
        """Sizes, the joined payload, and payloads with a frame of their own."""
        large = {}
        bodies = []
        for row in range(rows):
            kind = self.drawing.below(8)
            if kind == 7:
                large[row] = bytes(300)
            bodies.append(b"" if kind == 7 else bytes(kind) if kind < 6 else bytes(20_000))
        return array("I", [len(body) for body in bodies]), b"".join(bodies), large

    # -------------------------------------------------------------------------------------------------------- anybody's

    def _hello(self) -> events.Event:
        number = self.drawing.below(ROUTES)
        role = next(role for role, routes in enumerate((CLIENTS, WORKERS, AGENTS, NESTED)) if number in routes)
        incarnation = incarnation_of(number)
        odd = self.drawing.below(16)
        if odd == 15:
            role = self.drawing.below(3)
        if odd >= 13:
            incarnation = self._incarnation(range(ROUTES))
        event = events.Hello(
            _route(number), 2 if odd == 12 else 1, 0 if role == 3 else role, incarnation,
            self._incarnation(AGENTS), "python", "1", "host", self.drawing.number(32), "name",
        )  # fmt: skip
        event.scheduler = int(odd == 11)
        if role == events.AGENT and number % 2:
            event.data = DataAddress("tcp://host:1", "", "ticket")
            event.packages = f"numpy {number}\n"
        if role == 3:
            event.worker = self._incarnation(WORKERS)
        elif role == events.WORKER:
            event.capabilities = self.drawing.one_of(_CAPABILITIES)
            event.running = list(zip(*self._names()))
        return event

    def _goodbye(self) -> events.Event:
        return events.Goodbye(self._from(range(ROUTES)), "")

    def _heartbeat(self) -> events.Event:
        workers = [self._incarnation(WORKERS) for _ in range(self.drawing.below(4))]
        number = self.drawing.number(64)
        usages = [(number, number) for _ in workers]
        usage = number, number
        event = events.Heartbeat(self._from(range(ROUTES)), number, workers, usage, number, usages)
        event.clock_ms, event.wants_hosts = number, number % 2 == 1
        return event

    # --------------------------------------------------------------------------------------------------------- clients'

    def _client(self) -> bytes:
        return self._from((*CLIENTS, *CLIENTS, *NESTED))

    def _function(self) -> events.Event:
        number, content = self.drawing.below(4), self.drawing.below(4)
        payload = b"f%d" % content
        environment = self._environment_name() if self.drawing.below(4) == 3 else ""
        digest = b"digest " + payload + environment.encode()
        return events.Function(self._client(), number, "f", "s", digest, payload, environment)

    def _forget_functions(self) -> events.Event:
        numbers = array("I", [self.drawing.number(32) % 5 for _ in range(self.drawing.below(3))])
        return events.ForgetFunctions(self._client(), numbers)

    def _submit(self) -> events.Event:
        drawing = self.drawing
        route = self._client()
        rows = 1 + drawing.below(_MAX_ROWS)
        first = self._id() if drawing.below(4) == 3 else self.newest_id + 1
        first = min(first, _SIGNED - rows)
        ids = array("q", range(first, first + rows))
        if first < 1 << 40:
            self.newest_id = max(self.newest_id, ids[-1])
        functions = array("I", [drawing.below(4) for _ in range(1 if drawing.below(2) else rows)])
        sizes, joined, large = self._bodies(rows)
        kind = drawing.below(4)
        options = events.DEFAULT_OPTIONS if kind < 2 else self._options()
        if not kind % 2:
            return events.Submit(route, ids, functions, sizes, joined, large, options)
        counts = array("I", [drawing.below(4) for _ in range(rows)])
        inputs = array("q", [self._id() for _ in range(sum(counts))])
        keep = array(
            "B", [0 if options.calls or options.gang_size else drawing.below(events.KEEP_BOTH + 1) for _ in range(rows)]
        )
        if not inputs:
            counts = array("I")
        return events.Submit(route, ids, functions, sizes, joined, large, options, inputs, counts, keep)

    def _options(self) -> events.Options:
        drawing = self.drawing
        options = events.Options(
            drawing.one_of((0, 1, -1, (1 << 31) - 1, -(1 << 31))), drawing.one_of((0, 1, (1 << 32) - 1)),
            drawing.one_of((-1, 0, 1, (1 << 31) - 1)), drawing.one_of((0.0, 0.5, ((1 << 32) - 1) / 1000)),
            bool(drawing.below(2)), drawing.one_of(("", "mine")), drawing.one_of(_CAPABILITIES), bool(drawing.below(2)),
            calls=drawing.one_of((0, 0, 1, 2, 9, 65_536)),
        )  # fmt: skip
        if options.calls == 9:  # rows of gangs, of which a batch has some with the same ids of members
            options.calls, options.weight, options.gang_size = 0, 1, 3
        return options

    def _cancel(self) -> events.Event:
        ids = [self._id() for _ in range(self.drawing.below(_MAX_ROWS))]
        return events.Cancel(self._client(), array("q", ids), bool(self.drawing.below(2)))

    def _received(self) -> events.Event:
        return events.Received(self._client(), self.drawing.number(64))

    def _object(self) -> events.Event:
        frames = [self.drawing.one_of((b"", b"abc", bytes(5000), bytes(300_000)))]
        if self.drawing.below(4) == 3:
            return events.Object(self._from(AGENTS), self._id(), "", frames, self._incarnation(CLIENTS))
        self.newest_id += 1
        return events.Object(self._client(), self._id(), "name", frames)

    def _objects(self) -> events.Event:
        ids = array("q", sorted({self._id() for _ in range(1 + self.drawing.below(_MAX_ROWS))}))
        values = [self.drawing.one_of((b"", b"abc", bytes(300))) for _ in ids]
        return events.Objects(self._client(), ids, values)

    def _forget_objects(self) -> events.Event:
        ids = array("q", [self._id() for _ in range(self.drawing.below(_MAX_ROWS))])
        if self.drawing.below(4) < 3:
            return events.ForgetObjects(self._client(), ids)
        clients = array("q", [min(self._incarnation(CLIENTS), _SIGNED) for _ in ids])
        return events.ForgetObjects(self._from(AGENTS), ids, clients)

    def _held_results(self) -> events.Event:
        ids = array("q", [self._id() | self.drawing.below(3) << 48 for _ in range(self.drawing.below(_MAX_ROWS))])
        return events.HeldResults(self._client(), ids, [self.drawing.below(1 << 20) for _ in ids])

    def _transferred(self) -> events.Event:
        drawing = self.drawing
        error = drawing.one_of(("", "", "no such file"))
        ids = array("q", [self._id() for _ in range(drawing.below(_MAX_ROWS))])
        clients = array("q", [min(self._incarnation(CLIENTS), _SIGNED) for _ in ids])
        return events.Transferred(
            self._from(AGENTS), clients, ids, self._incarnation(AGENTS), error, bool(error) and bool(drawing.below(2))
        )

    def _exchange(self) -> events.Event:
        drawing = self.drawing
        client, attempt = self._incarnation(CLIENTS), drawing.below(3)
        return events.Exchange(self._from(WORKERS), client, self._id(), attempt, drawing.below(3), b"value")

    def _fetch_objects(self) -> events.Event:
        ids = array("q", [self._id() for _ in range(self.drawing.below(_MAX_ROWS))])
        return events.FetchObjects(self._client(), ids)

    def _environment(self) -> events.Event:
        drawing = self.drawing
        names = [_content_name(number) for number in range(drawing.below(4))]
        size, level = drawing.below(9), 1 + drawing.below(3)
        return events.Environment(self._client(), self._environment_name(), names, size, level, "", b"manifest")

    def _environment_name(self) -> str:
        return _content_name(100 + self.drawing.below(3))

    def _contents_wanted(self) -> events.Event:
        return events.ContentsWanted(self._from(AGENTS), [_content_name(self.drawing.below(5))])

    def _contents(self) -> events.Event:
        return events.Contents(self._client(), {_content_name(self.drawing.below(5)): b"content"})

    def _environment_ready(self) -> events.Event:
        error = self.drawing.one_of(("", "", "no space"))
        return events.EnvironmentReady(self._from(AGENTS), self._environment_name(), error)

    def _shutdown(self) -> events.Event:
        return events.Shutdown(self._client())

    def _suspended(self) -> events.Event:
        return events.Suspended(self._from(NESTED), *self._names())

    def _resumed(self) -> events.Event:
        return events.Resumed(self._from(NESTED), *self._names())

    # --------------------------------------------------------------------------------------------- workers' and agents'

    def _results(self) -> events.Event:
        drawing = self.drawing
        clients, ids, attempts = self._names(1)
        rows = len(ids)
        sizes, joined, large = self._bodies(rows)
        outcomes = array("B", [drawing.below(effects.WORKER_OUTCOMES + 2) for _ in range(rows)])
        for row, outcome in enumerate(outcomes):
            if outcome == effects.WORKER_OUTCOMES:
                outcomes[row] = effects.OUTCOME_INPUT_LOST
            elif outcome > effects.WORKER_OUTCOMES:
                outcomes[row] = effects.OUTCOME_STORED if sizes[row] == 8 else effects.OUTCOME_VALUE
        if rows == 1 and drawing.below(4) == 3:
            stored = drawing.number(64).to_bytes(8, "little")
            sizes, joined, large, outcomes[0] = array("I", [8]), stored, {}, effects.OUTCOME_STORED
        durations = array("q", [drawing.number(63)] * rows)
        route = self._from(WORKERS)
        event = events.Results(route, clients, ids, attempts, outcomes, durations, sizes, joined, large)
        kind = drawing.below(4)
        if kind == 3:
            event.cpu_times = event.peaks = array("q", [drawing.number(63)] * rows)
        if kind > 1:  # also counts that no row has: of plain rows, of all calls, of too many
            event.calls = array("I", [drawing.one_of((0, 1, 2, 5, 9, 65_536, (1 << 32) - 1)) for _ in range(rows)])
        return event

    def _started(self) -> events.Event:
        return events.Started(self._from((*WORKERS, *AGENTS)), *self._names())

    def _retracted(self) -> events.Event:
        names = self._names()
        given = array("B", [self.drawing.below(2) for _ in names[1]])
        return events.Retracted(self._from(WORKERS), *names, given)

    def _output(self) -> events.Event:
        clients, ids, _ = self._names(1)
        sizes = array("I", [self.drawing.one_of((0, 5, 70_000)) for _ in ids])
        labels = array("I", [min(4, size) for size in sizes])
        streams = array("B", [1] * len(ids))
        return events.Output(self._from(WORKERS), clients, ids, streams, labels, sizes, bytes(sum(sizes)))

    def _died(self) -> events.Event:
        client, task_id, attempt = self._name()
        number = self.drawing.number(64)
        route = self._from(AGENTS)
        return events.WorkerDied(route, self._incarnation(WORKERS), 1, "signal 9", number, client, task_id, attempt)


assert incarnation_of(ROUTES) < INCARNATION_LIMIT
