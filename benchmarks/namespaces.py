"""Hosts on one machine: network namespaces, each with a link of limited speed to a common bridge.

A namespace has no name. It exists as long as this process or a process inside it does, so nothing is left behind.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

LINK_BITS = 1_000_000_000
"""Bits per second of each link, in each direction."""

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_OWN = "/proc/thread-self/ns/net"


def reason_against() -> str:
    """Why there can be no namespaces here, in one line; empty if there can."""
    for command in ("ip", "tc"):
        if shutil.which(command) is None:
            return f"there is no command {command} (Debian: iproute2)"
    try:
        with network(["probe"]):
            return ""
    except (OSError, RuntimeError) as error:
        return str(error)


class Network:
    """Hosts that one bridge connects."""

    def __init__(self, namespaces: dict[str, int]) -> None:
        self._namespaces = namespaces

    def address(self, host: str) -> str:
        """The IPv4 address of a host."""
        return f"10.0.0.{1 + list(self._namespaces).index(host)}"

    def cut(self, host: str) -> None:
        """Take the host off the network, without a word to the others."""
        with self.inside(host):
            _run("ip", "link set eth0 down")

    def join(self, host: str) -> None:
        """Connect the host again."""
        with self.inside(host):
            _run("ip", "link set eth0 up")

    @contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """Let this thread be on a host: sockets, threads and processes that it makes in the block are there too."""
        with _inside(self._namespaces[host]):
            yield


@contextmanager
def network(hosts: Sequence[str]) -> Iterator[Network]:
    """Make hosts with these names.

    Raises:
        OSError: this process may not make namespaces.
        RuntimeError: `ip` or `tc` has failed; the text has its message.
    """
    with ExitStack() as stack:
        hub = _make_namespace(stack)
        with _inside(hub):
            _run("ip", "link add bridge type bridge", "link set bridge up")
        found = Network({host: _make_namespace(stack) for host in hosts})
        for number, host in enumerate(hosts):
            with found.inside(host):
                _run(
                    "ip",
                    f"link add eth0 type veth peer name port{number} netns /proc/{os.getpid()}/fd/{hub}",
                    f"address add {found.address(host)}/24 dev eth0",
                    "link set eth0 up",
                    "link set lo up",
                )
                _limit("eth0")
            with _inside(hub):
                _run("ip", f"link set port{number} master bridge up")
                _limit(f"port{number}")
        yield found


def traffic(pid: int) -> int:
    """The bytes that the host of a process has received and sent so far, without those between its own processes."""
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "eth0":
            numbers = counters.split()
            return int(numbers[0]) + int(numbers[8])
    raise RuntimeError(f"the host of process {pid} has no eth0")


def _make_namespace(stack: ExitStack) -> int:
    """Return the descriptor of a new namespace."""
    own = os.open(_OWN, os.O_RDONLY)
    try:
        _check(_LIBC.unshare(_CLONE_NEWNET), "unshare")
        made = os.open(_OWN, os.O_RDONLY)
        stack.callback(os.close, made)
        _check(_LIBC.setns(own, _CLONE_NEWNET), "setns")
    finally:
        os.close(own)
    return made


@contextmanager
def _inside(namespace: int) -> Iterator[None]:
    own = os.open(_OWN, os.O_RDONLY)
    try:
        _check(_LIBC.setns(namespace, _CLONE_NEWNET), "setns")
        try:
            yield
        finally:
            _check(_LIBC.setns(own, _CLONE_NEWNET), "setns")
    finally:
        os.close(own)


def _check(status: int, call: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def _limit(device: str) -> None:
    _run("tc", f"qdisc add dev {device} root tbf rate {LINK_BITS}bit burst 1mb latency 50ms")


def _run(program: str, *commands: str) -> None:
    done = subprocess.run([program, "-batch", "-"], input="\n".join(commands), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: {done.stderr.strip().splitlines()[0]}")
