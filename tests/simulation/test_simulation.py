"""The simulation in the suite: some seeds, each fault that it has ever found, and a check that a seed determines its
run. `make simulate` runs more seeds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.simulation import gang_plan, load_plan, nested_plan, restart_plan
from tests.simulation.plan import FIRST_FILE_SEED
from tests.simulation.regressions import REGRESSIONS
from tests.simulation.run import run_seed, run_seeds
from tests.simulation.scheduler_host import FIRST_KEY_SEED
from tests.simulation.world import World

SEEDS = 60
GANG_SEEDS = 20
LOAD_SEEDS = 4
NESTED_SEEDS = 20
RESTART_SEEDS = 20
CHUNK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_fails(first: int) -> None:
    figures, failures = run_seeds(range(first, first + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["seeds"] == CHUNK
    assert figures["resolved: value"] > 100


@pytest.mark.parametrize("first", range(gang_plan.FIRST_SEED, gang_plan.FIRST_SEED + GANG_SEEDS, CHUNK))
def test_no_seed_with_gangs_fails(first: int) -> None:
    figures, failures = run_seeds(range(first, first + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["gangs begun"] > 50 and figures["values exchanged"] > 50
    assert figures["members told that another has ended"] > 10


def test_no_seed_with_neighbours_of_waiting_tasks_fails() -> None:
    figures, failures = run_seeds(range(nested_plan.FIRST_SEED, nested_plan.FIRST_SEED + NESTED_SEEDS))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["suspensions"] > 500 and figures["successors"] > 50
    assert figures["suspended tasks that died"] > 0


def test_no_seed_with_results_as_files_of_clients_fails() -> None:
    figures, failures = run_seeds(range(FIRST_FILE_SEED, FIRST_FILE_SEED + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["results as files of clients"] > 100


def test_no_seed_with_keys_fails() -> None:
    figures, failures = run_seeds(range(FIRST_KEY_SEED, FIRST_KEY_SEED + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["tasks of tasks"] > 100


@pytest.mark.parametrize("first", [load_plan.FIRST_SEED, load_plan.FIRST_GANG_SEED])
def test_no_task_that_wants_much_waits_long(first: int) -> None:
    figures, failures = run_seeds(range(first, first + LOAD_SEEDS))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["bounded waits"] >= LOAD_SEEDS


@pytest.mark.parametrize("first", range(restart_plan.FIRST_SEED, restart_plan.FIRST_SEED + RESTART_SEEDS, CHUNK))
def test_no_task_runs_twice_over_restarts(first: int) -> None:
    figures, failures = run_seeds(range(first, first + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["executions"] > 1000


def test_no_task_runs_twice_because_a_connection_broke() -> None:
    figures, failures = run_seeds(range(restart_plan.FIRST_BREAK_SEED, restart_plan.FIRST_BREAK_SEED + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["answered tasks submitted again"] > 20


def test_kept_results_survive_restarts() -> None:
    figures, failures = run_seeds(range(restart_plan.FIRST_KEPT_SEED, restart_plan.FIRST_KEPT_SEED + CHUNK))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["values of kept results"] > 20


def test_no_task_waits_long_behind_those_that_come_after_it() -> None:
    figures, failures = run_seeds(range(load_plan.FIRST_JUMP_SEED, load_plan.FIRST_JUMP_SEED + 2 * LOAD_SEEDS))
    assert not failures, "\n\n".join(map(str, failures))
    assert figures["bounded waits"] >= LOAD_SEEDS
    assert figures["changes of workers"] > LOAD_SEEDS


@pytest.mark.parametrize(("seed", "what"), REGRESSIONS)
def test_earlier_faults_stay_fixed(seed: int, what: str) -> None:
    _, failure = run_seed(seed)
    assert failure is None, f"{failure}\n\nthis seed has found: {what}"


def _events_of(seed: int) -> list[str]:
    world = World(seed, keeps_all=True)
    world.run()
    return world.trace.lines()


@pytest.mark.parametrize("seed", [3, 7, 24])
def test_a_seed_determines_the_run(seed: int) -> None:
    assert _events_of(seed) == _events_of(seed)


def test_a_seed_determines_the_run_in_every_process() -> None:
    """A seed gives the same run in processes with other string hashes."""
    command = [sys.executable, "-m", "tests.simulation.run", "--seed", "5", "--all"]
    said = [
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) > 100


def test_the_seeds_differ() -> None:
    assert _events_of(3) != _events_of(7)
