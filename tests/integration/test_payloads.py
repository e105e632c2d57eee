"""Large payloads: a large function is sent once per hop, and arguments and results may have half a gigabyte."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
from tests.integration.commands import Command, cluster, cluster_command, monitor, monitor_address_of, scheduler
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
LARGE_SECONDS = 110
MEGABYTE = 1 << 20


def carrier(size: int) -> Any:
    data = os.urandom(size)
    return lambda x: len(data) + x


def fingerprint(data: bytes) -> tuple[int, bytes, bytes]:
    return len(data), hashlib.sha1(data[: 2 * MEGABYTE]).digest(), data[-10:]


def io_bytes(pid: int) -> int:
    """Return the bytes that a process has read and written, including sockets."""
    counters = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counters["rchar"]) + int(counters["wchar"])


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes in /proc")
def test_a_function_of_20_mb_is_sent_once_per_hop(tmp_path: Path) -> None:
    with SchedulerClusterCombo(n_workers=2) as combo, Client(combo.get_address()) as client:
        client.map(abs, [(1,)] * 100)
        before = io_bytes(combo.scheduler_pid)
        with monitor(monitor_address_of(combo.get_address())) as watch:
            fn = carrier(20 * MEGABYTE)
            functions = watch.next().received.get("function", 0)
            futures = [client.submit(fn, i) for i in range(1000)]
            results = client.map(fn, [(i,) for i in range(1000)]) + [future.result(SECONDS) for future in futures]
            assert sorted(results) == sorted(20 * MEGABYTE + i for i in [*range(1000)] * 2)
            seen = watch.next()
            assert seen.received["function"] == functions + 1
        moved = io_bytes(combo.scheduler_pid) - before
        # In once, and out once to each of two workers; recv and send do not count in rchar everywhere.
        assert moved < 4 * 20 * MEGABYTE


def test_an_unneeded_function_is_forgotten_everywhere(combo: SchedulerClusterCombo, client: Client) -> None:
    with monitor(monitor_address_of(combo.get_address())) as watch:
        for _ in range(70):  # more functions than the client keeps after their last use
            fn = carrier(100)
            assert client.submit(fn, 1).result(SECONDS) == 101
            del fn
        deadline = time.monotonic() + SECONDS
        while not watch.next().sent.get("forget_functions", 0):
            assert time.monotonic() < deadline
            client.submit(abs, 1).result(SECONDS)


@pytest.mark.timeout(240)
@pytest.mark.skipif(psutil.virtual_memory().available < 8 << 30, reason="needs 8 GB of memory")
def test_arguments_and_results_of_500_mb(tmp_path: Path) -> None:
    size = 500 * MEGABYTE
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address), Client(daemon.address) as client:
        data = os.urandom(MEGABYTE) * 500
        assert client.submit(fingerprint, data).result(LARGE_SECONDS) == fingerprint(data)
        del data
        back = client.submit(lambda n: b"x" * n, size)
        assert len(back.result(LARGE_SECONDS)) == size
        del back
        future = client.submit(abs, -3)
        assert future.result(SECONDS) == 3


def print_much(total: int) -> int:
    block = "x" * (1 << 20)
    for _ in range(total >> 20):
        print(block)
    sys.stdout.flush()
    return total


def test_a_task_that_prints_2_gb(tmp_path: Path) -> None:
    """The output goes to /dev/null: it must not go through scheduler or client."""
    with scheduler(tmp_path) as daemon:
        to_null = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *cluster_command("-n", "1", daemon.address)]
        command = Command(to_null, tmp_path / "cluster.log")
        try:
            with Client(daemon.address) as client:
                assert client.submit(print_much, 2 << 30).result(SECONDS) == 2 << 30
                assert client.submit(abs, -1).result(SECONDS) == 1
            assert command.stop() == 0
        finally:
            command.end()


def test_a_task_that_prints_to_an_unread_pipe_does_not_block_the_cluster(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with scheduler(tmp_path) as daemon:
        to_pipe = ["sh", "-c", f'exec "$@" >/dev/fd/{writer}', "sh", *cluster_command("-n", "1", daemon.address)]
        command = Command(to_pipe, tmp_path / "cluster.log", pass_fds=(writer,))
        try:
            with Client(daemon.address) as client:
                future = client.submit(print_much, 1 << 30)
                wait_until(future.running, SECONDS)
            assert command.stop() == 0
        finally:
            command.end()
            os.close(reader)
            os.close(writer)
