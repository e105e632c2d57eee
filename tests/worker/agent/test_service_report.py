"""The reports of a host agent to the service manager, with the test's own clock."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.worker.agent.agent_host import BUSY, Host

from scaler_client.commands.systemd_notify import SystemdNotifier
from scaler_worker.agent.service_report import ServiceReport


@pytest.fixture
def there(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "notify"))
        there.setblocking(False)
        yield there


def told(there: socket.socket) -> list[str]:
    lines = []
    while True:
        try:
            lines.append(there.recv(4096).decode())
        except BlockingIOError:
            return lines


def test_the_reports_of_an_agents_life(there: socket.socket) -> None:
    host = Host(workers=2, welcomed=False)
    report = ServiceReport(SystemdNotifier({"NOTIFY_SOCKET": there.getsockname(), "WATCHDOG_USEC": "6000000"}), 10.0)
    report.update(host.session, 10.0)
    silent = "STATUS=2 workers, 0 busy; the scheduler at tcp://s:1 does not answer"
    assert told(there) == ["READY=1", "WATCHDOG=1", silent]
    assert report.next_beat == 12.0, "three times in the watchdog's time"
    host = Host(workers=2)
    host.states[1] = BUSY
    report.update(host.session, 10.5)
    assert told(there) == []
    report.update(host.session, 11.0)
    assert told(there) == ["STATUS=2 workers, 1 busy; the scheduler at tcp://s:1 answers"]
    report.update(host.session, 12.0)
    assert told(there) == ["WATCHDOG=1"], "the status is the same"
    host.session.stop("SIGTERM", host.now)
    report.update(host.session, 12.1)
    report.update(host.session, 12.2)
    assert told(there) == ["STOPPING=1"]


def test_without_a_watchdog_no_beat_is_sent(there: socket.socket) -> None:
    report = ServiceReport(SystemdNotifier({"NOTIFY_SOCKET": there.getsockname()}), 10.0)
    report.update(Host().session, 10.0)
    assert "WATCHDOG=1" not in told(there) and report.next_beat == float("inf")


def test_without_a_service_manager_no_status_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    monkeypatch.setattr(type(host.session), "status", lambda _: pytest.fail("looked"))
    report = ServiceReport(SystemdNotifier({}), 10.0)
    report.update(host.session, 10.0)
    assert report.next_beat == float("inf")
