"""scaler_ui as a process, with a real scheduler and cluster."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.commands import Command, SchedulerCommand, cluster, run_once, scheduler
from tests.integration.test_service import Manager
from tests.waiting import wait_until

from scaler_client import Client, __version__
from scaler_client.commands.install_hints import install_hint

pytest.importorskip("aiohttp", reason="the page's server needs aiohttp: pip install 'scaler-client[ui]'")

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

SECONDS = 30.0
TOKEN = "a-token-of-the-tests"


def ui_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scaler_client.ui", *arguments]


class Ui(Command):
    def __init__(self, folder: Path, address: str, *options: str, **variables: str) -> None:
        super().__init__(ui_command(address, "--port", "0", *options), folder / "ui.log", **variables)
        try:
            self.url = self.logged(r"(http://\S+)")
        except AssertionError:
            self.end()
            raise

    def watch(self, *topics: str, until: Callable[[dict[str, list[Any]]], object]) -> dict[str, list[Any]]:
        """The messages that a page was sent, by type, once there are enough."""
        return asyncio.run(asyncio.wait_for(self._watch(topics, until), SECONDS))

    async def _watch(
        self, topics: tuple[str, ...], until: Callable[[dict[str, list[Any]]], object], **more: str
    ) -> dict[str, list[Any]]:
        """Watch the topics and send the messages `more`."""
        seen: dict[str, list[Any]] = {}
        async with aiohttp.ClientSession() as browser, browser.ws_connect(self.url + "live", max_msg_size=0) as page:
            await page.send_str(json.dumps({"type": "watch", "topics": topics}))
            if more:
                await page.send_str(json.dumps(more))
            while not until(seen):
                message = json.loads(await page.receive_str())
                seen.setdefault(message["type"], []).append(message)
        return seen

    def story(self, client: str, task_id: str) -> dict[str, list[Any]]:
        """The columns of a task's story."""
        asked = self._watch((), lambda seen: seen.get("story"), type="story", client=client, id=task_id)
        columns: dict[str, list[Any]] = asyncio.run(asyncio.wait_for(asked, SECONDS))["story"][0]["columns"]
        return columns

    def status(self, path: str, **headers: str) -> int:
        return asyncio.run(self._status(path, headers))

    async def _status(self, path: str, headers: dict[str, str]) -> int:
        jar = aiohttp.CookieJar(unsafe=True)  # for a host name that is an IP address too
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            async with browser.get(self.url + path, headers=headers) as answer:
                return answer.status


@pytest.fixture
def running(tmp_path: Path) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path) as started:
        yield started


@pytest.fixture
def ui(running: SchedulerCommand, tmp_path: Path) -> Iterator[Ui]:
    started = Ui(tmp_path, running.monitor_address)
    yield started
    started.end()


def square(x: int) -> int:
    return x * x


def fail(x: int) -> int:
    raise ValueError(f"no such number: {x}")


def rows(seen: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Executions with the dictionaries of their chunks resolved."""
    found = []
    for chunk in seen.get("tasks", []):
        columns = chunk["columns"]
        for number in range(len(columns["id"])):
            one = {name: column[number] for name, column in columns.items()}
            one["function"] = chunk["names"][one["function"]]
            one["error"] = chunk["errors"][one["error"]] if one["error"] >= 0 else ""
            one["worker_name"] = chunk["worker_names"][one["worker"]] if one["worker"] >= 0 else ""
            one["start_time"] = chunk["base"] + (one["start"] or 0) / 1e6
            found.append(one)
    return found


def test_page_receives_running_tasks(running: SchedulerCommand, ui: Ui, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 2), Client(running.address) as client:
        began = time.time()
        wait_until(lambda: ui.status("health") == 200, what="the scheduler")
        assert client.gather([client.submit(square, x) for x in range(500)]) == [x * x for x in range(500)]
        futures = [client.submit(fail, x) for x in range(3)]
        assert all(future.exception(SECONDS) is not None for future in futures)
        long = client.submit(time.sleep, 600)
        watched = ("tasks", "series", "workers", "running", "functions", "clients")
        # After each snapshot the workers come last. The first snapshot may come before the page says what it watches.
        seen = ui.watch(*watched, until=lambda seen: len(rows(seen)) >= 503 and len(seen.get("workers", [])) > 5)
        long.cancel(force=True)
    found = rows(seen)
    squares = [one for one in found if one["function"].endswith("square")]
    assert (
        len(squares) == 500
        and {one["outcome"] for one in squares} == {0}
        and all(one["worker_name"] for one in squares)
    )
    assert all(one["start"] <= one["end"] and began - 1 < one["start_time"] < time.time() + 1 for one in squares)
    failures = [one for one in found if one["function"].endswith("fail")]
    assert [one["outcome"] for one in failures] == [1, 1, 1]
    assert sorted(one["error"] for one in failures) == [f"ValueError: no such number: {x}" for x in range(3)]
    functions = seen["functions"][-1]["columns"]
    table = {name: row for row, name in enumerate(functions["name"])}
    row = next(row for name, row in table.items() if name.endswith("square"))
    assert (functions["done"][row], functions["recent"][row]) == (500, 500) and functions["p99"][row] > 0
    assert len(seen["workers"][-1]["columns"]["id"]) == 2
    assert [name for name in seen["running"][-1]["columns"]["name"] if name.endswith("sleep")]
    assert seen["snapshot"][-1]["tasks"]["resolved"] >= 503 and seen["series"][-1]["columns"]["workers"][-1] == 2


def test_story_of_a_task(running: SchedulerCommand, ui: Ui, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 1), Client(running.address) as client:
        assert client.submit(fail, 7).exception(SECONDS) is not None
        seen = ui.watch("tasks", until=lambda seen: rows(seen))
        identity, task_id = seen["tasks"][0]["clients"][0], seen["tasks"][0]["columns"]["id"][0]
        for _ in range(2):  # a repeated request is answered again
            story = ui.story(identity, task_id)
            assert story["kind"][0] == "submitted" and story["kind"][-1] == "ended"
            assert story["outcome"][-1] == 1 and story["error"][-1] == "ValueError: no such number: 7"
            assert story["time"] == sorted(story["time"]) and story["worker_name"][-1]
        assert ui.story(identity, "12345")["kind"] == []


def test_page_receives_open_graphs(running: SchedulerCommand, ui: Ui, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 1), Client(running.address) as client:
        graph = {"a": (time.sleep, 600), "b": (fail, "a"), "c": (fail, "a")}
        futures = client.submit_graph(graph, keys=["b", "c"])
        seen = ui.watch("graphs", until=lambda seen: any(
            "running" in message["columns"]["state"] for message in seen.get("graphs", [])
        ))  # fmt: skip
        last = seen["graphs"][-1]
        states = last["columns"]["state"]
        assert last["total"] == 3 and sorted(states) == ["blocked", "blocked", "running"]
        assert {states[row] for row in last["edges"]["from"]} == {"running"} and len(last["edges"]["to"]) == 2
        assert all(future.cancel() for future in futures)
        ui.watch("graphs", until=lambda seen: any(
            sorted(message["columns"]["state"]) == ["failed", "failed", "running"] for message in seen.get("graphs", [])
        ))  # fmt: skip


def test_page_receives_kept_history(running: SchedulerCommand, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 1), Client(running.address) as client:
        assert client.submit(square, 7).result(SECONDS) == 49
    ui = Ui(tmp_path, running.monitor_address)
    try:
        [found] = rows(ui.watch("tasks", until=lambda seen: rows(seen)))
        assert found["function"].endswith("square") and found["submitted"] < found["start"] <= found["end"]
    finally:
        ui.end()


def test_scheduler_is_replaced(running: SchedulerCommand, ui: Ui, tmp_path: Path) -> None:
    ui.watch(until=lambda seen: seen.get("snapshot"))
    running.stop()
    wait_until(lambda: ui.status("health") == 503, what="the detection of silence")
    seen = ui.watch("series", until=lambda seen: seen.get("series"))
    assert seen["presence"][-1]["presence"] == "down" and seen["series"][0]["columns"]["workers"][-1] is None
    ui.logged("the scheduler is (down)")


def test_prometheus_scrapes_it(running: SchedulerCommand, ui: Ui) -> None:
    ui.watch(until=lambda seen: seen.get("snapshot"))

    async def scrape() -> tuple[str, str]:
        async with aiohttp.ClientSession() as browser, browser.get(ui.url + "metrics") as answer:
            return answer.headers["Content-Type"], await answer.text()

    content_type, text = asyncio.run(scrape())
    assert content_type.startswith("text/plain")
    samples = {
        sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert samples["scaler_up"] == 1 and "scaler_tasks" in samples


def test_token_on_a_public_interface(running: SchedulerCommand, tmp_path: Path) -> None:
    ui = Ui(tmp_path, running.monitor_address, "--host", "0.0.0.0")
    try:
        token = re.search(r"\?token=(\S+)", ui.log())
        assert token and ui.log().count(token[1]) == 1
        port = re.search(r":(\d+)/", ui.url)
        assert port
        ui.url = f"http://127.0.0.1:{port[1]}/"
        assert ui.status("") == 401 and ui.status("", Authorization=f"Bearer {token[1]}") == 200
        assert ui.status("", Authorization="Bearer x") == 401 and ui.status("?token=" + token[1]) == 200
    finally:
        ui.end()
    given = Ui(tmp_path, running.monitor_address, SCALER_UI_TOKEN=TOKEN)
    try:
        assert TOKEN not in given.log() and given.status("") == 401
        assert given.status("", Authorization=f"Bearer {TOKEN}") == 200
    finally:
        given.end()


def test_service_notifications(running: SchedulerCommand, tmp_path: Path) -> None:
    manager = Manager(tmp_path)
    ui = Ui(tmp_path, running.monitor_address, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="1500000")
    try:
        manager.await_line("READY=1")
        assert manager.told == ["READY=1"] and ui.status("health") in (200, 503), "it listens"
        manager.await_line("WATCHDOG=1")
        manager.await_line(f"STATUS=0 pages open; the scheduler at {running.monitor_address} is up")
        ui.process.send_signal(signal.SIGTERM)
        assert ui.process.wait(5) == 0
        manager.await_line("STOPPING=1")
    finally:
        ui.end()
        manager.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_with_open_pages(ui: Ui, number: signal.Signals) -> None:
    async def story() -> None:
        async with aiohttp.ClientSession() as browser, browser.ws_connect(ui.url + "live") as page:
            await page.receive_str()
            ui.process.send_signal(number)
            while (await page.receive(SECONDS)).type is aiohttp.WSMsgType.TEXT:
                continue
            assert page.close_code == 1001

    asyncio.run(story())
    assert ui.process.wait(5) == 0, ui.log()


def test_malformed_http_is_answered_and_not_logged(ui: Ui) -> None:
    port = int(ui.url.rpartition(":")[2].strip("/"))
    for garbage in (b"\x16\x03\x01nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), SECONDS) as peer:
            peer.sendall(garbage)
            assert b" 400 " in peer.recv(1000)
    with socket.create_connection(("127.0.0.1", port), SECONDS) as peer:
        peer.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        peer.sendall(
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" + b"\xff" * 1000
        )
        while peer.recv(1000):
            continue
    assert ui.status("health") in (200, 503)
    assert "Traceback" not in ui.log() and "ERROR" not in ui.log()


def test_errors_are_one_line(tmp_path: Path) -> None:
    monitor = f"ipc://{tmp_path}/m"
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = {
            (monitor, "--port", port): f"cannot listen on 127.0.0.1, port {port}: Address already in use by another",
            (monitor, "--host", "no-such.invalid", "--port", "0"): "cannot listen on no-such.invalid, port 0: ",
            (monitor, "--port", "70000"): "--port: '70000' is not a whole number from 0 to 65535",
            (monitor, "--host", "1.2.3"): "--host: '1.2.3' is not an address or name of an interface",
            (monitor, "--token", "short"): "--token: a token needs at least 16 characters",
            (monitor, "--token", "with a blank in it"): "--token: a token may have only letters, digits and . _ ~ +",
            ("http://x",): "monitor-address: bad address 'http://x'",
            (f"ipc://{tmp_path}/file",): f"{tmp_path}/file is not a socket",
            (monitor, "--colour"): "unknown option --colour",
        }  # fmt: skip
        for arguments, complaint in cases.items():
            ran = run_once(ui_command(*arguments))
            status = 1 if "cannot listen" in complaint else 2
            assert (ran.returncode, ran.stdout) == (status, ""), arguments
            assert ran.stderr.startswith("scaler_ui: ") and complaint in ran.stderr and ran.stderr.count("\n") == 1


def test_missing_aiohttp_gives_an_install_hint(tmp_path: Path) -> None:
    program = "import sys; sys.modules['aiohttp'] = None; from scaler_client.ui.cli import main; sys.exit(main())"
    ran = run_once([sys.executable, "-c", program, f"ipc://{tmp_path}/m"])
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1
    assert f"it needs aiohttp, which is not installed: {install_hint('ui')}\n" in ran.stderr
    ran = run_once([sys.executable, "-c", program, "--help"])
    assert ran.returncode == 0 and "--window-seconds" in ran.stdout


def test_versions() -> None:
    ran = run_once(ui_command("--version"))
    assert re.fullmatch(
        rf"scaler_ui {re.escape(__version__)}, .*, aiohttp \S+, prometheus_client \S+, ZeroMQ \S+, protocol .*\n",
        ran.stdout,
    )


def test_waits_for_a_scheduler_and_says_why(tmp_path: Path) -> None:
    ui = Ui(tmp_path, f"ipc://{tmp_path}/m")
    try:
        seen = ui.watch(until=lambda seen: seen.get("presence"))
        [presence] = seen["presence"]
        assert presence["presence"] == "unknown" and f"{tmp_path}/m does not exist yet" in presence["problem"]
        assert ui.status("health") == 503
    finally:
        ui.end()
