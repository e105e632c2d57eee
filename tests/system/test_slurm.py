"""packaging/slurm: a job array of agents on a Slurm of one node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.commands import cluster, scheduler
from tests.system import roots
from tests.system.machine import Machine
from tests.system.slurm_node import SlurmNode
from tests.system.work import check, square_slowly, submit_many
from tests.waiting import wait_until

from scaler_client import Client

pytestmark = pytest.mark.timeout(600)

SCRIPT = str(roots.CHECKOUT / "packaging" / "slurm" / "scaler-cluster.sbatch")
LIMIT_SECONDS = 120.0
"""The time limit in minutes. Slurm's shortest is a minute, and its signal may come up to a minute early."""


@pytest.fixture
def node(boot: Callable[..., Machine]) -> Iterator[SlurmNode]:
    started = SlurmNode(boot(roots.slurm(), roots.environment()))
    yield started
    started.end()


def test_array_of_agents_retires_before_the_time_limit(node: SlurmNode, tmp_path: Path) -> None:
    with scheduler(tmp_path) as there, Client(there.address) as client:
        options = ("--array=1-2", "--cpus-per-task=2", "--time=1", "--signal=B:TERM@30")
        job = node.submit(*options, SCRIPT, there.address)
        check(submit_many(client, 40))
        wait_until(lambda: len(_processes(client)) == 4, 60.0, "two agents with two workers each")
        futures = [client.submit(square_slowly, value, 0.5) for value in range(10_000)]
        wait_until(lambda: node.states(job) == {"COMPLETED"}, LIMIT_SECONDS, "the agents to retire")
        log = node.log(job)
        assert log.count("SIGTERM: retiring") == 2 and log.count("no task runs any more: ending 2 workers") == 2, log
        left = next(number for number, future in enumerate(futures) if not future.done())
        for future in futures[left + 20 :]:
            future.cancel()
        with cluster(tmp_path, there.address, 2):  # their tasks run elsewhere
            check(futures[: left + 20])


def test_cancelled_agent_retires(node: SlurmNode, tmp_path: Path) -> None:
    with scheduler(tmp_path) as there, Client(there.address) as client:
        job = node.submit("--array=1", "--cpus-per-task=1", f"--export=ALL,SCALER_ADDRESS={there.address}", SCRIPT)
        assert client.submit(pow, 2, 10).result(60) == 1024
        node.machine.run("scancel", job)
        wait_until(lambda: node.states(job) == {"CANCELLED"}, 60.0, "the job's end")
        wait_until(lambda: "has left" in there.log(), 30.0, "the agent's goodbye")
    assert "SIGTERM: retiring" in node.log(job)


def test_missing_address_is_reported(node: SlurmNode) -> None:
    job = node.submit("--array=1", SCRIPT)
    wait_until(lambda: node.states(job) == {"FAILED"}, 60.0, "the job's end")
    assert "no address: sbatch scaler-cluster.sbatch tcp://HOST:PORT" in node.log(job)


def _processes(client: Client) -> set[int]:
    """The names of the connected workers."""
    return {future.result(60) for future in [client.submit(_process_after, 0.2) for _ in range(16)]}


def _process_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()
