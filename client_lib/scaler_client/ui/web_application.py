"""The HTTP side: the page's files, its WebSocket, /metrics and /health, behind the checks of access.py."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web

from ..monitor.metrics import exposition
from ..monitor.reader import Presence
from .access import Access
from .contract import LIVE_PATH, MAX_MESSAGE_BYTES, PRESENCES, RequestError, encode, parse_request
from .live_state import LiveState
from .page_session import PageSession

_log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
PUBLIC_PATHS = frozenset(("/health",))
"""Paths without a token: health checks need none."""
MAX_PAGES = 100
"""How many pages may be connected at the same time."""
PING_SECONDS = 20.0
"""A browser that vanishes is detected after one and a half times this time."""
CLOSE_SECONDS = 0.5
"""How long a browser may take to answer the close at the end."""
SEND_SECONDS = 30.0
"""A browser that does not accept a message for this time is disconnected."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
MEDIA_TYPES = {
    ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html", ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip
"""Set here because the machine's table may differ. Browsers refuse scripts of another type."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebApplication:
    """The web application.

    Args:
        live: what pages show.
        access: the checks of requests.
        on_topics_changed: called when pages need other topics (`topics`).
    """

    def __init__(self, live: LiveState, access: Access, on_topics_changed: Callable[[], None]) -> None:
        self._on_topics_changed = on_topics_changed
        self._live = live
        self._access = access
        self._pages: dict[PageSession, asyncio.Event] = {}
        """The connected pages, each with the event that signals new data."""
        self._files = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file()}
        self._sockets: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        for suffix, media_type in MEDIA_TYPES.items():
            mimetypes.add_type(media_type, suffix)
        application = web.Application(middlewares=[self._guard], client_max_size=MAX_MESSAGE_BYTES)
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._close_sockets)
        application.router.add_get("/", self._index)
        application.router.add_get(LIVE_PATH, self._websocket)
        application.router.add_get("/health", self._health)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/static/{name:.+}", self._file)
        return application

    def notify_pages(self) -> None:
        """Wake all pages, because there are new data."""
        for event in self._pages.values():
            event.set()

    def topics(self) -> set[bytes]:
        """The topics that pages need and that are not always subscribed to."""
        return set().union(*(page.topics() for page in self._pages))

    @property
    def pages(self) -> int:
        return len(self._pages)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        access, host = self._access, request.headers.get("Host", "")
        if not access.is_host_allowed(host):
            return web.Response(status=403, text="open this page by localhost or 127.0.0.1, or configure a token\n")
        given = request.query.get("token")
        if given is not None and access.is_token(given):
            return self._set_cookie(request)
        is_shown = access.is_authorized(
            request.headers.get("Authorization", ""), request.cookies.get(access.cookie, "")
        )
        if not is_shown and request.path not in PUBLIC_PATHS:
            return web.Response(status=401, text=TOKEN_NEEDED, headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    def _set_cookie(self, request: web.Request) -> web.StreamResponse:
        """Set the cookie and redirect, so that the token leaves the address bar and the browser's history."""
        query = [(name, value) for name, value in request.query.items() if name != "token"]
        # One slash: browsers take a path that begins with two for the name of another host.
        location = "/" + str(request.rel_url.with_query(query)).lstrip("/\\")
        response = web.Response(status=303, headers={"Location": location})
        response.set_cookie(
            self._access.cookie,
            self._access.cookie_value,
            httponly=True,
            samesite="Strict",
            secure=request.secure,
            path="/",
        )
        return response

    async def _index(self, _request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """One of the known files. A name from outside never becomes a path."""
        found = self._files.get(request.match_info["name"])
        return web.Response(status=404, text="no such file\n") if found is None else web.FileResponse(found)

    async def _health(self, _request: web.Request) -> web.Response:
        reader = self._live.reader
        is_there = reader.presence is Presence.UP
        payload = {"status": "ok" if is_there else "unavailable", "scheduler": PRESENCES[reader.presence]}
        return web.Response(
            status=200 if is_there else 503, text=encode(payload) + "\n", content_type="application/json"
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = exposition(self._live.reader, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if not self._access.is_origin_allowed(request.headers.get("Origin"), request.headers.get("Host", "")):
            return web.Response(status=403, text="only the page of this server may connect here\n")
        if self.pages >= MAX_PAGES:
            return web.Response(status=503, text=f"{MAX_PAGES} pages are connected already\n")
        socket = web.WebSocketResponse(
            timeout=CLOSE_SECONDS, heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES, compress=False
        )
        await socket.prepare(request)
        page, changed = PageSession(self._live), asyncio.Event()
        changed.set()
        self._pages[page] = changed
        self._sockets.add(socket)
        sending = asyncio.ensure_future(_send(socket, page, changed))
        try:
            await self._receive(socket, page, changed)
        finally:
            del self._pages[page]
            self._sockets.discard(socket)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return socket

    async def _receive(self, socket: web.WebSocketResponse, page: PageSession, changed: asyncio.Event) -> None:
        """Handle messages from the page until it disconnects."""
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                page.handle(parse_request(message.data, self._live.limits.window))
            except RequestError as error:
                page.reject(str(error))
            changed.set()
            self._on_topics_changed()

    async def _close_sockets(self, _application: web.Application) -> None:
        closing = (
            socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server ends", drain=False)
            for socket in self._sockets
        )
        await asyncio.gather(*closing, return_exceptions=True)


TOKEN_NEEDED = (
    "This page needs a token. Append /?token=TOKEN to its address, or send 'Authorization: Bearer TOKEN'.\n"
    "scaler_ui printed the token at its start, if none was configured.\n"
    "If you have just followed a link with the token, reload this page.\n"
)


async def _send(socket: web.WebSocketResponse, page: PageSession, changed: asyncio.Event) -> None:
    """Send the page its messages as fast as it accepts them. A message is made only when it can be sent."""
    try:
        while True:
            await changed.wait()
            changed.clear()
            for text in page.pending_messages():
                await asyncio.wait_for(socket.send_str(text), SEND_SECONDS)
    except (ConnectionError, asyncio.TimeoutError):
        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too slow", drain=False)
    except Exception:  # a bug: this page reconnects, and other pages are not affected
        _log.exception("the messages of a page could not be made")
        await socket.close(code=WSCloseCode.INTERNAL_ERROR, drain=False)


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = "scaler_ui"
    response.headers.setdefault(
        "Cache-Control", "no-cache"
    )  # the browser must ask again, and mostly gets "not modified"
