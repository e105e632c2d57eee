"""The figures of benchmarks in the documents."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks import chart, documents
from benchmarks.compared import page
from benchmarks.run import MEASURES


def test_documents_have_the_newest_results() -> None:
    assert page.README_PART.search((documents.ROOT / page.README).read_text("utf-8"))
    assert documents.PERFORMANCE_PART.search((documents.ROOT / documents.PERFORMANCE).read_text("utf-8"))
    for path, text in documents.written().items():
        wanted = "write it again: packaging/within.sh python -m benchmarks.documents"
        assert (documents.ROOT / path).read_text("utf-8") == text, wanted
        if path.suffix == ".svg":
            ElementTree.fromstring(text)


def test_the_performance_page_has_each_figure_and_names_what_failed() -> None:
    figure = {"title": "tasks by submit", "median": 2.0, "min": 1.0, "max": 3.0, "unit": "tasks/s"}
    figures = [
        {**figure, "bar": 4.0, "bar_is": "at least", "is_met": False},
        {**figure, "bar": None, "bar_is": None, "is_met": None},
    ]
    interpreter = {"implementation": "PyPy", "version": "7.3"}
    part = documents.performance_part(
        {
            "date": "2026-11-23T02:00:00+0000",
            "machine": {"cpu": "a CPU", "cores": 2, "memory_bytes": 2**30, "kernel": "Linux 6"},
            "versions": {"scheduler": interpreter, "client_and_workers": interpreter},
            "source": {"revision": "0123456789abcdef"},
            "measures": {
                "submit": {"busy_before_percent": 1.0, "error": "", "figures": figures},
                "map": {"busy_before_percent": 7.0, "error": "TimeoutError: too long", "figures": []},
            },
        }
    )
    assert "2026-11-23, a CPU, 2 cores, 1 GiB" in part
    assert "| `submit`: tasks by submit | 2 | 1 | 3 | tasks/s | at least 4 | **falls short** |" in part
    assert "| `submit`: tasks by submit | 2 | 1 | 3 | tasks/s |  |  |" in part
    assert "`map` gave no figures: TimeoutError: too long" in part


def test_small_results_and_those_of_other_measures_are_left_out(tmp_path: Path) -> None:
    figure = {"name": "submit.rate", "min": 1.0, "median": 2.0, "max": 3.0}
    old = {"quick": False, "measures": {"submit": {"figures": [figure]}}}
    (tmp_path / "1.json").write_text(json.dumps(old))
    (tmp_path / "2.json").write_text(json.dumps({**old, "quick": True}))
    (tmp_path / "3.json").write_text(json.dumps({"quick": False, "measures": {"latency": {"figures": []}}}))
    assert documents.newest_result(tmp_path) == old
    assert chart.rates_of(old) == [chart.Bar("Scaler, submit one by one", 1.0, 2.0, 3.0, True)]
    whole = {**old, "measures": {name: {"figures": []} for name in MEASURES}}
    (tmp_path / "0.json").write_text(json.dumps(whole))
    assert documents.newest_result(tmp_path) == whole
    (tmp_path / "0.json").unlink()
    (tmp_path / "1.json").unlink()
    with pytest.raises(FileNotFoundError, match="make bench"):
        documents.newest_result(tmp_path)
