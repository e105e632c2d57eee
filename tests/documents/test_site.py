"""`make docs`: the site builds without a warning and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.browser import chromium
from tests.documents.examples import ROOT

import scaler_client

BUILD = ROOT / "packaging" / "site" / "build.sh"
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?P<source>(?:https?:)?//[^\s\">]+)"
    r"|<link\b[^>]*\bhref=\"?(?P<link>(?:https?:)?//[^\s\">]+)"
    r"|url\(['\"]?(?P<url>(?:https?:)?//[^)]+)\)"
)

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv-docs" / "bin" / "python").exists(),
    reason="the site's tools are missing: packaging/setup.sh docs",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run([str(BUILD), str(folder)], capture_output=True, text=True, timeout=100)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_site_has_the_documents(site: Path) -> None:
    for page in (
        "index.html",
        "ARCHITECTURE.html",
        "CHANGELOG.html",
        "CONTRIBUTING.html",
        "SECURITY.html",
        "client_lib/docs/reference.html",
        "scheduler_daemon/protocol/PROTOCOL.html",
        "search/search_index.json",
    ):
        assert (site / page).is_file(), page


def test_reference_has_every_public_name(site: Path) -> None:
    text = (site / "client_lib/docs/reference.html").read_text("utf-8")
    assert [name for name in scaler_client.__all__ if f'id="scaler_client.{name}"' not in text] == []


def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > 10
    loaded = {
        f"{path.relative_to(site)}: {found[0]}" for path in files for found in LOADED.finditer(path.read_text("utf-8"))
    }
    assert loaded == set()


def test_search_works_from_files_and_nothing_else_is_asked_for(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("priority")
        page.wait_for_selector(".md-search-result__article")
        assert [url for url in asked if not url.startswith("file:")] == []


def test_every_block_is_rendered(site: Path) -> None:
    raw = [path for path in site.rglob("*.html") if re.search(r"<p>`{3}|no-run:", path.read_text("utf-8"))]
    assert raw == []


def test_site_needs_no_diagram_library(site: Path) -> None:
    """The theme loads Mermaid from a content network where a page has a diagram of it."""
    assert [path for path in site.rglob("*.html") if 'class="mermaid"' in path.read_text("utf-8")] == []
