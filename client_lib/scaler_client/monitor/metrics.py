"""The data of a MonitorReader as Prometheus metrics. The library prometheus_client formats them (the extra `exporter`).

One scrape shows one snapshot. There is no registry: a program that has a reader calls `exposition`. While the scheduler
is down its metrics are absent, like the metrics of any target that is down. Only `scaler_up` and the reader's own
counters remain.
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
from .host_rows import HostRow, host_rows
from .reader import MonitorReader, Presence
from .snapshot_view import SnapshotView

_UNCOUNTED = (Outcome.RETRYABLE, Outcome.STORED, Outcome.NO_ROOM, Outcome.FILE)

OUTCOMES = [outcome for outcome in Outcome if outcome not in _UNCOUNTED]
"""How tasks end for their clients. Three outcomes are left out, because they occur only between worker and scheduler.
A result that is a file counts as a value."""

COMMON_DEATH_CAUSES = ("signal 9", "memory limit", "lease")
"""Causes exported from the start. Prometheus sees no increase of a counter that appears with its first event."""

FIRST_BUCKET, LAST_BUCKET = 4, 27
"""Powers of two of microseconds, 16 us to 134 s. The first and the last bucket take everything beyond."""

_DROP_REASONS = ("malformed", "refused", "ignored", "unauthorized", "connections", "unreachable", "late", "output")
"""Reasons that are exported from the start."""


def exposition(reader: MonitorReader, accept_header: str, now: float | None = None) -> tuple[bytes, str]:
    """Answer a request for /metrics.

    Args:
        accept_header: the request's header, or empty. OpenMetrics if it accepts that, else the Prometheus text format.
        now: seconds of the reader's clock; None takes time.monotonic.

    Returns:
        The body and its content type.
    """
    encode, content_type = choose_encoder(accept_header)
    return encode(SchedulerCollector(reader, time.monotonic if now is None else lambda: now)), content_type


class SchedulerCollector(Collector):
    """The metrics of one reader, for prometheus_client."""

    def __init__(self, reader: MonitorReader, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and must be the clock that the reader is fed with."""
        self._reader = reader
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Every metric family. Must not run while another thread feeds the reader."""
        reader = self._reader
        is_up = reader.presence is Presence.UP
        yield _gauge("scaler_up", "Whether a scheduler publishes at the monitor address.", int(is_up))
        yield InfoMetricFamily(
            "scaler_build", "The version of the program that exports these metrics.", {"version": __version__}
        )
        yield _counter(
            "scaler_schedulers_seen",
            "Schedulers that have published at the address, one after the other.",
            reader.schedulers,
        )
        yield _counter(
            "scaler_malformed_frames", "Frames from the monitor address that could not be read.", reader.malformed
        )
        view = reader.view
        if not is_up or view is None:
            return
        age = max(0.0, self._clock() - reader.last_message_at)
        yield _gauge("scaler_snapshot_age_seconds", "Time since the scheduler published the values shown here.", age)
        missed = "Snapshots of this scheduler that were lost on the way or came too late."
        yield _counter("scaler_snapshots_missed", missed, reader.missed_snapshots)
        snapshot = view.snapshot
        yield from _process(snapshot)
        yield from _tasks(snapshot)
        yield from _functions(snapshot, reader.function_totals)
        yield from _peers(view)
        yield from _shares(snapshot)
        yield from _limits(snapshot)
        yield from _resources(snapshot)
        yield from _pools(snapshot)
        yield from _bytes(snapshot)
        yield from _messages(snapshot)
        yield from _durations(snapshot)
        yield from _deaths(snapshot)
        yield from _hosts(view)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    """`name` is without the suffix `_total`, which the library adds."""
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
    yield InfoMetricFamily("scaler_scheduler", "The scheduler that publishes.", labels)
    started = round(snapshot.unix_seconds - snapshot.uptime_seconds)
    yield _gauge("scaler_scheduler_start_time_seconds", "Start time of the scheduler, in seconds since 1970.", started)
    seconds = process.cpu_milliseconds / 1000
    yield _counter("scaler_scheduler_cpu_seconds", "Processor time of the scheduler's process.", seconds)
    resident = "Resident memory of the scheduler's process."
    yield _gauge("scaler_scheduler_resident_memory_bytes", resident, process.resident_bytes)
    monitor = "Processor time that the scheduler has spent on publishing."
    yield _counter("scaler_monitor_seconds", monitor, process.monitor_microseconds / 1e6)


def _tasks(snapshot: Snapshot) -> Iterator[Metric]:
    states = {
        "blocked": snapshot.blocked,
        "waiting": snapshot.waiting,
        "queued": max(0, snapshot.dispatched - snapshot.running - snapshot.suspended),
        "running": snapshot.running,
        "suspended": snapshot.suspended,
    }
    text = (
        "Open tasks by state: blocked (an input is missing), waiting (for a worker), queued (at a worker), running, "
        "suspended (waiting for child tasks)."
    )
    yield _gauges("scaler_tasks", text, "state", states)
    text = "Tasks that wait for a worker or are with one: the amount of work for autoscaling."
    yield _gauge("scaler_queue_tasks", text, snapshot.waiting + snapshot.dispatched)
    ended = {outcome.name.lower(): 0 for outcome in OUTCOMES}
    for ordinal, count in enumerate(snapshot.outcomes):
        name = _outcome_name(ordinal)
        if name in ended or count:
            ended[name] = count
    yield _counters("scaler_tasks_ended", "Tasks that have ended, by outcome.", "outcome", ended)
    yield _counter("scaler_retries", "Tasks dispatched again after a worker or an attempt was lost.", snapshot.retries)


def _outcome_name(ordinal: int) -> str:
    try:
        return Outcome(ordinal).name.lower()
    except ValueError:
        return f"outcome_{ordinal}"


def _functions(snapshot: Snapshot, totals: FunctionTotals) -> Iterator[Metric]:
    yield _gauge("scaler_functions", "Functions that a client or a task still uses.", snapshot.functions)
    by_name: dict[str, FunctionTotal] = {**totals.by_name, OTHER: totals.other}
    label = "function"
    counts = {name: total.open_tasks for name, total in by_name.items()}
    yield _gauges("scaler_function_open_tasks", "Open tasks by function.", label, counts)
    counts = {name: total.done for name, total in by_name.items()}
    yield _counters("scaler_function_results", "Results by function, failures included.", label, counts)
    counts = {name: total.failed for name, total in by_name.items()}
    yield _counters("scaler_function_failures", "Tasks that ended without a value, by function.", label, counts)
    seconds = {name: total.run_nanoseconds / 1e9 for name, total in by_name.items()}
    yield _counters("scaler_function_run_seconds", "Run time of all results, by function.", label, seconds)


def _peers(view: SnapshotView) -> Iterator[Metric]:
    snapshot = view.snapshot
    states = {"idle": 0, "busy": 0, "long": 0, "silent": 0, "unlisted": snapshot.left_out()["workers"]}
    free = held = 0
    for worker in view.workers:
        states[_worker_state(worker.state)] += 1
        free += worker.free
        held += worker.held
    text = (
        "Workers by state: idle, busy, long (a task runs long), silent (does not answer during a task), unlisted "
        "(beyond the 10,000 that are published)."
    )
    yield _gauges("scaler_workers", text, "state", states)
    yield _gauge("scaler_agents", "Connected host agents.", snapshot.agents)
    yield _gauge("scaler_clients", "Connected clients, nested clients included.", snapshot.clients)
    yield _gauge("scaler_slots", "Tasks that all workers together may hold, running or queued.", free + held)
    yield _gauge("scaler_slots_free", "Tasks that all workers together may still be given now.", free)


def _shares(snapshot: Snapshot) -> Iterator[Metric]:
    shares = {share.name: share for share in snapshot.shares}
    waiting = {name: share.waiting for name, share in shares.items()}
    running = {name: share.running for name, share in shares.items()}
    used = {name: share.used_seconds for name, share in shares.items()}
    weights = {name: share.weight for name, share in shares.items()}
    yield _gauges("scaler_share_waiting", "Waiting tasks of a key, or of a user and host.", "share", waiting)
    yield _gauges("scaler_share_running", "Tasks of a key, or of a user and host, that workers hold.", "share", running)
    yield _counters("scaler_share_used_seconds", "Run time of the ended attempts of a share.", "share", used)
    yield _gauges("scaler_share_weight", "The weight of a share: its part of the time.", "share", weights)


def _limits(snapshot: Snapshot) -> Iterator[Metric]:
    limits = snapshot.limits
    waiting, running = {each.name: each.waiting for each in limits}, {each.name: each.running for each in limits}
    most = {each.name: each.most for each in limits if each.most}
    yield _gauges("scaler_limit_waiting", "Waiting tasks that need this limit.", "limit", waiting)
    yield _gauges("scaler_limit_running", "Tasks at workers that need this limit.", "limit", running)
    yield _gauges("scaler_limit_most", "Tasks that this limit lets run at once.", "limit", most)


def _resources(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["host", "resource", "state"]
    family = GaugeMetricFamily("scaler_resource", "A counted resource of a host, by state, in units.", labels=labels)
    amounts: dict[tuple[str, str], list[int]] = {}
    for pool in snapshot.resources:  # several agents may run on one host
        sums = amounts.setdefault((pool.host, pool.name), [0, 0, 0, 0])
        for at, amount in enumerate((pool.total, pool.booked, pool.reserved, pool.free)):
            sums[at] += amount
    for (host, name), sums in amounts.items():
        for state, amount in zip(("total", "booked", "reserved", "free"), sums):
            family.add_metric([host, name, state], amount / 1000)
    yield family
    yield _gauge("scaler_resource_waiting", "Waiting tasks that ask for resources.", snapshot.resources_waiting)
    text = "For how long the oldest reservation of resources has waited."
    yield _gauge("scaler_resource_reservation_seconds", text, snapshot.reservation_seconds)


def _pools(snapshot: Snapshot) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "scaler_pool_hosts", "Hosts of an autoscaler's pool, by state.", labels=["pool", "state"]
    )
    for pool in snapshot.pools:
        for state, number in (
            ("wanted", pool.wanted),
            ("booting", pool.booting),
            ("there", pool.there),
            ("draining", pool.draining),
        ):
            family.add_metric([pool.name, state], number)
    yield family
    failed = {pool.name: pool.failed for pool in snapshot.pools}
    late, left = {pool.name: pool.late for pool in snapshot.pools}, {pool.name: pool.left for pool in snapshot.pools}
    yield _counters("scaler_pool_failed_hosts", "Hosts that never came, died at boot or were lost.", "pool", failed)
    yield _counters("scaler_pool_late_hosts", "Hosts that came late.", "pool", late)
    yield _counters("scaler_pool_left_hosts", "Hosts that left at their time limit.", "pool", left)
    resting = {pool.name: float(pool.is_resting) for pool in snapshot.pools}
    yield _gauges("scaler_pool_resting", "1: no host is requested, because too many failed.", "pool", resting)
    failing = {pool.name: float(pool.problem_seconds if pool.problem else 0) for pool in snapshot.pools}
    text = "For how long the provider of the pool, or its hosts, have failed; 0: they work."
    yield _gauges("scaler_pool_problem_seconds", text, "pool", failing)


def _worker_state(state: WorkerState) -> str:
    if state & WorkerState.DOES_NOT_ANSWER:
        return "silent"
    if state & WorkerState.RUNS_LONG:
        return "long"
    return "busy" if state & WorkerState.HOLDS_TASK else "idle"


def _bytes(snapshot: Snapshot) -> Iterator[Metric]:
    yield _gauge("scaler_waiting_bytes", "Payload of the tasks that the scheduler holds.", snapshot.waiting_bytes)
    yield _gauge("scaler_objects", "Objects of clients and graphs.", snapshot.objects)
    yield _gauge("scaler_object_bytes", "Size of the objects that the scheduler holds.", snapshot.object_bytes)
    text = "Memory for tasks and objects, beyond which clients keep further tasks back."
    yield _gauge("scaler_memory_limit_bytes", text, snapshot.memory_limit_bytes)


def _messages(snapshot: Snapshot) -> Iterator[Metric]:
    received, sent = "Messages received by the scheduler, by type.", "Messages sent by the scheduler, by type."
    yield _counters("scaler_messages_received", received, "type", snapshot.received)
    yield _counters("scaler_messages_sent", sent, "type", snapshot.sent)
    dropped = dict.fromkeys(_DROP_REASONS, 0) | snapshot.dropped
    text = (
        "Messages dropped, by reason: malformed; unreachable; refused (beyond a limit, or not for this peer); ignored "
        "(the sender floods); connections (cut); unauthorized (handshakes and messages without an authorized key); "
        "late (rows of results); output (rows that were not forwarded)."
    )
    yield _counters("scaler_messages_dropped", text, "reason", dropped)


def _durations(snapshot: Snapshot) -> Iterator[Metric]:
    process = snapshot.process
    text = "Duration of the turns of the scheduler's loop that had work."
    yield _histogram("scaler_loop_duration_seconds", text, process.loop_durations, process.loop_microseconds)
    text = "Time from a task's arrival to its dispatch."
    latency = snapshot.dispatch_latency_microseconds
    yield _histogram("scaler_dispatch_latency_seconds", text, snapshot.dispatch_latencies, latency)


def _histogram(name: str, text: str, counts: Sequence[int], microseconds: int) -> Metric:
    """A histogram from counts by power of two.

    Args:
        counts: `counts[k]` durations are shorter than 2^k microseconds and not shorter than half of that. The last
            count has all longer ones too.
        microseconds: the sum of all durations.
    """
    buckets: list[tuple[str, float]] = []
    for power in range(FIRST_BUCKET, LAST_BUCKET + 1):
        buckets.append((repr(2**power / 1e6), sum(counts[: power + 1])))
    buckets.append(("+Inf", sum(counts)))
    return HistogramMetricFamily(name, text, buckets, microseconds / 1e6)


def _deaths(snapshot: Snapshot) -> Iterator[Metric]:
    deaths = dict.fromkeys(COMMON_DEATH_CAUSES, 0) | snapshot.deaths
    yield _counters("scaler_worker_deaths", "Workers that died or were given up, by cause.", "cause", deaths)


def _hosts(view: SnapshotView) -> Iterator[Metric]:
    rows = host_rows(view)
    for make, name, text, value in _OF_HOSTS:
        yield make(name, text, "host", {host: value(row) for host, row in rows.items()})


_OF_HOSTS: tuple[tuple[Callable[..., Metric], str, str, Callable[[HostRow], float]], ...] = (
    (_gauges, "scaler_host_agents", "Host agents, by host.", lambda row: row.agents),
    (_gauges, "scaler_host_workers", "Workers, by host.", lambda row: row.workers),
    (
        _gauges,
        "scaler_host_cpu_cores",
        "Processor cores that the agents and workers of a host keep busy.",
        lambda row: row.cpu_percent / 100,
    ),
    (
        _gauges,
        "scaler_host_resident_memory_bytes",
        "Resident memory of the agents and workers of a host.",
        lambda row: row.resident_bytes,
    ),
    (
        _gauges,
        "scaler_host_lag_seconds",
        "Time from a heartbeat of a host's agent to its echo, the longest of its agents.",
        lambda row: row.lag_seconds,
    ),
    (
        _gauges,
        "scaler_host_object_memory_bytes",
        "Objects and large results that a host has in memory.",
        lambda row: row.memory_bytes,
    ),
    (
        _gauges,
        "scaler_host_spilled_bytes",
        "Objects and large results that a host has on disk.",
        lambda row: row.disk_bytes,
    ),
    (
        _counters,
        "scaler_host_spill_moved_bytes",
        "Bytes of objects and large results that a host has written to disk and mapped from disk.",
        lambda row: row.moved_bytes,
    ),
    (
        _counters,
        "scaler_host_received_bytes",
        "Bytes of objects and large results that a host has got from other hosts and from clients.",
        lambda row: row.received_bytes,
    ),
    (
        _counters,
        "scaler_host_sent_bytes",
        "Bytes of objects and large results that a host has sent to other hosts.",
        lambda row: row.sent_bytes,
    ),
    (
        _gauges,
        "scaler_host_coming_bytes",
        "Bytes of objects and large results that are on their way to a host, or wait for their turn.",
        lambda row: row.coming_bytes,
    ),
)
"""The metrics of each host: what makes the metric, its name, its help, and its value."""
