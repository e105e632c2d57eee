"""Scheduler and cluster with logs on a full disk: they continue, and standard error stays short."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import Command, cluster_command, scheduler_command
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

WAIT_SECONDS = 60.0
FULL = "/dev/full"

pytestmark = pytest.mark.skipif(not os.path.exists(FULL), reason="there is no /dev/full")


def prints(lines: int) -> int:
    for number in range(lines):
        print("printed", number)
    return lines


def test_a_full_disk_does_not_stop_the_work(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/scheduler"
    monitor = f"ipc://{tmp_path}/monitor"
    links = {name: tmp_path / f"{name}.link" for name in ("scheduler", "cluster")}
    for link in links.values():
        link.symlink_to(FULL)
    options = {name: ("--logging-level", "DEBUG", "--logging-paths", str(link)) for name, link in links.items()}
    commands = [
        Command(scheduler_command(address, "--monitor-address", monitor, *options["scheduler"]), tmp_path / "0"),
        Command(cluster_command("-n", "2", *options["cluster"], address), tmp_path / "1"),
    ]
    try:
        with Client(address, timeout_seconds=WAIT_SECONDS) as client:
            assert client.map(prints, [(500,)] * 20) == [500] * 20
            for name, link in links.items():
                empty = tmp_path / f"{name}.new"
                empty.symlink_to(tmp_path / f"{name}.log")
                empty.replace(link)
            assert client.submit(prints, 1).result(WAIT_SECONDS) == 1
            log = tmp_path / "cluster.log"
            gap = "not written to this log: No space left on device"
            wait_until(lambda: log.exists() and gap in log.read_text(), what="the count of lost lines")
            assert "printed 0" in log.read_text()
        for name, command in zip(links, commands, strict=True):
            lines = command.log().splitlines()
            said = f"cannot write to the log {links[name]}: No space left on device; 1 line is lost so far"
            assert lines and all(said in line for line in lines), lines[:20]
            assert len(lines) <= 4, "one a process: agent, fork_server and two workers"
    finally:
        for command in reversed(commands):
            command.end()
