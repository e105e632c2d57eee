"""Pages that fail a test when they report errors, and helpers to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    WebSocketRoute,
    expect,
)
from tests.waiting import wait_until

VIEWS = ("overview", "workers", "timeline", "tasks", "functions", "clients", "graphs", "settings")
SECONDS = 20.0
"""For events that should happen within seconds."""

OpenPage = Callable[..., Page]


@contextmanager
def watched(browser: Browser) -> Iterator[OpenPage]:
    """Opens a page at an address. The options are those of a browser's context; `feed` replaces its server."""
    complaints: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(
        url: str, *, feed: Callable[[WebSocketRoute], None] | None = None, may_lose: bool = False, **options: Any
    ) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        host = urlsplit(url).netloc

        def hear(message: ConsoleMessage) -> None:
            # The browser itself reports a lost server.
            is_lost = may_lose and "ERR_CONNECTION" in message.text
            if message.type in ("error", "warning") and not is_lost:
                complaints.append(message.text)

        def look(request: Request) -> None:
            if urlsplit(request.url).netloc != host:
                complaints.append(f"a request to {request.url}")

        def dismiss(dialog: Dialog) -> None:
            complaints.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", dismiss)
        page.on("request", look)
        if feed is not None:
            page.route_web_socket("**/live", feed)
        page.goto(url)
        return page

    expect.set_options(timeout=SECONDS * 1000)
    try:
        yield open_page
    finally:
        for context in contexts:
            context.close()
    assert not complaints, "\n".join(complaints)


def go(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = view; }", view)
    expect(page.locator("#panels h1")).to_have_text(view.capitalize())


def rows(page: Page) -> Locator:
    """The rows of the visible table that exist in the page."""
    return page.locator("#panels .rows .row:visible")


def cells(page: Page, column: str) -> list[str]:
    """The texts of a column, from the top."""
    titles = page.locator("#panels [role=columnheader]").all_inner_texts()
    number = next(number for number, title in enumerate(titles, 1) if title.strip() == column)
    script = """number => [...document.querySelectorAll('#panels .rows .row:not([hidden])')]
        .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(row => row.children[number - 1].textContent)"""
    found: list[str] = page.evaluate(script, number)
    return found


def canvas(page: Page) -> Locator:
    return page.locator("#panels canvas[role=application]")


def drawn(page: Page, name: str) -> float:
    """A number of the last frame drawn by the timeline; 0 before the first."""
    script = "name => Number(document.querySelector('#panels canvas[role=application]')?.dataset[name] ?? 0)"
    found: float = page.evaluate(script, name)
    return found


def wait_for_bars(page: Page, least: int = 1) -> None:
    wait_until(lambda: drawn(page, "bars") >= least, SECONDS, f"{least} bars")


def span(page: Page) -> float:
    """The milliseconds of time that the timeline shows."""
    return drawn(page, "to") - drawn(page, "from")


def width_of(page: Page) -> tuple[int, int]:
    """The width of the whole page, and of its visible part."""
    whole, seen = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    return whole, seen
