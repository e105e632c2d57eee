"""scaler_autoscaler with the provider slurm, on a real Slurm of four nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.commands import monitor, scheduler
from tests.system import roots
from tests.system.machine import Machine
from tests.system.slurm_node import SlurmNode
from tests.system.work import check, square_slowly
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.protocol.snapshots import Snapshot

pytestmark = pytest.mark.timeout(600)

NODES = ("n0", "n1", "n2", "n3")
SECONDS = 120.0


@pytest.fixture
def nodes(boot: Callable[..., Machine]) -> Iterator[SlurmNode]:
    started = SlurmNode(boot(roots.slurm(), roots.environment()), NODES)
    yield started
    started.end()


def test_pool_grows_and_shrinks(nodes: SlurmNode, tmp_path: Path) -> None:
    """From none to four nodes and back under load, with a node killed."""
    machine = nodes.machine
    with scheduler(tmp_path, "--monitor-address", "tcp://127.0.0.1:*") as there, Client(there.address) as client:
        pool = "name=nodes provider=slurm workers=8 most=4 boot_seconds=60 retire_seconds=60 options=--exclusive"
        environment = (
            f"--setenv=PATH={Path(sys.executable).parent}:/usr/bin:/bin",
            f"--setenv=PYTHONPATH={roots.CHECKOUT}",
            "--working-directory=/root",
        )
        command = [sys.executable, "-m", "scaler_worker.autoscaler", there.address]
        command += ["--monitor-address", there.monitor_address, "--pool", pool]
        command += ["--target-seconds", "5", "--idle-seconds", "5", "--logging-paths", "/root/autoscaler.log"]
        machine.run("systemd-run", "--unit=autoscaler", *environment, *command)
        try:
            options = client.options(retries=3)
            futures = [options.submit(square_slowly, value, 1.0) for value in range(1000)]

            def wait_for(condition: Callable[[Snapshot], object], what: str) -> Snapshot:
                found: list[Snapshot] = []
                with monitor(there.monitor_address) as subscriber:
                    wait_until(lambda: found.append(subscriber.next()) or condition(found[-1]), SECONDS, what)
                return found[-1]

            wait_for(lambda each: each.agents == 4, "four nodes")
            assert machine.run("squeue", "--noheader", "--format=%N").split().__len__() == 4
            nodes.kill_node("n1")
            wait_for(lambda each: sum(pool.failed for pool in each.pools) == 1, "the lost host")
            check(futures)
            wait_for(lambda each: each.agents == 0, "no node")
            wait_until(lambda: not machine.run("squeue", "--noheader").strip(), 60.0, "an empty queue")
            log = machine.run("cat", "/root/autoscaler.log")
            assert "start 4 hosts of pool nodes: " in log and " of pool nodes: " in log.partition("drain ")[2], log
        finally:
            machine.run("systemctl", "stop", "autoscaler", status=None)
