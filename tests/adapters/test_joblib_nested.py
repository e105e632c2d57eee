"""joblib calls inside joblib calls, and inside tasks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import pytest
from joblib import Parallel, delayed
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo, register_joblib
from scaler_client.nested import task_host

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FOREVER = 600.0


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    register_joblib()


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    """A cluster of one worker: a task that waits without giving up its slot waits forever."""
    with SchedulerClusterCombo(n_workers=1) as combo:
        yield combo


@pytest.fixture
def backend(client: Client) -> Iterator[None]:
    with joblib.parallel_config(backend="scaler", client=client):
        yield


def square(number: int) -> int:
    return number * number


def tree(depth: int, n_jobs: int | None, **settings: Any) -> int:
    """Count the leaves of a tree, one call for each node."""
    if not depth:
        return 1
    return sum(Parallel(n_jobs=n_jobs, **settings)(delayed(tree)(depth - 1, n_jobs, **settings) for _ in range(4)))


def depth_of(_: int) -> int:
    assert task_host.host is not None
    task = task_host.host.current()
    assert task is not None
    return task.depth


@pytest.mark.parametrize("n_jobs", [None, -1, 2, 1])
def test_nested_calls(n_jobs: int | None, backend: None) -> None:
    assert Parallel(n_jobs=-1)(delayed(tree)(2, n_jobs) for _ in range(6)) == [16] * 6


@pytest.mark.parametrize("settings", [{"timeout": 60}, {"pre_dispatch": 1, "batch_size": 1}, {"pre_dispatch": "all"}])
def test_settings_of_nested_calls(settings: dict[str, Any], backend: None) -> None:
    assert Parallel()(delayed(tree)(3, -1, **settings) for _ in range(2)) == [64] * 2


def test_nested_calls_have_one_job_unless_they_ask_for_more(backend: None) -> None:
    def jobs(_: int) -> list[int]:
        return [joblib.effective_n_jobs(n) for n in (None, 1, 5, -1)]

    assert Parallel()(delayed(jobs)(i) for i in range(3)) == [[1, 1, 5, 2]] * 3


def test_all_batches_of_a_nested_call_are_children_of_its_task(backend: None) -> None:
    def depths(_: int) -> list[int]:
        # Each batch but the first is submitted when the previous one is done.
        return Parallel(n_jobs=2, batch_size=1, pre_dispatch=1)(delayed(depth_of)(i) for i in range(6))

    assert Parallel()(delayed(depths)(i) for i in range(3)) == [[1] * 6] * 3


def test_a_generator_in_a_task_runs_in_the_task(backend: None) -> None:
    def consume(return_as: str) -> tuple[list[int], set[int]]:
        results = Parallel(n_jobs=2, return_as=return_as)(delayed(depth_and_square)(i) for i in range(5))
        depths, squares = zip(*results)
        return sorted(squares), set(depths)

    def depth_and_square(number: int) -> tuple[int, int]:
        return depth_of(number), square(number)

    kinds = ["generator", "generator_unordered", "generator"]
    assert Parallel()(delayed(consume)(kind) for kind in kinds) == [([0, 1, 4, 9, 16], {0})] * 3


def test_joblib_inside_a_submitted_task(client: Client) -> None:
    def run(client: Client) -> list[int]:
        register_joblib()
        with joblib.parallel_config(backend="scaler", client=client):
            return Parallel()(delayed(square)(i) for i in range(10))

    def run_with_own_client() -> list[int]:
        register_joblib()
        with joblib.parallel_config(backend="scaler"):
            return Parallel(n_jobs=2)(delayed(square)(i) for i in range(10))

    futures = [client.submit(run, client), client.submit(run_with_own_client)]
    assert [future.result(60) for future in futures] == [[i * i for i in range(10)]] * 2


@pytest.mark.parametrize("how", ["parallel_config", "Parallel", "parallel_backend"])
def test_a_call_can_name_the_backend_again(client: Client, backend: None, how: str) -> None:
    def forget() -> None:
        joblib.parallel.BACKENDS.pop("scaler", None)

    client.submit(forget).result(60)  # other tests have registered it in the worker

    def named_again(_: int) -> list[tuple[int, int]]:
        calls = [delayed(depth_and_square)(i) for i in range(5)]
        if how == "Parallel":
            return Parallel(n_jobs=2, backend="scaler")(calls)
        with getattr(joblib, how)(backend="scaler"):
            return Parallel(n_jobs=2)(calls)

    def depth_and_square(number: int) -> tuple[int, int]:
        return depth_of(number), square(number)

    assert Parallel()(delayed(named_again)(i) for i in range(3)) == [[(1, i * i) for i in range(5)]] * 3


def test_an_error_passes_through_nested_calls(backend: None) -> None:
    def fail(depth: int) -> int:
        if not depth:
            raise LookupError("at the bottom")
        return sum(Parallel(n_jobs=2)(delayed(fail)(depth - 1) for _ in range(2)))

    with pytest.raises(LookupError, match="at the bottom"):
        Parallel()(delayed(fail)(3) for _ in range(2))
    assert Parallel()(delayed(square)(i) for i in range(3)) == [0, 1, 4]


def test_a_task_is_stopped_while_it_waits_for_its_call(client: Client, tmp_path: Path) -> None:
    def wait(folder: Path) -> None:
        (folder / "runs").touch()
        time.sleep(FOREVER)

    def call(client: Client) -> None:
        register_joblib()
        with joblib.parallel_config(backend="scaler", client=client):
            Parallel(n_jobs=2)(delayed(wait)(tmp_path) for _ in range(2))

    future = client.submit(call, client)
    wait_until((tmp_path / "runs").exists)
    assert future.cancel(force=True)
    assert client.submit(square, 5).result(30) == 25  # its batches are stopped too
