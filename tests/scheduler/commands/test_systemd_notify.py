"""Messages to systemd in its protocol. Runs under PyPy and CPython."""

from __future__ import annotations

import os
import socket

import pytest

from scaler_scheduler.commands.systemd_notify import SystemdNotifier, pop_variables


@pytest.fixture
def manager_socket(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "notify"))
        there.settimeout(10)
        yield there


def environment(there, **more):
    return {"NOTIFY_SOCKET": there.getsockname(), **more}


def told(there):
    return there.recv(4096).decode()


def test_messages_of_a_service_in_order(manager_socket):
    manager = SystemdNotifier(environment(manager_socket))
    manager.ready()
    manager.status("3 workers")
    manager.status("3 workers")
    manager.status("4 workers")
    manager.watchdog()
    manager.stopping()
    lines = [told(manager_socket) for _ in range(5)]
    assert lines == ["READY=1", "STATUS=3 workers", "STATUS=4 workers", "WATCHDOG=1", "STOPPING=1"]
    manager.close()
    manager.ready()
    manager_socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager_socket.recv(1)


def test_variables_are_removed_from_the_environment():
    environ = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "HOME": "/"}
    assert pop_variables(environ) == {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2"}
    assert environ == {"HOME": "/"} and pop_variables(environ) == {}


def test_abstract_socket():
    name = f"scaler-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind("\0" + name)
        there.settimeout(10)
        manager = SystemdNotifier({"NOTIFY_SOCKET": "@" + name})
        manager.ready()
        assert told(there) == "READY=1"
        manager.close()


@pytest.mark.parametrize("address", ["", "relative", "/there/is/none"])
def test_nothing_is_sent_without_a_usable_socket(address):
    manager = SystemdNotifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    manager.ready()
    manager.watchdog()
    manager.stopping()
    manager.close()
    assert (manager.watchdog_seconds > 0) == address.startswith("/")


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, 0),
        ({"WATCHDOG_USEC": "30000000"}, 10),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 10),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
        ({"WATCHDOG_USEC": "-1"}, 0),
    ],
)
def test_watchdog_interval(manager_socket, variables, seconds):
    manager = SystemdNotifier(environment(manager_socket, **variables))
    assert manager.watchdog_seconds == seconds
    manager.close()


def test_manager_that_does_not_read_blocks_nothing(manager_socket):
    manager = SystemdNotifier(environment(manager_socket))
    for _ in range(10_000):
        manager.watchdog()
    manager.close()
