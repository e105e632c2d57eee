"""The sandbox of the scheduler's unit: writable folders and the memory limit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.commands import monitor
from tests.system.machine import Machine
from tests.system.service import CONFIGURATION, UNIT, Service
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

MAX_EXPOSURE = 2.0
"""The highest exposure by `systemd-analyze security`. 0 is closed, 10 is open."""
WRITABLE = {"/run/scaler", "/var/cache/scaler", "/var/log/scaler"}
DEVICES = {f"/dev/{name}" for name in ("full", "null", "pts", "pts/ptmx", "random", "tty", "urandom", "zero")}
AS_ITS_USER = ("setpriv", "--reuid=scaler", "--regid=scaler", "--clear-groups", "--no-new-privs", "--inh-caps=-all")
MEGABYTES = 400
V1_MEMORY = Path("/sys/fs/cgroup/memory")


def within(service: Service, *command: str, status: int | None = 0) -> str:
    """The output of a command that sees the scheduler's file system. It runs as root, so only the sandbox restricts
    writing."""
    return service.machine.run("nsenter", "--mount", "--target", service.property("MainPID"), *command, status=status)


def test_writable_folders(service: Service) -> None:
    service.machine.run("scaler_scheduler", "keygen", "/etc/scaler/keys")
    service.machine.run("chown", "-R", "scaler:", "/etc/scaler/keys")
    service.configure('keys = "/etc/scaler/keys"', 'logging_paths = ["/var/log/scaler/scheduler.log"]')
    service.start()
    # /proc has only processes; the rest of it is tested below. Sockets and devices may be used if their mode allows it.
    searched = ("find", "/", "-path", "/proc", "-prune", "-o", "(", "-type", "f", "-o", "-type", "d", ")", "-writable")
    found = set(within(service, *searched, "-print").splitlines()) - DEVICES
    assert WRITABLE <= found
    assert {path for path in found if not WRITABLE & {path, *map(str, PurePosixPath(path).parents)}} == set()


@pytest.mark.parametrize("become", [(), AS_ITS_USER], ids=["root", "its user"])
def test_other_folders_are_read_only(service: Service, become: tuple[str, ...]) -> None:
    service.start()
    within(service, *become, "sh", "-c", "echo x >/var/log/scaler/x && echo x >/run/scaler/x")
    folders = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/etc/scaler", "/var/lib", "/usr/bin", "/home")
    for path in (*(f"{folder}/x" for folder in folders), CONFIGURATION, "/usr/bin/scaler_scheduler"):
        said = within(service, *become, "sh", "-c", f"exec 2>&1; echo x >>{path}", status=2)
        assert "Read-only file system" in said or (become and "Permission denied" in said), path
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
        within(service, *become, "sh", "-c", f"echo x >{path}", status=2)


@pytest.fixture
def memory_groups() -> Iterator[None]:
    """Remove the control groups for memory that a machine's systemd makes in the old hierarchy."""
    [own] = re.findall("^[0-9]+:memory:/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE) or [""]
    before = set((V1_MEMORY / own).glob("*/"))
    yield
    for made in set((V1_MEMORY / own).glob("*/")) - before:
        for folder, _, _ in os.walk(made, topdown=False):
            os.rmdir(folder)


def give_memory_controller(machine: Machine) -> None:
    """systemd-nspawn gives the memory controller to the machine only in the newer hierarchy."""
    if V1_MEMORY.is_dir():
        machine.run("mount", "-o", "remount,bind,rw", str(V1_MEMORY))
        machine.run("systemctl", "daemon-reexec")


def test_memory_limit_is_half_of_the_unit_limit(memory_groups: None, service: Service) -> None:
    give_memory_controller(service.machine)
    assert memory_limit(service) == half_of_unit(service)
    service.machine.write(f"/etc/systemd/system/{UNIT}.d/memory.conf", f"[Service]\nMemoryMax={MEGABYTES}M\n")
    service.machine.run("systemctl", "daemon-reload")
    assert memory_limit(service) == half_of_unit(service) == MEGABYTES << 19
    wait_until(lambda: 0 < int(service.property("MemoryCurrent")) < MEGABYTES << 20, what="its accounting")


def memory_limit(service: Service) -> int:
    """The memory limit of a scheduler that is started now, in bytes."""
    service.start()
    with monitor(f"ipc://{service.machine.root}/run/scaler/monitor") as watch:
        return watch.next().memory_limit_bytes


def half_of_unit(service: Service) -> int:
    """Half of the unit's MemoryMax in bytes."""
    return int(service.property("MemoryMax")) // 2


def test_exposure_is_low(service: Service) -> None:
    said = service.machine.run("systemd-analyze", "security", "--no-pager", UNIT)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found and float(found[1]) <= MAX_EXPOSURE, said
