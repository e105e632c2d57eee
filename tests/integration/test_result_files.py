"""Large results go to a client of the same host as files, which it maps. Real processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo
from scaler_client.commands.object_files import directory_of, result_of
from scaler_client.pickling.object_frames import ResultFile

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

LENGTH = 100_000
"""Numbers in an array of 800,000 bytes."""


def ones(length: int = LENGTH) -> Any:
    return numpy.ones(length)


def table(length: int = LENGTH) -> Any:
    return {"large": numpy.ones(length), "small": numpy.arange(3), "text": "x"}


def look_at(found: Any) -> tuple[float, int, bool, bool]:
    large, small = found["large"], found["small"]
    return float(large.sum()), int(small.sum()), large.flags.writeable, small.flags.writeable


def after(path: str) -> Any:
    while not os.path.exists(path):
        time.sleep(0.01)
    return numpy.ones(LENGTH)


def result_files(client: Client) -> list[str]:
    directory = directory_of(client._connection.io_thread._session.incarnation)
    return [name for name in os.listdir(directory) if result_of(name) is not None]


def is_file(future: Any) -> bool:
    future.exception()
    return isinstance(future._answer, ResultFile)


def test_the_program_may_change_what_it_gets_and_tasks_read_what_was_returned(client: Client) -> None:
    future = client.submit(table)
    mine = future.result()
    assert is_file(future) and not result_files(client)
    mine["large"][:] = 5
    mine["small"][:] = 5
    assert client.submit(look_at, future).result() == (LENGTH, 3, False, False)
    assert mine["large"].sum() == 5 * LENGTH


def test_a_task_may_read_a_result_before_it_is_there(client: Client, tmp_path: Path) -> None:
    go = tmp_path / "go"
    future = client.submit(after, str(go))
    reader = client.submit(lambda array: float(array.sum()), future)
    go.touch()
    assert reader.result() == LENGTH and future.result().sum() == LENGTH


@pytest.mark.parametrize("way", ["map", "executor", "as_completed", "graph", "chain", "keep", "bytes", "gang"])
def test_all_ways_to_results(client: Client, way: str) -> None:
    values: list[Any]
    if way == "map":
        values = client.map(ones, [(LENGTH,)] * 20)
    elif way == "executor":
        with client.executor() as executor:
            values = list(executor.map(ones, [LENGTH] * 20))
    elif way == "as_completed":
        values = [future.result() for future in client.as_completed([client.submit(ones) for _ in range(20)])]
    elif way == "graph":
        graph = {"a": (ones,), "b": (numpy.negative, "a"), "c": (numpy.negative, "b")}
        values = list(client.get(graph, ["a", "c"]).values())
    elif way == "chain":
        future = client.submit(ones)
        for _ in range(5):
            future = client.submit(numpy.array, future)
        values = [future.result()]
    elif way == "keep":
        values = [client.options(keep=True).submit(ones).result()]
    elif way == "bytes":
        values = [numpy.frombuffer(client.submit(lambda: numpy.ones(LENGTH).tobytes()).result())]
    else:
        values = client.submit_gang(ones, size=2).result()
    assert [float(each.sum()) for each in values] == [LENGTH] * len(values)
    assert not result_files(client)


def test_results_outlive_their_futures(client: Client) -> None:
    arrays = [client.submit(ones).result() for _ in range(5)]
    arrays[0][0] = 7
    assert [float(each.sum()) for each in arrays] == [LENGTH + 6] + [LENGTH] * 4


def test_the_file_of_a_task_that_nobody_waits_for_is_removed(client: Client, tmp_path: Path) -> None:
    """A worker may have written it when its task is cancelled, or given to another worker."""
    directory = Path(directory_of(client._connection.io_thread._session.incarnation))
    client.submit(int).result()
    incarnation = directory.name.partition("-")[2]
    (directory / f"{incarnation}-{1 << 48 | 12345:016x}").write_bytes(b"result")
    assert result_files(client)
    wait_until(lambda: not result_files(client))


def test_nothing_is_left_of_a_client(combo: SchedulerClusterCombo) -> None:
    client = Client(combo.get_address())
    directory = directory_of(client._connection.io_thread._session.incarnation)
    future = client.submit(ones)
    assert future.result().sum() == LENGTH and os.path.isdir(directory)
    client.disconnect()
    assert not os.path.exists(directory)
    assert future.result().sum() == LENGTH
