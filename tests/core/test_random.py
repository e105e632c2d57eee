"""Random events, legal and not, from seeds; the tables recounted after each; at the end everything is empty.

Runs under PyPy and CPython. A failing seed is named by its test.
"""

from __future__ import annotations

import random
from array import array
from typing import Any, Dict, List, Set, Tuple

import pytest
from tests.core.harness import MILLISECOND, Core, Row, Sent, results_event, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.scheduler import Limits

STEPS = 2500
SEEDS = range(6)
ROUTES = {
    events.CLIENT: [b"client %d" % number for number in range(4)],
    events.WORKER: [b"worker %d" % number for number in range(5)],
    events.AGENT: [b"agent %d" % number for number in range(2)],
}
INCARNATIONS = {events.CLIENT: range(11, 15), events.WORKER: range(21, 27), events.AGENT: range(31, 34)}
DURATIONS = [0, 1000, MILLISECOND, 10 * MILLISECOND, 1000 * MILLISECOND, (1 << 64) - 1]


class Storm:
    """Peers that mostly do what is right, and now and then what is not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.core = Core(Limits(client_timeout_seconds=30, worker_timeout_seconds=30, queue_size=20, task_retries=1))
        self.held: Dict[bytes, List[Row]] = {}
        """What went to each worker's connection."""
        self.next_id = 0
        self.wanted: List[bytes] = []
        """Connections that were asked for a hello."""
        self.known: Dict[bytes, Set[int]] = {}
        """What each worker's connection was sent of functions."""

    # ------------------------------------------------------------------------------------------------------- one step

    def step(self) -> None:
        count = self.chance.choice((1, 1, 2, 5))
        fed = [event for _ in range(count) for event in self.event()]
        self.core.feed(*fed)
        if self.chance.random() < 0.05:
            self.core.wait(self.chance.choice((0.1, 1.5, 8)))
        self.read()

    def event(self) -> List[events.Event]:
        chance = self.chance
        while self.wanted:
            route = self.wanted.pop()
            if chance.random() < 0.9:
                return [self.hello(route, next(role for role in ROUTES if route in ROUTES[role]))]
        (role,) = chance.choices((events.CLIENT, events.WORKER, events.AGENT), (40, 55, 5))
        route = chance.choice(ROUTES[role])
        if chance.random() < 0.03:
            route = chance.choice(ROUTES[chance.randrange(3)])
        kinds = {
            events.CLIENT: (self.function, self.function, *[self.submit] * 3, self.cancel, self.forget),
            events.WORKER: (self.results, self.results, self.results, self.started),
            events.AGENT: (self.died, self.beat),
        }[role]
        roll = chance.random()
        if roll < 0.006:
            return [self.hello(route, role)]
        if roll < 0.01:
            return [events.Goodbye(route, "")]
        if roll < 0.06:
            return [self.beat(route)]
        return [chance.choice(kinds)(route)]

    def hello(self, route: bytes, role: int) -> events.Event:
        if self.chance.random() < 0.05:
            role = self.chance.randrange(3)
        incarnation = self.chance.choice(INCARNATIONS[role])
        version = 2 if self.chance.random() < 0.02 else 1
        agent = self.chance.choice(INCARNATIONS[events.AGENT])
        return events.Hello(route, version, role, incarnation, agent, "", "", "host", 1, "")

    def beat(self, route: bytes) -> events.Event:
        workers = [self.chance.choice(INCARNATIONS[events.WORKER]) for _ in range(3)]
        return events.Heartbeat(route, self.chance.randrange(1 << 64), workers)

    def function(self, route: bytes) -> events.Event:
        number = self.chance.randrange(5)
        payload = b"%d" % (number if self.chance.random() < 0.9 else self.chance.randrange(5))
        return events.Function(route, number, "f", "s", b"digest " + payload, payload)

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
        return submit_event(route, ids, functions, bodies, large)

    @staticmethod
    def body(task_id: int) -> bytes:
        """Each task's own, so that a mixed-up payload shows."""
        return b"%d" % task_id * (task_id % 3)

    def cancel(self, route: bytes) -> events.Event:
        newest = self.next_id + 2
        return events.Cancel(route, array("Q", [self.chance.randrange(max(0, newest - 300), newest) for _ in range(6)]))

    def results(self, route: bytes) -> events.Event:
        rows = self.held.get(route, [])
        taken = rows[: self.chance.randrange(len(rows) + 1)] if rows else []
        self.held[route] = rows[len(taken) :]
        if not taken or self.chance.random() < 0.05:
            taken = [*taken, (self.chance.randrange(20), self.chance.randrange(self.next_id + 1), 1)]
        if self.chance.random() < 0.05:
            taken = taken * 2
        outcome = self.chance.randrange(effects.WORKER_OUTCOMES)
        return results_event(route, taken, self.chance.choice(DURATIONS), outcome, b"r" * self.chance.randrange(3))

    def started(self, route: bytes) -> events.Event:
        rows = self.held.get(route, [])[:1] or [(1, 1, 1)]
        clients, ids, attempts = zip(*rows)
        return events.Started(route, array("I", clients), array("Q", ids), array("I", attempts))

    def died(self, route: bytes) -> events.Event:
        incarnation = self.chance.choice(INCARNATIONS[events.WORKER])
        running: Row = (0, 0, 0)
        rows = self.held.get(self.chance.choice(ROUTES[events.WORKER]), [])
        if rows and self.chance.random() < 0.8:
            running = rows[0]
        return events.WorkerDied(route, incarnation, 1, "signal 9", self.chance.randrange(2), *running)

    # ---------------------------------------------------------------------------------------------- what comes of it

    def read(self) -> None:
        for sent in self.core.take():
            kind, route = sent[:2]
            if kind == "hello wanted":
                self.wanted.append(route)
            elif kind == "welcome":
                # It may be a new worker on this connection, or the same one anew: it forgets everything.
                self.held[route] = []
                self.known[route] = set()
            elif kind == "function":
                self.known[route].add(sent[2])
            elif kind == "forget":
                assert len(set(sent[2])) == len(sent[2])
                assert set(sent[2]) <= self.known[route]
                self.known[route] -= set(sent[2])
            elif kind == "dispatch":
                self.dispatched(route, sent)

    def dispatched(self, route: bytes, sent: Sent) -> None:
        rows: List[Tuple[Any, ...]] = sent[2]
        for client, task_id, attempt, function, payload in rows:
            assert payload == self.body(task_id)
            assert function in self.known[route]
            self.held.setdefault(route, []).append((client, task_id, attempt))
        assert len(rows) <= 20

    # ---------------------------------------------------------------------------------------------------------- the end

    def settle(self) -> None:
        """Workers that answer, until nothing waits; then everybody leaves."""
        core = self.core
        for number, route in enumerate(ROUTES[events.WORKER]):
            core.hello(route, events.WORKER, 90 + number)
        self.read()
        for _ in range(100_000):
            if not core.scheduler.counts.waiting and not core.scheduler.counts.dispatched:
                break
            for route in list(self.held):  # a worker may have come by any of them
                rows, self.held[route] = self.held[route], []
                if rows:
                    core.results(route, rows)
            self.read()
        assert core.scheduler.counts.waiting == core.scheduler.counts.dispatched == 0
        for route in list(core.scheduler.clients.by_route):
            core.goodbye(route)
        self.read()
        assert not any(self.known[route] for route in core.scheduler.workers.by_route)
        for route in [*core.scheduler.workers.by_route, *core.scheduler.agents.by_route]:
            core.goodbye(route)
        core.take()


@pytest.mark.parametrize("seed", SEEDS)
def test_storm(seed):
    storm = Storm(seed)
    for _ in range(STEPS):
        storm.step()
    resolved, late = storm.core.scheduler.counts.resolved, storm.core.scheduler.counts.late
    assert resolved > STEPS // 5 and late > STEPS // 100
    storm.settle()
    assert not any(storm.core.tables().values()), storm.core.tables()


@pytest.mark.parametrize("seed", range(5))
def test_every_task_of_a_client_that_stays_is_answered_once(seed):
    """Workers and agents die and come back; two clients stay, cancel some, and count their answers."""
    chance = random.Random(1000 + seed)
    core = Core(Limits(queue_size=20, task_retries=2))
    storm = Storm(seed)
    storm.core = core
    clients = ROUTES[events.CLIENT][:2]
    open_tasks: Dict[bytes, Set[int]] = {}
    for number, route in enumerate(clients):
        core.client(route, 11 + number)
        open_tasks[route] = set()
        for function in range(3):
            core.function(route, function, b"%d" % function)

    def read() -> None:
        for sent in core.take():
            if sent[0] == "resolved":
                for row in sent[2]:
                    open_tasks[sent[1]].remove(row[0])  # KeyError: answered twice
            elif sent[0] == "welcome":
                storm.held[sent[1]] = []
            elif sent[0] == "dispatch":
                storm.held.setdefault(sent[1], []).extend(row[:3] for row in sent[2])

    next_id = 0
    for _ in range(2000):
        roll = chance.random()
        route = chance.choice(clients)
        if roll < 0.3 and sum(map(len, open_tasks.values())) < 200:
            ids = range(next_id, next_id + chance.choice((1, 3, 20)))
            next_id = ids[-1] + 1
            open_tasks[route].update(ids)
            core.feed(submit_event(route, ids, [chance.randrange(3)], [b"x"] * len(ids), []))
        elif roll < 0.4:
            wanted = sorted(chance.sample(range(next_id + 1), min(5, next_id + 1)))
            core.feed(events.Cancel(route, array("Q", wanted)))
        elif roll < 0.45:
            core.hello(chance.choice(ROUTES[events.AGENT]), events.AGENT, chance.choice(INCARNATIONS[events.AGENT]))
        elif roll < 0.6:
            worker = chance.choice(ROUTES[events.WORKER])
            agent = chance.choice(INCARNATIONS[events.AGENT])
            core.hello(worker, events.WORKER, chance.choice(INCARNATIONS[events.WORKER]), agent)
        elif roll < 0.65:
            core.feed(storm.died(chance.choice(ROUTES[events.AGENT])))
        else:
            core.feed(storm.results(chance.choice(ROUTES[events.WORKER])))
        read()
        assert sum(map(len, open_tasks.values())) == core.scheduler.counts.waiting + core.scheduler.counts.dispatched
    core.hello(ROUTES[events.WORKER][0], events.WORKER, 99)
    read()
    while any(open_tasks.values()):
        before = sum(map(len, open_tasks.values()))
        for worker in ROUTES[events.WORKER]:
            rows, storm.held[worker] = storm.held.get(worker, []), []
            if rows:
                core.results(worker, rows)
        read()
        assert sum(map(len, open_tasks.values())) < before
    assert next_id > 500
