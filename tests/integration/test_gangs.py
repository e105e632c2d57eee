"""Gangs against real processes: rendezvous, failures, deaths, restarts, and the variables of torch.distributed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import cluster
from tests.integration.executions import note, notes
from tests.integration.restarts import OFTEN, Restarts, restarts
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client, TaskTimeoutError, WorkerDiedError, current_task

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarts]:
    with restarts(tmp_path_factory.mktemp("schedulers")) as started:
        yield started


@pytest.fixture(scope="module")
def client(daemon: Restarts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of two agents with two workers each."""
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    address = daemon.now.address
    with cluster(first, address, 2, *OFTEN), cluster(second, address, 2, *OFTEN), Client(address) as client:
        yield client


def rank_and_sum(numbers: list[int]) -> tuple[int, int, list[str], int]:
    gang = current_task().gang
    gang.barrier(SECONDS)
    totals = gang.all_gather(sum(numbers[gang.rank :: gang.size]), SECONDS)
    return gang.rank, gang.size, gang.hosts, sum(totals)


def variables() -> list[str | None]:
    return [os.environ.get(name) for name in VARIABLES]


def note_and_wait(log: str) -> None:
    note(log, str(current_task().gang.rank), current_task().attempt)
    time.sleep(SECONDS)


def note_and_return(log: str, release: str) -> int:
    """Return the attempt, when the file `release` is there."""
    note(log, str(current_task().gang.rank), current_task().attempt)
    while not os.path.exists(release):
        time.sleep(0.01)
    return current_task().attempt


def test_members_find_one_another(client: Client) -> None:
    here = socket.gethostname()
    results = client.submit_gang(rank_and_sum, list(range(100)), size=4).result(SECONDS)
    assert results == [(rank, 4, [here] * 4, 4950) for rank in range(4)]


def test_the_variables_of_torch_distributed(client: Client) -> None:
    results = client.submit_gang(variables, size=3).result(SECONDS)
    assert [result[:4] for result in results] == [[str(rank), "3", str(rank), "3"] for rank in range(3)]
    assert {tuple(result[4:]) for result in results} == {tuple(results[0][4:])}
    address, port = results[0][4:]
    assert address == "127.0.0.1" and port is not None and 0 < int(port) < 65536
    assert client.map(variables, [()] * 8) == [[None] * 6] * 8


def test_one_raises_and_all_end(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def fail() -> None:
        note(log, "begun")
        current_task().gang.barrier()
        if current_task().gang.rank == 1:
            raise KeyError("of rank 1")
        current_task().gang.barrier()

    began = time.monotonic()
    with pytest.raises(KeyError, match="of rank 1"):
        client.submit_gang(fail, size=4).result(SECONDS)
    assert time.monotonic() - began < SECONDS / 2
    assert len(notes(log)) == 4
    assert client.submit_gang(variables, size=4).result(SECONDS), "all workers are free again"


def test_one_dies_and_all_are_tried_again(client: Client, tmp_path: Path) -> None:
    log, release = str(tmp_path / "log"), str(tmp_path / "release")
    future = client.submit_gang(note_and_return, log, release, size=4)
    wait_until(lambda: len(notes(log)) == 4)
    os.kill(notes(log)[0].pid, signal.SIGKILL)
    wait_until(lambda: len(notes(log)) == 8)
    begun = sorted((each.event, each.task) for each in notes(log))
    assert begun == [(str(rank), str(attempt)) for rank in range(4) for attempt in (1, 2)]
    Path(release).touch()
    assert future.result(SECONDS) == [2] * 4


def test_without_retries_a_death_is_the_answer(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    future = client.options(retries=0).submit_gang(note_and_wait, log, size=2)
    wait_until(lambda: len(notes(log)) == 2)
    os.kill(notes(log)[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match="in its only attempt"):
        future.result(SECONDS)


def test_cancel_ends_all(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    future = client.submit_gang(note_and_wait, log, size=4)
    wait_until(lambda: len(notes(log)) == 4)
    wait_until(future.running)
    assert not future.cancel()
    assert future.cancel(force=True)
    with pytest.raises(CancelledError):
        future.result(SECONDS)
    assert client.submit_gang(variables, size=4).result(SECONDS)


def test_a_time_limit(client: Client) -> None:
    with pytest.raises(TaskTimeoutError):
        client.options(timeout=0.3).submit_gang(time.sleep, SECONDS, size=3).result(SECONDS)


def test_wrong_use_in_a_member(client: Client, tmp_path: Path) -> None:
    def wait_for_the_others(release: str) -> str:
        gang = current_task().gang
        if gang.rank:
            while not os.path.exists(release):
                time.sleep(0.01)
            return "does not come"
        with pytest.raises(TimeoutError, match=r"not all members of the gang have come within 0\.2 s"):
            gang.barrier(timeout=0.2)
        with pytest.raises(RuntimeError, match="out of step"):
            gang.barrier()
        Path(release).touch()
        return "timed out"

    def give_too_much() -> None:
        current_task().gang.all_gather(bytes(1 << 20))

    results = client.submit_gang(wait_for_the_others, str(tmp_path / "release"), size=2).result(SECONDS)
    assert results == ["timed out", "does not come"]
    with pytest.raises(ValueError, match="a member of this gang may give 65536"):
        client.submit_gang(give_too_much, size=2).result(SECONDS)
    assert client.submit(lambda: current_task().gang).result(SECONDS) is None


def test_a_member_does_not_wait_for_one_that_has_ended(client: Client, tmp_path: Path) -> None:
    def leave_first(log: str) -> str:
        gang = current_task().gang
        gang.barrier(SECONDS)
        if gang.rank == 1:
            while not notes(log):
                time.sleep(0.01)
            return "ends"
        note(log, "waits")
        text = "member 1 of the gang has ended without this call of member"
        with pytest.raises(RuntimeError, match=text):  # it waits when member 1 ends
            gang.barrier()
        with pytest.raises(RuntimeError, match=text):
            gang.all_gather(1)
        return "is told"

    future = client.submit_gang(leave_first, str(tmp_path / "log"), size=3)
    assert future.result(SECONDS) == ["is told", "ends", "is told"]

    def wait_for_rank_0() -> None:
        if current_task().gang.rank:
            current_task().gang.barrier()

    with pytest.raises(RuntimeError, match="member 0 of the gang has ended without this call of member 1: all members"):
        client.submit_gang(wait_for_rank_0, size=2).result(SECONDS)


def test_a_gang_starts_again_after_a_restart_of_the_scheduler(client: Client, daemon: Restarts, tmp_path: Path) -> None:
    log, release = str(tmp_path / "log"), str(tmp_path / "release")
    future = client.submit_gang(note_and_return, log, release, size=3)
    wait_until(lambda: len(notes(log)) == 3)
    daemon.kill()
    daemon.start(daemon.now.address)
    wait_until(lambda: len(notes(log)) == 6)
    Path(release).touch()
    attempts = future.result(SECONDS)
    assert len(set(attempts)) == 1 and attempts[0] > 1


def test_gangs_of_tasks_and_of_coroutines(client: Client, daemon: Restarts) -> None:
    address = daemon.now.address

    def submit_another() -> list[int]:
        with Client(address) as nested:
            return nested.submit_gang(lambda: current_task().gang.rank, size=4).result(SECONDS)

    assert client.submit(submit_another).result(SECONDS) == [0, 1, 2, 3]

    async def run() -> list[int]:
        async with AsyncClient(address) as asynchronous:
            return await asynchronous.submit_gang(lambda: current_task().gang.rank, size=2)

    assert asyncio.run(run()) == [0, 1]


def test_large_arguments_and_results(client: Client) -> None:
    data = client.send_object(os.urandom(1 << 20))

    def size_of(value: bytes) -> bytes:
        return value[: 100_000 * (1 + current_task().gang.rank)]

    results = client.submit_gang(size_of, data, size=3).result(SECONDS)
    assert [len(result) for result in results] == [100_000, 200_000, 300_000]
