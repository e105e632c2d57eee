"""The counted resources of hosts, as texts and as metrics."""

from __future__ import annotations

from scaler_client.monitor.resource_text import amount_text, host_texts, waiting_text
from scaler_client.protocol.snapshots import HostPool, SchedulerProcess, Snapshot

POOLS = [
    HostPool("node-7", "gpu", 4000, 1500, 1000, 2500),
    HostPool("node-7", "memory", 64_000 << 30, 12_000 << 30, 0, 52_000 << 30),
    HostPool("node-8", "license", 1, 0, 0, 1),
]


def test_amounts() -> None:
    given = (1, 1500, 4000, 1000 << 20, 1_500_000 << 20, 2000 << 40, 1_000_000)
    assert [amount_text(amount) for amount in given] == ["0.001", "1.5", "4", "1M", "1.465G", "2T", "1000"]


def test_resources_of_hosts() -> None:
    assert host_texts(POOLS) == {
        "node-7": "gpu 1.5 of 4 booked, 1 reserved; memory 12G of 64G booked",
        "node-8": "license 0 of 0.001 booked",
    }


def test_waiting() -> None:
    snapshot = object.__new__(Snapshot)
    snapshot.process = object.__new__(SchedulerProcess)
    snapshot.resources_waiting, snapshot.reservation_seconds = 0, 0.0
    assert waiting_text(snapshot) == ""
    snapshot.resources_waiting = 1200
    assert waiting_text(snapshot) == "1,200 waiting"
    snapshot.reservation_seconds = 2.54
    assert waiting_text(snapshot) == "1,200 waiting, 2.5 s since the oldest reservation"
