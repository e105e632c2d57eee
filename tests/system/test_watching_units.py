"""The units of scaler_ui and scaler_exporter in a booted systemd, with the scheduler's. pip installs the wheels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system import roots
from tests.system.conftest import DEB
from tests.system.machine import CommandFailed, Machine
from tests.system.packages import Packages
from tests.system.page import page
from tests.system.service import Service, free_port
from tests.system.work import check, submit_many, workers_and_client
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

WHEELS = "/loaded"
PIP = ("python3", "-m", "pip", "install", "--quiet", "--break-system-packages", "--no-index", "--find-links", WHEELS)
MAX_EXPOSURE = 2.0
SECONDS = 60.0


@dataclass
class Watching:
    """A monitor's unit that answers HTTP requests. It is installed, but not started."""

    machine: Machine
    unit: str
    file: str
    port: int = 0

    def configure(self, *lines: str) -> None:
        """Write its configuration: a free port, and further lines of TOML."""
        self.port = free_port()
        self.machine.write(self.file, "\n".join([f"port = {self.port}", *lines, ""]))

    def page(self, path: str) -> str:
        return page(f"http://127.0.0.1:{self.port}{path}")

    def await_metric(self, line: str) -> None:
        wait_until(lambda: f"\n{line}\n" in self.page("/metrics"), SECONDS, line)

    def start(self) -> None:
        """Start the unit, and wait until it is READY."""
        try:
            self.machine.run("systemctl", "restart", self.unit)
        except CommandFailed:
            raise AssertionError(f"it did not become ready:\n{self.machine.journal(self.unit)}") from None

    def await_status(self, text: str) -> None:
        wait_until(lambda: text in self.property("StatusText"), SECONDS, text)

    def property(self, name: str) -> str:
        return self.machine.property_of(self.unit, name)


@pytest.fixture
def service(boot: Callable[..., Machine], built: Packages, wheels: Path) -> Service:
    """The scheduler in a machine with a Python."""
    return Service(boot(roots.python(), {built.deb: DEB, wheels: WHEELS}), DEB)


@pytest.fixture(params=["ui", "exporter"])
def watching(request: pytest.FixtureRequest, service: Service) -> Watching:
    name, machine = str(request.param), service.machine
    machine.run(*PIP, f"scaler-client[{name}]")
    unit = f"scaler-{name}.service"
    text = (roots.CHECKOUT / "systemd" / unit).read_text()
    # pip installs commands in another folder than Debian. `make install` writes its folder into the unit.
    machine.write(f"/etc/systemd/system/{unit}", text.replace("ExecStart=/usr/bin/", "ExecStart=/usr/local/bin/"))
    machine.run("systemctl", "daemon-reload")
    return Watching(machine, unit, f"/etc/scaler/{name}.toml")


def test_monitor_shows_the_scheduler_and_is_restarted(service: Service, watching: Watching, tmp_path: Path) -> None:
    machine, unit = watching.machine, watching.unit
    watching.configure()
    watching.start()
    assert "\nscaler_up 0.0\n" in watching.page("/metrics"), "it serves metrics while it waits for a scheduler"
    service.start()
    watching.await_metric("scaler_up 1.0")
    watching.await_status("the scheduler at ipc:///run/scaler/monitor is up")
    if "ui" in unit:
        assert "<html" in watching.page("/")
    with workers_and_client(tmp_path, service.address) as client:
        check(submit_many(client, 20))
        watching.await_metric('scaler_tasks_ended_total{outcome="value"} 20.0')
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
        wait_until(lambda: watching.property("NRestarts") == "1", SECONDS, "systemd to start it again")
        watching.await_metric("scaler_up 1.0")
    assert watching.property("ActiveState") == "active"


def test_changed_options_apply_after_a_restart(watching: Watching) -> None:
    machine, unit = watching.machine, watching.unit
    watching.configure()
    watching.start()
    before = watching.port
    watching.configure('monitor_address = "tcp://127.0.0.1:1"')
    watching.start()
    assert "\nscaler_up 0.0\n" in watching.page("/metrics") and not page(f"http://127.0.0.1:{before}/metrics")
    watching.await_status("the scheduler at tcp://127.0.0.1:1 is not heard of yet")
    machine.write(watching.file, "port = 0.5\n")
    machine.run("systemctl", "restart", unit, status=None)
    wait_until(lambda: f"{watching.file}:1: port: 0.5 is not a whole number" in machine.journal(unit), SECONDS)
    wait_until(lambda: watching.property("ActiveState") == "failed", SECONDS, "systemd to give it up")


def test_tcp_monitor_with_keys_from_systemd(service: Service, watching: Watching) -> None:
    machine, monitor, keys = watching.machine, f"tcp://127.0.0.1:{free_port()}", "/etc/scaler/keys"
    machine.run("scaler_scheduler", "keygen", keys)
    machine.run("chown", "-R", "scaler:", keys)
    service.configure(f'monitor_address = "{monitor}"', f'keys = "{keys}"')
    service.start()
    watching.configure()  # the scheduler's file names the monitor address
    handed = [f"LoadCredential={name}:{keys}/{name}" for name in ("server.key", "monitor.key", "monitor.secret")]
    lines = ("[Service]", *handed, "Environment=SCALER_KEYS=%d", "")
    machine.write(f"/etc/systemd/system/{watching.unit}.d/keys.conf", "\n".join(lines))
    machine.run("systemctl", "daemon-reload")
    watching.start()
    watching.await_metric("scaler_up 1.0")
    watching.await_status(f"the scheduler at {monitor} is up")


def test_exposure_is_low(watching: Watching) -> None:
    said = watching.machine.run("systemd-analyze", "security", "--no-pager", watching.unit)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found and float(found[1]) <= MAX_EXPOSURE, said
