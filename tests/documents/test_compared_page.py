"""The page that compares Scaler with other systems, its charts and README's part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.compared import page
from benchmarks.compared.catalogue import ROWS, SYSTEMS


@pytest.fixture
def result() -> dict[str, Any]:
    """A result in which Scaler, then the pool, then ipyparallel have the best figures; HyperQueue has none."""
    rows: dict[str, dict[str, Any]] = {row: {} for row in ROWS}
    for row in ROWS.values():
        for place, name in enumerate(("scaler", "pool", "ipyparallel")):
            figures = {
                figure.name: {"runs": [value, 2 * value, 3 * value], "median": 2 * value}
                for figure in row.figures
                for value in [10.0 ** (-place if figure.is_more_better else place)]
            }
            rows[row.name][name] = {"figures": figures, "error": ""}
        unable = {figure.name: {"unable": "it has no such thing"} for figure in row.figures}
        rows[row.name]["hyperqueue"] = {"figures": unable, "error": ""}
        rows[row.name]["dask"] = {"figures": {}, "error": "no figures within 60 s"}
    return {
        "date": "2026-11-23T02:00:00+0000",
        "quick": False,
        "machine": {"cpu": "a CPU", "cores": 2, "kernel": "Linux 6"},
        "source": {"revision": "0123456789abcdef"},
        "scheduler": {"implementation": "PyPy", "version": "7.3"},
        "workers": 4,
        "busy_before_percent": 1.0,
        "systems": {name: {"title": entry.title, "version": "1.0"} for name, entry in SYSTEMS.items()},
        "rows": rows,
    }


def test_the_page_says_who_is_first_and_why_a_system_has_no_figure(result: dict[str, Any]) -> None:
    submit = result["rows"]["submit"]
    submit["scaler"], submit["pool"] = submit["pool"], submit["scaler"]
    files = page.written(result, "before\n<!-- compared -->\nold\n<!-- end of compared -->\nafter\n")
    text = files[page.PAGE]
    assert "multiprocessing.Pool is first, 10 times as good as Scaler, which is number 2 of 3." in text
    assert "Scaler is first, 10 times as good as multiprocessing.Pool." in text
    assert "- HyperQueue: it has no such thing." in text
    assert "- Dask distributed: no figures within 60 s." in text
    assert "- Ray: it could not be installed." in text
    readme = files[page.README]
    assert readme.startswith("before\n<!-- compared -->\n![") and readme.endswith("<!-- end of compared -->\nafter\n")
    assert "old" not in readme and "Scaler is first in 12 of 13 figures" in readme
    charts = [text for path, text in files.items() if path.suffix == ".svg"]
    assert len(charts) == sum(len(row.figures) for row in ROWS.values())
    for chart in charts:
        assert "Scaler 1.0" in chart and "2026-11-23, a CPU, 2 cores" in chart
        ElementTree.fromstring(chart)


def test_only_whole_results_of_full_size_are_taken(result: dict[str, Any], tmp_path: Path) -> None:
    assert page.newest_result(tmp_path) is None
    (tmp_path / "1.json").write_text(json.dumps(result))
    (tmp_path / "2.json").write_text(json.dumps({**result, "quick": True}))
    (tmp_path / "3.json").write_text(json.dumps({**result, "systems": {}}))
    assert page.newest_result(tmp_path) == result
