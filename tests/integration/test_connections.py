"""Strangers that open connections to the real scheduler beyond its limits. The limits hold, and clients continue."""

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
    """Connections that send nothing."""
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
    """Whether the other side has closed the connection."""
    connection.settimeout(0.01)
    try:
        while connection.recv(1 << 10):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


def has_to_wait(address: str) -> bool:
    """Whether a new connection is not accepted at once. The function closes it."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    try:
        for _ in range(100):
            socket.create_connection((host, int(port)), 0.05).close()
    except TimeoutError:
        return True
    return False


def all_is_well(client: Client) -> None:
    assert client.map(pow, [(i, 2) for i in range(500)]) == [i * i for i in range(500)]


def is_counted(watch: Monitor, count: int) -> Callable[[], bool]:
    return lambda: watch.next().dropped.get("connections", 0) >= count


def test_connections_beyond_the_limit_are_cut_and_logged(tmp_path: Path) -> None:
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


def test_workers_beyond_the_limit_are_cut_and_monitors_still_connect(tmp_path: Path) -> None:
    """The limit leaves room for a client, an agent and two of its four workers.

    The other workers' hellos may arrive before these workers are cut.
    """
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


def test_a_low_limit_of_files_leaves_a_free_descriptor(tmp_path: Path) -> None:
    with few_files(tmp_path, 128) as daemon, cluster(tmp_path, daemon.address, 1):
        with Client(daemon.address, timeout_seconds=SECONDS) as client, many(daemon.address, 200) as strangers:
            wait_until(lambda: sum(map(is_over, strangers)) > 100, SECONDS)
            all_is_well(client)
            assert psutil.Process(daemon.process.pid).num_fds() < 128
            daemon.logged(r"(there are 64 already)")


@contextmanager
def few_files(folder: Path, files: int) -> Iterator[SchedulerCommand]:
    """A scheduler that may have this many open files."""
    script = folder / "few_files"
    script.write_text(f'#!/bin/sh\nulimit -n {files}\nexec {SCHEDULER_PYTHON} "$@"\n')
    script.chmod(0o700)
    with scheduler(folder, python=str(script)) as daemon:
        yield daemon


def test_a_peer_that_reconnects_endlessly_waits_and_others_work_on(tmp_path: Path) -> None:
    with (
        scheduler(tmp_path, "--connection-rate-limit", "20") as daemon,
        cluster(tmp_path, daemon.address, 1),
        Client(daemon.address, timeout_seconds=SECONDS) as client,
    ):
        # A connection also waits when the scheduler gets no processor time, so the log decides.
        limited = "more than 20 connections in a second from 127.0.0.1 (--connection-rate-limit)"
        wait_until(lambda: has_to_wait(daemon.address) and limited in daemon.log(), SECONDS)
        all_is_well(client)
        with Client(daemon.address, timeout_seconds=SECONDS) as other:  # it waits for a second or two
            all_is_well(other)


def test_silent_connections_are_cut_after_two_leases(tmp_path: Path) -> None:
    leases = "--client-timeout-seconds", "2", "--worker-timeout-seconds", "2"
    with scheduler(tmp_path, *leases) as daemon, monitor(daemon.monitor_address) as watch:
        with Client(daemon.address, timeout_seconds=SECONDS) as client, cluster(tmp_path, daemon.address, 1):
            with many(daemon.address, 3) as strangers:
                wait_until(is_counted(watch, 3), SECONDS)
                assert all(map(is_over, strangers))
            all_is_well(client)
            assert watch.next().dropped["connections"] == 3
