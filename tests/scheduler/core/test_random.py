"""Random events, legal and illegal, from seeds. Tables are recounted after each event; at the end all are empty.

Runs under PyPy and CPython. A failing seed is named by its test.
"""

from __future__ import annotations

import re
import sys
from array import array

import pytest
from tests.scheduler.core.harness import (
    CANCELLED,
    EXCEPTION,
    TIMED_OUT,
    VALUE,
    WORKER_DIED,
    Core,
    Row,
    results_event,
    submit_event,
)
from tests.scheduler.core.storm import CAPABILITIES, INCARNATIONS, ROUTES, Storm, columns

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits

STEPS = 2500
SEEDS = range(2) if sys.implementation.name == "pypy" else range(1)
"""CPython finds the same, and the simulation runs the core there too."""

EVERY_KIND = {
    "welcome", "refused", "hello wanted", "echo", "function", "forget", "dispatch", "resolved", "started",
    "cancel refused", "error", "output", "retract", "stop", "end worker", "credit", "change worker",
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_storm(seed):
    storm = Storm(seed)
    for _ in range(STEPS):
        storm.step()
    counts = storm.core.scheduler.counts
    assert counts.resolved > STEPS // 5 and counts.late_results > STEPS // 100
    assert counts.retracted > 3 and counts.stopped > 10
    assert (
        set(storm.kinds) | {"forget", "refused", "credit", "end worker", "change worker"} == EVERY_KIND
    )  # these are rare
    storm.settle()
    storm.leave()
    assert not any(storm.core.tables().values()), storm.core.tables()


def test_a_storm_is_the_same_every_time():
    """The effects depend on the seed alone, so that a failing seed can be examined."""
    transcripts = []
    for _ in range(2):
        storm = Storm(7)
        for _ in range(600):
            storm.step()
        transcripts.append(storm.transcript)
    assert transcripts[0] == transcripts[1]
    assert len(transcripts[0]) > 500


class Stay:
    """Two clients stay: they submit, cancel, and count their answers. Workers and agents come and go."""

    def __init__(self, seed: int) -> None:
        self.storm = storm = Storm(1000 + seed)
        self.core = storm.core = Core(Limits(queue_size=20, task_retries=0, memory_limit_bytes=0))
        self.chance = storm.chance
        self.clients = ROUTES[events.CLIENT][:2]
        self.open: dict[bytes, set[int]] = {}
        self.outcomes: list[int] = []
        self.next_id = 0
        self.new_worker = 1000
        self.core.agent(ROUTES[events.AGENT][0], INCARNATIONS[events.AGENT][0])
        for number, route in enumerate(self.clients):
            self.core.client(route, 11 + number)
            self.open[route] = set()
            for function in range(3):
                self.core.function(route, function, b"%d" % function)

    @property
    def unanswered(self) -> int:
        return sum(map(len, self.open.values()))

    def read(self) -> None:
        before = len(self.storm.transcript)
        self.storm.read()
        for sent in self.storm.transcript[before:]:
            if sent[0] == "resolved":
                for task_id, outcome, body in sent[2]:
                    self.open[sent[1]].remove(task_id)  # a KeyError means a second answer
                    assert self.is_right(task_id, outcome, body), (task_id, outcome, body)
                    self.outcomes.append(outcome)
            elif sent[0] in ("cancel refused", "started"):
                assert set(sent[2]) <= self.open[sent[1]]

    @staticmethod
    def is_right(task_id: int, outcome: int, body: bytes) -> bool:
        if outcome == EXCEPTION:  # a retryable outcome becomes an exception in the end
            return body in (b"1 of %d" % task_id, b"4 of %d" % task_id)
        if outcome == VALUE:
            return body == b"0 of %d" % task_id
        if outcome == TIMED_OUT:
            return re.fullmatch(rb"function \d#\d+: stopped after its time limit of 0.5 s", body) is not None
        if outcome == WORKER_DIED:
            return re.fullmatch(rb"function \d#\d+: the worker died in .*(signal 9|MiB|same process)", body) is not None
        return outcome == CANCELLED and not body

    def step(self) -> None:
        chance, core = self.chance, self.core
        roll = chance.random()
        worker = chance.choice(ROUTES[events.WORKER])
        if roll < 0.2 and self.unanswered < 200:
            self.submit(chance.choice(self.clients))
        elif roll < 0.26:
            self.storm.feed(self.cancel(chance.choice(self.clients)))
        elif roll < 0.32:
            self.storm.feed(self.storm.died(ROUTES[events.AGENT][0]))
        elif roll < 0.35:
            self.storm.feed(self.hello(chance.choice((worker, worker, ROUTES[events.AGENT][0]))))
        elif roll < 0.55:
            for row in self.storm.held.get(worker, [])[:3]:
                self.storm.feed(events.Started(worker, *columns([row])))
        elif roll < 0.65:
            self.storm.feed(self.storm.retracted(worker))
        elif roll < 0.67:
            for route in self.clients:
                core.received(route, 1 << 60)
        elif roll < 0.75:
            core.wait(chance.choice((0.3, 1.2, 2.5)))
            for route in [*self.clients, *ROUTES[events.WORKER]]:
                self.storm.feed(events.Heartbeat(route, 1, list(INCARNATIONS[events.WORKER])))
            self.answer(worker, is_all=True)
        else:
            self.answer(worker)
        self.read()
        while self.storm.wanted:
            self.storm.feed(self.hello(self.storm.wanted.pop()))
            self.read()

    def hello(self, route: bytes) -> events.Event:
        role = events.WORKER if route in ROUTES[events.WORKER] else events.AGENT
        event = self.storm.hello(route, role)
        while event.role != role:  # clients stay, and no other peer takes their connection
            event = self.storm.hello(route, role)
        if role == events.WORKER:
            event.agent = INCARNATIONS[events.AGENT][0]
            if self.chance.random() < 0.5:
                event.incarnation = self.new_worker
                self.new_worker += 1
        else:
            event.incarnation = INCARNATIONS[events.AGENT][0]
        return event

    def submit(self, route: bytes) -> None:
        chance = self.chance
        ids = range(self.next_id, self.next_id + chance.choice((1, 3, 20)))
        self.next_id = ids[-1] + 1
        self.open[route].update(ids)
        event = submit_event(route, ids, [chance.randrange(3)], [self.storm.body(task_id) for task_id in ids], [])
        if chance.random() < 0.5:
            event.options = events.Options(
                priority=chance.randrange(3),
                retries=chance.choice((-1, -1, 1)),
                timeout_seconds=chance.choice((0.0, 0.5)),
                capabilities=chance.choice(CAPABILITIES),
                calls=chance.choice((0, 0, 1, 7)),
            )
        self.storm.feed(event)

    def cancel(self, route: bytes) -> events.Event:
        self.storm.next_id = self.next_id
        return self.storm.cancel(route)

    def answer(self, worker: bytes, is_all: bool = False) -> None:
        rows = self.storm.held.get(worker, [])
        taken = rows if is_all else rows[: self.chance.randrange(len(rows) + 1)]
        self.storm.held[worker] = rows[len(taken) :]
        if taken:
            self.storm.feed(self.results(worker, taken, [self.chance.choice((VALUE, VALUE, 1, 4)) for _ in taken]))

    @staticmethod
    def results(worker: bytes, rows: list[Row], outcomes: list[int]) -> events.Event:
        """Many outcomes in one message, each with its task's own bytes."""
        event = results_event(worker, rows)
        bodies = [b"%d of %d" % (outcome, row[1]) for row, outcome in zip(rows, outcomes)]
        event.outcomes = array("B", outcomes)
        event.sizes = array("I", [len(body) for body in bodies])
        event.payload = b"".join(bodies)
        return event

    def settle(self) -> None:
        core, held = self.core, self.storm.held
        self.storm.join_able_workers()
        self.read()
        while self.unanswered:
            before = self.unanswered
            for route in self.clients:
                core.received(route, 1 << 60)
            self.read()
            for route in ROUTES[events.WORKER]:
                rows: list[Row] = held[route]
                held[route] = []
                if rows:
                    core.feed(self.results(route, rows, [VALUE] * len(rows)))
            self.read()
            assert self.unanswered < before


@pytest.mark.parametrize("seed", SEEDS)
def test_every_task_of_a_client_that_stays_is_answered_once(seed):
    stay = Stay(seed)
    for _ in range(2000):
        stay.step()
        counts = stay.core.scheduler.counts
        assert stay.unanswered == counts.waiting + counts.dispatched
    stay.settle()
    assert stay.next_id > 500
    assert {VALUE, CANCELLED, TIMED_OUT} <= set(stay.outcomes) <= {VALUE, EXCEPTION, WORKER_DIED, CANCELLED, TIMED_OUT}


@pytest.mark.parametrize("seed", range(4))
def test_a_new_client_is_served_at_once_after_a_storm(seed):
    """With nested clients and suspended tasks, or without."""
    storm = Storm(2000 + seed)
    for _ in range(500):
        storm.step()
    storm.settle()
    core = storm.core
    core.client(b"another", 77)
    core.function(b"another", 9, b"another")
    core.submit(b"another", [1], 9)
    route = next(sent[1] for sent in core.take() if sent[0] == "dispatch")
    core.results(route, [(77, 1, 1)])
    core.take_one("resolved", b"another", [(1, VALUE, b"")])
    assert columns([(77, 1, 1)])[1][0] == 1
