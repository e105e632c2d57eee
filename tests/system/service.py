"""The scheduler of the package in a machine. Clients and clusters are processes of this host."""

from __future__ import annotations

import socket

from tests.system.machine import CommandFailed, Machine
from tests.waiting import wait_until

UNIT = "scaler-scheduler.service"
CONFIGURATION = "/etc/scaler/scheduler.toml"
INSTALL = ("dpkg", "--install")


class Service:
    """The service. It is installed and configured, but not started.

    Args:
        deb: its path in the machine.
    """

    def __init__(self, machine: Machine, deb: str) -> None:
        self.machine = machine
        self.address = f"tcp://127.0.0.1:{free_port()}"
        machine.run(*INSTALL, deb)
        self.configure()

    def configure(self, *lines: str, address: str = "") -> None:
        """Write the configuration: the address (by default that of the service) and further lines of TOML."""
        self.machine.write(CONFIGURATION, "\n".join([f'address = "{address or self.address}"', *lines, ""]))

    def start(self) -> None:
        """Start the service, and wait until it is READY."""
        try:
            self.machine.run("systemctl", "restart", UNIT)
        except CommandFailed:
            raise AssertionError(f"it did not become ready:\n{self.machine.journal(UNIT)}") from None

    def property(self, name: str) -> str:
        return self.machine.property_of(UNIT, name)

    def await_restart(self, before: int) -> None:
        """Wait until systemd has restarted the service more often than `before`, and it is READY."""
        wait_until(
            lambda: int(self.property("NRestarts")) > before and self.property("ActiveState") == "active",
            60.0,
            "systemd to start the scheduler again",
        )


def free_port() -> int:
    """A port that is free now. The machine shares the network of this host."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
