"""Hosts that differ: a host agent of another version, and hosts whose clocks are wrong. Real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cloudpickle
import numpy
import pytest
from tests.integration.commands import cluster_command, monitor, run_once
from tests.integration.test_client_files import read_everywhere
from tests.integration.test_host_transfers import SECONDS, SIZE, hosts_of, make, meet
from tests.integration.test_host_transfers import read_everywhere as read_result_everywhere

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

OLDER = """
import socket, sys
import scaler_worker
socket.gethostname = lambda: "older"
scaler_worker.__version__ = "0.0.9"

from scaler_client.protocol.messages import TransferObjects
from scaler_worker.agent import data_server, process
from scaler_worker.agent.session import AgentSession
from scaler_worker.cli import main

process.__version__ = "0.0.9"
data_server.DataServer._bind = lambda *arguments: None
del AgentSession._handlers[TransferObjects]
sys.exit(main(sys.argv[1:]))
"""
"""scaler_cluster of a version without data addresses: it knows no `transferObjects`."""

CLOCK = """
import sys, time
years, real = int(sys.argv.pop(1)), time.time
time.time = lambda: real() + years * 365 * 86400
time.time_ns = lambda: round(time.time() * 1e9)
from scaler_worker.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""scaler_cluster whose clock is so many years ahead."""


def test_an_agent_of_another_version_gets_values_through_the_scheduler(tmp_path: Path) -> None:
    with hosts_of(tmp_path, cluster_command(), [sys.executable, "-c", OLDER]) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 2)
        assert seen.sent.get("fetch_objects") == 1 and not seen.dropped.get("malformed")
        (tmp_path / "log").unlink()
        seen = read_result_everywhere(tmp_path, daemon, client, 2)
        assert seen.sent.get("fetch_objects")
        status = run_once([sys.executable, "-m", "scaler_client", "status", daemon.monitor_address])
        assert "0.0.9" in status.stdout, "it names the version that differs"


def test_hosts_whose_clocks_are_wrong(tmp_path: Path) -> None:
    hosts = [[sys.executable, "-c", CLOCK, years] for years in ("-20", "20")]
    with hosts_of(tmp_path, *hosts) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 2)
        assert seen.received.get("transferred", 0) + seen.sent.get("fetch_objects", 0) >= 2
        (tmp_path / "log").unlink()
        seen = read_result_everywhere(tmp_path, daemon, client, 2)
        assert not seen.unreachable_hosts
        kept = client.options(keep=True).submit(make)
        readers = [client.submit(meet, str(tmp_path / "again"), 2, kept) for _ in range(2)]
        assert {last for _, last in client.gather(readers)} == {SIZE // 8 - 1}
        profiled = client.options(profiling=True).submit(numpy.ones, 10)
        profiled.result(SECONDS)
        assert 0 <= profiled.profiling_info().duration_s < SECONDS
        with monitor(daemon.monitor_address) as watch:
            assert watch.next().workers == 2, "no lease has run out"
