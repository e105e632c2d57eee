"""Strangers that open connections to the real scheduler beyond its limits: these hold, and its clients work on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.integration.commands import SCHEDULER_PYTHON, Monitor, SchedulerCommand, cluster, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import Client

SECONDS = 60

pytestmark = pytest.mark.timeout(180)


@contextmanager
def many(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            made.append(socket.create_connection((host, int(port)), SECONDS))
        yield made
    finally:
        for each in made:
            each.close()


def is_over(connection: socket.socket) -> bool:
    """Whether the other side has ended it."""
    connection.settimeout(0.01)
    try:
        while connection.recv(1 << 10):
            pass
    except socket.timeout:
        return False
    except ConnectionResetError:
        pass
    return True


def has_to_wait(address: str) -> bool:
    """Whether a new connection is not made at once; it is closed then."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    try:
        for _ in range(100):
            socket.create_connection((host, int(port)), 0.05).close()
    except socket.timeout:
        return True
    return False


def all_is_well(client: Client) -> None:
    assert client.map(pow, [(i, 2) for i in range(500)]) == [i * i for i in range(500)]


def is_counted(watch: Monitor, count: int) -> Callable[[], bool]:
    return lambda: watch.next().dropped.get("connections", 0) >= count


def test_beyond_the_limit_they_are_cut_and_the_log_says_so(tmp_path: Path) -> None:
    with (
        scheduler(tmp_path, "--connection-limit", "12") as daemon,
        cluster(tmp_path, daemon.address, 1),
        monitor(daemon.monitor_address) as watch,
        Client(daemon.address, timeout_seconds=SECONDS) as client,
    ):
        all_is_well(client)
        with many(daemon.address, 30) as strangers:
            wait_until(is_counted(watch, 18), SECONDS)
            wait_until(lambda: sum(map(is_over, strangers)) >= 18, SECONDS)
            assert not all(map(is_over, strangers))
            all_is_well(client)
        daemon.logged(r"(there are 12 already \(--connection-limit, or open files\))")
        with Client(daemon.address, timeout_seconds=SECONDS) as other:  # there is room again
            all_is_well(other)


def test_workers_beyond_the_limit_keep_nothing_and_who_looks_still_can(tmp_path: Path) -> None:
    """A client, an agent, two of its four workers: the others' hellos may come through before they are cut."""
    with (
        scheduler(tmp_path, "--connection-limit", "4", "--worker-timeout-seconds", "2") as daemon,
        Client(daemon.address, timeout_seconds=SECONDS) as client,
        cluster(tmp_path, daemon.address, 4),
    ):
        client.submit(pow, 2, 2).result(SECONDS)
        with monitor(daemon.monitor_address) as watch:
            wait_until(is_counted(watch, 10), SECONDS)
            for _ in range(5):
                assert client.gather([client.submit(pow, i, 2) for i in range(40)]) == [i * i for i in range(40)]


def test_where_the_system_allows_few_files_there_is_always_one_left(tmp_path: Path) -> None:
    with few_files(tmp_path, 128) as daemon, cluster(tmp_path, daemon.address, 1):
        with Client(daemon.address, timeout_seconds=SECONDS) as client, many(daemon.address, 200) as strangers:
            wait_until(lambda: sum(map(is_over, strangers)) > 100, SECONDS)
            all_is_well(client)
            assert psutil.Process(daemon.process.pid).num_fds() < 128
            daemon.logged(r"(there are 64 already)")


@contextmanager
def few_files(folder: Path, files: int) -> Iterator[SchedulerCommand]:
    """A scheduler that may have so many open."""
    script = folder / "few_files"
    script.write_text(f'#!/bin/sh\nulimit -n {files}\nexec {SCHEDULER_PYTHON} "$@"\n')
    script.chmod(0o700)
    with scheduler(folder, python=str(script)) as daemon:
        yield daemon


def test_who_connects_again_and_again_waits_and_others_work_on(tmp_path: Path) -> None:
    with (
        scheduler(tmp_path, "--connection-rate-limit", "20") as daemon,
        cluster(tmp_path, daemon.address, 1),
        Client(daemon.address, timeout_seconds=SECONDS) as client,
    ):
        wait_until(lambda: has_to_wait(daemon.address), SECONDS)
        daemon.logged(r"(more than 20 connections in a second from 127\.0\.0\.1 \(--connection-rate-limit\))")
        all_is_well(client)
        with Client(daemon.address, timeout_seconds=SECONDS) as other:  # it waits for a second or two
            all_is_well(other)


def test_who_says_nothing_is_cut_after_two_leases(tmp_path: Path) -> None:
    leases = "--client-timeout-seconds", "2", "--worker-timeout-seconds", "2"
    with scheduler(tmp_path, *leases) as daemon, monitor(daemon.monitor_address) as watch:
        with Client(daemon.address, timeout_seconds=SECONDS) as client, cluster(tmp_path, daemon.address, 1):
            with many(daemon.address, 3) as strangers:
                wait_until(is_counted(watch, 3), SECONDS)
                assert all(map(is_over, strangers))
            all_is_well(client)
            assert watch.next().dropped["connections"] == 3
