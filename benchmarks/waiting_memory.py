"""What the scheduler needs for a task that waits, beyond the task's own bytes: a million of them, and no worker."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass

import psutil
import zmq

from scaler_client import Client, serializer
from scaler_client.messages import Heartbeat, HeartbeatEcho, Role
from scaler_client.published import SNAPSHOT_TOPIC
from scaler_client.snapshots import Snapshot
from scaler_client.wire import decode, decode_published, encode

from .figures import Figure, at_most
from .peers import Peer
from .processes import PATIENCE_SECONDS, free_address, running_scheduler
from .workload import identity

LEASE_SECONDS = "3600"


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    heartbeats: int


FULL = Sizes(tasks=1_000_000, runs=3, heartbeats=50_000)
QUICK = Sizes(tasks=50_000, runs=1, heartbeats=5_000)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    payload_bytes = sum(len(serializer.dump_call((number,), {})) for number in range(sizes.tasks))
    growths = [_growth(sizes) for _ in range(sizes.runs)]
    title = f"{sizes.tasks:,} waiting tasks, no worker: scheduler's memory beyond the payload"
    per_task = [(growth - payload_bytes) / sizes.tasks for growth in growths]
    return [
        Figure("memory.per_waiting_task", title, "bytes/task", per_task, at_most(200)),
        Figure("memory.payload", "the payload of such a task", "bytes/task", [payload_bytes / sizes.tasks]),
        Figure("memory.growth", "the scheduler's growth in all", "MB", [growth / 1e6 for growth in growths]),
    ]


def _growth(sizes: Sizes) -> int:
    """Resident bytes that a fresh scheduler gains by these tasks."""
    address = free_address()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder, zmq.Context() as context:
        monitor = f"ipc://{folder}/monitor"
        options = ["--client-timeout-seconds", LEASE_SECONDS, "--monitor-address", monitor]
        with running_scheduler(address, *options) as scheduler:
            _touch_nursery(context, address, sizes.heartbeats)
            process = psutil.Process(scheduler.pid)
            before = process.memory_info().rss
            with Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
                futures = [client.submit(identity, number) for number in range(sizes.tasks)]
                _await_waiting(context, monitor, len(futures))
                return process.memory_info().rss - before


def _touch_nursery(context: zmq.Context[zmq.Socket[bytes]], address: str, heartbeats: int) -> None:
    """Have the scheduler allocate, and drop at once, several times its nursery: what PyPy has for young objects is then
    resident before the measure begins. Heartbeats leave nothing behind, unlike tasks."""
    peer = Peer(context, address, Role.CLIENT)
    [heartbeat] = encode(Heartbeat(1))
    for _ in range(heartbeats // 100):
        for _ in range(100):
            peer.socket.send(heartbeat)
        for _ in range(100):
            if not isinstance(decode(peer.socket.recv_multipart()), HeartbeatEcho):
                raise RuntimeError("the scheduler does not answer heartbeats")
    peer.socket.close()


def _await_waiting(context: zmq.Context[zmq.Socket[bytes]], monitor: str, tasks: int) -> None:
    """Return once the scheduler says that it has all of them."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        subscriber.subscribe(SNAPSHOT_TOPIC)
        subscriber.connect(monitor)
        while time.monotonic() < deadline:
            snapshot = decode_published(subscriber.recv())
            if isinstance(snapshot, Snapshot) and snapshot.waiting == tasks:
                return
    raise RuntimeError(f"the scheduler does not come to have {tasks:,} waiting tasks")
