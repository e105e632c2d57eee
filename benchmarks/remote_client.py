"""A client on a host of its own, without shared memory of other hosts: it sends values, and one task reads each.

Usage: python -m benchmarks.remote_client ADDRESS KIND BYTES RUNS. KIND is `object` or `argument`. It prints the seconds
of each run, on lines of their own.
"""

from __future__ import annotations

import sys
import time

from scaler_client import Client

from .host_work import make, number_of
from .processes import PATIENCE_SECONDS

SMALL = 1_000_000
"""The bytes of the first value, which connects the hosts."""


def main(address: str, kind: str, size: int, runs: int) -> None:
    with Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
        for run in range(-1, runs):
            value = make(size if run >= 0 else SMALL, run)
            begin = time.perf_counter()
            argument = client.send_object(value) if kind == "object" else value
            found = client.submit(number_of, argument).result(PATIENCE_SECONDS)
            if found != run:
                raise RuntimeError(f"wrong result: {found} in place of {run}")
            if run >= 0:
                print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
