"""The scheduler's unit in a booted systemd: start, status, reload, kill and hang."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import zmq
from tests.system.service import UNIT, Service
from tests.system.work import check, submit_many, workers_and_client
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


def test_ready_with_a_bound_socket_and_a_status(service: Service, tmp_path: Path) -> None:
    service.start()
    with socket.create_connection(("127.0.0.1", int(service.address.rpartition(":")[2])), 5):
        pass
    with workers_and_client(tmp_path, service.address) as client:
        check(submit_many(client, 20))
        wait_until(lambda: "20 are done" in service.property("StatusText"), what="STATUS")
        shown = service.machine.run("systemctl", "status", "--no-pager", UNIT)
        assert 'Status: "2 workers on 1 hosts, 1 clients; 0 tasks wait' in shown, shown
    assert service.property("User") == "scaler"
    service.machine.run("systemctl", "stop", UNIT)
    assert service.property("Result") == "success" and service.property("ExecMainStatus") == "0"


def test_killed_scheduler_is_restarted_without_lost_futures(service: Service, tmp_path: Path) -> None:
    service.start()
    with workers_and_client(tmp_path, service.address) as client:
        futures = submit_many(client)
        for restarts in range(2):
            service.machine.run("systemctl", "kill", "--signal=KILL", UNIT)
            service.await_restart(restarts)
        assert not all(future.done() for future in futures)
        check(futures)


def test_hung_scheduler_is_restarted_by_the_watchdog_without_lost_futures(service: Service, tmp_path: Path) -> None:
    service.machine.write(
        f"/etc/systemd/system/{UNIT}.d/soon.conf", "[Service]\nWatchdogSec=2s\nTimeoutStopSec=1s\nTimeoutAbortSec=1s\n"
    )
    service.machine.run("systemctl", "daemon-reload")
    service.start()
    with workers_and_client(tmp_path, service.address) as client:
        futures = submit_many(client)
        service.machine.run("systemctl", "kill", "--signal=STOP", UNIT)
        service.await_restart(0)
        check(futures)
    assert "Watchdog timeout" in service.machine.journal(UNIT)


def test_wrong_file_fails_the_unit_and_a_taken_port_does_not(service: Service) -> None:
    service.configure("io_threads = 0.5")
    service.machine.run("systemctl", "restart", UNIT, status=None)
    wait_until(lambda: service.property("ActiveState") == "failed", what="systemd to give it up")
    assert service.property("NRestarts") == "0"
    assert "/etc/scaler/scheduler.toml:2: io_threads: 0.5 is not a whole number" in service.machine.journal(UNIT)
    service.configure()
    with socket.create_server(("127.0.0.1", int(service.address.rpartition(":")[2]))):
        service.machine.run("systemctl", "restart", "--no-block", UNIT)
        wait_until(lambda: int(service.property("NRestarts")) > 1, what="systemd to try again")
    service.await_restart(1)


def test_reload_opens_log_files_and_logs_changed_options(service: Service) -> None:
    log = "/var/log/scaler/scheduler.log"
    service.configure(f'logging_paths = ["{log}"]')
    service.start()
    process = service.property("MainPID")
    service.machine.run("mv", log, f"{log}.1")
    service.configure(f'logging_paths = ["{log}"]', "io_threads = 2")
    service.machine.run("systemctl", "reload", UNIT)
    wait_until(lambda: "(no task is lost): io_threads" in service.machine.run("cat", log, status=None), what="the log")
    assert "opened again" in service.machine.run("cat", log)
    assert service.property("MainPID") == process and service.property("ActiveState") == "active"


def test_journal_lines_have_priorities(service: Service) -> None:
    service.start()
    assert "monitor address" in service.machine.journal(UNIT, "--priority=info")
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.connect(service.address)
        stranger.send(b"no message")
        stranger.recv()  # the error; it is in the log by now
        stranger.linger = 0
    warnings = service.machine.journal(UNIT, "--priority=warning")
    assert "malformed" in warnings and "monitor address" not in warnings
