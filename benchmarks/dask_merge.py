"""A merge of two dask frames on a column that is no index, on any scheduler of dask.

    python -m benchmarks.dask_merge ADDRESS

runs it on a dask.distributed scheduler for each line of its standard input (a number of bytes), and prints the
seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import dask
import dask.dataframe
import numpy
import pandas  # type: ignore[import-untyped]

PARTS = 16
ROW_BYTES = 32


def part(number: int, rows: int) -> Any:
    """One part of a frame. Each key is once in the frame, and the keys of a part are spread over all parts."""
    numbers = numpy.arange(rows) * PARTS + number
    keys = numbers * 7919 % (rows * PARTS)
    return pandas.DataFrame({"key": keys, "a": numbers, "b": numbers + 1, "c": numbers + 2})


def merge(size: int, get: Callable[..., Any] | None = None) -> float:
    """Merge two frames which together have so many bytes.

    Args:
        size: in bytes.
        get: runs the graph, and shuffles by tasks; None: dask.distributed does both.

    Returns:
        The seconds that it takes.

    Raises:
        RuntimeError: the result is wrong.
    """
    rows = size // 2 // PARTS // ROW_BYTES
    frames = [dask.dataframe.from_map(part, range(PARTS), rows=rows, meta=part(0, 1).iloc[:0]) for _ in range(2)]
    begin = time.perf_counter()
    with dask.config.set({} if get is None else {"scheduler": get, "dataframe.shuffle.method": "tasks"}):
        merged = frames[0].merge(frames[1], on="key")
        same, total = dask.compute((merged.a_x == merged.a_y).sum(), merged.c_y.sum())
    seconds = time.perf_counter() - begin
    count = rows * PARTS
    if (int(same), int(total)) != (count, count * (count + 3) // 2):
        raise RuntimeError(f"wrong results: {same} and {total} of {count} rows")
    return seconds


def _main(address: str) -> None:
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(4)
        for size in sys.stdin:
            print(merge(int(size)), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1])
