"""The scheduler disappears and returns, and so does the page's server."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect
from tests.integration.restarts import restarts
from tests.ui.conftest import site
from tests.ui.pages import OpenPage


def test_scheduler_disappears_and_returns(open_page: OpenPage, tmp_path: Path) -> None:
    with restarts(tmp_path) as schedulers, site(tmp_path, schedulers.now.monitor_address) as started:
        page = open_page(started.url)
        state, banner = page.locator("#state"), page.locator("#banner")
        expect(state).to_have_text("Live")
        expect(banner).to_be_hidden()
        address = schedulers.now.address
        schedulers.kill()
        expect(banner).to_contain_text("No message from the scheduler at")
        expect(state).to_have_text("Down")
        expect(page.locator("#where")).to_have_text(address)
        schedulers.start(address)
        expect(banner).to_contain_text("The scheduler is back.")
        expect(state).to_have_text("Live")
        page.close()  # before its server ends: the page would report an error


def test_server_disappears_and_returns(open_page: OpenPage, tmp_path: Path) -> None:
    with restarts(tmp_path) as schedulers:
        address = schedulers.now.monitor_address
        with site(tmp_path, address) as first:
            page = open_page(first.url, may_lose=True)
            expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#banner")).to_contain_text("The server of this page has not answered since")
        expect(page.locator("#state")).to_have_text("No server")
        expect(page.get_by_role("button", name="Retry now")).to_be_visible()
        with site(tmp_path, address, first.port):
            page.evaluate("window.dispatchEvent(new Event('online'))")
            expect(page.locator("#state")).to_have_text("Live")
            expect(page.locator("#banner")).to_be_hidden()
            assert not page.evaluate("performance.getEntriesByType('navigation')[0].type === 'reload'")
