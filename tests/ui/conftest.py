"""A real Chromium, a scheduler with a cluster and busy clients, and scaler_ui."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the page's server needs aiohttp: pip install 'scaler-client[ui]'")

from tests.browser import chromium  # isort: skip  # first: it skips the tests without playwright

from playwright.sync_api import Browser, Page, WebSocketRoute
from tests.integration.commands import Command, cluster, scheduler
from tests.ui.feeds import Message, PageServer, encoded
from tests.ui.pages import OpenPage, watched

from scaler_client import Client

NOBODY = "ipc:///tmp/nobody_is_at_this_monitor_address"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Site:
    """scaler_ui as a process."""

    def __init__(self, folder: Path, monitor_address: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "scaler_client.ui", monitor_address, "--port", str(port)]
        self.command = Command(command, folder / "ui.log")
        self.url = self.command.logged(r"(http://\S+)")

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])


@contextmanager
def site(folder: Path, monitor_address: str, port: int = 0) -> Iterator[Site]:
    started = Site(folder, monitor_address, port)
    try:
        yield started
    finally:
        started.command.end()


def function(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """A function of this name, which is pickled by value."""

    def named(*arguments: Any) -> Any:
        return body(*arguments)

    named.__name__ = named.__qualname__ = name
    named.__module__ = "__main__"
    return named


class Shop:
    """A scheduler with two workers, and its page."""

    def __init__(self, address: str, client: Client, site: Site) -> None:
        self.address = address
        self.client = client
        self.site = site


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with scheduler(folder) as daemon, cluster(folder, daemon.address, 2), site(folder, daemon.monitor_address) as page:
        with Client(daemon.address, timeout_seconds=30) as client:
            yield Shop(daemon.address, client, page)


@pytest.fixture(scope="module")
def busy(shop: Shop) -> Iterator[Shop]:
    """A scheduler with two workers and its page, while tasks come and go."""
    import time

    ended = threading.Event()
    work = function("work", lambda seconds: time.sleep(seconds))

    def submit() -> None:
        while not ended.is_set():
            shop.client.map(work, [(0.02,)] * 10)

    thread = threading.Thread(target=submit)
    thread.start()
    yield shop
    ended.set()
    thread.join()


@pytest.fixture(scope="module")
def quiet_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page whose scheduler is never heard. The test feeds it."""
    with site(tmp_path_factory.mktemp("quiet"), NOBODY) as started:
        yield started


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages that must not report errors or contact other hosts."""
    with watched(browser) as opening:
        yield opening


@pytest.fixture
def fed_page(open_page: OpenPage, quiet_site: Site) -> Callable[..., Page]:
    """Opens a page at a view. Its server sends these messages."""

    def open_fed(view: str, messages: list[Message], **options: Any) -> Page:
        def serve(route: WebSocketRoute) -> None:
            route.on_message(lambda _message: None)
            for message in messages:
                route.send(encoded(message))

        return open_page(f"{quiet_site.url}#{view}", feed=serve, **options)

    return open_fed


@pytest.fixture
def quiet_feed(open_page: OpenPage, quiet_site: Site) -> Callable[..., tuple[Page, PageServer]]:
    """Opens a page at a view. The test sends the server's messages."""

    def open_fed(view: str) -> tuple[Page, PageServer]:
        line = PageServer()
        page = open_page(f"{quiet_site.url}#{view}", feed=line.serve)
        line.wait_for(page, {"type": "resume"})
        return page, line

    return open_fed
