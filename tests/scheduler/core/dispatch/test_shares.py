"""Shares of the workers: by time and weight, for each key or user of a host, with quotas and common ranks."""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from typing import Any

import pytest
from tests.scheduler.core.harness import C2, MILLISECOND, SECOND, C, Core, Row, W, joined, results_event, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler
from scaler_scheduler.core.state.shares import Share, ShareLimits

START_NS = 10 * MILLISECOND
"""A worker reports a task that runs for so long."""


def hello(
    route: bytes, role: int, incarnation: int, account: str = "", user: str = "", worker: int = 0
) -> events.Hello:
    event = events.Hello(route, 1, role, incarnation, 0, "python 3", "1", "host", 1, "name", worker, account=account)
    event.user = user
    return event


class Cluster:
    """A scheduler with simulated workers, and clients that always have tasks waiting.

    A worker answers what it got together when all of it is done, and reports a task that runs for long.
    """

    def __init__(self, workers: int) -> None:
        self.now_ns = 0
        limits = Limits(worker_timeout_seconds=1e9, client_timeout_seconds=1e9)
        self.scheduler = Scheduler(limits, 1, 0.0, incarnation=7)
        self.durations: dict[int, int] = {}
        """How long the tasks of each client run, by its incarnation."""
        self.ended: dict[int, int] = {}
        """The time that the ended tasks of each client took."""
        self._next_ids: dict[int, int] = {}
        self._routes: dict[int, bytes] = {}
        self._agenda: list[tuple[int, int, events.Event | None]] = []
        self._number = 0
        self._free_at: dict[bytes, int] = {}
        for number in range(workers):
            route = b"worker %d" % number
            self._free_at[route] = 0
            self.feed(hello(route, events.WORKER, 1000 + number))
        self._at(SECOND, None)

    def client(self, incarnation: int, duration: int, account: str, tasks: int = 0, user: str = "") -> None:
        """Let a client join whose tasks run for so many nanoseconds. `tasks` wait at most; 0: enough for some time."""
        route = self._routes[incarnation] = b"client %d" % incarnation
        self.durations[incarnation] = duration
        self.ended[incarnation] = self._next_ids[incarnation] = 0
        self.feed(hello(route, events.CLIENT, incarnation, account, user))
        self.feed(events.Function(route, 1, "f", "", b"digest %d" % incarnation, b"f"))
        self.add_tasks(incarnation, tasks or 50)

    def add_tasks(self, incarnation: int, count: int) -> None:
        first = self._next_ids[incarnation]
        self._next_ids[incarnation] = first + count
        route = self._routes[incarnation]
        self.feed(submit_event(route, range(first, first + count), [1], [b""] * count, ()))

    def run(self, seconds: float) -> None:
        """Let time pass. Clients replace the tasks that end."""
        end = self.now_ns + int(seconds * SECOND)
        while self._agenda[0][0] <= end:
            self.now_ns, _, event = heappop(self._agenda)
            if event is None:
                self.scheduler.tick(self.now_ns / SECOND)
                self._collect()
                self._at(self.now_ns + SECOND, None)
            else:
                self.feed(event)
                if isinstance(event, events.Results):
                    self._note_ends(event)
        self.now_ns = end

    def used(self, incarnation: int) -> float:
        """The part of all time that the ended tasks of a client took."""
        return self.ended[incarnation] / sum(self.ended.values())

    def share(self, incarnation: int) -> Share:
        client = self.scheduler.tables.clients.find(incarnation)
        assert client is not None
        return client.share

    def feed(self, event: events.Event) -> None:
        self.scheduler.handle(event, self.now_ns / SECOND)
        assert self.scheduler.last_rejection is None
        self._collect()

    def _note_ends(self, event: events.Results) -> None:
        counts: dict[int, int] = {}
        for client in event.clients:
            counts[client] = counts.get(client, 0) + 1
        for client, count in counts.items():
            self.ended[client] += count * self.durations[client]
            if client in self._routes:
                self.add_tasks(client, count)

    def _collect(self) -> None:
        for effect in self.scheduler.collect():
            if not isinstance(effect, effects.Dispatch):
                continue
            route = effect.route
            begin = max(self.now_ns, self._free_at[route])
            rows: list[Row] = list(zip(effect.clients, effect.ids, effect.attempts))
            together: list[Row] = []
            for row in rows:
                duration = self.durations[row[0]]
                if duration > START_NS:
                    started = array("q", [row[0]]), array("q", [row[1]]), array("I", [row[2]])
                    self._at(begin + START_NS, events.Started(route, *started))
                begin += duration
                if together and together[0][0] != row[0]:
                    self._at(begin - duration, self._results(route, together))
                    together = []
                together.append(row)
            self._at(begin, self._results(route, together))
            self._free_at[route] = begin

    def _results(self, route: bytes, rows: list[Row]) -> events.Results:
        return results_event(route, rows, self.durations[rows[0][0]], 0, b"")

    def _at(self, ns: int, event: events.Event | None) -> None:
        self._number += 1
        heappush(self._agenda, (ns, self._number, event))


@pytest.mark.parametrize(("workers", "seconds"), [(1, 1000), (4, 200)])
def test_long_and_short_tasks_get_the_same_time(workers: int, seconds: float) -> None:
    cluster = Cluster(workers)
    cluster.client(1, 10 * SECOND, "ada")
    cluster.client(2, MILLISECOND, "bob", tasks=200)
    cluster.run(seconds)
    assert cluster.used(1) == pytest.approx(0.5, abs=0.025)


def test_tasks_of_unknown_length_are_counted_while_they_run() -> None:
    cluster = Cluster(4)
    cluster.client(2, 10 * MILLISECOND, "bob", tasks=200)
    cluster.client(1, 200 * SECOND, "ada", tasks=2)
    ada, bob = cluster.share(1), cluster.share(2)
    before = bob.virtual_ns
    cluster.run(50)
    assert ada.held == 2
    assert ada.late_ns == pytest.approx(2 * 50 * SECOND, rel=0.05)
    assert ada.virtual_ns == pytest.approx(bob.virtual_ns, rel=0.05) and before < bob.virtual_ns
    cluster.run(150.5)
    assert ada.late_ns == 0 and ada.used_ns == 2 * 200 * SECOND  # the tasks have ended


def test_weights() -> None:
    cluster = Cluster(4)
    cluster.scheduler.set_share_limits({"client:a": ShareLimits(weight=3.0)})
    cluster.client(1, 50 * MILLISECOND, "", user="client:a")
    cluster.client(2, 20 * MILLISECOND, "", user="client:b")
    cluster.run(40)
    assert cluster.used(1) == pytest.approx(0.75, abs=0.025)
    cluster.scheduler.set_share_limits({})
    before = dict(cluster.ended)
    cluster.run(40)
    assert cluster.ended[1] - before[1] == pytest.approx(cluster.ended[2] - before[2], rel=0.1)


def test_many_connections_are_no_advantage() -> None:
    cluster = Cluster(2)
    for incarnation in range(1, 9):
        cluster.client(incarnation, 20 * MILLISECOND, "", user="client:a")
    cluster.client(9, 20 * MILLISECOND, "", user="client:b")
    cluster.run(20)
    assert cluster.used(9) == pytest.approx(0.5, abs=0.025)


def test_time_without_work_gives_no_claim() -> None:
    cluster = Cluster(2)
    cluster.client(1, 20 * MILLISECOND, "ada")
    cluster.run(20)
    cluster.client(2, 20 * MILLISECOND, "bob")
    before = cluster.ended[1]
    cluster.run(20)
    assert cluster.ended[1] - before == pytest.approx(cluster.ended[2], rel=0.05)


def test_a_share_that_was_alone_does_not_wait_for_others() -> None:
    cluster = Cluster(2)
    cluster.client(1, 20 * MILLISECOND, "ada")
    cluster.run(20)
    client = cluster.scheduler.tables.clients.find(1)
    assert client is not None
    cluster.scheduler.core_state.queues.pause(client, 1)  # nothing of it waits
    cluster.client(2, 20 * MILLISECOND, "bob")
    cluster.scheduler.core_state.queues.resume(client, 1)
    before = cluster.ended[1]
    cluster.run(20)
    assert cluster.ended[1] - before == pytest.approx(cluster.ended[2], rel=0.05)


def test_a_key_has_at_most_so_many_running_tasks() -> None:
    cluster = Cluster(4)
    cluster.scheduler.set_share_limits({"client:a": ShareLimits(max_running=2)})
    cluster.client(1, 20 * MILLISECOND, "", user="client:a")
    assert cluster.share(1).held == 2
    cluster.run(10)
    assert cluster.share(1).held == 2
    assert cluster.ended[1] == pytest.approx(20 * SECOND, rel=0.05)  # two workers
    cluster.scheduler.set_share_limits({})
    cluster.run(0.1)
    assert cluster.share(1).held >= 4


def test_a_key_without_room_holds_up_nobody() -> None:
    cluster = Cluster(2)
    cluster.scheduler.set_share_limits({"client:a": ShareLimits(weight=100.0, max_running=1)})
    cluster.client(1, 20 * MILLISECOND, "", user="client:a")
    cluster.client(2, 20 * MILLISECOND, "", user="client:b")
    cluster.run(10)
    assert cluster.used(1) == pytest.approx(0.5, abs=0.025)


@pytest.mark.parametrize("is_common", [False, True])
def test_ranks_order_tasks_of_others_only_if_the_operator_says_so(is_common: bool) -> None:
    core = Core(Limits(has_common_ranks=is_common))
    core.feed(hello(C, events.CLIENT, 1, "ada"), hello(C2, events.CLIENT, 2, "bob"))
    for route in (C, C2):
        core.function(route, 1, b"f")
    core.submit(C, [1, 2])
    core.submit(C2, [1, 2], priority=1)
    core.take()
    core.feed(hello(W, events.WORKER, 1000))
    order: list[int] = []
    for _ in range(4):
        rows = [row for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
        order += [row[0] for row in rows]
        if rows:
            core.results(W, [row[:3] for row in rows], SECOND)
    assert order == ([2, 2, 1, 1] if is_common else [1, 2, 1, 2])


def test_a_nested_client_belongs_to_the_client_of_the_running_task() -> None:
    core = Core()
    joined(core)
    core.feed(hello(C2, events.CLIENT, 12, "bob"))
    core.function(C2, 1, b"g")
    core.submit(C2, [5])
    core.feed(hello(b"nested", events.CLIENT, 13, worker=22))
    core.function(b"nested", 1, b"h")
    clients = core.scheduler.tables.clients

    def share_of(incarnation: int) -> Any:
        client = clients.find(incarnation)
        assert client is not None
        return client.share

    bob = share_of(12)
    assert share_of(13) is bob and bob.client_count == 2
    row = next(sent[2][0][:3] for sent in core.take() if sent[0] == "dispatch")
    core.results(W, [row], SECOND)
    core.submit(C, [6])
    core.submit(b"nested", [1])
    assert share_of(13) is share_of(11) and (bob.client_count, share_of(11).client_count) == (1, 2)
    core.submit(b"nested", [2])
    assert share_of(11).held == 1 and share_of(11).held_ns > 0
    core.take()


def test_a_key_has_at_most_so_many_waiting_tasks() -> None:
    core = Core()
    core.scheduler.set_share_limits({"client:a": ShareLimits(max_waiting=100)})
    granted: dict[bytes, int] = {}
    for route, incarnation, tasks in ((C, 11, 100), (C2, 12, 50)):
        core.feed(hello(route, events.CLIENT, incarnation, user="client:a"))
        granted[route] = core.welcomes[route].credit
        assert granted[route] == tasks * TASK_OVERHEAD
        core.function(route, 1, b"f")
    core.submit(C, range(90))
    core.submit(C2, range(10))
    core.wait(2)
    assert not [sent for sent in core.take() if sent[0] == "credit"]
    core.cancel(C, *range(60))
    core.wait(1)
    for sent in core.take():
        if sent[0] == "credit":
            granted[sent[1]] = sent[2]
    assert granted == {C: (90 + 30) * TASK_OVERHEAD, C2: 50 * TASK_OVERHEAD}  # half of the room for each


def test_a_client_that_joins_a_full_share_gets_credit_for_one_task() -> None:
    core = Core()
    core.scheduler.set_share_limits({"client:a": ShareLimits(max_waiting=100)})
    core.feed(hello(C, events.CLIENT, 11, user="client:a"))
    core.function(C, 1, b"f")
    core.submit(C, range(100))
    core.feed(hello(C2, events.CLIENT, 12, user="client:a"))
    assert core.welcomes[C2].credit == TASK_OVERHEAD


def test_each_call_of_a_row_counts_as_a_waiting_task() -> None:
    core = Core()
    core.scheduler.set_share_limits({"client:a": ShareLimits(max_waiting=10)})
    core.feed(hello(C, events.CLIENT, 11, user="client:a"))
    core.function(C, 1, b"f")
    core.submit(C, [1], calls=500)
    core.submit(C, [2, 3, 4, 5])
    core.cancel(C, 2, 3, 4, 5)
    core.wait(2)
    assert not [sent for sent in core.take() if sent[0] == "credit"]
    core.cancel(C, 1)
    core.wait(2)
    (sent,) = [sent for sent in core.take() if sent[0] == "credit"]
    assert sent[2] == (5 + 10) * TASK_OVERHEAD
