"""What it costs a busy scheduler with a thousand workers that somebody listens at its monitor address."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import zmq

from scaler_client.published import HISTORY_TOPIC, SNAPSHOT_TOPIC
from scaler_client.snapshots import Snapshot
from scaler_client.wire import decode_published

from .figures import Figure, at_most, ratios
from .peers import FakeClient
from .processes import PATIENCE_SECONDS, allow_many_files, free_address, running_scheduler
from .scheduler_alone import LEASES, ROWS, WINDOW, echoing_peers


@dataclass(frozen=True)
class Sizes:
    workers: int
    runs: int
    batches: int
    """Submits of one run."""
    warm_up_batches: int


FULL = Sizes(workers=1000, runs=5, batches=1500, warm_up_batches=1500)
QUICK = Sizes(workers=50, runs=2, batches=100, warm_up_batches=50)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    unwatched: list[float] = []
    watched: list[float] = []
    costs: list[float] = []
    milliseconds: list[float] = []
    with_history: list[float] = []
    allow_many_files()
    address = free_address()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder, zmq.Context() as context:
        monitor = f"ipc://{folder}/monitor"
        with (
            running_scheduler(address, *LEASES, "--monitor-address", monitor),
            echoing_peers(address, sizes.workers) as client,
        ):
            client.run(sizes.warm_up_batches, WINDOW)
            with _listener(context, monitor) as subscriber:
                client.run(sizes.warm_up_batches, WINDOW)
            for _ in range(sizes.runs):
                with _listener(context, monitor) as subscriber:
                    subscriber.subscribe(HISTORY_TOPIC)
                    _first(subscriber, sizes.workers)
                    with_history.append(_rate(client, sizes.batches))
                unwatched.append(_rate(client, sizes.batches))
                with _listener(context, monitor) as subscriber:
                    first = _first(subscriber, sizes.workers)
                    watched.append(_rate(client, sizes.batches))
                    last, count = _last(subscriber)
                spent = last.process.monitor_microseconds - first.process.monitor_microseconds
                costs.append(spent / 1e4 / (last.uptime_seconds - first.uptime_seconds))
                milliseconds.append(spent / 1e3 / count)
    who = f"a busy scheduler with {sizes.workers:,} workers"
    history_slowdown = [100 * (1 - ratio) for ratio in ratios(with_history, unwatched)]
    slowdown = [100 * (1 - ratio) for ratio in ratios(watched, unwatched)]
    return [
        Figure("monitor.cost", f"share of its time that {who} spends on a listener", "%", costs, at_most(1)),
        Figure("monitor.snapshot", "one snapshot, made and sent", "ms", milliseconds),
        Figure("monitor.rate", f"{who} and a listener", "tasks/s", watched),
        Figure("monitor.unwatched_rate", "the same without", "tasks/s", unwatched),
        Figure("monitor.slowdown", "slower by, run by run", "%", slowdown),
        Figure("monitor.history_rate", f"{who} and a listener to its history too", "tasks/s", with_history),
        Figure("monitor.history_slowdown", "slower by, run by run", "%", history_slowdown),
    ]


def _rate(client: FakeClient, batches: int) -> float:
    begin = time.perf_counter()
    client.run(batches, WINDOW)
    return batches * ROWS / (time.perf_counter() - begin)


@contextmanager
def _listener(context: zmq.Context[zmq.Socket[bytes]], monitor: str) -> Iterator[zmq.Socket[bytes]]:
    """What it hears waits to be read until the run is over: this process shares the cores."""
    with context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.LINGER, 0)
        subscriber.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        subscriber.subscribe(SNAPSHOT_TOPIC)
        subscriber.connect(monitor)
        yield subscriber


def _first(subscriber: zmq.Socket[bytes], workers: int) -> Snapshot:
    snapshot: object = None
    while not isinstance(snapshot, Snapshot):
        snapshot = decode_published(subscriber.recv())
    if len(snapshot.worker_columns.incarnations) != workers:
        raise RuntimeError(f"not a picture of {workers:,} workers: {snapshot}")
    return snapshot


def _last(subscriber: zmq.Socket[bytes]) -> tuple[Snapshot, int]:
    """The last one that has come, or the next; and how many it is from the first."""
    count = 0
    frame = b""
    while not count or subscriber.poll(0):
        frame = subscriber.recv()
        count += 1
    snapshot = decode_published(frame)
    assert isinstance(snapshot, Snapshot)
    return snapshot, count
