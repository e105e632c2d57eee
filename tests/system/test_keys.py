"""The scheduler's unit with keys, on an address that other hosts reach. Peers without a key get the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.commands import cluster
from tests.system.machine import Machine
from tests.system.service import UNIT, Service
from tests.system.work import WORKERS, check, submit_many
from tests.waiting import wait_until

from scaler_client import Client, SchedulerLostError, UnauthorizedError

pytestmark = pytest.mark.timeout(300)

KEYS = "/etc/scaler/keys"


@pytest.fixture
def exposed(service: Service) -> Service:
    """A service on all interfaces. Its keys still belong to root."""
    service.machine.run("scaler_scheduler", "keygen", KEYS)
    service.configure(f'keys = "{KEYS}"', address=service.address.replace("127.0.0.1", "0.0.0.0"))
    return service


def test_revoked_key_is_cut_off(exposed: Service, tmp_path: Path) -> None:
    machine = exposed.machine
    machine.run("chown", "-R", "scaler:", KEYS)
    exposed.start()
    process = exposed.property("MainPID")
    workers, programs = copied(machine, "worker", tmp_path), copied(machine, "client", tmp_path)
    machine.run("scaler_scheduler", "keygen", "/root/alice", "--as", "client")
    machine.run("cp", f"{KEYS}/server.key", "/root/alice")
    alice = copied(machine, "client", tmp_path, "/root/alice")
    with cluster(tmp_path, exposed.address, WORKERS, "--keys", workers), Client(exposed.address, keys=programs) as one:
        futures = submit_many(one)
        for keys in ("", alice):
            with pytest.raises(UnauthorizedError):
                Client(exposed.address, keys=keys)
        authorize = ("authorize", KEYS, "/root/alice/client.key", "--as", "client", "--name", "alice")
        machine.run("scaler_scheduler", *authorize)
        machine.run("systemctl", "reload", UNIT)
        wait_until(lambda: "keys read again: 4 may connect" in machine.journal(UNIT), what="the reload")
        with Client(exposed.address, keys=alice) as other:
            assert other.submit(pow, 2, 10).result(60) == 1024
            open_task = submit_many(other, 2000)[-1]
            machine.run("scaler_scheduler", "revoke", KEYS, "alice")
            machine.run("systemctl", "reload", UNIT)
            with pytest.raises(SchedulerLostError, match="its key was revoked"):
                open_task.result(60)
        check(futures)
    assert exposed.property("MainPID") == process and "1 connection(s) cut off" in machine.journal(UNIT)


def test_error_names_keys_of_another_user(exposed: Service) -> None:
    exposed.machine.run("systemctl", "restart", UNIT, status=1)
    said = exposed.machine.journal(UNIT)
    assert f"cannot read the key {KEYS}/server.secret: it must belong to the user that runs this program" in said


def test_address_without_keys_is_not_bound(service: Service) -> None:
    service.configure(address=service.address.replace("127.0.0.1", "0.0.0.0"))
    service.machine.run("systemctl", "restart", UNIT, status=1)
    assert "make keys with `scaler_scheduler keygen DIR`" in service.machine.journal(UNIT)


def copied(machine: Machine, role: str, tmp_path: Path, folder: str = KEYS) -> str:
    """Copy the key files of a role to a folder on this host."""
    there = tmp_path / f"{role}-of-{folder.rpartition('/')[2]}"
    there.mkdir(mode=0o700)
    for name in ("server.key", f"{role}.key", f"{role}.secret"):
        path = there / name
        path.touch(0o600)
        path.write_text(machine.run("cat", f"{folder}/{name}"))
    return str(there)
