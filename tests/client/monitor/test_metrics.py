"""A reader's metrics, parsed by Prometheus' parser."""

from __future__ import annotations

import pytest
from tests.client.monitor.published_frames import POOLS, Texts, busy, snapshot_frame, table

prometheus_client = pytest.importorskip("prometheus_client", reason="needs the extra exporter (prometheus_client)")

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily  # noqa: E402
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics  # noqa: E402
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus  # noqa: E402
from tests.client.monitor.metric_rules import breaches  # noqa: E402

from scaler_client import __version__  # noqa: E402
from scaler_client.monitor import function_totals, host_rows  # noqa: E402
from scaler_client.monitor.metrics import exposition  # noqa: E402
from scaler_client.monitor.reader import SILENCE_SECONDS, MonitorReader  # noqa: E402

START = 1000.0
OPENMETRICS = "application/openmetrics-text; version=1.0.0, text/plain;version=0.0.4;q=0.5"


@pytest.fixture
def reader() -> MonitorReader:
    return MonitorReader(START)


def samples(reader: MonitorReader, now: float = START) -> dict[str, float]:
    """As `name{label="value"}`, with labels in the order of the text."""
    body, content_type = exposition(reader, "", now)
    assert content_type.startswith("text/plain")
    found = {}
    for family in parse_prometheus(body.decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


def test_metrics_before_the_first_snapshot(reader: MonitorReader) -> None:
    assert samples(reader) == {
        "scaler_up": 0,
        f'scaler_build_info{{version="{__version__}"}}': 1,
        "scaler_schedulers_seen_total": 0,
        "scaler_malformed_frames_total": 0,
    }


def test_metrics_of_a_full_snapshot(reader: MonitorReader) -> None:
    reader.feed(busy(), START)
    found = samples(reader, START + 0.25)
    expected = {
        "scaler_up": 1,
        "scaler_snapshot_age_seconds": 0.25,
        "scaler_scheduler_start_time_seconds": 1_700_000_000,
        "scaler_scheduler_cpu_seconds_total": 12.345,
        "scaler_scheduler_resident_memory_bytes": 9 << 20,
        "scaler_monitor_seconds_total": 0.005,
        "scaler_queue_tasks": 43,
        'scaler_tasks{state="blocked"}': 2,
        'scaler_tasks{state="waiting"}': 3,
        'scaler_tasks{state="queued"}': 34,
        'scaler_tasks{state="running"}': 5,
        'scaler_tasks{state="suspended"}': 1,
        'scaler_tasks_ended_total{outcome="value"}': 100,
        'scaler_tasks_ended_total{outcome="worker_died"}': 5,
        'scaler_tasks_ended_total{outcome="cancelled"}': 0,
        "scaler_retries_total": 4,
        'scaler_worker_deaths_total{cause="signal 9"}': 2,
        'scaler_worker_deaths_total{cause="lease"}': 1,
        'scaler_function_open_tasks{function="fit"}': 5,
        'scaler_function_results_total{function="fit"}': 15,
        'scaler_function_failures_total{function="fit"}': 1,
        'scaler_function_run_seconds_total{function="fit"}': 2.5,
        'scaler_function_open_tasks{function="a "b"\\\n{c}"}': 1,
        'scaler_workers{state="idle"}': 1,
        'scaler_workers{state="busy"}': 1,
        'scaler_workers{state="long"}': 1,
        'scaler_workers{state="silent"}': 1,
        "scaler_agents": 1,
        "scaler_clients": 2,
        "scaler_slots": 400,
        "scaler_slots_free": 370,
        "scaler_waiting_bytes": 1 << 20,
        "scaler_objects": 7,
        "scaler_object_bytes": 1 << 21,
        "scaler_memory_limit_bytes": 1 << 30,
        'scaler_resource{host="node-7",resource="gpu",state="total"}': 5,
        'scaler_resource{host="node-7",resource="gpu",state="booked"}': 1.5,
        'scaler_resource{host="node-7",resource="gpu",state="reserved"}': 1,
        'scaler_resource{host="node-7",resource="gpu",state="free"}': 3.5,
        "scaler_resource_waiting": 3,
        "scaler_resource_reservation_seconds": 2.5,
        'scaler_messages_received_total{type="results"}': 10,
        'scaler_messages_sent_total{type="dispatch"}': 8,
        'scaler_messages_dropped_total{reason="late"}': 2,
        'scaler_messages_dropped_total{reason="malformed"}': 0,
        'scaler_messages_dropped_total{reason="unauthorized"}': 0,
        'scaler_host_workers{host="node-7"}': 3,
        'scaler_host_workers{host="node-8"}': 1,
        'scaler_host_resident_memory_bytes{host="node-7"}': 2024 + (3 << 20),
        'scaler_host_lag_seconds{host="node-7"}': 0.00035,
        'scaler_host_object_memory_bytes{host="node-7"}': 1 << 20,
        'scaler_host_spilled_bytes{host="node-7"}': 1 << 21,
        'scaler_host_spill_moved_bytes_total{host="node-7"}': 1 << 22,
        'scaler_host_received_bytes_total{host="node-7"}': 1 << 23,
        'scaler_host_sent_bytes_total{host="node-7"}': 1 << 24,
        'scaler_host_coming_bytes{host="node-7"}': 1 << 25,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert 'version="1.0.0"' in next(name for name in found if name.startswith("scaler_scheduler_info"))


def test_pools_of_an_autoscaler(reader: MonitorReader) -> None:
    reader.feed(busy(pools=POOLS), START)
    found = {name: value for name, value in samples(reader).items() if name.startswith("scaler_pool_")}
    states = ("wanted", "booting", "there", "draining")
    assert [found[f'scaler_pool_hosts{{pool="large",state="{state}"}}'] for state in states] == [12, 3, 8, 1]
    assert found['scaler_pool_hosts{pool="here",state="there"}'] == 1
    totals = [found[f'scaler_pool_{name}_hosts_total{{pool="large"}}'] for name in ("failed", "late", "left")]
    assert totals == [5, 2, 1]
    assert (found['scaler_pool_resting{pool="large"}'], found['scaler_pool_resting{pool="here"}']) == (1, 0)
    assert [found[f'scaler_pool_problem_seconds{{pool="{name}"}}'] for name in ("large", "here")] == [90, 0]


def test_histograms_are_cumulative_and_in_seconds(reader: MonitorReader) -> None:
    reader.feed(busy(), START)
    found = samples(reader)
    loop = {name: value for name, value in found.items() if name.startswith("scaler_loop_duration_seconds")}
    assert loop['scaler_loop_duration_seconds_bucket{le="1.6e-05"}'] == 3, "all durations below 16 us"
    assert loop['scaler_loop_duration_seconds_bucket{le="3.2e-05"}'] == 6
    assert loop['scaler_loop_duration_seconds_bucket{le="134.217728"}'] == 6
    assert loop['scaler_loop_duration_seconds_bucket{le="+Inf"}'] == loop["scaler_loop_duration_seconds_count"] == 7
    assert loop["scaler_loop_duration_seconds_sum"] == 0.0015
    assert found['scaler_dispatch_latency_seconds_bucket{le="0.001024"}'] == 3
    assert (found["scaler_dispatch_latency_seconds_count"], found["scaler_dispatch_latency_seconds_sum"]) == (4, 0.004)


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_both_formats_follow_prometheus_rules(reader: MonitorReader, accept: str) -> None:
    reader.feed(busy(), START)
    body, content_type = exposition(reader, accept, START)
    is_open = content_type.startswith("application/openmetrics-text")
    assert is_open == bool(accept)
    families = list((parse_openmetrics if is_open else parse_prometheus)(body.decode()))
    assert len(families) > 35 and not breaches(families)


def test_metric_rules_detect_breaches() -> None:
    twice = GaugeMetricFamily("scaler_open", "A.", labels=["Kind"])
    twice.add_metric(["a"], 1)
    twice.add_metric(["a"], 2)
    wrong = [
        GaugeMetricFamily("Scaler_x", "A.", 1),
        GaugeMetricFamily("scaler_wait_milliseconds", "A.", 1),
        GaugeMetricFamily("scaler_seconds_waited", "A.", 1),
        GaugeMetricFamily("scaler_open_total", "A.", 1),
        GaugeMetricFamily("scaler_size_gauge", "", 1),
        CounterMetricFamily("scaler_ended", "A.", -1),
        HistogramMetricFamily("scaler_time_seconds", "A.", [("1", 3), ("+Inf", 2)], 1),
        twice,
    ]
    for family in wrong:
        assert breaches([family]), family
    assert not breaches([GaugeMetricFamily("scaler_wait_seconds", "A.", 1)])
    assert breaches([GaugeMetricFamily("scaler_a", "A.", 1), GaugeMetricFamily("scaler_a", "A.", 1)])


def test_metrics_of_a_scheduler_that_is_down_are_absent(reader: MonitorReader) -> None:
    reader.feed(busy(), START)
    reader.tick(START + SILENCE_SECONDS)
    found = samples(reader, START + SILENCE_SECONDS)
    assert found["scaler_up"] == 0 and found["scaler_schedulers_seen_total"] == 1 and len(found) == 4
    reader.feed(busy(2, 70), START + 10)
    assert samples(reader, START + 10)["scaler_queue_tasks"] == 43


def rows(seconds: float, *functions: tuple[int, str, int, int], incarnation: int = 5) -> bytes:
    """Functions: number, name, open tasks, done."""
    texts = Texts()
    columns = [
        {"numbers": number, "names": texts(name), "tasks": tasks, "done": done}
        for number, name, tasks, done in functions
    ]
    tables = table("functionColumns", *columns)
    return snapshot_frame(round(seconds), seconds, incarnation=incarnation, texts=texts.field(), **tables)


def results(reader: MonitorReader) -> dict[str, float]:
    begin = 'scaler_function_results_total{function="'
    return {name[len(begin) : -2]: value for name, value in samples(reader).items() if name.startswith(begin)}


def test_function_totals_survive_the_row(reader: MonitorReader) -> None:
    reader.feed(rows(1, (1, "fit", 1, 10), (2, "other", 0, 3)), START)
    reader.feed(rows(2), START)
    reader.feed(rows(3, (3, "fit", 0, 4)), START)
    assert results(reader) == {"fit": 14, "other": 3}
    assert samples(reader)['scaler_function_open_tasks{function="fit"}'] == 0


def test_function_names_are_bounded_and_counters_never_decrease(
    reader: MonitorReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_totals, "MAX_NAMES", 2)
    reader.feed(rows(1, (1, "a", 1, 10), (2, "b", 5, 0), (3, "c", 0, 7)), START)
    assert results(reader) == {"a": 10, "c": 7, "other": 0}, "the busiest functions"
    reader.feed(rows(2, (1, "a", 1, 11), (2, "b", 0, 50), (3, "c", 0, 7)), START)
    assert results(reader) == {"a": 11, "c": 7, "other": 50}
    reader.feed(rows(3, (2, "b", 1, 60)), START)
    assert results(reader) == {"a": 11, "c": 7, "other": 60}, "no name is idle yet"
    reader.feed(rows(3700, (2, "b", 1, 61)), START)
    assert results(reader) == {"a": 11, "b": 1, "other": 60}, "replaces the name that was idle longest"
    reader.feed(rows(3701, (3, "c", 1, 9)), START)
    assert results(reader) == {"c": 2, "b": 1, "other": 60}, "it starts over, with its results since then"


def test_forgotten_function_counts_from_its_present_value(
    reader: MonitorReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_totals, "MAX_REMEMBERED_FUNCTIONS", 1)
    reader.feed(rows(1, (1, "a", 0, 10), (2, "b", 0, 20)), START)
    reader.feed(rows(2, (1, "a", 0, 15), (2, "b", 0, 21)), START)
    assert results(reader) == {"a": 10, "b": 21, "other": 0}
    reader.feed(rows(3, (3, "b", 0, 5)), START)
    assert results(reader)["b"] == 26


def test_new_scheduler_starts_at_zero(reader: MonitorReader) -> None:
    reader.feed(rows(100, (1, "a", 0, 10)), START)
    reader.feed(rows(1, (1, "a", 0, 2), incarnation=6), START)
    assert results(reader) == {"a": 2, "other": 0}


def test_functions_and_hosts_are_bounded(reader: MonitorReader) -> None:
    texts = Texts()
    functions = [{"numbers": 1 + n, "names": texts(f"f{n}"), "tasks": n} for n in range(1000)]
    agents = [{"incarnations": 1 + n, "hosts": texts(f"h{n}")} for n in range(1000)]
    tables = table("functionColumns", *functions) | table("agentColumns", *agents)
    reader.feed(snapshot_frame(1, 60, texts=texts.field(), **tables), START)
    found = samples(reader)
    opened = {name: value for name, value in found.items() if name.startswith("scaler_function_open_tasks")}
    assert len(opened) == function_totals.MAX_NAMES + 1 and sum(opened.values()) == sum(range(1000))
    assert 'scaler_function_open_tasks{function="f999"}' in opened
    hosts = [name for name in found if name.startswith("scaler_host_agents")]
    assert len(hosts) == host_rows.MAX_HOSTS + 1 and found['scaler_host_agents{host="other"}'] == 500


def test_long_name_is_cut(reader: MonitorReader) -> None:
    reader.feed(rows(1, (1, "f" * 10_000, 1, 1)), START)
    assert "f" * 117 + "..." in results(reader)
