"""The scheduler as its package installs it, in a machine; clients and clusters are processes of this host."""

from __future__ import annotations

import socket

from tests.system.machine import CommandFailed, Machine
from tests.waiting import wait_until

UNIT = "scaler-scheduler.service"
CONFIGURATION = "/etc/scaler/scheduler.toml"
INSTALL = ("dpkg", "--install")


class Service:
    """Installed and configured, not started.

    Args:
        deb: its path in the machine.
    """

    def __init__(self, machine: Machine, deb: str) -> None:
        self.machine = machine
        self.address = f"tcp://127.0.0.1:{free_port()}"
        machine.run(*INSTALL, deb)
        self.configure()

    def configure(self, *lines: str, address: str = "") -> None:
        """Write the configuration: its address, unless another is to be bound, and further lines of TOML."""
        self.machine.write(CONFIGURATION, "\n".join([f'address = "{address or self.address}"', *lines, ""]))

    def start(self) -> None:
        """Returns once it is READY."""
        try:
            self.machine.run("systemctl", "restart", UNIT)
        except CommandFailed:
            raise AssertionError(f"it did not become ready:\n{self.machine.journal(UNIT)}") from None

    def property(self, name: str) -> str:
        return self.machine.property_of(UNIT, name)

    def await_restart(self, before: int) -> None:
        """Until systemd has started it more often than `before`, and it is READY again."""
        wait_until(
            lambda: int(self.property("NRestarts")) > before and self.property("ActiveState") == "active",
            60.0,
            "systemd to start the scheduler again",
        )


def free_port() -> int:
    """One that nobody listened at a moment ago: the machine shares this host's network."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
