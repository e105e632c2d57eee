"""The scheduler's memory for a waiting task, without its payload: a million tasks and no worker."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass

import psutil
import zmq

from scaler_client import Client
from scaler_client.pickling import serializer
from scaler_client.protocol.columns import BatchReader
from scaler_client.protocol.messages import Cancel, Function, Role
from scaler_client.protocol.snapshot_decoder import SNAPSHOT_TOPIC
from scaler_client.protocol.snapshots import Snapshot
from scaler_client.protocol.wire import decode_published

from .figures import Figure, at_most
from .peers import FUNCTION_NUMBER, RESOLVED, Peer, SubmitTemplate
from .processes import PATIENCE_SECONDS, free_address, running_scheduler
from .workload import identity

LEASE_SECONDS = "3600"
WARM_UP_ROWS = 100
"""Tasks in a message of the warm-up."""


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_tasks: int


FULL = Sizes(tasks=1_000_000, runs=2, warm_up_tasks=500_000)
QUICK = Sizes(tasks=50_000, runs=1, warm_up_tasks=20_000)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    payload_bytes = sum(len(serializer.dump_call((number,), {})) for number in range(sizes.tasks))
    growths = [_growth(sizes) for _ in range(sizes.runs)]
    title = f"{sizes.tasks:,} waiting tasks, no worker: scheduler's memory without the payload"
    per_task = [(growth - payload_bytes) / sizes.tasks for growth in growths]
    return [
        Figure("memory.per_waiting_task", title, "bytes/task", per_task, at_most(200)),
        Figure("memory.payload", "payload of one of these tasks", "bytes/task", [payload_bytes / sizes.tasks]),
        Figure(
            "memory.growth", "growth of the scheduler, payload included", "MB", [growth / 1e6 for growth in growths]
        ),
    ]


def _growth(sizes: Sizes) -> int:
    """Return the growth of a new scheduler's resident memory with these tasks, in bytes."""
    address = free_address()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder, zmq.Context() as context:
        monitor = f"ipc://{folder}/monitor"
        options = ["--client-timeout-seconds", LEASE_SECONDS, "--monitor-address", monitor]
        with running_scheduler(address, *options) as scheduler:
            _touch_nursery(context, address, sizes.warm_up_tasks)
            process = psutil.Process(scheduler.pid)
            before = process.memory_info().rss
            with Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
                futures = [client.submit(identity, number) for number in range(sizes.tasks)]
                _await_waiting(context, monitor, len(futures))
                return process.memory_info().rss - before


def _touch_nursery(context: zmq.Context[zmq.Socket[bytes]], address: str, tasks: int) -> None:
    """Submit and cancel so many tasks, a few at a time.

    The scheduler allocates several times its nursery and drops it at once, so that PyPy's space for young objects is
    resident before the measure begins. Only tasks of one message exist at any time, so the warm-up leaves no free
    memory behind that the measured tasks could use. Messages without an effect, as heartbeats, do not serve: the
    scheduler mutes a connection that sends many of them.
    """
    peer = Peer(context, address, Role.CLIENT)
    peer.send(Function(FUNCTION_NUMBER, "nothing", "none", b"nothing"))
    template = SubmitTemplate(WARM_UP_ROWS, b"nothing")
    for first in range(0, tasks, WARM_UP_ROWS):
        peer.socket.send(template.frame(first))
        peer.send(Cancel(list(range(first, first + WARM_UP_ROWS))))
        answered = 0
        while answered < WARM_UP_ROWS:
            batch = BatchReader(peer.socket.recv_multipart()[0])
            if batch.tag == RESOLVED:
                answered += len(batch.numbers(0, "Q"))
    peer.socket.close()


def _await_waiting(context: zmq.Context[zmq.Socket[bytes]], monitor: str, tasks: int) -> None:
    """Wait until a snapshot shows that the scheduler has all tasks."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        subscriber.subscribe(SNAPSHOT_TOPIC)
        subscriber.connect(monitor)
        while time.monotonic() < deadline:
            snapshot = decode_published(subscriber.recv())
            if isinstance(snapshot, Snapshot) and snapshot.waiting == tasks:
                return
    raise RuntimeError(f"the scheduler did not reach {tasks:,} waiting tasks")
