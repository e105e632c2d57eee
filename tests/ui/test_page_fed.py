"""The page with messages made by the test: large sizes, keys, widths, and states that a cluster here does not reach."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.ui import feeds
from tests.ui.pages import VIEWS, canvas, cells, drawn, go, rows, span, wait_for_bars, width_of
from tests.waiting import wait_until

WORKERS, TASKS, CHUNK = 1_000, 100_000, 10_000
MAX_ROWS = 60
"""Rows of a table that may exist in the page: the visible ones and some more."""

FedPage = Callable[..., Page]


def first_messages() -> list[feeds.Message]:
    return [feeds.hello(), feeds.presence(), feeds.snapshot()]


def large_cluster() -> list[feeds.Message]:
    """A thousand workers, and 100,000 executions of the last five minutes."""
    chunks = range(TASKS // CHUNK)
    return [
        *first_messages(),
        feeds.workers(WORKERS),
        *(feeds.tasks(CHUNK, WORKERS, 290 - 29 * chunk, 28, chunk * CHUNK) for chunk in chunks),
    ]


def small_cluster() -> list[feeds.Message]:
    return [*first_messages(), feeds.workers(12), feeds.clients(), feeds.functions(), feeds.tasks(120, 12, 60, 50)]


def test_drawing_1000_workers_and_100000_tasks_is_cheap(fed_page: FedPage) -> None:
    page = fed_page("timeline", large_cluster())
    expect(page.get_by_text("100,000 tasks on 1,000 workers")).to_be_visible()
    wait_for_bars(page, 1001)
    in_sight = drawn(page, "rows")
    assert 20 < in_sight < 60
    width = canvas(page).evaluate("canvas => canvas.clientWidth")
    assert drawn(page, "scanned") <= in_sight * TASKS / WORKERS
    assert drawn(page, "bars") <= in_sight * width / 2

    go(page, "settings")
    page.get_by_label("Timeline rows").select_option("compact")
    go(page, "timeline")
    wait_until(lambda: drawn(page, "rows") > 1.5 * in_sight, what="more rows")
    assert drawn(page, "bars") <= drawn(page, "rows") * width / 2

    for direction in ("out", "out", "in", "in"):
        zoom(page, direction)
        assert drawn(page, "bars") <= drawn(page, "rows") * width / 2
        assert drawn(page, "scanned") <= drawn(page, "rows") * TASKS / WORKERS

    go(page, "workers")
    assert rows(page).count() <= MAX_ROWS
    page.locator("#panels .table").evaluate("table => { table.scrollTop = 15000; }")
    expect(rows(page).filter(has_text=feeds.worker_name(510))).to_be_visible()
    assert page.locator("#panels .rows .row").count() <= MAX_ROWS
    go(page, "tasks")
    assert page.locator("#panels .rows .row").count() <= MAX_ROWS
    page.locator("#panels .table").evaluate("table => { table.scrollTop = table.scrollHeight; }")
    expect(rows(page).last).to_be_visible()
    assert page.locator("#panels .rows .row").count() <= MAX_ROWS
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text(re.compile(r"^[\d,]{3,5} of 100,000"))).to_be_visible()
    assert set(cells(page, "State")) == {"exception"}


def zoom(page: Page, direction: str) -> None:
    """Zoom one step "in" or "out", and wait until this is drawn."""
    before = drawn(page, "frames")
    page.get_by_role("button", name=f"Zoom {direction}").click()
    wait_until(lambda: drawn(page, "frames") > before, what="a frame")


def test_tiny_tasks_share_bars(fed_page: FedPage) -> None:
    page = fed_page("timeline", [*first_messages(), feeds.tasks(50_000, 2, 200, 190)])
    wait_until(lambda: drawn(page, "scanned") >= 50_000, what="all tasks")
    assert drawn(page, "bars") <= 2 * 1280 / 2


def test_1000_workers_are_filtered_and_sorted(fed_page: FedPage) -> None:
    page = fed_page("workers", large_cluster()[:4])
    expect(page.get_by_text("1,000 in all")).to_be_visible()
    assert cells(page, "Worker")[:3] == ["host00-0", "host00-1", "host00-2"]
    assert cells(page, "Worker")[10] == "host00-10"
    page.get_by_role("button", name="CPU", exact=True).click()
    assert cells(page, "CPU")[0] == "99 %"
    page.get_by_role("searchbox").fill("host07")
    expect(page.get_by_text("40 of 1,000")).to_be_visible()
    assert all(name.startswith("host07") for name in cells(page, "Worker"))


def test_small_graph_is_drawn_by_node(fed_page: FedPage) -> None:
    states, edges, names = feeds.layered_graph([8, 5, 3, 1], ["load", "transform", "combine", "report"])
    page = fed_page("graphs", [*first_messages(), feeds.graphs(states, edges, names)])
    nodes = page.locator("#panels .graph .node")
    expect(nodes).to_have_count(17)
    expect(page.locator("#panels .graph .edge")).to_have_count(len(edges))
    letters = nodes.locator(".letter").all_text_contents()
    assert letters == [{"done": "D", "running": "R", "waiting": "W", "blocked": "B"}[state] for state in states]
    space = page.locator("#panels .graph svg > g")
    before = space.get_attribute("transform") or ""
    page.get_by_role("application").press("+")
    expect(space).not_to_have_attribute("transform", before)
    page.get_by_role("application").press("0")
    expect(space).to_have_attribute("transform", before)


def test_large_graph_is_grouped_by_function_and_depth(fed_page: FedPage) -> None:
    widths = [600, 600, 200, 1]
    edges = [(row, 600 + row) for row in range(600)] + [(600 + row, 1200 + row // 3) for row in range(600)]
    edges += [(1200 + row, 1400) for row in range(200)]
    names = [name for name, width in zip(["load", "change", "join", "end"], widths) for _ in range(width)]
    states = ["done"] * 600 + ["running"] * 4 + ["waiting"] * 596 + ["blocked"] * 201
    page = fed_page("graphs", [*first_messages(), feeds.graphs(states, edges, names)])
    expect(page.get_by_text("1,401 nodes, grouped by function and depth")).to_be_visible()
    nodes = page.locator("#panels .graph .node")
    expect(nodes).to_have_count(4)
    expect(nodes.filter(has_text="change × 600")).to_have_attribute("data-state", "running")
    expect(nodes.filter(has_text="change × 600")).to_contain_text("W 596")


def test_nodes_stay_until_their_graph_ends(
    quiet_feed: Callable[..., tuple[Page, feeds.PageServer]],
) -> None:
    page, line = quiet_feed("graphs")
    line.send(
        *first_messages(), feeds.graphs(["running", "running", "blocked"], [(0, 2), (1, 2)], ["left", "right", "sum"])
    )
    nodes = page.locator("#panels .graph .node")
    expect(nodes).to_have_count(3)
    line.send(
        feeds.ended("0", "left"),
        feeds.ended("1", "right", failed=True),
        feeds.graphs(["waiting"], [], ["sum"], first=2),
    )
    expect(nodes.filter(has_text="sum")).to_have_attribute("data-state", "waiting")
    expect(nodes.filter(has_text="left")).to_have_attribute("data-state", "done")
    expect(nodes.filter(has_text="right")).to_have_attribute("data-state", "failed")


def test_details_show_story_and_error(quiet_feed: Callable[..., tuple[Page, feeds.PageServer]]) -> None:
    page, line = quiet_feed("tasks")
    line.send(*first_messages(), feeds.ended("7", "price", failed=True))
    rows(page).first.click()
    expect(page.get_by_role("note", name="Error")).to_have_text("ValueError: no such curve")
    expect(page.locator("dialog#details h2")).to_have_text("price")
    line.wait_for(page, {"type": "story", "client": feeds.CLIENT, "id": "7"})
    line.send(feeds.story("7"))
    story = page.get_by_label("History")
    expect(story).to_contain_text("returned: exception, attempt 1, on host00-0, 200 ms, OSError: not yet")
    expect(story).to_contain_text("exception, attempt 2, on host00-0, 1.50 s")
    tracebacks = page.get_by_role("note", name="Traceback")
    expect(tracebacks.first).to_have_text("Traceback 1\nOSError: not yet")  # of the attempt that is shown
    expect(tracebacks.last).to_have_text("Traceback 2\n  \u27e8202E\u27e9enil\nValueError: no curve")


def test_all_actions_have_keys(fed_page: FedPage) -> None:
    page = fed_page("overview", small_cluster())
    expect(page.locator("#state")).to_have_text("Live")
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        expect(page.locator("#panels h1")).to_have_text(view.capitalize())
        expect(page.locator("nav [aria-current=page]")).to_contain_text(view.capitalize())
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")

    page.keyboard.press("2")
    expect(page.locator("#panels h1")).to_have_text("Workers")
    page.keyboard.press("/")
    page.keyboard.type("host00-11")
    expect(rows(page)).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_role("columnheader", name="Memory").get_by_role("button").press("Enter")
    expect(page.get_by_role("columnheader", name="Memory")).to_have_attribute("aria-sort", "descending")

    page.keyboard.press("4")
    expect(page.locator("#panels h1")).to_have_text("Tasks")
    expect(rows(page).nth(3)).to_be_visible()
    table = page.get_by_role("grid", name="Tasks")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#panels .row.active")
    expect(chosen).to_have_attribute("aria-rowindex", "3")
    expect(table).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    page.keyboard.press("End")
    expect(chosen).to_have_attribute("aria-rowindex", "121")
    page.keyboard.press("Enter")
    expect(page.locator("dialog#details")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#details")).to_be_hidden()

    page.keyboard.press("3")
    wait_for_bars(page)  # keys work before a click, and without the focus
    before = span(page)
    page.keyboard.press("+")
    wait_until(lambda: span(page) < before, what="a shorter range")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(".")
    expect(page.locator(".tip")).to_contain_text("Duration")
    expect(page.locator(".said")).to_contain_text("done")
    page.keyboard.press("Enter")
    expect(page.locator("dialog#details")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")


def restarted(times: int) -> list[feeds.Message]:
    """A worker whose process was replaced `times` times, a former worker, and a connected worker."""
    chunks = []
    for life in range(times + 1):
        chunk = feeds.tasks(4, 1, 60 - 10 * life, 4, 10 * life)
        chunk["workers"], chunk["worker_names"] = [str(feeds.FIRST_WORKER + 100 + life)], ["south-1"]
        chunks.append(chunk)
    gone = feeds.tasks(4, 1, 50, 4, 900)
    gone["workers"], gone["worker_names"] = ["77"], ["a-worker-that-is-gone"]
    unknown = feeds.tasks(4, 1, 50, 4, 950)
    unknown["workers"], unknown["worker_names"] = ["78"], [""]
    there = feeds.workers(2)
    there["columns"]["id"] = [str(feeds.FIRST_WORKER + 100 + times), "5"]
    there["columns"]["name"] = ["south-1", "south-2"]
    return [*first_messages(), *chunks, gone, unknown, there]


LANES = """async () => {
    const { Lanes } = await import('/static/timeline/lanes.js');
    const lanes = new Lanes();
    const ran = (worker, workerName, start, end) =>
        lanes.add({ worker, workerName, start, end, duration: end - start });
    ran("1", "a", 0, 1000); ran("2", "a", 1500, 2000); ran("3", "a", 1600, 1900); ran("4", "a", 2500, 2600);
    ran("9", "z", 0, 10);
    const found = lanes.includeWorkers([{ id: "4", name: "a" }, { id: "5", name: "a" }, { id: "6", name: "b" }], 3000);
    return found.map((lane) => [lane.name, lane.isConnected, lane.restarts, lane.processes.map((each) => each.worker)]);
}"""


def test_name_has_one_lane_unless_two_workers_share_it(fed_page: FedPage) -> None:
    page = fed_page("settings", first_messages())
    assert page.evaluate(LANES) == [
        ["a", True, [1500, 2500], ["1", "2", "4"]],
        ["a", True, [3000], ["3", "5"]],
        ["z", False, [], ["9"]],
        ["b", True, [], ["6"]],
    ]


def test_restarted_worker_has_one_lane(fed_page: FedPage) -> None:
    page = fed_page("timeline", restarted(3))
    expect(page.get_by_text("24 tasks on 2 workers and 2 former workers")).to_be_visible()
    wait_until(lambda: drawn(page, "rows") == 4, what="four rows")
    expect(page.get_by_label("Colours")).to_contain_text("restarted")
    names = []
    for _ in range(4):
        page.keyboard.press("ArrowDown")
        names.append(page.locator(".said").inner_text().partition(",")[0])
    assert names == ["south-1", "south-2", "a-worker-that-is-gone", "worker 78"]


def test_worker_without_a_name_is_shown_by_its_identity(fed_page: FedPage) -> None:
    chunk = feeds.tasks(4, 1, 50, 4, 950)
    chunk["workers"], chunk["worker_names"] = ["78"], [""]
    page = fed_page("tasks", [*first_messages(), chunk], viewport={"width": 390, "height": 740})
    expect(rows(page).first).to_contain_text("worker 78")


COLOURS = """async (names) => {
    const { FunctionColours } = await import('/static/function_colours.js');
    const colours = new FunctionColours();
    return names.map((name) => colours.indexOf(name));
}"""


def test_function_keeps_its_colour(fed_page: FedPage) -> None:
    page = fed_page("timeline", small_cluster())
    legend = page.get_by_label("Colours").locator("li", has_text="resize").locator("i")
    before = legend.get_attribute("style")
    page.reload()
    expect(legend).to_have_attribute("style", before or "")
    alone, one_of_many = page.evaluate(COLOURS, ["resize"]), page.evaluate(COLOURS, [f"f{n}" for n in range(60)])
    assert alone == page.evaluate(COLOURS, ["resize", "parse"])[:1]
    assert len(set(one_of_many)) == 60


def test_overview_shows_problems_and_no_message_counts(fed_page: FedPage) -> None:
    page = fed_page("overview", small_cluster())
    expect(page.get_by_role("heading", name="Problems")).to_be_visible()
    expect(page.get_by_label("Problems")).to_contain_text("2 workers have died since the start: signal 9")
    expect(page.get_by_text("Messages received")).to_have_count(0)


def test_overview_shows_shares_and_limits(fed_page: FedPage) -> None:
    page = fed_page("overview", small_cluster())
    expect(page.get_by_role("heading", name="Shares")).to_be_visible()
    expect(page.get_by_role("heading", name="Limits of tasks")).to_be_visible()
    for text in (
        "30 running (at most 40), 1,234 waiting, 75 % of the time, weight 3",
        "10 running, 5 waiting, 25 % of the time",
        "10 running, 5,000 waiting (at most 10)",
        "1 running, 70 waiting (0.5 begin in a second)",
    ):
        expect(page.get_by_text(text)).to_be_visible()


def test_one_share_without_a_limit_no_card(fed_page: FedPage) -> None:
    only = {"shares": [["ana", 1, 3, 4, 5, 0]], "limits": []}
    page = fed_page("overview", [*small_cluster(), {**feeds.snapshot(), **only}])
    expect(page.locator("[data-figure=workers] dd").first).to_have_text("1")
    expect(page.get_by_role("heading", name="Shares")).to_be_hidden()
    expect(page.get_by_role("heading", name="Limits of tasks")).to_be_hidden()


def test_no_problems_no_card(fed_page: FedPage) -> None:
    page = fed_page("overview", [*small_cluster(), {**feeds.snapshot(), "problems": []}])
    expect(page.locator("[data-figure=workers] dd").first).to_have_text("1")
    expect(page.get_by_role("heading", name="Problems")).to_be_hidden()


@pytest.mark.parametrize(
    ("view", "row", "fact", "task"),
    [
        ("workers", "host00-3", "Process", "host00-3"),
        ("functions", "resize", "Median, p99", "resize"),
        ("clients", "report.py[4711]@node-1", "Waiting", "resize"),
    ],
)
def test_rows_open_their_details(fed_page: FedPage, view: str, row: str, fact: str, task: str) -> None:
    page = fed_page(view, small_cluster())
    rows(page).filter(has_text=row).first.click()
    details = page.locator("dialog#row-details")
    expect(details.get_by_role("heading", name=row)).to_be_visible()
    expect(details.locator("dt", has_text=fact)).to_be_visible()
    expect(details.get_by_role("heading", name="Tasks that have ended")).to_be_visible()
    listed = details.locator(".rows .row:visible")
    expect(listed.filter(has_text=task).first).to_be_visible()
    listed.first.click()
    expect(page.locator("dialog#details")).to_be_visible()
    page.keyboard.press("Escape")
    expect(details).to_be_visible()
    page.keyboard.press("Escape")
    expect(details).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(details).to_be_visible()


def test_graph_titles_have_keys_and_start(quiet_feed: Callable[..., tuple[Page, feeds.PageServer]]) -> None:
    page, line = quiet_feed("graphs")
    graph = feeds.graphs(["done", "failed", "done", "blocked"], [(0, 1)], ["load", "fit", "apart", "other"])
    graph["columns"] |= {
        "graph": ["1", "1", "1", "5"], "keys": ["report, chart"] * 3 + ["summary"], "begun": [time.time()] * 3 + [None],
    }  # fmt: skip
    line.send(*first_messages(), feeds.clients(), graph)
    options = page.get_by_label("Graph", exact=True).locator("option")
    expect(options).to_have_count(2)  # nodes without an edge between them belong to one graph too
    expect(options.nth(0)).to_have_text("summary · 0 of 1 done · report.py[4711]@node-1")
    expect(options.nth(1)).to_have_text(
        re.compile(r"^report, chart · \d\d:\d\d:\d\d · 2 of 3 done, 1 failed · report.py\[4711\]@node-1$")
    )
    space = page.locator("#panels .graph svg > g")
    expect(page.locator("#panels .graph .node")).to_have_count(1)
    before = space.get_attribute("transform") or ""
    page.keyboard.press("+")
    expect(space).not_to_have_attribute("transform", before)


def test_banner_explains_the_wait(fed_page: FedPage) -> None:
    absent = {**feeds.presence("unknown"), "problem": "there is no /tmp/nothing yet: the scheduler does not run"}
    page = fed_page("overview", [feeds.hello(), absent])
    expect(page.locator("#banner")).to_contain_text("there is no /tmp/nothing yet: the scheduler does not run")
    page = fed_page("overview", [feeds.hello(), feeds.presence(), feeds.snapshot(), feeds.presence("down")])
    expect(page.locator("#banner")).to_contain_text("It has stopped, or the network is interrupted")


def test_focus_is_visible(fed_page: FedPage) -> None:
    page = fed_page("workers", small_cluster())
    expect(rows(page).first).to_be_visible()
    seen = set()
    for _ in range(16):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
            const focused = document.activeElement, style = getComputedStyle(focused);
            return [focused.tagName, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2];
        }""")
        assert found[1], f"{found[0]} shows no focus"
        seen.add(found[0])
    assert {"A", "BUTTON", "INPUT"} <= seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_phone(fed_page: FedPage, scheme: str) -> None:
    options = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "color_scheme": scheme}
    page = fed_page("overview", small_cluster(), **options)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    for view in VIEWS:
        expect(page.get_by_role("link", name="Workers")).to_be_hidden()
        page.get_by_role("button", name="Views").click()
        page.get_by_role("link", name=view.capitalize()).click()
        expect(page.locator("#panels h1")).to_have_text(view.capitalize())
        whole, seen = width_of(page)
        assert whole <= seen == 360, f"{view} is {whole} pixels wide"


def test_pinch_zooms(fed_page: FedPage) -> None:
    page = fed_page("timeline", small_cluster(), viewport={"width": 390, "height": 740}, has_touch=True)
    wait_for_bars(page)
    before = span(page)
    box = canvas(page).bounding_box()
    assert box is not None
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, apart: float) -> None:
        x, y = box["x"] + 240, box["y"] + 100
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}] if kind != "touchEnd" else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 20)
    for apart in (30, 45, 60, 75):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    wait_until(lambda: span(page) < before / 2, what="a shorter range")


def test_empty_table_after_the_first_snapshot(fed_page: FedPage) -> None:
    page = fed_page("workers", [feeds.hello(), feeds.presence(), feeds.snapshot(), feeds.workers(0)])
    expect(page.locator("#panels").get_by_text("No workers are connected")).to_be_visible()
    expect(page.get_by_text("0 in all")).to_be_visible()
    go(page, "clients")
    expect(page.locator("#panels").get_by_text("Waiting for data")).to_be_visible()
    expect(page.get_by_text("0 in all")).to_be_hidden()


def test_texts_of_empty_views(fed_page: FedPage) -> None:
    page = fed_page("overview", [feeds.hello(), feeds.presence("unknown", time.time())])
    expect(page.get_by_text("none was heard at ipc:")).to_be_visible()
    expect(page.locator("#banner")).to_contain_text("no scheduler runs there, it publishes")
    texts = {
        "workers": "Waiting for data", "timeline": "No tasks in the window yet",
        "tasks": "No tasks in the window yet", "functions": "Waiting for data", "graphs": "No graphs are open",
        "clients": "Waiting for data",
    }  # fmt: skip
    for view, text in texts.items():
        go(page, view)
        expect(page.locator("#panels").get_by_text(text)).to_be_visible()
