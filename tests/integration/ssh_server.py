"""OpenSSH servers on this machine, each with its own port and its own home: hosts for the provider `ssh`."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import wait_until

SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="needs OpenSSH: apt-get install openssh-server openssh-client"
)

_SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PubkeyAuthentication yes
PermitRootLogin yes
LogLevel ERROR
SetEnv HOME={home}
ForceCommand cd; eval "$SSH_ORIGINAL_COMMAND"
"""

_CLIENT = """
Host {name}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile {folder}/known_hosts
    LogLevel ERROR
"""


class SshHost:
    """One server. It is a host of its own, because it has its own home.

    The shell starts with this home too. With the user's, it would run the user's start-up files in each command.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.home = folder / name
        self.home.mkdir()
        self.port = _free_port()
        file = folder / f"{name}.sshd"
        file.write_text(_SERVER.format(port=self.port, folder=folder, home=self.home))
        assert SSHD is not None
        self._log = folder / f"{name}.log"
        self.process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(file)], stdin=subprocess.DEVNULL, stderr=open(self._log, "w")
        )

    def wait(self) -> None:
        """Wait until it answers."""

        def answers() -> bool:
            assert self.process.poll() is None, self._log.read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                return False
            return True

        wait_until(answers, 20.0, f"sshd of {self.name}")

    def agents(self) -> dict[str, int]:
        """The process ids of the agents that were started here, by name."""
        files = (self.home / ".cache" / "scaler-autoscaler").glob("*.pid")
        return {file.stem: int(file.read_text()) for file in files if file.read_text().strip()}

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(10)


class SshHosts:
    """Several servers, and the configuration of a client that knows them by name."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.by_name: dict[str, SshHost] = {}
        self.configuration = folder / "ssh_config"
        for key in ("host_key", "key"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(make, check=True, timeout=30, stdin=subprocess.DEVNULL)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as root, sshd wants its folder
        text = ""
        for name in names:
            host = self.by_name[name] = SshHost(name, folder)
            text += _CLIENT.format(name=name, port=host.port, user=getpass.getuser(), folder=folder)
        self.configuration.write_text(text)
        for host in self.by_name.values():
            host.wait()

    def end(self) -> None:
        for host in self.by_name.values():
            host.end()


@contextmanager
def ssh_hosts(folder: Path, *names: str) -> Iterator[SshHosts]:
    """Run a server for each name."""
    hosts = SshHosts(folder, list(names))
    try:
        yield hosts
    finally:
        hosts.end()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
