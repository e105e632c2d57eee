"""Debian's package: installed, upgraded while tasks run, removed and purged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.conftest import DEB, NEWER
from tests.system.machine import Machine
from tests.system.packages import Packages, version_of
from tests.system.service import INSTALL, UNIT, Service
from tests.system.work import check, submit_many, workers_and_client

pytestmark = pytest.mark.timeout(300)

NAME = "scaler-scheduler"
_ALL_FILES = ("find", "/", "-xdev", "-path", "/tmp", "-prune", "-o", "-path", "/run", "-prune", "-o", "-print")
_OF_THE_SYSTEM = ("/var/lib/dpkg", "/var/log", "/var/cache/ldconfig", "/etc", "/var/lib/systemd", "/var/tmp")
"""Folders whose own times or other contents change while a machine runs; what is in them is compared all the same."""


def test_upgraded_it_loses_no_task(service: Service, built: Packages, tmp_path: Path) -> None:
    service.start()
    with workers_and_client(tmp_path, service.address) as client:
        futures = submit_many(client)
        process = service.property("MainPID")
        # The configuration is this host's own: dpkg is to keep it, without a question.
        service.machine.run("dpkg", "--install", "--force-confdef", "--force-confold", NEWER)
        assert not all(future.done() for future in futures)
        assert service.property("MainPID") not in ("0", process) and service.property("ActiveState") == "active"
        check(futures)
    assert installed_version(service.machine) == version_of(built.newer)


def test_removed_it_leaves_its_configuration_and_purged_nothing(machine: Machine) -> None:
    before, users = files(machine), accounts(machine)
    service = Service(machine, DEB)
    service.start()
    service.machine.run("dpkg", "--remove", NAME)
    assert service.property("ActiveState") == "inactive"
    assert service.address in machine.run("cat", "/etc/scaler/scheduler.toml")
    machine.run(*INSTALL, DEB)
    service.start()  # with the configuration that was kept
    machine.run("systemctl", "enable", UNIT)
    machine.run("dpkg", "--purge", NAME)
    assert accounts(machine) == users
    assert files(machine) - before == set()


def installed_version(machine: Machine) -> str:
    return machine.run("dpkg-query", "--show", "--showformat", "${Version}", NAME)


def accounts(machine: Machine) -> str:
    return machine.run("getent", "passwd") + machine.run("getent", "group")


def files(machine: Machine) -> set[str]:
    """All that is on the machine's disk, but for what its system writes about itself."""
    found = machine.run(*_ALL_FILES).splitlines()
    return {path for path in found if not path.startswith(("/var/log/journal/", "/var/lib/dpkg/"))}
