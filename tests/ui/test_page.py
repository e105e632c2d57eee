"""The page in a real browser, with a real scheduler and cluster under load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.ui.conftest import Shop, function
from tests.ui.pages import OpenPage, canvas, cells, go, rows, span, wait_for_bars
from tests.waiting import wait_until


@pytest.fixture
def page(busy: Shop, open_page: OpenPage) -> Page:
    page = open_page(busy.site.url, viewport={"width": 1600, "height": 800})  # wide enough for every column of tasks
    expect(page.locator("#state")).to_have_text("Live")
    return page


def test_overview_is_updated(busy: Shop, page: Page) -> None:
    figure = page.locator("[data-figure=throughput]")
    expect(page.locator("[data-figure=workers] dd").first).to_have_text("2")
    expect(page.locator("[data-figure=workers] dd").last).to_have_text("1 host agent, 1 client")
    expect(figure.locator("dd").first).to_contain_text("/s")
    before = figure.locator("dd").last.inner_text()
    expect(figure.locator("dd").last).not_to_have_text(before)
    expect(page.get_by_label("Throughput over time").locator(".u-legend")).to_contain_text("Done")
    expect(page.locator("#panels .uplot canvas")).to_have_count(4)
    scheduler = page.locator("section.card", has=page.get_by_role("heading", name="Scheduler", exact=True))
    expect(scheduler).to_contain_text(busy.address)
    expect(page.locator("#where")).to_have_text(busy.address)


def test_workers_are_sorted_and_filtered(page: Page) -> None:
    go(page, "workers")
    expect(rows(page)).to_have_count(2)
    header = page.get_by_role("columnheader", name="Worker")
    expect(header).to_have_attribute("aria-sort", "ascending")
    names = cells(page, "Worker")
    assert names == sorted(names)
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    assert cells(page, "Worker") == names[::-1]
    page.get_by_role("button", name="Done", exact=True).click()
    expect(header).to_have_attribute("aria-sort", "none")
    expect(page.get_by_role("columnheader", name="Done")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("searchbox").fill(names[1])
    expect(rows(page)).to_have_count(1)
    assert cells(page, "Worker") == [names[1]]
    page.get_by_role("searchbox").fill("nobody is called that")
    expect(page.get_by_text("No worker matches the filter")).to_be_visible()
    expect(rows(page)).to_have_count(0)


def test_timeline_zooms_moves_and_shows_a_tooltip(page: Page) -> None:
    go(page, "timeline")
    wait_for_bars(page, 21)
    expect(page.get_by_label("Colours")).to_contain_text("work")
    before = span(page)
    box = canvas(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 200, box["y"] + 50)
    for _ in range(8):
        page.mouse.wheel(0, -200)
    wait_until(lambda: span(page) < before / 8, what="a shorter range")
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "true")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 100, box["y"] + 50, steps=4)
    page.mouse.up()
    expect(follow).to_have_attribute("aria-pressed", "false")
    tip = page.locator(".tip")

    def find() -> bool:
        place = find.place = find.place + 7  # type: ignore[attr-defined]
        page.mouse.move(box["x"] + 200 + place % int(box["width"] - 240), box["y"] + 50)
        return tip.is_visible()

    find.place = 0  # type: ignore[attr-defined]
    wait_until(find, what="a task under the pointer")
    expect(tip).to_contain_text("work")
    expect(tip).to_contain_text("Duration")
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("dialog#details")).to_be_visible()


def test_failed_task_shows_error_and_story(busy: Shop, page: Page) -> None:
    def fail(curve: str) -> None:
        raise ValueError(f"no such curve: {curve}")

    future = busy.client.submit(function("price", fail), "flat")
    assert future.exception(20)
    go(page, "tasks")
    page.get_by_label("State").select_option("failed")
    row = rows(page).filter(has_text="price").first
    expect(row).to_contain_text("exception")
    expect(row).to_contain_text("no such curve: flat")
    row.click()
    details = page.locator("dialog#details")
    expect(details.get_by_role("heading", name="price")).to_be_visible()
    expect(details.get_by_role("note", name="Error")).to_contain_text("ValueError: no such curve: flat")
    expect(details.get_by_role("note", name="Traceback")).to_contain_text('raise ValueError(f"no such curve: {curve}")')
    story = details.get_by_label("History")
    for what in ("submitted", "dispatched", "exception"):
        expect(story).to_contain_text(what)
    page.keyboard.press("Escape")
    expect(details).to_be_hidden()


def test_task_log_stays_in_place_while_scrolled(page: Page) -> None:
    go(page, "tasks")
    expect(rows(page).nth(20)).to_be_attached()
    newest = cells(page, "Id")[0]
    wait_until(lambda: cells(page, "Id")[0] != newest, what="newer tasks at the top")
    page.locator("#panels .table").evaluate("table => { table.scrollTop = 300; }")
    fresh = page.locator(".fresh")
    expect(fresh).to_be_visible()
    seen, announced = cells(page, "Id"), fresh.inner_text()
    expect(fresh).not_to_have_text(announced)
    assert cells(page, "Id") == seen
    fresh.click()
    expect(fresh).to_be_hidden()
    assert page.locator("#panels .table").evaluate("table => table.scrollTop") == 0


def test_tasks_are_searched(busy: Shop, page: Page) -> None:
    busy.client.submit(function("needle", lambda: None)).result(20)
    go(page, "tasks")
    expect(rows(page).nth(20)).to_be_attached()
    page.get_by_role("searchbox").fill("NEEDLE")
    expect(rows(page)).to_have_count(1)
    assert cells(page, "Task") == ["needle"]
    page.get_by_label("Duration").select_option("60000")
    expect(page.get_by_text("No task in the window matches")).to_be_visible()


def test_functions_have_counts_and_durations(page: Page) -> None:
    go(page, "functions")
    page.get_by_role("searchbox").fill("work")
    expect(rows(page)).to_have_count(1)
    wait_until(lambda: cells(page, "p99") != ["–"], what="a percentile")
    for column in ("Mean", "Median", "p99"):
        assert 20 <= float(cells(page, column)[0].removesuffix(" ms")) < 1000
    before = cells(page, "Done")
    wait_until(lambda: cells(page, "Done") != before, what="more tasks")
    page.get_by_role("columnheader", name="Failed").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="Failed")).to_have_attribute("aria-sort", "descending")


def test_running_graph_is_drawn(busy: Shop, page: Page, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def wait(path: str) -> int:
        import pathlib
        import time

        while not pathlib.Path(path).exists():
            time.sleep(0.01)
        return 1

    go(page, "graphs")
    expect(page.get_by_text("No graphs are open")).to_be_visible()
    load, combine = function("load", wait), function("combine", lambda *parts: sum(parts))
    graph = {"a": (load, str(gate)), "b": (combine, "a"), "c": (combine, "a", "b")}
    try:
        (future,) = busy.client.options(priority=1).submit_graph(graph, keys=["c"])
        nodes = page.locator("#panels .graph .node")
        expect(nodes).to_have_count(3)
        expect(nodes.filter(has_text="load")).to_have_attribute("data-state", "running")
        expect(nodes.filter(has_text="load").locator(".letter")).to_have_text("R")
        expect(nodes.filter(has_text="combine").first).to_have_attribute("data-state", "blocked")
        expect(page.locator("#panels .graph .edge")).to_have_count(3)
    finally:
        gate.touch()
    choice = page.get_by_label("Graph", exact=True).locator("option").first
    expect(choice).to_have_text(re.compile(r"^c · \d\d:\d\d:\d\d · \d of 3 done · .+\[\d+\]@.+$"))
    assert future.result(20) == 2
    for number in range(3):
        expect(nodes.nth(number)).to_have_attribute("data-state", "done")


HOSTILE = "<img src=x onerror=document.title='hacked'>"
TURNED = "safe\u202egnp.exe\u05d0\u0000"


def test_task_names_are_shown_as_text(busy: Shop, page: Page) -> None:
    for name in (HOSTILE, TURNED):
        busy.client.submit(function(name, lambda: None)).result(20)
    turned = "safe⟨202E⟩gnp.exe\u05d0␀"
    go(page, "functions")
    for name in (HOSTILE, turned):
        expect(rows(page).get_by_text(name, exact=True)).to_be_visible()
    expect(rows(page).get_by_text(turned)).to_have_attribute("title", turned)
    go(page, "timeline")
    expect(page.get_by_label("Colours")).to_contain_text("onerror")
    go(page, "tasks")
    page.get_by_role("searchbox").fill("onerror")
    expect(rows(page)).to_have_count(1)
    rows(page).first.click()
    expect(page.locator("dialog#details h2")).to_have_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == "Tasks · Scaler"


def test_settings_are_stored(busy: Shop, page: Page) -> None:
    go(page, "settings")
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("Window").select_option("60")
    page.get_by_label("Update interval").select_option("2")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_label("Window")).to_have_value("60")
    expect(page.get_by_label("Update interval")).to_have_value("2")
    go(page, "tasks")
    expect(page.get_by_text("in the last 1 min")).to_be_visible()
