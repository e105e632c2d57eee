"""With keys, programs read the scheduler's history while clients and workers run. No peer is refused."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path

import pytest
from tests.integration.commands import cluster, key_command, monitor, run_once, scheduler

from scaler_client import Client

SECONDS = 120
TASKS = 30_000
READINGS = 1

pytestmark = pytest.mark.timeout(400)


def test_no_peer_is_refused_while_history_is_read(tmp_path: Path) -> None:
    """The history is sent in many messages. Between two of them the loop waits for messages of peers.

    `abs#5` is a task of the first client alone: the busy threads call other functions.
    """
    keys = str(tmp_path / "keys")
    key_command("keygen", keys)
    errors: list[BaseException] = []
    is_over = threading.Event()

    def work(client: Client) -> None:
        try:
            while not is_over.is_set():
                assert client.submit(pow, 3, 2).result(SECONDS) == 9
                assert client.gather([client.submit(int, each) for each in range(100)]) == list(range(100))
        except BaseException as error:
            errors.append(error)

    with (
        scheduler(tmp_path, "--keys", keys) as daemon,
        cluster(tmp_path, daemon.address, 2, "--keys", keys, "--heartbeat-interval-seconds", "0.2") as workers,
        Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as one,
        Client(daemon.address, keys=keys, timeout_seconds=SECONDS) as other,
    ):
        assert sum(one.gather([one.submit(abs, 1) for _ in range(TASKS)])) == TASKS
        busy = [threading.Thread(target=work, args=(client,)) for client in (one, other)]
        for thread in busy:
            thread.start()
        try:
            for _ in range(READINGS):
                for question in (["story", "abs#5"], ["dump", "-"]):
                    read_once(daemon.monitor_address, *question)
                show_page(tmp_path, daemon.monitor_address)
        finally:
            is_over.set()
            for thread in busy:
                thread.join(SECONDS)
        assert errors == []
        assert one.map(abs, [(-each,) for each in range(1000)]) == list(range(1000))
        with monitor(daemon.monitor_address) as watch:
            dropped = watch.next().dropped
        assert {kind: count for kind, count in dropped.items() if count} == {}
        assert workers.process.poll() is None and daemon.process.poll() is None
        for log in (daemon.log(), workers.log()):
            assert "is refused" not in log and "Traceback" not in log, log


def read_once(address: str, *question: str) -> None:
    done = run_once([sys.executable, "-m", "scaler_client", *question, address])
    # The other clients have many tasks, so the events of the first tasks may be forgotten.
    assert done.returncode == 0 or "its story is forgotten" in done.stderr, done.stderr


def show_page(folder: Path, address: str) -> None:
    """scaler_ui, where its own dependencies are installed."""
    if importlib.util.find_spec("aiohttp") is None:
        return
    from tests.integration.test_ui import Ui

    page = Ui(folder, address)
    try:
        page.watch("series", "functions", until=lambda seen: seen)
    finally:
        page.end()
