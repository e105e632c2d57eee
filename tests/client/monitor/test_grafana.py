"""packaging/grafana/ against the exported metrics: dashboard, alert rules and scrape configurations."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.client.monitor.published_frames import POOLS, busy

prometheus_client = pytest.importorskip("prometheus_client", reason="needs the extra exporter (prometheus_client)")
yaml = pytest.importorskip("yaml", reason="needs PyYAML")

pytestmark = pytest.mark.main_environment

from scaler_client.exporter.config import DEFAULT_PORT  # noqa: E402
from scaler_client.monitor.metrics import SchedulerCollector  # noqa: E402
from scaler_client.monitor.reader import MonitorReader  # noqa: E402

START = 1000.0
ROOT = Path(__file__).resolve().parents[3]
CASES = Path(__file__).with_name("alert_cases.yaml")
FOLDER = ROOT / "packaging" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "scaler.json").read_text())
SCRAPES = [yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) for name in ("prometheus", "prometheus-kubernetes")]
(ON_HOST,), (IN_KUBERNETES,) = (scrape["scrape_configs"] for scrape in SCRAPES)
ALERTS = yaml.safe_load((FOLDER / "scaler-alerts.yaml").read_text())
SCHEDULER = list(yaml.safe_load_all((ROOT / "packaging" / "kubernetes" / "scheduler.yaml").read_text()))
AUTOSCALER = yaml.safe_load((ROOT / "packaging" / "kubernetes" / "workers-autoscaler.yaml").read_text())


def exported() -> dict[str, set[str]]:
    """The labels of each sample's name, for a snapshot that has an example of everything."""
    reader = MonitorReader(START)
    reader.feed(busy(pools=POOLS), START)
    found: dict[str, set[str]] = {}
    for family in SchedulerCollector(reader, lambda: START).collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


EXPORTED = exported()


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def named(query: str) -> set[str]:
    return set(re.findall(r"\bscaler_\w+", query))


def labels_asked_for(query: str) -> dict[str, set[str]]:
    """By metric: the labels in its selectors and aggregations, without the labels that Prometheus adds."""
    by = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", query) for label in group.split(",")}
    found = {}
    for metric, selector in re.findall(r"\b(scaler_\w+)(?:\{([^}]*)\})?", query):
        found[metric] = by | set(re.findall(r"(\w+) ?=", selector))
    return {metric: labels - {"job", "instance", ""} for metric, labels in found.items()}


@pytest.mark.parametrize("query", sorted({*queries(), *(rule["expr"] for rule in rules())}))
def test_queries_use_exported_metrics(query: str) -> None:
    assert named(query) <= EXPORTED.keys() and (named(query) or query.startswith("up{job="))
    for metric, labels in labels_asked_for(query).items():
        assert labels <= EXPORTED[metric], f"{metric} has no such label"


def test_each_metric_has_a_panel() -> None:
    shown = set().union(*map(named, queries()))
    sums = {name for name in shown if name.endswith(("_sum", "_count"))}
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in shown | sums}
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in EXPORTED} == families


def test_counters_are_shown_as_rates() -> None:
    for query in queries():
        for metric in named(query):
            if metric.endswith(("_total", "_bucket", "_sum", "_count")):
                assert re.search(rf"(rate|increase)\({metric}{{[^}}]*}}\[\$__rate_interval\]\)", query), query


def test_dashboard_can_be_imported() -> None:
    assert DASHBOARD["id"] is None and DASHBOARD["uid"] == "scaler" and DASHBOARD["title"] == "Scaler"
    assert DASHBOARD["schemaVersion"] >= 36 and "__inputs" not in DASHBOARD
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers) > 30
    kinds = {each["id"] for each in DASHBOARD["__requires"] if each["type"] == "panel"}
    for panel in panels():
        assert panel["type"] in kinds and panel["title"] and panel["targets"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


def test_variables_are_defined_and_used() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(DASHBOARD))) - {"__rate_interval"}
    assert used == variables.keys()
    for query in queries():
        assert query.count("$instance") == query.count("$job") == len(re.findall(r"\bscaler_\w+", query))


def test_alert_rules() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) and {"ScalerSchedulerGone", "ScalerNoWorkers", "ScalerWorkersDie"} < set(names)
    assert "ScalerMemoryNearLimit" in names
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert "$labels.instance" in rule["annotations"]["summary"], "ambiguous"


def test_scrape_configuration_has_port_and_rules() -> None:
    assert ON_HOST["static_configs"][0]["targets"] == [f"127.0.0.1:{DEFAULT_PORT}"]
    assert all((FOLDER / name).is_file() for scrape in SCRAPES for name in scrape["rule_files"])
    (job,) = {ON_HOST["job_name"], IN_KUBERNETES["job_name"]}
    assert [rule["expr"] for rule in rules() if rule["expr"].startswith("up")] == [f'up{{job="{job}"}} == 0']


def test_autoscaler_uses_exported_metrics() -> None:
    (metric,) = AUTOSCALER["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] in EXPORTED
    wanted = metric["external"]["metric"]["selector"]["matchLabels"]
    assert wanted.items() <= ON_HOST["static_configs"][0]["labels"].items()
    assert wanted.keys() <= {rule.get("target_label") for rule in IN_KUBERNETES["relabel_configs"]}
    (service,) = [each for each in SCHEDULER if each["kind"] == "Service"]
    kept = f"{service['metadata']['name']};{service['spec']['ports'][1]['name']}"
    assert IN_KUBERNETES["relabel_configs"][0]["regex"] == kept and wanted["service"] == service["metadata"]["name"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize(
    "arguments", ["check config prometheus.yaml", "check rules scaler-alerts.yaml", f"test rules {CASES}"]
)
def test_prometheus_accepts_the_files(arguments: str) -> None:
    ran = subprocess.run(["promtool", *arguments.split()], cwd=FOLDER, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
