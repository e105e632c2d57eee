"""README's chart."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks import chart


def test_chart_is_drawn_from_the_newest_result() -> None:
    text = chart.CHART.read_text("utf-8")
    assert text == chart.drawn(chart.newest_result()), "draw it again: packaging/within.sh python -m benchmarks.chart"
    ElementTree.fromstring(text)


def test_readme_has_the_figures_of_the_chart() -> None:
    measures = chart.newest_result()["measures"].values()
    median = {figure["name"]: figure["median"] for measure in measures for figure in measure["figures"]}
    text = (chart.FOLDER.parent / "README.md").read_text("utf-8")
    rate, ratio, trip = median["submit.rate"], median["submit.ratio_to_pool"], median["latency.median"]
    assert f"| **Scaler** | **{rate:,.0f}** | **{ratio:.1f}** | **{trip / 1000:.3f} ms** |" in text
    assert f"{median['submit.pool_rate']:,.0f} tasks/s" in text


def test_small_results_and_those_of_other_measures_are_left_out(tmp_path: Path) -> None:
    figure = {"name": "submit.rate", "min": 1.0, "median": 2.0, "max": 3.0}
    old = {"quick": False, "measures": {"submit": {"figures": [figure]}}}
    (tmp_path / "1.json").write_text(json.dumps(old))
    (tmp_path / "2.json").write_text(json.dumps({**old, "quick": True}))
    (tmp_path / "3.json").write_text(json.dumps({"quick": False, "measures": {"latency": {"figures": []}}}))
    assert chart.newest_result(tmp_path) == old
    assert chart.rates_of(old) == [chart.Rate("Scaler, submit one by one", 1.0, 2.0, 3.0)]
    (tmp_path / "1.json").unlink()
    with pytest.raises(FileNotFoundError, match="make bench ONLY=submit"):
        chart.newest_result(tmp_path)
