"""dask on four hosts, with values of four times the memory that they have for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from tests.integration.commands import Command, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 120
HOSTS = 4
LIMIT = 4 << 20
"""Of the values in the memory of one host."""

TOTAL = 4 * HOSTS * LIMIT
PARTS = 8
ROWS = TOTAL // 2 // PARTS // 32
"""Of one part of a frame: two frames with columns of 32 bytes a row have all bytes."""


FORKED = """
import os, signal, sys
import dask.dataframe
from scaler_worker.cli import main

agents = []
signal.signal(signal.SIGTERM, lambda *_: [os.kill(agent, signal.SIGTERM) for agent in agents])
for _ in range(int(sys.argv[1])):
    if not (agent := os.fork()):
        os._exit(main(sys.argv[2:]))
    agents.append(agent)
for agent in agents:
    os.waitpid(agent, 0)
"""
"""Several scaler_cluster. They import dask once together, which takes most of the time of these tests."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("hosts")
    options = ["-n", "1", "--object-memory", str(LIMIT), "--spill-directory", str(folder)]
    with scheduler(folder) as daemon, monitor(daemon.monitor_address) as watch:
        agents = Command([sys.executable, "-c", FORKED, str(HOSTS), daemon.address, *options], folder / "hosts.log")
        try:
            wait_until(lambda: watch.next().workers == HOSTS, SECONDS, "all workers are there")
            with Client(daemon.address, timeout_seconds=SECONDS) as client:
                yield client
            seen = watch.next()
            assert seen.sent["transfer_objects"] > 0 and not seen.sent.get("fetch_objects")
            wait_until(lambda: sum(watch.next().agent_columns.moved_bytes) > TOTAL, what="values went to disk")
            assert agents.log().count("died") == 0
        finally:
            agents.end()


def part(number: int) -> pd.DataFrame:
    """Rows whose keys are spread over all parts: each key is once in a frame."""
    keys = np.arange(ROWS) * PARTS + number
    return pd.DataFrame({"key": keys[::-1] * 7919 % (ROWS * PARTS), "a": keys, "b": keys + 1, "c": keys + 2})


def frame() -> Any:
    return dd.from_map(part, range(PARTS), meta=part(0).iloc[:0])


def test_a_merge(hosts: Client) -> None:
    merged = frame().merge(frame(), on="key")
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        same, rows = dask.compute((merged.a_x == merged.a_y).sum(), merged.c_y.sum(), scheduler=hosts.dask_get)
    count = ROWS * PARTS
    assert (same, rows) == (count, sum(range(2, count + 2)))


def test_an_index(hosts: Client) -> None:
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        indexed = frame().set_index("key", divisions=list(range(0, ROWS * PARTS + 1, ROWS)))
        assert indexed.map_partitions(lambda f: f.index.is_monotonic_increasing).compute(scheduler=hosts.dask_get).all()


def test_arrays(hosts: Client) -> None:
    side = int((TOTAL // 8) ** 0.5)
    x = da.ones((side, side), chunks=(side // 4, side // 4))
    assert (x @ x.T).sum().compute(scheduler=hosts.dask_get) == side**3
    assert (x.rechunk((side, side // 8)).sum(axis=0) == side).all().compute(scheduler=hosts.dask_get)
