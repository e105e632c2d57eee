"""The cost of monitor programs for a busy scheduler with a thousand workers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import zmq

from scaler_client.protocol.snapshot_decoder import GRAPHS_TOPIC, HISTORY_TOPIC, SNAPSHOT_TOPIC
from scaler_client.protocol.snapshots import Snapshot
from scaler_client.protocol.wire import decode_published

from .figures import Figure, at_most, ratios
from .peers import FakeClient
from .processes import PATIENCE_SECONDS, allow_many_files, free_address, make_keys, running_scheduler
from .scheduler_alone import LEASES, ROWS, WINDOW, echoing_peers


@dataclass(frozen=True)
class Sizes:
    workers: int
    runs: int
    batches: int
    """Submits in one run."""
    warm_up_batches: int
    warm_up_snapshots: int
    """PyPy compiles what makes a snapshot after some ten of them; there is one a second."""


FULL = Sizes(workers=1000, runs=2, batches=1000, warm_up_batches=1000, warm_up_snapshots=10)
QUICK = Sizes(workers=20, runs=1, batches=40, warm_up_batches=20, warm_up_snapshots=1)


@dataclass
class Audience:
    """Subscribers to some topics, and their cost."""

    topics: tuple[bytes, ...]
    rates: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """The share of the scheduler's time, in percent."""
    milliseconds: list[float] = field(default_factory=list)
    """The scheduler's time for each snapshot with its history, in seconds."""


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    unwatched: list[float] = []
    watched = Audience((SNAPSHOT_TOPIC,))
    historian = Audience((SNAPSHOT_TOPIC, HISTORY_TOPIC))
    everybody = Audience((SNAPSHOT_TOPIC, HISTORY_TOPIC, GRAPHS_TOPIC))
    keyed_unwatched: list[float] = []
    keyed = Audience(everybody.topics)
    allow_many_files()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder, zmq.Context() as context:
        _run(context, folder, "", sizes, unwatched, [watched, historian, everybody])
        _run(context, folder, make_keys(folder), sizes, keyed_unwatched, [keyed])
    who = f"a busy scheduler with {sizes.workers:,} workers"
    return [
        Figure(
            "monitor.cost",
            f"share of its time that {who} spends on a reader of snapshots",
            "%",
            watched.shares,
            at_most(1),
        ),
        Figure(
            "monitor.history_cost", "time spent on a reader of snapshots and history", "%", historian.shares, at_most(1)
        ),
        Figure(
            "monitor.all_cost",
            "time spent on a reader of snapshots, history and graphs",
            "%",
            everybody.shares,
            at_most(1),
        ),
        Figure("monitor.keyed_cost", "time spent on a reader of all three, with keys", "%", keyed.shares, at_most(1)),
        Figure("monitor.snapshot", "time to make and send one snapshot", "ms", watched.milliseconds),
        Figure(
            "monitor.history",
            "time to make and send one snapshot and a second of history",
            "ms",
            historian.milliseconds,
        ),
        Figure("monitor.unwatched_rate", f"rate of {who} without readers", "tasks/s", unwatched),
        Figure("monitor.rate", f"rate of {who} with a reader of snapshots", "tasks/s", watched.rates),
        Figure(
            "monitor.ratio",
            "ratio of the rates, with a reader of snapshots to without",
            "x",
            ratios(watched.rates, unwatched),
        ),
        Figure(
            "monitor.history_ratio",
            "ratio of the rates, with a reader of snapshots and history",
            "x",
            ratios(historian.rates, unwatched),
        ),
        Figure(
            "monitor.all_ratio",
            "ratio of the rates, with a reader of all three",
            "x",
            ratios(everybody.rates, unwatched),
        ),
        Figure(
            "monitor.keyed_ratio",
            "ratio of the rates, with a reader of all three, with keys",
            "x",
            ratios(keyed.rates, keyed_unwatched),
        ),
    ]


def _run(
    context: zmq.Context[zmq.Socket[bytes]],
    folder: str,
    keys: str,
    sizes: Sizes,
    unwatched: list[float],
    audiences: list[Audience],
) -> None:
    """Measure one scheduler without and with each audience. `keys` is a folder of keys; empty means none."""
    address = free_address()
    monitor = f"ipc://{folder}/monitor"
    options = (*LEASES, "--monitor-address", monitor, *(("--keys", keys) if keys else ()))
    with running_scheduler(address, *options), echoing_peers(address, sizes.workers, keys) as client:
        client.run(sizes.warm_up_batches, WINDOW)
        with _listener(context, monitor, audiences[-1].topics) as subscriber:
            client.run(sizes.warm_up_batches, WINDOW)
            for _ in range(sizes.warm_up_snapshots):
                _next(subscriber)
        for _ in range(sizes.runs):
            unwatched.append(_rate(client, sizes.batches))
            for audience in audiences:
                with _listener(context, monitor, audience.topics) as subscriber:
                    _watch(audience, subscriber, client, sizes)


def _watch(audience: Audience, subscriber: zmq.Socket[bytes], client: FakeClient, sizes: Sizes) -> None:
    """Measure a run, after the past history that a new listener gets."""
    _next(subscriber)
    first = _next(subscriber)
    if len(first.worker_columns.incarnations) != sizes.workers:
        raise RuntimeError(f"not a snapshot of {sizes.workers:,} workers: {first}")
    audience.rates.append(_rate(client, sizes.batches))
    last, count = _last(subscriber)
    spent = last.process.monitor_microseconds - first.process.monitor_microseconds
    audience.shares.append(spent / 1e4 / (last.uptime_seconds - first.uptime_seconds))
    audience.milliseconds.append(spent / 1e3 / count)


def _rate(client: FakeClient, batches: int) -> float:
    begin = time.perf_counter()
    client.run(batches, WINDOW)
    return batches * ROWS / (time.perf_counter() - begin)


@contextmanager
def _listener(
    context: zmq.Context[zmq.Socket[bytes]], monitor: str, topics: tuple[bytes, ...]
) -> Iterator[zmq.Socket[bytes]]:
    """A listener that reads only after the run, because this process shares the cores."""
    with context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.LINGER, 0)
        subscriber.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        for topic in topics:
            subscriber.subscribe(topic)
        subscriber.connect(monitor)
        yield subscriber


def _next(subscriber: zmq.Socket[bytes]) -> Snapshot:
    frame = b""
    while not frame.startswith(SNAPSHOT_TOPIC):
        frame = subscriber.recv()
    snapshot = decode_published(frame)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def _last(subscriber: zmq.Socket[bytes]) -> tuple[Snapshot, int]:
    """Return the newest snapshot, waiting for one if there is none, and its number from the first."""
    count = 0
    newest = b""
    while not count or subscriber.poll(0):
        frame = subscriber.recv()
        if frame.startswith(SNAPSHOT_TOPIC):
            newest = frame
            count += 1
    snapshot = decode_published(newest)
    assert isinstance(snapshot, Snapshot)
    return snapshot, count
