"""What a MonitorReader knows, as metrics of Prometheus: its official library writes them (the extra `exporter`).

One scrape is one picture. There are no registries: whoever has a reader calls `exposition`. When the scheduler is gone
its metrics are gone too, as of any target that is down, but `scaler_up` and what the reader itself has counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .. import __version__
from ..protocol.messages import Outcome
from ..protocol.snapshots import Snapshot, WorkerState
from .function_totals import OTHER, FunctionTotal, FunctionTotals
from .host_rows import host_rows
from .reader import MonitorReader, Presence
from .snapshot_view import SnapshotView

OUTCOMES = [outcome for outcome in Outcome if outcome not in (Outcome.RETRYABLE, Outcome.STORED)]
"""How tasks end for their clients; the other two are between worker and scheduler."""

COMMON_DEATH_CAUSES = ("signal 9", "memory limit", "lease")
"""Causes that are there from the start: of a counter that appears with its first event Prometheus sees no increase."""

FIRST_BUCKET, LAST_BUCKET = 4, 27
"""Powers of two of microseconds, 16 us to 134 s: what is shorter is in the first bucket, what is longer in the last."""

_DROP_REASONS = ("malformed", "refused", "ignored", "unauthorized", "connections", "unreachable", "late", "output")
"""Counters that are there from the start."""


def exposition(reader: MonitorReader, accept_header: str, now: float | None = None) -> tuple[bytes, str]:
    """What an HTTP server answers to GET /metrics.

    Args:
        accept_header: of the request, empty where it has none: OpenMetrics for who takes it, else Prometheus' format.
        now: seconds of the clock that the reader is fed with, time.monotonic's unless given.

    Returns:
        The body and its content type.
    """
    encode, content_type = choose_encoder(accept_header)
    return encode(SchedulerCollector(reader, time.monotonic if now is None else lambda: now)), content_type


class SchedulerCollector(Collector):
    """A reader's metrics, for prometheus_client."""

    def __init__(self, reader: MonitorReader, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is that which the reader is fed with."""
        self._reader = reader
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Every family; not while the reader is fed in another thread."""
        reader = self._reader
        is_up = reader.presence is Presence.THERE
        yield _gauge("scaler_up", "Whether a scheduler is heard at the monitor address.", int(is_up))
        yield InfoMetricFamily("scaler_build", "What has made these metrics.", {"version": __version__})
        yield _counter("scaler_schedulers_seen", "Schedulers heard there, one after the other.", reader.schedulers)
        yield _counter("scaler_malformed_frames", "Frames from there that could not be read.", reader.malformed)
        view = reader.view
        if not is_up or view is None:
            return
        age = max(0.0, self._clock() - reader.heard_at)
        yield _gauge("scaler_snapshot_age_seconds", "Time since the scheduler published what is here.", age)
        missed = "Snapshots that came too late for this reader, since the scheduler was first heard."
        yield _counter("scaler_snapshots_missed", missed, reader.missed_snapshots)
        snapshot = view.snapshot
        yield from _process(snapshot)
        yield from _tasks(snapshot)
        yield from _functions(snapshot, reader.function_totals)
        yield from _peers(view)
        yield from _bytes(snapshot)
        yield from _messages(snapshot)
        yield from _durations(snapshot)
        yield from _deaths(snapshot)
        yield from _hosts(view)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    """`name` is without the `_total` that the library adds."""
    return CounterMetricFamily(name, text, value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _process(snapshot: Snapshot) -> Iterator[Metric]:
    process = snapshot.process
    labels = {
        "version": snapshot.version,
        "interpreter": process.interpreter,
        "host": process.host,
        "address": snapshot.address,
        "incarnation": str(snapshot.incarnation),
    }
    yield InfoMetricFamily("scaler_scheduler", "The scheduler that is there.", labels)
    started = round(snapshot.unix_seconds - snapshot.uptime_seconds)
    yield _gauge("scaler_scheduler_start_time_seconds", "When the scheduler was started, since 1970.", started)
    seconds = process.cpu_milliseconds / 1000
    yield _counter("scaler_scheduler_cpu_seconds", "Processor time of the scheduler's process.", seconds)
    resident = "Resident memory of the scheduler's process."
    yield _gauge("scaler_scheduler_resident_memory_bytes", resident, process.resident_bytes)
    monitor = "Processor time that the scheduler has spent on what it publishes."
    yield _counter("scaler_monitor_seconds", monitor, process.monitor_microseconds / 1e6)


def _tasks(snapshot: Snapshot) -> Iterator[Metric]:
    states = {
        "blocked": snapshot.blocked,
        "waiting": snapshot.waiting,
        "queued": max(0, snapshot.dispatched - snapshot.running - snapshot.suspended),
        "running": snapshot.running,
        "suspended": snapshot.suspended,
    }
    text = "Open tasks: blocked by inputs to come, waiting for a worker, queued there, running, waiting for children."
    yield _gauges("scaler_tasks", text, "state", states)
    text = "Tasks that wait for a worker or are with one: what there is work for."
    yield _gauge("scaler_queue_tasks", text, snapshot.waiting + snapshot.dispatched)
    ended = {outcome.name.lower(): 0 for outcome in OUTCOMES}
    for ordinal, count in enumerate(snapshot.outcomes):
        name = _outcome_name(ordinal)
        if name in ended or count:
            ended[name] = count
    yield _counters("scaler_tasks_ended", "Tasks answered, by how they ended.", "outcome", ended)
    yield _counter("scaler_retries", "Tasks given out again after a worker or an attempt was lost.", snapshot.retries)


def _outcome_name(ordinal: int) -> str:
    try:
        return Outcome(ordinal).name.lower()
    except ValueError:
        return f"outcome_{ordinal}"


def _functions(snapshot: Snapshot, totals: FunctionTotals) -> Iterator[Metric]:
    yield _gauge("scaler_functions", "Functions that some client or task has.", snapshot.functions)
    by_name: dict[str, FunctionTotal] = {**totals.by_name, OTHER: totals.other}
    label = "function"
    counts = {name: total.open_tasks for name, total in by_name.items()}
    yield _gauges("scaler_function_open_tasks", "Open tasks of a function.", label, counts)
    counts = {name: total.done for name, total in by_name.items()}
    yield _counters("scaler_function_results", "Results of a function, whatever they are.", label, counts)
    counts = {name: total.failed for name, total in by_name.items()}
    yield _counters("scaler_function_failures", "Tasks of a function that ended without a value.", label, counts)
    seconds = {name: total.run_nanoseconds / 1e9 for name, total in by_name.items()}
    yield _counters("scaler_function_run_seconds", "Time that the results of a function have taken.", label, seconds)


def _peers(view: SnapshotView) -> Iterator[Metric]:
    snapshot = view.snapshot
    states = {"idle": 0, "busy": 0, "long": 0, "silent": 0, "unlisted": snapshot.left_out()["workers"]}
    free = held = 0
    for worker in view.workers:
        states[_worker_state(worker.state)] += 1
        free += worker.free
        held += worker.held
    text = (
        "Workers: without a task, with one, with one that runs long, not answering while they have one; beyond 10,000."
    )
    yield _gauges("scaler_workers", text, "state", states)
    yield _gauge("scaler_agents", "Host agents.", snapshot.agents)
    yield _gauge("scaler_clients", "Clients, those inside tasks too.", snapshot.clients)
    yield _gauge("scaler_slots", "Tasks that all workers may hold at once, to run or queued.", free + held)
    yield _gauge("scaler_slots_free", "How many more tasks all workers may be given now.", free)


def _worker_state(state: WorkerState) -> str:
    if state & WorkerState.DOES_NOT_ANSWER:
        return "silent"
    if state & WorkerState.RUNS_LONG:
        return "long"
    return "busy" if state & WorkerState.HOLDS_TASK else "idle"


def _bytes(snapshot: Snapshot) -> Iterator[Metric]:
    yield _gauge("scaler_waiting_bytes", "Payload of tasks that the scheduler holds.", snapshot.waiting_bytes)
    yield _gauge("scaler_objects", "Objects that clients or graphs have.", snapshot.objects)
    yield _gauge(
        "scaler_object_bytes", "Size of these objects, as far as the scheduler holds them.", snapshot.object_bytes
    )
    text = "What the scheduler lets tasks and objects take before clients keep theirs to themselves."
    yield _gauge("scaler_memory_limit_bytes", text, snapshot.memory_limit_bytes)


def _messages(snapshot: Snapshot) -> Iterator[Metric]:
    received, sent = "Messages that the scheduler has received.", "Messages that the scheduler has sent."
    yield _counters("scaler_messages_received", received, "type", snapshot.received)
    yield _counters("scaler_messages_sent", sent, "type", snapshot.sent)
    dropped = dict.fromkeys(_DROP_REASONS, 0) | snapshot.dropped
    text = (
        "Messages dropped (malformed, unreachable; refused: beyond a limit, or not for this peer; ignored: of one who "
        "wastes time), connections that were cut, handshakes and messages of who is unauthorized, rows of results that "
        "came late and of output that were not forwarded."
    )
    yield _counters("scaler_messages_dropped", text, "reason", dropped)


def _durations(snapshot: Snapshot) -> Iterator[Metric]:
    process = snapshot.process
    text = "How long turns of the scheduler's loop took that had something to do."
    yield _histogram("scaler_loop_duration_seconds", text, process.loop_durations, process.loop_microseconds)
    text = "From a task's arrival to its dispatch."
    latency = snapshot.dispatch_latency_microseconds
    yield _histogram("scaler_dispatch_latency_seconds", text, snapshot.dispatch_latencies, latency)


def _histogram(name: str, text: str, counts: Sequence[int], microseconds: int) -> Metric:
    """`counts[k]` are of less than 2^k microseconds and not less than half of that, the last of all that is longer."""
    buckets: list[tuple[str, float]] = []
    for power in range(FIRST_BUCKET, LAST_BUCKET + 1):
        buckets.append((repr(2**power / 1e6), sum(counts[: power + 1])))
    buckets.append(("+Inf", sum(counts)))
    return HistogramMetricFamily(name, text, buckets, microseconds / 1e6)


def _deaths(snapshot: Snapshot) -> Iterator[Metric]:
    deaths = dict.fromkeys(COMMON_DEATH_CAUSES, 0) | snapshot.deaths
    yield _counters("scaler_worker_deaths", "Workers that died or were given up.", "cause", deaths)


def _hosts(view: SnapshotView) -> Iterator[Metric]:
    rows = host_rows(view)
    agents = "Host agents of a host."
    yield _gauges("scaler_host_agents", agents, "host", {host: row.agents for host, row in rows.items()})
    workers = "Workers of a host."
    yield _gauges("scaler_host_workers", workers, "host", {host: row.workers for host, row in rows.items()})
    cores = "Processors that the agents and workers of a host keep busy, 1 for each."
    yield _gauges("scaler_host_cpu_cores", cores, "host", {host: row.cpu_percent / 100 for host, row in rows.items()})
    resident = "Resident memory of the agents and workers of a host."
    sizes = {host: row.resident_bytes for host, row in rows.items()}
    yield _gauges("scaler_host_resident_memory_bytes", resident, "host", sizes)
    lag = "From a heartbeat of a host's agent to its echo, the longest of its agents."
    yield _gauges("scaler_host_lag_seconds", lag, "host", {host: row.lag_seconds for host, row in rows.items()})
