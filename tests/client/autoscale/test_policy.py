"""Single decisions of the policy: figures of pools, hosts' names, backoff, which hosts end, reasons."""

from __future__ import annotations

import math

import pytest

from scaler_client.autoscale import (
    AgentLoad,
    AutoscalePolicy,
    Decision,
    Demand,
    Drain,
    Kill,
    Need,
    Pool,
    PoolCounts,
    Start,
)
from scaler_client.autoscale.backoff import FIRST_SECONDS, Backoff
from scaler_client.autoscale.pools import parse_host_name


class Driven:
    """A policy whose provider starts every host at once."""

    def __init__(self, *pools: Pool, target: float = 60.0, idle: float = 10.0) -> None:
        self.now = 1000.0
        self.policy = AutoscalePolicy(
            pools, target_seconds=target, idle_seconds=idle, draw=lambda: "abc123", now=self.now
        )
        self.hosts: dict[str, set[str]] = {pool.name: set() for pool in pools}
        self.lines: list[str] = []
        self.list()

    def list(self) -> None:
        for name, hosts in self.hosts.items():
            self.lines += self.policy.listed(name, hosts, self.now, self.now)

    def decide(self, *needs: Need, agents: tuple[AgentLoad, ...] = (), after: float = 1.0) -> list[Decision]:
        self.now += after
        decisions, lines = self.policy.decide(Demand(needs, agents), self.now)
        self.lines += lines
        for decision in decisions:
            if isinstance(decision, Start):
                self.hosts[decision.pool] |= set(decision.names)
                self.policy.started(decision.pool, decision.names, self.now)
        return decisions

    def count(self, pool: str = "a") -> PoolCounts:
        return next(each for each in self.policy.counts() if each.pool == pool)


def idle(names: tuple[str, ...] | set[str], workers: int = 1, **further: object) -> tuple[AgentLoad, ...]:
    return tuple(AgentLoad(name, workers, **further) for name in sorted(names))  # type: ignore[arg-type]


def test_decision_has_names_and_numbers() -> None:
    driven = Driven(Pool("a", workers=4, most=10))
    (start,) = driven.decide(Need(100, known_seconds=600.0, unknown=2))
    assert isinstance(start, Start)
    assert start.names == ("a-0-abc123", "a-1-abc123", "a-2-abc123")
    assert start.reason == (
        "start 3 hosts of pool a: 100 tasks wait (600 s of work, 2 of unknown length), 0 run, target 60 s; 3 hosts of "
        "4 workers wanted (0 by the steady load), 0 there, 0 booting, most 10"
    )
    assert driven.decide(Need(100, known_seconds=600.0, unknown=2)) == []  # they boot
    assert (driven.count().wanted, driven.count().booting, driven.count().there) == (3, 3, 0)


def test_tasks_of_a_microsecond_start_a_host() -> None:
    """A cluster at no hosts stayed there, although tasks of a function with a tiny mean run time waited."""
    driven = Driven(Pool("a", workers=4, most=10))
    (start,) = driven.decide(Need(1, known_seconds=1e-7))
    assert isinstance(start, Start)
    assert len(start.names) == 1
    assert driven.decide(Need(1, known_seconds=1e-7)) == []  # it boots
    assert Driven(Pool("a", most=10)).decide(Need(1, known_seconds=1e-7, most=0)) == []  # its limit is used up


def test_nothing_is_decided_before_the_first_list() -> None:
    policy = AutoscalePolicy([Pool("a", most=5)], target_seconds=1.0, idle_seconds=1.0, draw=lambda: "abc123", now=0.0)
    assert policy.decide(Demand((Need(5, unknown=5),)), 1.0)[0] == []
    policy.listed("a", ["a-3-xyz789"], 1.0, 2.0)
    (start,) = policy.decide(Demand((Need(5, unknown=5),)), 3.0)[0]
    assert start.names == ("a-0-abc123", "a-1-abc123", "a-2-abc123", "a-4-abc123")


def test_limits_bound_the_hosts() -> None:
    driven = Driven(Pool("a", most=100))
    (start,) = driven.decide(Need(1000, unknown=1000, most=3))
    assert len(start.names) == 3


def test_other_agents_are_used_first() -> None:
    driven = Driven(Pool("a", most=100))
    assert driven.decide(Need(4, unknown=4), agents=(AgentLoad("mine", 4),)) == []
    (start,) = driven.decide(Need(4, unknown=4), agents=(AgentLoad("mine", 4, (math.inf, 30.0)),))
    assert len(start.names) == 2  # 1.5 workers are busy for the target time


def test_tasks_of_another_python_start_nothing() -> None:
    driven = Driven(Pool("a", most=100, least=1))
    (start,) = driven.decide()
    agents = idle(start.names, kind="cloudpickle 3.11")
    assert driven.decide(Need(4, unknown=4, kind="cloudpickle 3.12"), agents=agents) == []
    assert len(driven.decide(Need(4, unknown=4, kind="cloudpickle 3.11"), agents=agents)[0].names) == 3


def test_idle_hosts_drain_after_the_idle_time() -> None:
    driven = Driven(Pool("a", most=5), idle=10.0)
    (start,) = driven.decide(Need(3, unknown=3))
    agents = idle(start.names)
    assert driven.decide(agents=agents) == []
    assert driven.decide(agents=agents, after=8.0) == []
    (drain,) = driven.decide(agents=agents, after=3.0)
    assert isinstance(drain, Drain) and set(drain.names) == set(start.names)
    assert driven.count().draining == 3 and driven.decide(agents=agents) == []


def test_hosts_whose_end_costs_least_end_first() -> None:
    driven = Driven(Pool("a", most=5, retire_seconds=100.0), idle=10.0)
    (start,) = driven.decide(Need(5, unknown=5))
    first, second, third, fourth, fifth = start.names
    agents = (
        AgentLoad(first, 1, (20.0,)),
        AgentLoad(second, 1, (), value_bytes=5000),
        AgentLoad(third, 1, (60.0,)),
        AgentLoad(fourth, 1, ()),
        AgentLoad(fifth, 1, (5.0,)),
    )
    drained: list[str] = []
    for _ in range(12):
        for decision in driven.decide(agents=agents, after=1.0):
            assert isinstance(decision, Drain)
            drained += decision.names
    # 85 s of work in 60 s: two hosts stay. The one whose task is long may not end.
    assert drained == [fourth, second, fifth]


def test_busy_hosts_stay_while_tasks_wait() -> None:
    driven = Driven(Pool("a", most=3), idle=5.0)
    (start,) = driven.decide(Need(3, unknown=3))
    agents = tuple(AgentLoad(name, 1, (1.0,)) for name in start.names)
    for _ in range(10):
        assert driven.decide(Need(1, known_seconds=1.0), agents=agents) == []


def test_booting_hosts_end_when_nobody_wants_them() -> None:
    driven = Driven(Pool("a", most=3, boot_seconds=100.0), idle=5.0)
    (start,) = driven.decide(Need(3, unknown=3))
    decisions = [each for _ in range(10) for each in driven.decide()]
    assert [type(each) for each in decisions] == [Kill] and set(decisions[0].names) == set(start.names)


def test_host_that_never_comes_is_ended_and_replaced() -> None:
    driven = Driven(Pool("a", most=2, boot_seconds=10.0))
    (start,) = driven.decide(Need(1, unknown=1))
    assert driven.decide(Need(1, unknown=1), after=15.0) == []
    kill, again = driven.decide(Need(1, unknown=1), after=6.0)
    assert isinstance(kill, Kill) and kill.names == start.names
    assert isinstance(again, Start) and again.names == ("a-1-abc123",)
    assert driven.count().failed == 1
    assert driven.lines == ["host a-0-abc123 never came, 21 s after its request"]


def test_host_that_comes_late_is_counted() -> None:
    driven = Driven(Pool("a", most=2, boot_seconds=10.0))
    (start,) = driven.decide(Need(1, unknown=1))
    driven.decide(Need(1, unknown=1), agents=idle(start.names), after=15.0)
    assert (driven.count().late, driven.count().there, driven.count().failed) == (1, 1, 0)


def test_lost_host_is_replaced() -> None:
    driven = Driven(Pool("a", most=2))
    (start,) = driven.decide(Need(1, unknown=1))
    driven.decide(Need(1, unknown=1), agents=idle(start.names))
    driven.hosts["a"].clear()
    driven.decide(Need(1, unknown=1))
    driven.list()
    driven.list()
    assert driven.lines == ["host a-0-abc123 lost, 2 s after its request"]
    (again,) = driven.decide(Need(1, unknown=1))
    assert isinstance(again, Start) and driven.count().failed == 1


def test_host_that_is_gone_is_lost_before_its_lease_ends() -> None:
    driven = Driven(Pool("a", most=2))
    (start,) = driven.decide(Need(1, unknown=1))
    driven.hosts["a"].clear()
    for silent, changes in ((2.0, 0), (20.0, 1)):
        driven.decide(Need(1, unknown=1), agents=idle(start.names, silent_seconds=silent))
        driven.list()
        driven.list()
        assert len(driven.lines) == changes


def test_draining_host_that_stays_is_ended_by_force() -> None:
    driven = Driven(Pool("a", most=1, retire_seconds=50.0), idle=5.0)
    (start,) = driven.decide(Need(1, unknown=1))
    agents = idle(start.names)
    decisions = [each for _ in range(130) for each in driven.decide(agents=agents)]
    assert [type(each) for each in decisions] == [Drain, Kill]
    driven.hosts["a"].clear()
    driven.decide()
    driven.list()
    driven.list()
    assert driven.policy.hosts.by_name == {} and driven.count().failed == 0


def test_number_that_fails_goes_last() -> None:
    driven = Driven(Pool("a", most=3))
    tried = []
    for _ in range(2):
        (start,) = driven.decide(Need(1, unknown=1))
        tried += start.names
        driven.policy.start_failed("a", start.names, "no route to host", driven.now)
    assert tried == ["a-0-abc123", "a-1-abc123"]
    assert driven.count().failed == 2


def test_the_log_of_a_host_that_failed_is_in_its_line() -> None:
    driven = Driven(Pool("a", most=3))
    (start,) = driven.decide(Need(2, unknown=2))
    first, second = start.names
    driven.hosts["a"].clear()
    driven.list()
    driven.lines += driven.policy.listed("a", [], driven.now, driven.now, {first: "no such file", "a-9-xyz789": "old"})
    assert driven.lines == [
        f"host {first} died at boot, 0 s after its request; the end of its log: no such file",
        f"host {second} died at boot, 0 s after its request",
    ]


def test_the_problem_of_a_pool_and_for_how_long_it_lasts() -> None:
    driven = Driven(Pool("a", most=9), Pool("b", most=9))
    policy, now = driven.policy, driven.now

    def problem(after: float) -> tuple[str, float]:
        counts = policy.counts(now + after)
        assert (counts[1].problem, counts[1].problem_seconds) == ("", 0.0)
        return counts[0].problem, counts[0].problem_seconds

    assert problem(0.0) == ("", 0.0)
    policy.start_failed("a", [], "no route to host", now + 1.0)
    policy.start_failed("a", [], "connection refused", now + 5.0)
    policy.note_call("a", "list", "hosts could not be listed: timeout", now + 6.0)
    assert problem(11.0) == ("hosts could not be listed: timeout", 5.0), "the newest"
    policy.start_failed("a", [], "host key is wrong", now + 11.0)
    assert problem(11.0) == ("hosts could not be started: host key is wrong", 10.0)
    policy.started("a", [], now + 12.0)
    assert problem(12.0) == ("hosts could not be listed: timeout", 6.0)
    policy.note_call("a", "list", "", now + 13.0)
    assert problem(13.0) == ("", 0.0) and policy.counts()[0].problem_seconds == 0.0


def test_hosts_that_die_are_a_problem_until_one_comes() -> None:
    driven = Driven(Pool("a", most=3))
    driven.policy.start_failed("a", [], "connection refused", driven.now)  # of another host, and earlier
    (start,) = driven.decide(Need(1, unknown=1))
    driven.hosts["a"].clear()
    driven.list()
    driven.list()
    (again,) = driven.decide(Need(1, unknown=1))
    (count,) = driven.policy.counts(driven.now)
    assert (count.problem, count.problem_seconds) == (f"host {start.names[0]} died at boot, 0 s after its request", 1.0)
    driven.decide(Need(1, unknown=1), agents=idle(again.names))
    assert driven.count().problem == ""


def test_dry_run_decides_the_same_again() -> None:
    driven = Driven(Pool("a", most=5))
    decisions = driven.decide(Need(3, unknown=3))
    driven.policy.withdraw(decisions)
    driven.hosts["a"].clear()
    assert driven.decide(Need(3, unknown=3))[0].names == decisions[0].names


def test_names_of_hosts() -> None:
    assert parse_host_name(Pool("big-1", most=1).host_name(12, "abc123")) == ("big-1", 12)
    for name in ("a", "a-1", "a-x-abc123", "-1-abc123", "a-1-ABC123", "a-1-abc1234"):
        assert parse_host_name(name) is None


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"name": "Big"}, "name 'Big' is not 1 to 32 lower-case letters"),
        ({"name": "a", "workers": 0}, "workers is 0"),
        ({"name": "a", "least": 3, "most": 2}, "least is 3 and most is 2"),
        ({"name": "a", "cost": math.nan}, "cost is nan"),
        ({"name": "a", "boot_seconds": 0.0}, "boot_seconds is 0"),
        ({"name": "a", "time_limit_seconds": -1.0}, "time_limit_seconds is -1"),
    ],
)
def test_wrong_pools(values: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Pool(**values)  # type: ignore[arg-type]


def test_resources_bound_the_tasks_of_a_host() -> None:
    pool = Pool("a", workers=8, capabilities={"gpu": 2}, resources={"memory": 10.0})
    assert pool.tasks_a_host({}, {}) == 8
    assert pool.tasks_a_host({"gpu": 2}, {"memory": 4.0}) == 2
    assert pool.tasks_a_host({"gpu": 3}, {}) == pool.tasks_a_host({}, {"licence": 1.0}) == 0


def test_lost_host_is_not_found_again_before_its_lease_ends() -> None:
    driven = Driven(Pool("a", most=2))
    (start,) = driven.decide(Need(1, unknown=1))
    driven.decide(Need(1, unknown=1), agents=idle(start.names))
    driven.hosts["a"].clear()
    silent = idle(start.names, silent_seconds=9.0)
    starts = []
    for _ in range(6):
        starts += driven.decide(Need(1, unknown=1), agents=silent)
        driven.list()
    assert driven.count().failed == 1 and len(starts) == 1, "neither a host nor room for tasks"


def test_lost_host_without_workers_counts_once() -> None:
    """Its agent has told that the workers are dead before it died itself."""
    driven = Driven(Pool("a", most=2))
    (start,) = driven.decide(Need(1, unknown=1))
    driven.decide(Need(1, unknown=1), agents=idle(start.names))
    driven.hosts["a"].clear()
    starts = []
    for _ in range(6):
        starts += driven.decide(Need(1, unknown=1), agents=idle(start.names, workers=0, silent_seconds=1.0))
        driven.list()
    assert driven.count().failed == 1 and len(starts) == 1


def test_cpus_are_workers() -> None:
    pool = Pool("a", workers=8)
    assert [pool.tasks_a_host({}, {"cpus": cpus}) for cpus in (0.5, 1, 3, 4, 8, 9)] == [8, 8, 2, 2, 1, 0]
    assert Pool("a", workers=4, resources={"cpus": 8.0}).tasks_a_host({}, {"cpus": 4}) == 2


def test_tasks_with_resources_start_the_pool_that_has_them() -> None:
    driven = Driven(Pool("plain", workers=8, most=9), Pool("gpu", workers=8, resources={"gpu": 4.0}, cost=5.0, most=9))
    (start,) = driven.decide(Need(10, unknown=10, resources={"gpu": 1.0}))
    assert (start.pool, len(start.names)) == ("gpu", 3)
    assert driven.decide(Need(10, unknown=10, resources={"gpu": 1.0})) == []  # they boot
    (start,) = driven.decide(Need(10, unknown=10, resources={"gpu": 1.0}), Need(30, unknown=30))
    assert (start.pool, len(start.names)) == ("plain", 2), "14 workers of the three hosts need no GPU"


def test_booked_resources_are_no_room() -> None:
    driven = Driven(Pool("a", workers=8, resources={"gpu": 1.0}, most=9))
    (start,) = driven.decide(Need(2, unknown=2, resources={"gpu": 1.0}))
    busy = {"remaining": (math.inf,), "resources": {"gpu": 1.0}, "booked": {"gpu": 1.0}}
    agents = idle(start.names, 8, **busy)
    (more,) = driven.decide(Need(3, unknown=3, resources={"gpu": 1.0}), agents=agents)
    assert len(more.names) == 3 and driven.count().wanted == 5
    driven.decide(agents=agents, after=20.0)
    assert driven.count().wanted == 2, "each of two tasks has the GPU of its host"


def test_operators_agents_with_resources_are_used_first() -> None:
    driven = Driven(Pool("a", workers=8, resources={"gpu": 1.0}, most=9))
    own = AgentLoad("desk", 8, (60.0,), resources={"gpu": 4.0, "cpus": 8.0}, booked={"gpu": 1.0, "cpus": 1.0})
    (start,) = driven.decide(Need(5, unknown=5, resources={"gpu": 1.0}), agents=(own,))
    assert len(start.names) == 2


def test_tasks_of_several_cpus_keep_their_workers() -> None:
    driven = Driven(Pool("a", workers=8, most=9))
    own = AgentLoad("desk", 8, (math.inf,), resources={"cpus": 8.0}, booked={"cpus": 6.0})
    (start,) = driven.decide(Need(10, unknown=10), agents=(own,))
    assert len(start.names) == 1, "two workers are free: 8 tasks wait for a host"
    (start,) = driven.decide(Need(9, unknown=9, resources={"cpus": 4.0}), agents=(own,))
    assert len(start.names) == 4, "two tasks a host"


def test_backoff_doubles_until_a_host_comes() -> None:
    backoff = Backoff(memory_seconds=1000.0)
    rests = []
    now = 0.0
    for _ in range(3):
        backoff.failed(now)
        assert backoff.rests(now, 0) is (len(rests) > 0 or backoff.failures >= 3)
    for _ in range(4):
        rests.append(backoff.until - now)
        now = backoff.until
        assert not backoff.rests(now, 0) and backoff.is_probing
        backoff.failed(now)
        assert backoff.rests(now, 0)
    assert rests == [FIRST_SECONDS * 2**number for number in range(4)]
    backoff.came(now)
    assert not backoff.is_probing
