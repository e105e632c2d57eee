"""Peers that mostly follow the protocol, and sometimes violate it. A seed determines everything."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from typing import Any, Callable

from tests.scheduler.core.harness import MILLISECOND, VALUE, Core, Row, Sent, results_event, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.limits import Limits

NESTED = 3
"""A role of its own here: a client that lives in a worker."""

ROUTES = {
    events.CLIENT: [b"client %d" % number for number in range(4)],
    events.WORKER: [b"worker %d" % number for number in range(5)],
    events.AGENT: [b"agent %d" % number for number in range(2)],
    NESTED: [b"nested %d" % number for number in range(2)],
}
INCARNATIONS = {
    events.CLIENT: range(11, 15),
    events.WORKER: range(21, 27),
    events.AGENT: range(31, 34),
    NESTED: range(41, 44),
}
DURATIONS = [*[1000] * 200, *[0, MILLISECOND, 10 * MILLISECOND] * 20, 1000 * MILLISECOND, (1 << 63) - 1]
CAPABILITIES = [frozenset(), frozenset([("gpu", 1)]), frozenset([("gpu", 2), ("linux", 1)])]
KINDS = [frozenset(), frozenset(), frozenset(["plain"]), frozenset(["other"]), frozenset(["plain", "other"])]
OPTIONS: dict[str, Sequence[Any]] = {
    "priority": (0, 0, 1, -1),
    "depth": (0, 0, 1, 2),
    "retries": (-1, 0, 2),
    "timeout_seconds": (0.0, 0.0, 0.5, 3.0),
    "profiling": (False, True),
    "name": ("", "mine"),
    "stream_output": (False, True),
    "capabilities": CAPABILITIES,
    "calls": (0, 1, 7, 1000),
}

Step = Callable[[bytes], events.Event]


def columns(rows: Sequence[Row]) -> tuple[array[int], array[int], array[int]]:
    clients, ids, attempts = zip(*rows)
    return array("q", clients), array("q", ids), array("I", attempts)


class Storm:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        limits = Limits(
            client_timeout_seconds=30, worker_timeout_seconds=30, queue_size=20, task_retries=1, memory_limit_bytes=0
        )
        self.core = Core(limits)
        self.held: dict[bytes, list[Row]] = {}
        """What went to each worker's connection and has not come back."""
        self.asked: dict[bytes, list[Row]] = {}
        """Of that what a retract names and has not been answered."""
        self.endings: list[tuple[int, Row]] = []
        """Workers that agents were asked to end, and the task."""
        self.named: dict[bytes, set[Row]] = {}
        """All that went to each worker's connection, or that it said to run."""
        self.next_id = 0
        self.wanted: list[bytes] = []
        """Connections that were asked for a hello."""
        self.functions: list[events.Function] = []
        """What clients that were just welcomed are about to send."""
        self.known: dict[bytes, set[int]] = {}
        """What each worker's connection was sent of functions."""
        self.workers: dict[bytes, int] = {}
        """Which worker each connection is."""
        self.hellos: dict[bytes, events.Hello] = {}
        """The last one on each connection; at most one a turn."""
        self.transcript: list[Sent] = []
        self.kinds: dict[str, int] = {}
        """How many effects of each kind there were."""
        self.steps: dict[int, Sequence[Step]] = {
            events.CLIENT: (self.function, self.function, *[self.submit] * 3, self.cancel, self.forget, self.received),
            events.WORKER: (*[self.results] * 3, self.started, self.retracted, self.output),
            events.AGENT: (self.died, self.beat),
            NESTED: (self.function, self.submit, *[self.suspended] * 2, *[self.resumed] * 2, self.received),
        }

    # ------------------------------------------------------------------------------------------------------- one step

    def step(self) -> None:
        count = self.chance.choice((1, 1, 2, 5))
        self.feed(*[self.event() for _ in range(count)])
        if self.chance.random() < 0.05:
            self.core.wait(self.chance.choice((0.1, 1.5, 3.0, 8)))
            self.feed(
                *[self.beat(route) for routes in ROUTES.values() for route in routes if self.chance.random() < 0.7]
            )
        self.read()

    def feed(self, *fed: events.Event) -> None:
        """In one turn, except for the first hello of a connection."""
        turn: list[events.Event] = []
        said: set[bytes] = set()
        for event in fed:
            if isinstance(event, events.Hello):
                if event.route in said:
                    continue
                said.add(event.route)
                self.hellos[event.route] = event
            turn.append(event)
        self.core.feed(*turn)

    def event(self) -> events.Event:
        chance = self.chance
        if self.functions:
            return self.functions.pop()
        while self.wanted:
            route = self.wanted.pop()
            if chance.random() < 0.9:
                return self.hello(route, next(role for role in ROUTES if route in ROUTES[role]))
        (role,) = chance.choices((events.CLIENT, events.WORKER, events.AGENT, NESTED), (30, 60, 6, 8))
        route = chance.choice(ROUTES[role])
        if chance.random() < 0.03:
            route = chance.choice(ROUTES[chance.randrange(4)])
        roll = chance.random()
        if roll < 0.006:
            return self.hello(route, role)
        if roll < 0.01:
            return events.Goodbye(route, "")
        if roll < 0.03:
            return self.beat(route)
        return chance.choice(self.steps[role])(route)

    def some(self, rows: list[Row], limit: int = 3) -> list[Row]:
        """A few of these names, and sometimes an invalid name."""
        taken = self.chance.sample(rows, min(len(rows), self.chance.randrange(limit + 1)))
        if not taken or self.chance.random() < 0.05:
            taken.append((self.chance.randrange(10, 45), self.chance.randrange(self.next_id + 1), 1))
        return taken

    # ------------------------------------------------------------------------------------------------------ everybody's

    def hello(self, route: bytes, role: int) -> events.Hello:
        if self.chance.random() < 0.02:
            role = self.chance.randrange(4)
        incarnation = self.chance.choice(INCARNATIONS[role])
        if route in ROUTES[role] and self.chance.random() < 0.7:
            incarnation = INCARNATIONS[role][ROUTES[role].index(route)]  # its own task, which no other worker got
        version = 2 if self.chance.random() < 0.02 else 1
        agent = self.chance.choice(INCARNATIONS[events.AGENT])
        event = events.Hello(
            route, version, events.CLIENT if role == NESTED else role, incarnation, agent, "", "", "host", 1, ""
        )
        event.scheduler = self.chance.choice((0, 0, 7))
        if role == NESTED:
            event.worker = self.chance.choice(INCARNATIONS[events.WORKER])
        elif role == events.WORKER:
            event.capabilities = self.chance.choice(CAPABILITIES)
            event.kinds = self.chance.choice(KINDS)
            # Tasks that it ran on its earlier connections.
            before = [row for other in self.routes_of(incarnation) for row in self.held[other]]
            event.running = self.some(before) if self.chance.random() < 0.7 else []
            if self.chance.random() < 0.1:
                event.running = [*event.running, *event.running]
        return event

    def routes_of(self, worker: int) -> list[bytes]:
        """The connections by which this worker has joined."""
        return [route for route, incarnation in self.workers.items() if incarnation == worker]

    def beat(self, route: bytes) -> events.Event:
        workers = [self.chance.choice(INCARNATIONS[events.WORKER]) for _ in range(3)]
        event = events.Heartbeat(route, self.chance.randrange(1 << 64), workers)
        event.wants_hosts = event.sequence % 4 == 0
        return event

    # -------------------------------------------------------------------------------------------------------- clients'

    def function(self, route: bytes) -> events.Function:
        number = self.chance.randrange(5)
        payload = b"%d" % (number if self.chance.random() < 0.9 else self.chance.randrange(5))
        kind = "plain" if payload < b"3" else "other"
        return events.Function(route, number, "f", kind, b"digest " + payload, payload)

    def forget(self, route: bytes) -> events.Event:
        return events.ForgetFunctions(route, array("I", [self.chance.randrange(6) for _ in range(2)]))

    def submit(self, route: bytes) -> events.Event:
        chance = self.chance
        count = chance.choice((1, 2, 5, 12))
        if chance.random() < 0.1:
            ids = sorted(chance.sample(range(self.next_id + count), count))
        else:
            ids = list(range(self.next_id, self.next_id + count))
        self.next_id = max(self.next_id, ids[-1] + 1)
        functions = [chance.randrange(5)] if chance.random() < 0.7 else [chance.randrange(5) for _ in ids]
        bodies = [self.body(task_id) for task_id in ids]
        large = [row for row in range(count) if chance.random() < 0.1]
        event = submit_event(route, ids, functions, bodies, large)
        if chance.random() < 0.5:
            names = chance.sample(sorted(OPTIONS), 2)
            event.options = events.Options(**{name: chance.choice(OPTIONS[name]) for name in names})
        return event

    @staticmethod
    def body(task_id: int) -> bytes:
        """A payload that is different for each task, so that a swapped payload is detected."""
        return b"%d" % task_id * (task_id % 3)

    def cancel(self, route: bytes) -> events.Event:
        newest = self.next_id + 2
        ids = [self.chance.randrange(max(0, newest - 300), newest) for _ in range(6)]
        if self.chance.random() < 0.5:  # tasks that workers hold
            ids += [row[1] for rows in self.held.values() for row in rows[:2]]
        return events.Cancel(route, array("q", ids), self.chance.random() < 0.4)

    def received(self, route: bytes) -> events.Event:
        return events.Received(route, self.chance.randrange(1 << self.chance.randrange(10, 22)))

    def of_worker(self, route: bytes) -> list[Row]:
        """The tasks that the worker of the nested client on this connection holds."""
        client = self.core.scheduler.tables.clients.by_route.get(route)
        return [] if client is None else [row for other in self.routes_of(client.worker) for row in self.held[other]]

    def suspended(self, route: bytes) -> events.Event:
        return events.Suspended(route, *columns(self.some(self.of_worker(route)[:4])))

    def resumed(self, route: bytes) -> events.Event:
        return events.Resumed(route, *columns(self.some(self.of_worker(route)[:4])))

    # ------------------------------------------------------------------------------------------ workers' and agents'

    def results(self, route: bytes) -> events.Event:
        rows = self.held.get(route, [])
        taken = rows[: self.chance.randrange(len(rows) + 1)] if rows else []
        self.held[route] = rows[len(taken) :]
        if not taken or self.chance.random() < 0.05:
            taken = [*taken, *self.some([])]
        if self.chance.random() < 0.05:
            taken = taken * 2
        outcome = self.chance.randrange(effects.WORKER_OUTCOMES)
        body = b"r" * self.chance.choice((0, 1, 2, 2, 3, 20_000))
        event = results_event(route, taken, self.chance.choice(DURATIONS), outcome, body)
        if self.chance.random() < 0.3:
            event.cpu_times = event.peaks = array("q", range(len(taken)))
        if self.chance.random() < 0.5:
            event.calls = array("I", [self.chance.choice((0, 1, 5, 7, 1 << 20)) for _ in taken])
        return event

    def started(self, route: bytes) -> events.Event:
        rows = self.held.get(route, [])[:1] or self.some([])
        return events.Started(route, *columns(rows))

    def retracted(self, route: bytes) -> events.Event:
        asked = self.asked.get(route, [])
        rows = asked[: self.chance.randrange(1, 4)]
        self.asked[route] = asked[len(rows) :]
        given = [self.chance.randrange(2) for _ in rows]
        for row, answer in zip(rows, given):
            if answer and row in self.held[route]:
                self.held[route].remove(row)
        if not rows or self.chance.random() < 0.05:
            other = self.some(self.held.get(route, []))
            rows, given = [*rows, *other], [*given, *[0] * len(other)]
        return events.Retracted(route, *columns(rows), array("B", given))

    def output(self, route: bytes) -> events.Event:
        clients, ids, _ = columns(self.some(self.held.get(route, [])))
        sizes = array("I", [self.chance.randrange(4, 1 << 16) for _ in ids])
        streams, labels = array("B", [1] * len(ids)), array("I", [4] * len(ids))
        return events.Output(route, clients, ids, streams, labels, sizes, bytes(sum(sizes)))

    def died(self, route: bytes) -> events.Event:
        if self.endings and self.chance.random() < 0.6:
            incarnation, running = self.endings.pop()
        else:
            incarnation = self.chance.choice(INCARNATIONS[events.WORKER])
            running = (0, 0, 0)
            rows = [row for other in self.routes_of(incarnation) for row in self.held[other]]
            if rows and self.chance.random() < 0.8:
                running = rows[0]
        return events.WorkerDied(route, incarnation, 1, "signal 9", self.chance.randrange(2), *running)

    # ---------------------------------------------------------------------------------------------- what comes of it

    def read(self) -> None:
        taken = self.core.take()
        self.transcript += taken
        for sent in taken:
            kind, route = sent[:2]
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            if kind == "hello wanted":
                self.wanted.append(route)
            elif kind == "welcome":
                # It may be a new worker on this connection, or the same one again. It forgets all tasks but the running
                # ones.
                hello = self.hellos[route]
                self.workers[route] = hello.incarnation if hello.role == events.WORKER else 0
                self.held[route] = list(dict.fromkeys(hello.running))
                self.named[route] = set(hello.running)
                self.asked[route] = []
                self.known[route] = set()
                if hello.role == events.CLIENT:
                    self.functions += [self.function(route) for _ in range(self.chance.choice((2, 8)))]
            elif kind == "function":
                self.known[route].add(sent[2])
            elif kind == "forget":
                assert len(set(sent[2])) == len(sent[2])
                assert set(sent[2]) <= self.known[route]
                self.known[route] -= set(sent[2])
            elif kind == "dispatch":
                self.dispatched(route, sent)
            elif kind in ("retract", "stop"):
                assert set(sent[2]) <= self.named[route], sent
                if kind == "retract":
                    self.asked[route] += sent[2]
            elif kind == "end worker":
                self.endings.append((sent[2], sent[3]))

    def dispatched(self, route: bytes, sent: Sent) -> None:
        rows: list[tuple[Any, ...]] = sent[2]
        for client, task_id, attempt, function, payload in rows:
            assert payload == self.body(task_id)
            assert function in self.known[route]
            assert (client, task_id, attempt) not in self.held[route]
            self.held[route].append((client, task_id, attempt))
            self.named.setdefault(route, set()).add((client, task_id, attempt))
        assert len(rows) <= 20

    # ---------------------------------------------------------------------------------------------------------- the end

    def join_able_workers(self) -> None:
        """Join a worker that can serve everything on every worker's connection."""
        able = frozenset([("gpu", 9), ("linux", 9)])
        for number, route in enumerate(ROUTES[events.WORKER]):
            self.feed(events.Hello(route, 1, events.WORKER, 90 + number, 0, "", "", "host", 1, "", 0, able))

    def settle(self) -> None:
        """Run workers that can serve everything, and clients that acknowledge, until no task waits."""
        core = self.core
        self.join_able_workers()
        self.read()
        while core.scheduler.counts.waiting or core.scheduler.counts.dispatched:
            before = core.scheduler.counts.waiting + core.scheduler.counts.dispatched
            for client in core.scheduler.tables.clients:
                core.received(client.route, 1 << 60)
            self.read()
            for route in list(self.held):  # a worker may have joined by any of them
                rows, self.held[route] = self.held[route], []
                if rows and route in core.scheduler.tables.workers.by_route:
                    core.results(route, rows, outcome=VALUE)
            self.read()
            assert core.scheduler.counts.waiting + core.scheduler.counts.dispatched < before

    def leave(self) -> None:
        """All peers leave."""
        core = self.core
        tables = core.scheduler.tables
        for route in [*tables.clients.by_route]:
            core.goodbye(route)
        self.read()
        assert not any(self.known[route] for route in tables.workers.by_route)
        for route in [*tables.workers.by_route, *tables.agents.by_route]:
            core.goodbye(route)
        self.read()
