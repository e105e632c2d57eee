"""The text and HTML of clients, futures and clusters, and the scheduler's state in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from tests.client.gates import gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.client.stand_ins import with_exception, with_value
from tests.schema_messages import message_of
from tests.waiting import wait_until

from scaler_client import Client, LocalCluster
from scaler_client.commands.addresses import Address, parse_connect_address
from scaler_client.futures.notebook import Link, count_text, html_table
from scaler_client.monitor.newest_snapshot import NewestSnapshot
from scaler_client.protocol.snapshot_decoder import SNAPSHOT_TOPIC

HOSTILE = "<script>alert('&')</script>"


class Texts(HTMLParser):
    """The texts and the tags of an HTML representation."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(shown._repr_html_() if hasattr(shown, "_repr_html_") else shown)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


def publish(socket: zmq.Socket[bytes], incarnation: int, workers: int) -> None:
    counts = {"waiting": 1234, "dispatched": 5, "resolved": 6}
    message = message_of("snapshot", protocolVersion=1, incarnation=incarnation, workers=workers, **counts)
    socket.send(SNAPSHOT_TOPIC + message)


@pytest.fixture
def address(tmp_path: Path) -> Address:
    return parse_connect_address(f"ipc://{tmp_path}/scheduler")


@pytest.fixture
def monitor(address: Address) -> Iterator[zmq.Socket[bytes]]:
    """A socket at which a scheduler at that address would publish."""
    context = zmq.Context()
    socket = context.socket(zmq.XPUB)
    socket.bind(f"ipc://{address.path}_monitor")
    yield socket
    context.destroy(linger=0)


# --------------------------------------------------------------------------------------------------------------- parts


def test_everything_is_escaped_and_short() -> None:
    form = Texts(html_table(HOSTILE, {HOSTILE: HOSTILE, "long": "x" * 1000}))
    assert form.tags == {"div", "strong", "table", "tr", "th", "td"}
    assert form.texts[:3] == [HOSTILE] * 3
    assert len(form.texts[-1]) < 250


def test_a_link_can_be_clicked() -> None:
    shown = html_table("x", {"page": Link("http://127.0.0.1:1/?a=1&b=2")})
    assert '<a href="http://127.0.0.1:1/?a=1&amp;b=2" target="_blank">http://127.0.0.1:1/?a=1&amp;b=2</a>' in shown
    assert Texts(shown).texts[-1] == "http://127.0.0.1:1/?a=1&b=2"


def test_counted() -> None:
    assert [count_text(count, "worker") for count in (0, 1, 2000)] == ["0 workers", "1 worker", "2,000 workers"]


# ------------------------------------------------------------------------------------------------------------- futures


def test_html_of_futures() -> None:
    assert Texts(with_value(42)).texts == ["TaskFuture", "task", "function", "state", "finished, returned int"]
    failed = Texts(with_exception(ValueError(HOSTILE)))
    assert failed.texts[-1] == f"finished, raised ValueError({HOSTILE!r})" and "script" not in failed.tags


def test_a_future_shows_the_name_of_its_options(running_client: Client) -> None:
    future = running_client.options(name=HOSTILE).submit(wait_at_gate, 1)
    wait_until(future.running)
    assert HOSTILE in repr(future)
    assert Texts(future).texts == ["TaskFuture", "task", f"{HOSTILE}#{future.task_id}", "state", "running"]
    gates.open(1)
    assert future.result(20) == 1
    for _ in range(20):
        assert re.search(r" abs#\d+ at ", repr(running_client.submit(abs, 1))), "even before the I/O thread has run"
    plain = running_client.submit(abs, 1)
    assert plain.result(20) == 1 and "abs" in repr(plain), "also after the function is dropped"


# ------------------------------------------------------------------------------------------------------------- clients


def test_html_of_a_client(running: RunningScheduler) -> None:
    with Client(running.address, timeout_seconds=1, heartbeat_interval_seconds=0.1) as client:
        client.submit(wait_at_gate, 1)
        wait_until(lambda: gates.passed)
        assert repr(client) == f"<Client of {running.address}, 1 open task>"
        assert Texts(client).texts == ["Client", "address", running.address, "this client", "1 open task"]
    assert repr(client) == f"<Client of {running.address}, disconnected>"
    assert Texts(client).texts[-1] == "disconnected"


def test_a_client_shows_the_state_of_the_scheduler(monitor: zmq.Socket[bytes], address: Address) -> None:
    scheduler = RunningScheduler(str(address), incarnation=5)
    try:
        with Client(str(address)) as client:
            first = Texts(client).texts
            assert "workers" not in first, "there is no snapshot, and no one waits for one forever"
            monitor.recv()  # the subscription
            publish(monitor, 5, 3)
            expected = ["workers", "3", "tasks", "1,234 waiting, 5 at workers, 6 done"]
            wait_until(lambda: Texts(client).texts[5:] == expected)
            publish(monitor, 6, 4)
            wait_until(lambda: Texts(client).texts == first, what="the snapshot is another scheduler's")
    finally:
        scheduler.close()


# ------------------------------------------------------------------------------------------------------------ snapshots


def test_the_newest_snapshot_is_shown(monitor: zmq.Socket[bytes], address: Address) -> None:
    watch = NewestSnapshot(address)
    assert watch.latest() is None
    monitor.recv()
    for workers in range(50):
        publish(monitor, 1, workers)
    wait_until(lambda: (newest := watch.latest()) is not None and newest.workers == 49)
    monitor.send(SNAPSHOT_TOPIC + b"no message at all")

    def is_newest_shown() -> bool:
        # Sent again each time: ZeroMQ's CONFLATE drops a message that is written while an earlier one is being read.
        publish(monitor, 1, 50)
        return (newest := watch.latest()) is not None and newest.workers == 50

    wait_until(is_newest_shown)
    watch.close()
    assert watch.latest() is None


def test_the_first_call_waits_for_a_snapshot(monitor: zmq.Socket[bytes], address: Address) -> None:
    watch = NewestSnapshot(address)
    with ThreadPoolExecutor(1) as thread:
        look = thread.submit(watch.latest)
        monitor.recv()
        publish(monitor, 1, 7)
        newest = look.result()
    assert newest is not None and newest.workers == 7
    watch.close()


def test_no_wait_if_no_snapshot_is_published(address: Address) -> None:
    watch = NewestSnapshot(address)
    assert [watch.latest() for _ in range(100)] == [None] * 100
    watch.close()


def test_text_of_a_local_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalCluster, "__init__", lambda self: None)
    cluster = LocalCluster()
    cluster.__dict__.update(
        _address="tcp://127.0.0.1:1", _processes=[SimpleNamespace(poll=lambda: None)], _n_workers=None
    )
    assert repr(cluster) == "<LocalCluster at tcp://127.0.0.1:1, a worker for each core>"
    cluster.__dict__.update(_processes=[])
    assert Texts(cluster).texts == ["LocalCluster", "address", "tcp://127.0.0.1:1", "workers", "shut down"]
