"""scaler_ui's web server on a real socket: its files and messages, access, and browsers that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from tests.client.ui.stand_ins import CLIENT, FakeScheduler

pytest.importorskip("aiohttp", reason="the page's server needs aiohttp: pip install 'scaler-client[ui]'")
pytest.importorskip("prometheus_client", reason="the page's server needs it: pip install 'scaler-client[ui]'")

import aiohttp
from aiohttp.test_utils import TestServer

from scaler_client.monitor.reader import SILENCE_SECONDS
from scaler_client.ui import web_application
from scaler_client.ui.access import Access
from scaler_client.ui.contract import MAX_MESSAGE_BYTES

TOKEN = "0123456789abcdef"
SECONDS = 20.0
"""For events that should happen at once."""


class Site:
    """A server with its state, and a browser."""

    def __init__(self, token: str = "") -> None:
        self.scheduler = FakeScheduler()
        self.access = Access(token)
        self.web = web_application.WebApplication(self.scheduler.live, self.access, lambda: None)
        self.server = TestServer(self.web.application())
        self.browser = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True)
        )  # a host name that is an IP address

    def url(self, path: str) -> str:
        return str(self.server.make_url(path))

    async def get(self, path: str, **headers: str) -> aiohttp.ClientResponse:
        return await self.browser.get(self.url(path), headers=headers, allow_redirects=False)

    def second(self, *ids: int, **fields: Any) -> None:
        self.scheduler.second(*ids, **fields)
        self.web.notify_pages()

    @contextlib.asynccontextmanager
    async def page(self, *topics: str, **headers: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self.browser.ws_connect(self.url("/live"), headers=headers, max_msg_size=0) as socket:
            await socket.send_str(json.dumps({"type": "watch", "topics": topics}))
            yield socket


async def until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, Any]:
    """The next message of this type."""
    while True:
        message: dict[str, Any] = json.loads(await socket.receive_str(timeout=SECONDS))
        if message["type"] == kind:
            return message


async def reached(condition: Callable[[], object]) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def unread_page(site: Site, *topics: str) -> AsyncIterator[None]:
    """A browser that watches topics and does not read."""
    reader, writer = await asyncio.open_connection(site.server.host, site.server.port, limit=1024)
    try:
        writer.write(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        assert b"101" in await reader.readline()
        watch = json.dumps({"type": "watch", "topics": topics}).encode()
        writer.write(bytes((0x81, 0x80 | len(watch))) + bytes(4) + watch)  # text, masked with zeros
        yield
    finally:
        writer.close()


def with_site(story: Callable[[Site], Coroutine[Any, Any, None]], token: str = "") -> None:
    async def run_story() -> None:
        site = Site(token)
        await site.server.start_server()
        try:
            async with site.browser:
                await story(site)
        finally:
            await site.server.close()

    asyncio.run(run_story())


def test_security_headers_of_each_answer() -> None:
    async def story(site: Site) -> None:
        for path in ("/", "/health", "/nothing", "/static/../web_application.py", "/static/"):
            headers = (await site.get(path)).headers
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy and "http" not in policy and "*" not in policy
            assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert (await site.get("/static/%2e%2e/web_application.py")).status == 404
        for path in ("/static/nothing.js", "/static/" + "x" * 5000, "/static/%00", "/static//etc/passwd"):
            assert (await site.get(path)).status == 404
        page = await site.get("/")
        assert (page.status, page.content_type) == (200, "text/html")

    with_site(story)


def test_health_shows_the_presence() -> None:
    async def story(site: Site) -> None:
        assert (await site.get("/health")).status == 503
        site.second()
        answer = await site.get("/health")
        assert (answer.status, await answer.json()) == (200, {"status": "ok", "scheduler": "up"})
        site.scheduler.silence(SILENCE_SECONDS + 1)
        answer = await site.get("/health")
        assert (answer.status, (await answer.json())["scheduler"]) == (503, "down")

    with_site(story)


def test_metrics_equal_those_of_the_exporter() -> None:
    async def story(site: Site) -> None:
        site.second()
        answer = await site.get("/metrics")
        assert answer.status == 200 and "\nscaler_up 1.0\n" in await answer.text()
        answer = await site.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert answer.content_type == "application/openmetrics-text" and (await answer.text()).endswith("# EOF\n")

    with_site(story)


def test_page_receives_new_data() -> None:
    async def story(site: Site) -> None:
        async with site.page("tasks", "series") as socket:
            assert (await until(socket, "hello"))["contract"] == 1
            site.second(7)
            assert (await until(socket, "snapshot"))["incarnation"] == "5"
            found = await until(socket, "tasks")
            assert (found["columns"]["id"], found["clients"]) == (["7"], [str(CLIENT)])
            await socket.send_str("nonsense")
            assert (await until(socket, "refused"))["problem"] == "the message is not JSON"
            await socket.send_bytes(b"\0")
            site.scheduler.silence(SILENCE_SECONDS + 1)
            site.web.notify_pages()
            assert (await until(socket, "presence"))["presence"] == "down"
        await reached(lambda: site.web.pages == 0)

    with_site(story)


def test_page_with_too_long_a_message_is_disconnected() -> None:
    async def story(site: Site) -> None:
        async with site.page() as socket:
            await socket.send_str("x" * (MAX_MESSAGE_BYTES + 1))
            while not (await socket.receive(timeout=SECONDS)).type == aiohttp.WSMsgType.CLOSE:
                continue
            assert socket.close_code == 1009

    with_site(story)


def test_foreign_origins_and_hosts_are_rejected() -> None:
    async def story(site: Site) -> None:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await site.browser.ws_connect(site.url("/live"), headers=headers)
            assert refused.value.status == 403
        assert (await site.get("/", Host="evil.example")).status == 403
        own = f"http://{site.server.host}:{site.server.port}"
        async with site.page(Origin=own) as socket:
            await until(socket, "hello")

    with_site(story)


def test_token_is_required_for_everything() -> None:
    async def story(site: Site) -> None:
        for path in ("/", "/live", "/static/index.html", "/metrics", f"/?token={TOKEN}x", "/?token="):
            answer = await site.get(path)
            assert answer.status == 401 and TOKEN not in await answer.text() and "Set-Cookie" not in answer.headers
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert (await site.get("/health")).status == 503, "health checks need no token"
        assert (await site.get("/", Authorization=f"Bearer {TOKEN}")).status == 200

    with_site(story, TOKEN)


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example/", "/\\evil.example/", "/%5Cevil.example/"])
def test_the_redirect_leads_to_no_other_host(path: str) -> None:
    async def story(site: Site) -> None:
        await site.server.start_server()
        reader, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
        writer.write(f"GET {path}?token={TOKEN} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        location = re.search(r"(?i)^location: (.*)\r$", answer, re.MULTILINE)
        if location:
            assert location[1].startswith("/") and location[1][1:2] not in ("/", "\\"), answer
        else:
            assert answer.startswith("HTTP/1.0 4"), answer

    with_site(story, TOKEN)


def test_token_in_the_address_becomes_a_cookie() -> None:
    async def story(site: Site) -> None:
        visit = await site.get(f"/?view=tasks&token={TOKEN}")
        assert (visit.status, visit.headers["Location"]) == (303, "/?view=tasks")
        cookie = visit.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and TOKEN not in cookie
        assert (await site.get("/")).status == 200
        site.second(1)
        async with site.page("workers", Host="cluster.example", Origin="http://cluster.example") as socket:
            await until(socket, "workers")
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await site.browser.ws_connect(site.url("/live"), headers={"Origin": "https://evil.example"})

    with_site(story, TOKEN)


def test_slow_browser_costs_no_memory_and_delays_no_other() -> None:
    """No messages are made for it, beyond one message and the buffers of the sockets."""
    names = [f"{number} {'x' * 4000}" for number in range(250)]
    texts = {"text": "".join(names).encode(), "sizes": [len(name) for name in names]}
    table = {"numbers": list(range(250)), "names": list(range(250))}
    table |= {name: [0] for name in ("tasks", "done", "failed", "runNanoseconds", "bytes", "clients")}

    async def story(site: Site) -> None:
        async with site.page("tasks") as quick, unread_page(site, "functions"):
            for second in range(1, 41):
                site.second(second, functionColumns=table, texts=texts)  # a megabyte each
                assert (await until(quick, "tasks"))["columns"]["id"] == [str(second)]
            held = [socket._req.transport.get_write_buffer_size() for socket in site.web._sockets]
            assert len(held) == 2 and 0 < max(held) < 2_500_000, "one message, and aiohttp's own buffer"

    with_site(story)


def test_browser_that_accepts_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_application, "SEND_SECONDS", 0.2)

    async def story(site: Site) -> None:
        async with unread_page(site):
            await reached(lambda: site.web.pages == 1)
            site.second(address="x" * 30_000_000)  # more than the buffers of the sockets
            await reached(lambda: site.web.pages == 0)

    with_site(story)


def test_number_of_pages_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_application, "MAX_PAGES", 1)

    async def story(site: Site) -> None:
        async with site.page():
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await site.browser.ws_connect(site.url("/live"))
            assert refused.value.status == 503

    with_site(story)


def test_shutdown_does_not_wait_for_pages() -> None:
    async def story(site: Site) -> None:
        async with site.page() as socket:
            await until(socket, "hello")
            await asyncio.wait_for(site.server.close(), 5.0)

    with_site(story)
