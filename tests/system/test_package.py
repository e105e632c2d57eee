"""Debian's package: installation, upgrade while tasks run, removal and purge."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from tests.system.conftest import DEB, NEWER
from tests.system.machine import Machine
from tests.system.packages import Packages, version_of
from tests.system.service import INSTALL, UNIT, Service
from tests.system.work import check, submit_many, workers_and_client
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

NAME = "scaler-scheduler"
DEFAULT_PORT = 2345
_ALL_FILES = ("find", "/", "-xdev", "-path", "/tmp", "-prune", "-o", "-path", "/run", "-prune", "-o", "-print")
_OF_THE_SYSTEM = ("/var/lib/dpkg", "/var/log", "/var/cache/ldconfig", "/etc", "/var/lib/systemd", "/var/tmp")
"""Folders that change while a machine runs. Their files are still compared."""


def test_installed_package_runs_on_a_local_address(machine: Machine) -> None:
    if not is_free(DEFAULT_PORT):
        pytest.skip(f"port {DEFAULT_PORT} of this host, whose network the machine shares, is taken")
    machine.run(*INSTALL, DEB)
    wait_until(lambda: machine.property_of(UNIT, "ActiveState") == "active", 60.0, "the scheduler")
    assert machine.property_of(UNIT, "UnitFileState") == "enabled" and machine.property_of(UNIT, "NRestarts") == "0"
    process = machine.root / "proc" / machine.property_of(UNIT, "MainPID")
    listening = [line.split() for name in ("tcp", "tcp6") for line in (process / "net" / name).read_text().splitlines()]
    sockets = {os.readlink(path) for path in (process / "fd").iterdir()}
    bound = [words[1] for words in listening[1:] if words[3] == "0A" and f"socket:[{words[9]}]" in sockets]
    assert bound == [f"0100007F:{DEFAULT_PORT:04X}"]


def test_upgrade_loses_no_task(service: Service, built: Packages, tmp_path: Path) -> None:
    service.start()
    with workers_and_client(tmp_path, service.address) as client:
        futures = submit_many(client)
        process = service.property("MainPID")
        # The configuration was changed. dpkg must keep it without a question.
        service.machine.run("dpkg", "--install", "--force-confdef", "--force-confold", NEWER)
        assert not all(future.done() for future in futures)
        assert service.property("MainPID") not in ("0", process) and service.property("ActiveState") == "active"
        check(futures)
    assert installed_version(service.machine) == version_of(built.newer)


def test_remove_keeps_the_configuration_and_purge_keeps_nothing(machine: Machine) -> None:
    before, users = files(machine), accounts(machine)
    service = Service(machine, DEB)
    service.start()
    service.machine.run("dpkg", "--remove", NAME)
    assert service.property("ActiveState") == "inactive"
    assert service.address in machine.run("cat", "/etc/scaler/scheduler.toml")
    machine.run(*INSTALL, DEB)
    service.start()  # with the old configuration
    machine.run("systemctl", "enable", UNIT)
    machine.run("dpkg", "--purge", NAME)
    assert accounts(machine) == users
    assert files(machine) - before == set()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def installed_version(machine: Machine) -> str:
    return machine.run("dpkg-query", "--show", "--showformat", "${Version}", NAME)


def accounts(machine: Machine) -> str:
    return machine.run("getent", "passwd") + machine.run("getent", "group")


def files(machine: Machine) -> set[str]:
    """The files on the machine's disk, except files that its system writes."""
    found = machine.run(*_ALL_FILES).splitlines()
    return {path for path in found if not path.startswith(("/var/log/journal/", "/var/lib/dpkg/"))}
