"""Snapshots of the scheduler for the monitor."""

from __future__ import annotations

from typing import Dict, List, Sequence

from .core.scheduler import Scheduler
from .wire.encode import PROTOCOL_VERSION, Identity
from .wire.kinds import KIND_NAMES
from .wire.schema import Counter, Message, Snapshot


class Traffic:
    """Messages counted by type, and what was dropped by reason."""

    def __init__(self) -> None:
        self.received = [0] * len(KIND_NAMES)
        self.sent = [0] * len(KIND_NAMES)
        self.dropped: Dict[str, int] = {"malformed": 0, "unreachable": 0}


def snapshot_frames(
    scheduler: Scheduler, traffic: Traffic, identity: Identity, address: str, uptime_seconds: float
) -> List[bytes]:
    """The frames of a Snapshot message."""
    dropped = dict(traffic.dropped, late=scheduler.counts.late, output=scheduler.counts.output_dropped)
    snapshot = Snapshot(
        protocol_version=PROTOCOL_VERSION,
        version=identity.version,
        incarnation=identity.incarnation,
        uptime_milliseconds=int(uptime_seconds * 1000),
        address=address,
        waiting=scheduler.counts.waiting,
        dispatched=scheduler.counts.dispatched,
        resolved=scheduler.counts.resolved,
        clients=len(scheduler.tables.clients),
        workers=len(scheduler.tables.workers),
        agents=len(scheduler.tables.agents),
        received=_counters(KIND_NAMES, traffic.received),
        sent=_counters(KIND_NAMES, traffic.sent),
        dropped=_counters(list(dropped), list(dropped.values())),
    )
    return [Message.new_snapshot(snapshot).dumps()]


def _counters(names: Sequence[str], counts: Sequence[int]) -> List[Counter]:
    return [Counter(name=name, count=count) for name, count in zip(names, counts) if count]
