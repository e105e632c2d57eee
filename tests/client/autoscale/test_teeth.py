"""The simulation finds faults that are planted into the policy: each makes a check fail that holds without it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tests.client.autoscale.simulated_cluster import Faults, SimulatedCluster, Task
from tests.client.autoscale.test_simulation import best_burst, burst
from tests.simulation.mutation import Mutation

from scaler_client.autoscale import AgentLoad, AutoscalePolicy, Demand, Need, Pool, backoff, capacity, hosts, policy

pytestmark = pytest.mark.main_environment


def check_burst() -> None:
    """A burst meets the bars, and no task runs again."""
    pool = Pool("a", workers=2, most=50, boot_seconds=60.0)
    number, makespan, idle = best_burst(1000, 30.0, pool)
    cluster = SimulatedCluster([pool], burst(1000, 30.0), seed=1)
    cluster.run(2000)
    assert cluster.done == 1000 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.makespan <= 1.15 * makespan
    assert cluster.idle_core_seconds <= 1.3 * idle
    assert cluster.started["a"] <= 1.1 * number


def check_known_burst() -> None:
    """A burst of known tasks gets as many hosts as the target time needs."""
    cluster = SimulatedCluster([Pool("a", most=500)], burst(2000, 3.0), seed=1, known={"f": 3.0})
    cluster.run(2000)
    assert cluster.done == 2000 and not cluster.hosts
    assert cluster.started["a"] <= 1.1 * 100 and cluster.makespan <= 60 + 60 + 10


def check_slow_target() -> None:
    """All hosts work until no task waits, however much time the target leaves."""
    cluster = SimulatedCluster([Pool("a", most=50)], burst(500, 100.0), seed=1, target_seconds=600.0)
    cluster.run(5000)
    assert cluster.done == 500 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.makespan <= 1.15 * 1060


def check_steady() -> None:
    """A steady load keeps its hosts, so that its tasks do not wait."""
    tasks = [Task(at / 2, 10.0) for at in range(2400)]
    cluster = SimulatedCluster([Pool("a", most=100, boot_seconds=20.0)], tasks, seed=1, known={"f": 10.0})
    cluster.run(1199)
    waiting = sum(len(queue) for queue in cluster.queues.values())
    assert waiting <= 2 and cluster.started["a"] <= 40
    cluster.run(3000)
    assert cluster.done == 2400 and not cluster.hosts


def check_unequal() -> None:
    """Hosts do not end while they run tasks of which nobody knows how long they take."""
    tasks = [Task(0.0, 400.0 if number % 2 else 5.0, f"{number}") for number in range(100)]
    pool = Pool("a", workers=2, most=50, boot_seconds=20.0, retire_seconds=60.0)
    cluster = SimulatedCluster([pool], tasks, seed=1)
    cluster.run(8000)
    assert cluster.done == 100 and cluster.reruns == 0 and not cluster.hosts


def check_failing_hosts() -> None:
    """Hosts that never come are replaced; a pool of which all fail rests."""
    pools = [Pool("bad", most=20, cost=1.0, boot_seconds=20.0), Pool("good", most=20, cost=2.0, boot_seconds=20.0)]
    faults = {"bad": Faults(dies_at_boot=1.0), "good": Faults(never_comes=0.7)}
    cluster = SimulatedCluster(pools, burst(200, 30.0), seed=1, faults=faults, tick_seconds=1.0)
    cluster.run(3000)
    assert cluster.done == 200 and not cluster.hosts
    assert cluster.started["bad"] <= 60 and cluster.makespan <= 600


def check_restart() -> None:
    """A new policy finds its hosts."""
    cluster = SimulatedCluster([Pool("a", most=50, boot_seconds=60.0)], burst(500, 30.0), seed=1)
    cluster.restart_at = 100.0
    cluster.run(3000)
    assert cluster.done == 500 and cluster.reruns == 0 and not cluster.hosts and cluster.started["a"] == 50


def check_time_limit() -> None:
    """Hosts drain before their time limit."""
    pool = Pool("a", most=10, boot_seconds=20.0, time_limit_seconds=300.0, retire_seconds=60.0)
    cluster = SimulatedCluster([pool], burst(500, 20.0), seed=1)
    cluster.run(5000)
    assert cluster.done == 500 and cluster.reruns == 0 and not cluster.hosts


def check_resources() -> None:
    """Free workers of hosts whose resources are booked count as no room."""
    pool = Pool("a", workers=8, resources={"gpu": 1.0}, most=9)
    planned = AutoscalePolicy([pool], target_seconds=60.0, idle_seconds=10.0, draw=lambda: "abc123", now=0.0)
    planned.listed("a", ["a-0-xyz789"], 0.0, 0.0)
    load = AgentLoad("a-0-xyz789", 8, (math.inf,), resources={"gpu": 1.0}, booked={"gpu": 1.0})
    decisions, _ = planned.decide(Demand((Need(4, unknown=4, resources={"gpu": 1.0}),), (load,)), 1.0)
    assert [len(each.names) for each in decisions] == [4]


Planted = tuple[Mutation, Callable[[], None]]
PLANTED: list[Planted] = [
    (
        Mutation(
            "do not count hosts that boot", capacity.Planner, "_add_hosts",
            "if not host.can_serve:", "if not host.can_serve or host.state is HostState.BOOTING:",
        ),
        check_known_burst,
    ),
    (
        Mutation(
            "count each task as a worker", capacity.Planner, "wanted_tasks",
            "need.unknown + need.known_seconds / self.target_seconds", "need.tasks",
        ),
        check_known_burst,
    ),
    (
        Mutation(
            "end busy hosts while tasks wait", policy, "_cheapest_to_end", "not has_waiting and max(", "max(",
        ),
        check_slow_target,
    ),
    (
        Mutation(
            "keep idle hosts ten times as long", policy._PoolState, "kept",
            "now - idle_seconds", "now - 10 * idle_seconds",
        ),
        check_burst,
    ),
    (
        Mutation(
            "end hosts whose tasks run for long", policy, "_cheapest_to_end",
            "max(load.remaining) <= SAFE_DRAIN_SHARE * host.pool.retire_seconds", "True",
        ),
        check_unequal,
    ),
    (
        Mutation(
            "forget the steady load", policy.AutoscalePolicy, "_decide_pool", "min(by_rate, len(serving))", "0",
        ),
        check_steady,
    ),
    (
        Mutation(
            "forget the work that arrives", policy.AutoscalePolicy, "_plan",
            "SPARE_FACTOR * self._arriving()", "0.0",
        ),
        check_steady,
    ),
    (
        Mutation("never rest a pool", backoff.Backoff, "rests", "if failed and (", "if False and ("),
        check_failing_hosts,
    ),
    (
        Mutation(
            "wait for hosts that never come", hosts.HostTable, "expire",
            "host.state is HostState.BOOTING and", "False and",
        ),
        check_failing_hosts,
    ),
    (
        Mutation("forget the hosts of an earlier run", hosts.HostTable, "_find", "pool is None:", "pool is not None:"),
        check_restart,
    ),
    (
        Mutation(
            "keep hosts until their time limit", hosts.Host, "leaves_at",
            "- min(self.pool.retire_seconds, limit / 4)", "",
        ),
        check_time_limit,
    ),
    (
        Mutation("forget booked resources", capacity.Planner, "_busy", "part * amount for", "0.0 for"),
        check_resources,
    ),
]  # fmt: skip


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in PLANTED), ids=lambda check: check.__name__)
def test_check_holds(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(("mutation", "check"), PLANTED, ids=[mutation.name for mutation, _ in PLANTED])
def test_fault_is_found(monkeypatch: pytest.MonkeyPatch, mutation: Mutation, check: Callable[[], None]) -> None:
    for owner, name, function in mutation.patches():
        monkeypatch.setattr(owner, name, function)
    with pytest.raises(AssertionError):
        check()
