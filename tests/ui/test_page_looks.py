"""The look of the page: columns that fit, and colours that are legible and distinct."""

from __future__ import annotations

import itertools
import math

import pytest
from playwright.sync_api import expect
from tests.ui.pages import rows
from tests.ui.test_page_fed import FedPage, first_messages, small_cluster

WIDTHS = {1280: 800, 1920: 1080, 390: 800}
WANTED = {
    ("tasks", 390): {"Task", "Duration", "Error", "Worker"},
    ("tasks", 1280): {"Ended", "Task", "State", "Duration", "Error", "Worker", "Client"},
    ("tasks", 1920): {"Id", "Attempt", "Waited"},
    ("workers", 1280): {"Worker", "State", "Runs", "For", "CPU", "Memory", "Queued", "Done", "Rate", "Host"},
    ("workers", 1920): {"Python", "PID", "Free", "Lag", "Capabilities"},
    ("clients", 1280): {"Client", "Waiting", "Done", "Objects"},
    ("functions", 390): {"Function", "Done", "Failed", "Mean"},
    ("functions", 1280): {"Median", "p99", "Longest"},
}
"""Columns that a view has at least at a width."""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", ["tasks", "workers", "functions", "clients"])
def test_columns_fit(fed_page: FedPage, view: str, width: int) -> None:
    page = fed_page(view, small_cluster(), viewport={"width": width, "height": WIDTHS[width]})
    expect(rows(page).first).to_be_visible()
    table = page.locator("#panels .table")
    whole, seen = table.evaluate("table => [table.scrollWidth, table.clientWidth]")
    assert whole == seen and "more" not in (table.get_attribute("class") or "").split()
    headers = page.locator("#panels [role=columnheader]")
    cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
    assert headers.evaluate_all(cut) == []
    assert {text.strip() for text in headers.all_inner_texts()} >= WANTED.get((view, width), set())
    cells_cut = page.locator("#panels .rows .row:visible .cell").evaluate_all(cut)
    assert not [text for text in cells_cut if not text.startswith("ValueError")] or width == 390


def test_charts_are_arranged_by_width(fed_page: FedPage) -> None:
    page = fed_page("overview", small_cluster(), viewport={"width": 800, "height": 900})
    charts = page.locator(".charts > .chart")
    expect(charts).to_have_count(4)
    for width, columns in ((800, 2), (1280, 2), (1600, 2), (1920, 4), (2560, 4), (390, 1)):
        page.set_viewport_size({"width": width, "height": 900})
        assert len({round(charts.nth(number).bounding_box()["x"]) for number in range(4)}) == columns  # type: ignore[index]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_function_colours_are_distinct(fed_page: FedPage, scheme: str) -> None:
    page = fed_page("settings", first_messages(), color_scheme=scheme)
    colours, ground = page.evaluate(
        """async (scheme) => {
            const { functionColour } = await import("/static/palette.js");
            const surface = getComputedStyle(document.documentElement).getPropertyValue("--surface");
            return [[...Array(100).keys()].map((number) => functionColour(number, scheme)), surface];
        }""",
        scheme,
    )
    assert len(set(colours)) == 100
    assert min(contrast(colour, ground) for colour in colours) >= 3
    places = [oklab(colour) for colour in colours[:48]]
    assert min(math.dist(one, other) for one, other in itertools.combinations(places, 2)) > 0.035


def oklab(colour: str) -> list[float]:
    """A colour as OKLab, where distances match human perception."""
    red, green, blue = linear(colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return [
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    ]


PAIRS = [
    ("text", "page"), ("text", "surface"), ("muted", "page"), ("muted", "surface"), ("muted", "sunk"),
    ("faint", "surface"), ("accent", "accent-soft"), ("accent", "sunk"), ("good", "surface"), ("good", "good-soft"),
    ("bad", "surface"), ("bad", "bad-soft"), ("warn", "surface"), ("on-accent", "accent"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(fed_page: FedPage, scheme: str) -> None:
    page = fed_page("settings", first_messages(), color_scheme=scheme)
    for text, ground in PAIRS:
        colours = page.evaluate(
            "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue('--' + name))",
            [text, ground],
        )
        assert contrast(*colours) >= 4.5, f"{text} on {ground}, {scheme}"


def contrast(first: str, second: str) -> float:
    """The contrast as WCAG defines it."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> list[float]:
    parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
