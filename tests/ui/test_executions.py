"""The page's store of executions: what it keeps and what it drops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page
from tests.ui import feeds

FedPage = Callable[..., Page]

SCRIPT = """async ([chunks, most, before]) => {
    const { Executions } = await import('/static/executions.js');
    const kept = new Executions(most);
    kept.outcomes.set([[0, 'value', 'good'], [1, 'exception', 'failed']]);
    for (const chunk of chunks) {
        kept.addChunk(chunk);
        kept.trim(before);
    }
    const lanes = [...kept.lanes.values()];
    const counted = kept.functions.all.map(each => [each.name, each.executions, each.failed]);
    const order = lanes.every(lane => lane.executions.every((each, at, all) => !at || all[at - 1].start <= each.start));
    return {length: kept.length, lanes: lanes.map(lane => lane.length), held: lanes.map(lane => lane.executions.length),
        counted, order};
}"""


def kept(page: Page, chunks: list[feeds.Message], most: int = 100_000, before: float = 0.0) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(SCRIPT, [chunks, most, before])
    return found


def test_executions_beyond_the_limit_are_dropped_everywhere(fed_page: FedPage) -> None:
    page = fed_page("settings", [feeds.hello()])
    chunks = [feeds.tasks(1000, 10, 100 - 10 * number, 9, 1000 * number) for number in range(8)]
    found = kept(page, chunks, most=2500)
    assert found["length"] == sum(found["lanes"]) == sum(number for _, number, _ in found["counted"]) == 2500
    assert found["order"]
    assert all(held < 2 * length + 128 for held, length in zip(found["held"], found["lanes"]))


def test_executions_before_the_window_are_dropped(fed_page: FedPage) -> None:
    page = fed_page("settings", [feeds.hello()])
    chunks = [feeds.tasks(1000, 10, 100, 40), feeds.tasks(500, 5, 50, 40, 1000)]
    found = kept(page, chunks, before=(chunks[1]["base"] - 5) * 1000)
    assert found["length"] == 500
    assert found["lanes"] == [100] * 5
    failures = sum(failed for _, _, failed in found["counted"])
    assert failures == sum(chunks[1]["columns"]["outcome"])


def test_names_of_single_tasks_are_not_functions(fed_page: FedPage) -> None:
    page = fed_page("settings", [feeds.hello()])
    chunk = feeds.tasks(100, 2, 50, 40)
    chunk["names"] += [f"job {number}" for number in range(100)]
    chunk["columns"]["name"] = [len(feeds.FUNCTIONS) + number for number in range(100)]
    assert {name for name, _, _ in kept(page, [chunk])["counted"]} == set(feeds.FUNCTIONS)
