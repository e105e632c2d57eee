"""Local clusters: options of their commands, the page, text and HTML."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.commands import SCHEDULER_PYTHON, environment
from tests.waiting import wait_until

from scaler_client import Client, LocalCluster, SchedulerClusterCombo
from scaler_client.api import local_cluster
from scaler_client.api.local_options import check_options
from scaler_client.commands.command_line import parse_arguments, resolve
from scaler_client.commands.options import Command, Option
from scaler_scheduler.config.config import COMMAND as SCHEDULER
from scaler_worker.config import COMMAND as CLUSTER

SECONDS = 60
NO_KEYWORDS = {"address", "keys", "num_of_workers", "parent_process"}


def sample(option: Option) -> Any:
    """Return a value that is not the default of the option."""
    known = {
        "monitor_address": "tcp://127.0.0.1:12345",
        "data_address": "tcp://127.0.0.1:12346",
        "preload": "module:function",
        "offer": ["name=module:function"],
        "capabilities": {"gpu": 2},
        "resources": {"gpu": 2, "memory": "64G"},
        "limits": {"db": 10, "api": "50/s"},
        "worker_names": ["a", "b"],
        "batch_limit": 5000,
        "logging_level": "DEBUG",
        "environments": "any",
    }
    kind = option.kind
    if option.key in known:
        return known[option.key]
    if kind.choices:
        return kind.choices[1]
    if bool in kind.toml_types:
        return not option.default
    if kind.metavar == "SIZE":
        return "123M"
    if kind.is_list:
        return ["/one", "/two"]
    return "/one" if str in kind.toml_types else 7


def test_every_option_of_both_commands_is_a_keyword() -> None:
    tables: tuple[Command, ...] = (SCHEDULER, CLUSTER)  # type: ignore[assignment]
    given = {each.key: sample(each) for table in tables for each in table.options if each.key not in NO_KEYWORDS}
    cluster = [sys.executable, "-m", "scaler_worker"]
    chosen = check_options(given, [[sys.executable, "-m", "scaler_scheduler"]], cluster, n_workers=2)
    for table, arguments in zip(tables, (chosen.scheduler_arguments, chosen.cluster_arguments)):
        values = resolve(table, parse_arguments(table, ["tcp://127.0.0.1:1", *arguments]), {})
        for option in table.options:
            if option.key not in NO_KEYWORDS:
                assert values[option.key] != option.default, option.key


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"event_lop": "zmq"}, TypeError, r"has an option 'event_lop' \(did you mean event_loop\?\)"),
        ({"n_wrokers": 2}, TypeError, r"has an option 'n_wrokers' \(did you mean n_workers\?\)"),
        ({"event_loop": "quick"}, ValueError, "event_loop: 'quick' is not one of zmq, builtin, uvloop"),
        ({"per_worker_task_queue_size": 0}, ValueError, "per_worker_queue_size: '0' is not a whole number from 1 to"),
        ({"capabilities": {"a b": 1}}, ValueError, "capabilities: 'a b=1' is not NAME or NAME=AMOUNT"),
        ({"worker_names": ["a", "b", "c"]}, ValueError, r"worker_names: 3 names for 1 worker \(num_of_workers\)"),
        ({"monitor_address": "x"}, ValueError, "monitor_address: bad address 'x'"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        SchedulerClusterCombo(n_workers=1, **options)


def test_options_reach_the_commands(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        LocalCluster(
            n_workers=2,
            logging_level="INFO",
            logging_paths=[log],
            event_loop="builtin",
            worker_names=["one", "other"],
            capabilities={"gpu": 2},
            monitor_address=f"ipc://{tmp_path}/published",
            protected=False,
        ) as cluster,
        Client(cluster, timeout_seconds=SECONDS) as client,
    ):
        assert client.options(capabilities={"gpu": 2}).submit(pow, 2, 3).result(SECONDS) == 8
        assert ">2</td>" in cluster._repr_html_()  # although the monitor address is not the default
        client.shutdown()  # the scheduler is not protected
    text = log.read_text()
    assert "event loop builtin" in text and f"monitor address ipc://{tmp_path}/published" in text


def test_keywords_of_opengris_scaler() -> None:
    with SchedulerClusterCombo(address="tcp://127.0.0.1:*", n_workers=1, event_loop="uvloop") as combo:
        with Client(combo.get_address(), timeout_seconds=SECONDS) as client:
            assert client.submit(pow, 2, 3).result(SECONDS) == 8


@pytest.mark.parametrize("preload", ["no_such_module:load", "slow_preload:load", "os:abort"])
def test_a_preload_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], preload: str
) -> None:
    (tmp_path / "slow_preload.py").write_text("import time\ntime.sleep(1)\nraise OSError('no model')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(RuntimeError, match=f"scaler_cluster ended at its start .*preload='{preload}'"):
        LocalCluster(n_workers=1, preload=preload)
    line = next(line for line in capfd.readouterr().err.splitlines() if "ERROR" in line)
    assert f"the first worker could not be prepared: --preload {preload}: " in line


def test_a_preload_that_fails_in_an_elastic_cluster(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"scaler_cluster ended at its start .*preload='no_such_module:load'"):
        LocalCluster(n_workers=(0, 2), preload="no_such_module:load")
    with LocalCluster(n_workers=(0, 2), preload="time:time") as cluster, Client(cluster) as client:
        assert client.submit(abs, -1).result(SECONDS) == 1


def test_html_shows_the_workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_cluster, "JOIN_SECONDS", SECONDS)
    with LocalCluster(n_workers=3) as cluster:
        assert "<th style='text-align:left'>workers</th><td style='text-align:left'>3</td>" in cluster._repr_html_()
    with LocalCluster() as cluster:
        shown = cluster._repr_html_()
        assert "<td style='text-align:left'>0</td>" not in shown and "tasks" in shown


@pytest.mark.parametrize("is_killed", [False, True])
def test_nothing_is_left_of_the_default_address(is_killed: bool) -> None:
    with LocalCluster(n_workers=1) as cluster, Client(cluster, timeout_seconds=SECONDS) as client:
        path = Path(cluster.address.removeprefix("ipc://"))
        assert path.stat().st_mode & 0o077 == 0, "others may connect"
        assert client.submit(pow, 2, 10).result(SECONDS) == 1024
        if is_killed:
            psutil.Process(cluster.scheduler_pid).kill()
    assert not [found for found in path.parent.iterdir() if found.name.startswith(path.name)]


def test_a_cluster_ends_with_the_last_reference_to_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALER_ADDRESS", raising=False)
    client = Client()
    pids = [process.pid for process in client._own_cluster._processes]  # type: ignore[union-attr]
    future = client.submit(pow, 2, 10)
    del client
    assert future.result(SECONDS) == 1024
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), seconds=SECONDS)


def test_the_default_address_with_keys(tmp_path: Path) -> None:
    keys = str(tmp_path / "keys")
    subprocess.run([SCHEDULER_PYTHON, "-m", "scaler_scheduler", "keygen", keys], check=True, stdout=subprocess.DEVNULL)
    with LocalCluster(n_workers=1, keys=keys) as cluster:
        assert cluster.address.startswith("ipc://")
        with Client(cluster, timeout_seconds=SECONDS) as client:
            assert client.submit(pow, 2, 10).result(SECONDS) == 1024
        with pytest.raises(ConnectionError):
            Client(cluster.address, keys="", timeout_seconds=3)


# ---------------------------------------------------------------------------------------------------------------- page


def test_a_cluster_with_a_page() -> None:
    pytest.importorskip("aiohttp")
    with LocalCluster(n_workers=1, ui=True) as cluster, Client(cluster, timeout_seconds=SECONDS) as client:
        address = cluster.ui_address
        plain, _, token = address.partition("?token=")
        with pytest.raises(urllib.error.HTTPError, match="401"):  # what other users of this machine get
            urllib.request.urlopen(plain, timeout=SECONDS)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=SECONDS) as page:
            assert page.status == 200 and page.url == plain
        assert token and not any(token in argument for argument in psutil.Process(cluster._processes[2].pid).cmdline())
        for shown in (cluster, client):
            assert repr(shown).endswith(f", page {address}>")
            assert f'<a href="{address}"' in shown._repr_html_()
        pids = [process.pid for process in cluster._processes]
        assert len(pids) == 3
    assert cluster.ui_address == "" and "page" not in repr(cluster) and "page" not in repr(client)
    assert not any(psutil.pid_exists(pid) for pid in pids)


PROGRAM = """
import json, sys
from scaler_client import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, ui=True)
    print(json.dumps([process.pid for process in cluster._processes]), flush=True)
    sys.stdin.read()
"""


def test_the_page_ends_if_the_program_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "program.py").write_text(PROGRAM)
    program = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        env=environment(SCALER_SCHEDULER_PYTHON=SCHEDULER_PYTHON),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        pids = json.loads(program.stdout.readline())
    finally:
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), seconds=SECONDS)


def test_a_page_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("SCALER_UI_WINDOW_SECONDS", "never")
    text = "scaler_ui ended at its start with exit status 2; standard error says why"
    with pytest.raises(RuntimeError, match=f"^{text}$"):
        LocalCluster(n_workers=1, ui=True)


def test_a_warning_about_waiting_tasks_comes_once(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "1 task(s) wait: no connected worker has absent=1"
    with LocalCluster(n_workers=1) as cluster, Client(cluster) as client:
        client.options(capabilities={"absent": 1}).submit(abs, -1)
        wait_until(lambda: text in caplog.text, 30)
    assert caplog.text.count(text) == 1
    assert text not in capfd.readouterr().err, "the scheduler has ended, so its log is complete"
