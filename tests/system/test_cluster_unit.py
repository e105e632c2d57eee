"""The unit of compute hosts in a booted systemd. Its workers run tasks as a user of their own, and are replaced."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.commands import run_once, scheduler, scheduler_command
from tests.system import roots
from tests.system.machine import Machine
from tests.system.work import check, submit_many
from tests.waiting import wait_until

from scaler_client import Client

pytestmark = pytest.mark.timeout(300)

UNIT = "scaler-cluster.service"


@pytest.fixture
def host(boot: Callable[..., Machine]) -> Machine:
    """A compute host with the unit, and with the command as `make install` installs it."""
    shared = roots.environment()
    machine = boot(roots.python(), shared)
    for folder in {folder for path in shared for folder in path.parents}:
        machine.run("chmod", "a+x", str(folder))  # the service user must be able to read an environment in root's home
    command = f'#!/bin/sh\nexec {Path(sys.executable).parent}/scaler_cluster "$@"\n'
    machine.write("/usr/bin/scaler_cluster", command)
    machine.run("chmod", "755", "/usr/bin/scaler_cluster")
    machine.run("systemd-sysusers", str(roots.CHECKOUT / "systemd" / "scaler.sysusers"))
    machine.run("cp", str(roots.CHECKOUT / "systemd" / UNIT), "/etc/systemd/system/")
    # The service has a private /tmp. Mount a checkout there.
    seen = " ".join(shared.values())
    lines = ("[Service]", f"Environment=PYTHONPATH={roots.CHECKOUT}", f"BindReadOnlyPaths={seen}", "")
    machine.write(f"/etc/systemd/system/{UNIT}.d/checkout.conf", "\n".join(lines))
    return machine


def test_workers_run_tasks_and_are_replaced(host: Machine, tmp_path: Path) -> None:
    with scheduler(tmp_path) as there, Client(there.address) as client:
        host.write("/etc/scaler/cluster.toml", f'address = "{there.address}"\nnum_of_workers = 2\n')
        host.run("systemctl", "daemon-reload")
        host.run("systemctl", "start", UNIT)
        futures = submit_many(client)
        assert client.submit(os.getuid).result(60) == int(host.run("id", "--user", "scaler-worker"))
        wait_until(lambda: "2 workers" in host.property_of(UNIT, "StatusText"), what="STATUS")
        host.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT)
        wait_until(lambda: host.property_of(UNIT, "NRestarts") == "1", 60.0, "systemd to start it again")
        check(futures)
        host.run("systemctl", "stop", UNIT)
        assert host.property_of(UNIT, "Result") == "success"


def test_keys_of_the_service_user(host: Machine, tmp_path: Path) -> None:
    keys, its = tmp_path / "keys", "/etc/scaler/keys"
    assert run_once(scheduler_command("keygen", str(keys))).returncode == 0
    for name in ("server.key", "worker.key", "worker.secret"):
        host.write(f"{its}/{name}", (keys / name).read_text())
    host.run("sh", "-c", f"chmod 600 {its}/* && chown -R scaler-worker: {its}")
    with scheduler(tmp_path, "--keys", str(keys)) as there, Client(there.address, keys=str(keys)) as client:
        lines = (f'address = "{there.address}"', "num_of_workers = 2", f'keys = "{its}"', "")
        host.write("/etc/scaler/cluster.toml", "\n".join(lines))
        host.run("systemctl", "daemon-reload")
        host.run("systemctl", "start", UNIT)
        check(submit_many(client, 20))
        # Tasks run as the service user, who owns the keys.
        with pytest.raises(OSError, match="Read-only file system"):
            client.submit(os.chmod, f"{its}/worker.secret", 0o644).result(60)
