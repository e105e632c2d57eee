"""The policy in simulated clusters: what it costs against the best possible, and what it survives.

The best possible knows the future: it requests the hosts that the shortest makespan needs at once, and each of them
ends with its last task. Its idle core-seconds are those of the boot.
"""

from __future__ import annotations

import math
import random

import pytest
from tests.client.autoscale.simulated_cluster import Faults, SimulatedCluster, Task

from scaler_client.autoscale import Pool

pytestmark = pytest.mark.main_environment

IDLE_BAR, MAKESPAN_BAR, OVERSHOOT_BAR = 1.3, 1.15, 1.1
IDLE_SECONDS = 30.0


def burst(count: int, seconds: float) -> list[Task]:
    return [Task(0.0, seconds) for _ in range(count)]


def best_burst(count: int, seconds: float, pool: Pool, target_seconds: float = 60.0) -> tuple[int, float, float]:
    """The hosts, the makespan and the idle core-seconds of the best possible for a burst of equal tasks."""
    workers = min(pool.most * pool.workers, count)
    hosts = math.ceil(workers / pool.workers)
    rounds = math.ceil(count / (hosts * pool.workers))
    makespan = pool.boot_seconds + rounds * seconds
    paid = hosts * pool.workers * makespan
    return hosts, makespan, paid - count * seconds


@pytest.mark.parametrize("workers", [1, 4])
def test_burst(workers: int) -> None:
    pool = Pool("a", workers=workers, most=500 // workers, boot_seconds=60.0)
    hosts, makespan, idle = best_burst(10_000, 30.0, pool)
    assert (hosts * workers, makespan, idle) == (500, 660.0, 30_000.0)
    cluster = SimulatedCluster([pool], burst(10_000, 30.0), seed=1, idle_seconds=IDLE_SECONDS)
    cluster.run(2000)
    assert cluster.done == 10_000 and cluster.reruns == 0
    assert cluster.idle_core_seconds <= IDLE_BAR * idle
    assert cluster.makespan <= MAKESPAN_BAR * makespan
    assert cluster.most_hosts["a"] <= OVERSHOOT_BAR * hosts
    assert not cluster.hosts and cluster.now <= cluster.makespan + IDLE_SECONDS + 60


@pytest.mark.parametrize("seed", range(1))
def test_burst_of_unequal_tasks(seed: int) -> None:
    drawn = random.Random(seed)
    tasks = [Task(0.0, drawn.uniform(10.0, 50.0)) for _ in range(10_000)]
    pool = Pool("a", most=500, boot_seconds=60.0)
    cluster = SimulatedCluster([pool], tasks, seed=seed, faults={"a": Faults(boot_jitter=0.2)})
    cluster.run(2000)
    best = 60.0 + sum(task.seconds for task in tasks) / 500
    assert cluster.done == len(tasks) and cluster.reruns == 0 and not cluster.hosts
    assert cluster.makespan <= MAKESPAN_BAR * best
    assert cluster.idle_core_seconds <= IDLE_BAR * (500 * 60.0)


def test_burst_of_known_short_tasks_needs_few_hosts() -> None:
    pool = Pool("a", most=500, boot_seconds=60.0)
    cluster = SimulatedCluster([pool], burst(10_000, 0.3), seed=1, known={"f": 0.3})
    cluster.run(1000)
    assert cluster.done == 10_000 and not cluster.hosts
    assert cluster.most_hosts["a"] <= OVERSHOOT_BAR * 3000 / 60


def test_no_more_hosts_than_tasks() -> None:
    cluster = SimulatedCluster([Pool("a", most=500)], burst(7, 3600.0), seed=1)
    cluster.run(10_000)
    assert cluster.done == 7 and cluster.started["a"] == 7


def test_steady_load_keeps_its_hosts() -> None:
    """100 workers are busy all the time. Hosts that are busy do not come and go, and no backlog stays."""
    tasks = [Task(at / 10, 10.0) for at in range(10 * 3600)]
    pool = Pool("a", most=500, boot_seconds=60.0)
    cluster = SimulatedCluster([pool], tasks, seed=1, known={"f": 10.0})
    cluster.run(7200)
    assert cluster.done == len(tasks) and cluster.reruns == 0 and not cluster.hosts
    # While the first hosts boot, 6,000 s of work gather: 100 more workers do this work within the target time.
    assert cluster.most_hosts["a"] <= 200
    assert cluster.makespan <= tasks[-1].at + 10.0 + 60.0
    assert cluster.idle_core_seconds <= 0.15 * 100 * 3600
    assert cluster.started["a"] <= 200


def test_waves() -> None:
    tasks = [Task(wave * 900.0, 20.0) for wave in range(4) for _ in range(1000)]
    pool = Pool("a", workers=4, most=50, boot_seconds=30.0)
    cluster = SimulatedCluster([pool], tasks, seed=1)
    cluster.run(6000)
    assert cluster.done == len(tasks) and cluster.reruns == 0 and not cluster.hosts
    assert cluster.started["a"] == 4 * 50  # all end between two waves


@pytest.mark.parametrize("seed", range(3))
def test_long_tail(seed: int) -> None:
    drawn = random.Random(seed)
    tasks = [Task(0.0, min(900.0, 5.0 * drawn.paretovariate(1.2))) for _ in range(5000)]
    cluster = SimulatedCluster([Pool("a", most=200, boot_seconds=60.0)], tasks, seed=seed)
    cluster.run(8000)
    best = 60.0 + max(sum(task.seconds for task in tasks) / 200, max(task.seconds for task in tasks))
    assert cluster.done == len(tasks) and cluster.reruns == 0 and not cluster.hosts
    assert cluster.makespan <= 1.6 * best  # tasks come in their order, so the longest may begin last
    # Hosts end while the longest tasks still run: far fewer idle core-seconds than all hosts until the end.
    assert cluster.idle_core_seconds <= 0.25 * 200 * cluster.makespan


def test_2000_hosts_of_which_some_fail() -> None:
    pool = Pool("a", most=2000, boot_seconds=180.0)
    hosts, makespan, idle = best_burst(20_000, 60.0, pool)
    faults = {"a": Faults(dies_at_boot=0.03, never_comes=0.02, boot_jitter=0.2)}
    cluster = SimulatedCluster([pool], burst(20_000, 60.0), seed=1, tick_seconds=2.0, faults=faults)
    cluster.run(4000)
    assert cluster.done == 20_000 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.makespan <= MAKESPAN_BAR * makespan
    assert cluster.idle_core_seconds <= IDLE_BAR * idle
    assert cluster.most_hosts["a"] <= OVERSHOOT_BAR * hosts
    (counts,) = cluster.policy.counts()
    assert 0 < counts.failed <= 0.1 * 2000 and not counts.rests


def test_cheapest_pool_is_filled_first() -> None:
    pools = [Pool("dear", most=100, cost=10.0, boot_seconds=30.0), Pool("cheap", most=20, cost=1.0, boot_seconds=30.0)]
    cluster = SimulatedCluster(pools, burst(1000, 20.0), seed=1)
    cluster.run(3000)
    assert cluster.started == {"dear": 100, "cheap": 20}
    few = SimulatedCluster(pools, burst(10, 20.0), seed=1)
    few.run(3000)
    assert few.started == {"dear": 0, "cheap": 10}


def test_tasks_go_to_the_pool_that_can_serve_them() -> None:
    pools = [
        Pool("gpu", most=10, cost=5.0, capabilities={"gpu": 2}, boot_seconds=30.0),
        Pool("plain", most=10, cost=1.0, boot_seconds=30.0),
    ]
    tasks = [*(Task(0.0, 10.0, "g", {"gpu": 1}) for _ in range(3)), Task(0.0, 10.0, "f")]
    cluster = SimulatedCluster(pools, tasks, seed=1)
    cluster.run(3000)
    assert cluster.done == 4 and not cluster.hosts
    assert cluster.started == {"gpu": 3, "plain": 1}


def test_tasks_that_no_pool_can_serve_start_nothing() -> None:
    cluster = SimulatedCluster([Pool("a", most=10)], [Task(0.0, 1.0, "f", {"gpu": 1})], seed=1)
    cluster.run(300)
    assert cluster.started["a"] == 0


def test_pool_that_fails_is_tried_elsewhere_and_rested() -> None:
    pools = [Pool("bad", most=50, cost=1.0, boot_seconds=30.0), Pool("good", most=50, cost=2.0, boot_seconds=30.0)]
    cluster = SimulatedCluster(pools, burst(500, 20.0), seed=1, faults={"bad": Faults(dies_at_boot=1.0)})
    cluster.run(3000)
    assert cluster.done == 500 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.started["good"] >= 50
    assert cluster.started["bad"] <= 100  # the first 50, as many that replace them, and single tries
    assert cluster.makespan < 400


def test_provider_that_fails_at_once() -> None:
    pools = [Pool("bad", most=50, cost=1.0, boot_seconds=30.0), Pool("good", most=50, cost=2.0, boot_seconds=30.0)]
    cluster = SimulatedCluster(pools, burst(500, 20.0), seed=1, faults={"bad": Faults(start_fails=True)})
    cluster.run(3000)
    assert cluster.done == 500 and not cluster.hosts
    assert cluster.makespan <= 30 + 200 + 10


def test_pool_that_recovers_is_used_again() -> None:
    faults = Faults(start_fails=True)
    cluster = SimulatedCluster([Pool("a", most=5, boot_seconds=10.0)], burst(50, 10.0), seed=1, faults={"a": faults})
    cluster.run(300)
    assert cluster.started["a"] == 0
    tries = [reason for reason in cluster.reasons if "start" in reason]
    assert len(tries) <= 10, tries  # it rests longer and longer
    rests = [line for line in cluster.lines if " rests for " in line]
    assert rests[0].startswith("pool a rests for 10 s: ") and 1 < len(rests) <= 10
    faults.start_fails = False
    cluster.run(1500)
    assert cluster.done == 50 and not cluster.hosts


def test_time_limit_of_hosts() -> None:
    """Hosts drain before their provider ends them: no task runs again."""
    pool = Pool("a", most=20, boot_seconds=30.0, time_limit_seconds=600.0, retire_seconds=120.0)
    cluster = SimulatedCluster([pool], burst(2000, 20.0), seed=1)
    cluster.run(6000)
    assert cluster.done == 2000 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.started["a"] > 40


@pytest.mark.parametrize("restart_at", [10.0, 75.0, 200.0, 640.0, 700.0])
def test_killed_and_started_again(restart_at: float) -> None:
    """A new policy finds its hosts: it neither requests them twice nor forgets to end them."""
    pool = Pool("a", most=100, boot_seconds=60.0)
    cluster = SimulatedCluster([pool], burst(2000, 30.0), seed=1)
    cluster.restart_at = restart_at
    cluster.run(3000)
    assert cluster.done == 2000 and cluster.reruns == 0 and not cluster.hosts
    assert cluster.started["a"] == 100
    assert cluster.now <= max(cluster.makespan, restart_at) + 2 * IDLE_SECONDS + 60


def test_least_hosts_stay() -> None:
    cluster = SimulatedCluster([Pool("a", least=3, most=10, boot_seconds=10.0)], burst(200, 10.0), seed=1)
    cluster.run(600)
    assert cluster.done == 200
    assert cluster.serving("a") == 3 and len(cluster.hosts) == 3


def test_two_pools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="2 pools have the name a"):
        SimulatedCluster([Pool("a")], [], seed=1).policy.__class__(
            [Pool("a"), Pool("a")], target_seconds=1.0, idle_seconds=1.0, draw=str, now=0.0
        )
