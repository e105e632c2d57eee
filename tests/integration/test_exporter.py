"""scaler_exporter as a process, with a real cluster under load, parsed by Prometheus' parser."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.commands import Command, cluster, run_once, scheduler
from tests.integration.test_service import Manager
from tests.waiting import wait_until

pytest.importorskip("prometheus_client", reason="needs the extra exporter (prometheus_client)")

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus
from tests.client.monitor.metric_rules import breaches

from scaler_client import Client
from scaler_client.commands.install_hints import install_hint
from scaler_client.exporter import cli

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Exporter:
    def __init__(self, command: Command) -> None:
        self.command = command
        self.url = command.logged(r"(http://\S+)/metrics")

    def get(self, path: str, accept: str = "", method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(self.url + path, headers={"Accept": accept} if accept else {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def families(self, is_open: bool = False) -> list[Metric]:
        status, text = self.get("/metrics", OPENMETRICS if is_open else "")
        assert status == 200
        return list((parse_openmetrics if is_open else parse_prometheus)(text))

    def values(self) -> dict[tuple[str, ...], float]:
        """Samples by name and values of labels."""
        samples = [sample for family in self.families() for sample in family.samples]
        return {(sample.name, *sample.labels.values()): sample.value for sample in samples}

    def waits_for(self, *name: str, value: float) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}

        def has_come() -> bool:
            nonlocal found
            found = self.values()
            return found.get(name) == value

        wait_until(has_come, 30, f"{name} to be {value}")
        return found


@contextmanager
def exporter(folder: Path, monitor: str, *options: str, **variables: str) -> Iterator[Exporter]:
    arguments = [sys.executable, "-m", "scaler_client.exporter", monitor, "--port", "0", *options]
    command = Command(arguments, folder / "exporter.log", **variables)
    try:
        yield Exporter(command)
    finally:
        command.end()


def fails(_: int) -> None:
    raise ValueError("no such curve")


def test_metrics_of_a_cluster_under_load(tmp_path: Path) -> None:
    with (
        scheduler(tmp_path) as started,
        exporter(tmp_path, started.monitor_address) as running,
        cluster(tmp_path, started.address, 2),
        Client(started.address) as client,
    ):
        running.waits_for("scaler_workers", "idle", value=2)
        before = running.values()
        for _ in range(5):
            futures = [client.submit(abs, -number) for number in range(1000)]
            assert sum(future.result(30) for future in futures) == sum(range(1000))
            now = running.values()
            counters = [name for name in before if name[0].endswith(("_total", "_bucket", "_count", "_sum"))]
            assert len(counters) > 50 and [name for name in counters if now[name] < before[name]] == []
            before = now
        assert isinstance(client.submit(fails, 1).exception(30), ValueError)
        now = running.waits_for("scaler_tasks_ended_total", "exception", value=1)
        assert now["scaler_tasks_ended_total", "value"] == 5000 and now["scaler_queue_tasks",] == 0
        assert (
            now["scaler_function_results_total", "abs"] == 5000 and now["scaler_function_failures_total", "fails"] == 1
        )
        assert now["scaler_dispatch_latency_seconds_count",] == 5001 and now["scaler_loop_duration_seconds_count",] > 0
        assert now["scaler_scheduler_cpu_seconds_total",] > 0 and now["scaler_memory_limit_bytes",] > 1 << 20
        assert abs(now["scaler_scheduler_start_time_seconds",] - time.time()) < 300
        assert not breaches(running.families()) and not breaches(running.families(is_open=True))
        assert running.get("/health") == (200, '{"status": "ok", "scheduler": "up"}\n')
        assert running.get("/")[0] == 404 and running.get("/metrics", method="POST")[0] == 405


def test_scheduler_disappears_and_returns(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/scheduler"
    with exporter(tmp_path, f"{address}_monitor") as running:
        assert running.values()["scaler_up",] == 0
        status, answer = running.get("/health")
        assert (status, json.loads(answer)) == (503, {"status": "unavailable", "scheduler": "unknown"})
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            with scheduler(folder, address=address):
                found = running.waits_for("scaler_up", value=1)
                assert found["scaler_schedulers_seen_total",] == number and ("scaler_queue_tasks",) in found
            assert ("scaler_queue_tasks",) not in running.waits_for("scaler_up", value=0)
        assert running.get("/health")[0] == 503
        assert running.command.stop() == 0
        assert "the scheduler is down" in running.command.log()


def test_silent_connections_delay_no_scrape(tmp_path: Path) -> None:
    with exporter(tmp_path, f"ipc://{tmp_path}/monitor") as running:
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as silent, socket.create_connection((host, int(port))) as rude:
            rude.sendall(b"\xff\x00 garbage\r\n\r\n")
            silent.sendall(b"GET ")
            assert running.get("/health")[0] == 503
            assert rude.recv(100)
        assert running.get("/metrics")[0] == 200
        assert "Traceback" not in running.command.log()


def test_service_notifications(tmp_path: Path) -> None:
    manager, monitor = Manager(tmp_path), f"ipc://{tmp_path}/monitor"
    try:
        with exporter(tmp_path, monitor, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="1500000") as running:
            manager.await_line("READY=1")
            assert manager.told == ["READY=1"] and running.get("/health")[0] == 503, "it listens"
            manager.await_line("WATCHDOG=1")
            manager.await_line(f"STATUS=the scheduler at {monitor} is not heard of yet")
            running.command.process.terminate()
            manager.await_line("STOPPING=1")
            assert running.command.process.wait(5) == 0
    finally:
        manager.close()


def once(*arguments: str) -> tuple[int, str]:
    ran = run_once([sys.executable, "-m", "scaler_client.exporter", *arguments])
    assert not ran.stdout
    return ran.returncode, ran.stderr


def test_wrong_options_and_ports(tmp_path: Path) -> None:
    monitor = f"ipc://{tmp_path}/monitor"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, text = once(monitor, "--port", str(port))
        complaint = f"cannot listen on 127.0.0.1, port {port}: Address already in use by another process"
        assert status == 1 and text.startswith(f"scaler_exporter: {complaint} (") and text.count("\n") == 1
    status, text = once(monitor, "--host", "no.such.host.invalid")
    assert status == 1 and text.startswith("scaler_exporter: cannot listen on no.such.host.invalid, port 9464: ")
    assert once(monitor, "--port", "x") == (2, "scaler_exporter: --port: 'x' is not a whole number from 0 to 65535\n")
    status, text = once(monitor, "--host", "300.1.1.1")
    assert (status, text) == (2, "scaler_exporter: --host: '300.1.1.1' is not an address or name of an interface\n")
    (tmp_path / "file").touch()
    status, text = once(f"ipc://{tmp_path}/file")
    assert status == 2 and text.count("\n") == 1 and "is not a socket" in text


def test_missing_library_gives_an_install_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "prometheus_client" else find(name))
    assert cli.main([f"ipc://{tmp_path}/monitor"]) == 2
    said = f"scaler_exporter: it needs prometheus_client, which is not installed: {install_hint('exporter')}\n"
    assert capsys.readouterr().err == said


def test_an_option_from_the_environment(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scaler_client.exporter", f"ipc://{tmp_path}/monitor"]
    ran = run_once(command, SCALER_EXPORTER_PORT="70000")
    assert (ran.returncode, ran.stderr.startswith("scaler_exporter: SCALER_EXPORTER_PORT: ")) == (2, True)
