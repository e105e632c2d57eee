"""How the page looks, whatever its server says: what fits, and colours that can be read and told apart."""

from __future__ import annotations

import itertools
import math

import pytest
from playwright.sync_api import expect
from tests.ui.pages import rows, width_of
from tests.ui.test_page_fed import FedPage, beginning, few


@pytest.mark.parametrize("view", ["tasks", "functions"])
def test_every_column_fits_into_1280_pixels(fed_page: FedPage, view: str) -> None:
    page = fed_page(view, few())
    expect(rows(page).first).to_be_visible()
    table = page.locator("#panels .table")
    whole, seen = table.evaluate("table => [table.scrollWidth, table.clientWidth]")
    assert whole == seen and "more" not in (table.get_attribute("class") or "").split()
    cut = page.locator("#panels [role=columnheader]").evaluate_all(
        "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
    )
    assert cut == []
    ended = page.locator("#panels .rows .row:visible .cell:first-child").first
    assert ended.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_what_does_not_fit_is_scrolled_to_within_the_table_and_there_is_a_sign_of_it(fed_page: FedPage) -> None:
    page = fed_page("workers", few())
    table = page.locator("#panels .table.more")
    expect(table).to_be_visible()
    last = page.locator("#panels [role=columnheader]").last
    expect(last).not_to_be_in_viewport(ratio=1)
    table.evaluate("table => { table.scrollLeft = table.scrollWidth; }")
    expect(last).to_be_in_viewport(ratio=1)
    expect(table).to_have_count(0)
    assert width_of(page)[0] <= 1280


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_functions_have_colours_that_can_be_told_apart(fed_page: FedPage, scheme: str) -> None:
    page = fed_page("settings", beginning(), color_scheme=scheme)
    colours, ground = page.evaluate(
        """async (scheme) => {
            const { functionColour } = await import("/static/colours.js");
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
    """Where distances are as people see them."""
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
    page = fed_page("settings", beginning(), color_scheme=scheme)
    for text, ground in PAIRS:
        colours = page.evaluate(
            "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue('--' + name))",
            [text, ground],
        )
        assert contrast(*colours) >= 4.5, f"{text} on {ground}, {scheme}"


def contrast(first: str, second: str) -> float:
    """As WCAG has it."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> list[float]:
    parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
