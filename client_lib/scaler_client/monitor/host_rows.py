"""A snapshot by host: the sums over the agents and workers of each host."""

from __future__ import annotations

from dataclasses import dataclass

from .snapshot_view import SnapshotView

MAX_HOSTS = 500
"""The maximum number of rows. Further hosts, those with the fewest workers, share one row."""

OTHER_HOSTS = "other"


@dataclass(slots=True)
class HostRow:
    agents: int = 0
    workers: int = 0
    cpu_percent: float = 0.0
    """Percent of one core."""
    resident_bytes: int = 0
    lag_seconds: float = 0.0
    """The longest lag among the host's agents."""
    memory_bytes: int = 0
    """Objects and large results in memory."""
    disk_bytes: int = 0
    """Objects and large results on disk."""
    moved_bytes: int = 0
    """Written to disk and mapped from disk since the start of the agents."""
    received_bytes: int = 0
    """Objects and large results that came from other hosts and from clients."""
    sent_bytes: int = 0
    """Objects and large results that went to other hosts."""
    coming_bytes: int = 0
    """Objects and large results on their way to the host."""

    def add(self, other: HostRow) -> None:
        self.agents += other.agents
        self.workers += other.workers
        self.cpu_percent += other.cpu_percent
        self.resident_bytes += other.resident_bytes
        self.lag_seconds = max(self.lag_seconds, other.lag_seconds)
        self.memory_bytes += other.memory_bytes
        self.disk_bytes += other.disk_bytes
        self.moved_bytes += other.moved_bytes
        self.received_bytes += other.received_bytes
        self.sent_bytes += other.sent_bytes
        self.coming_bytes += other.coming_bytes


def host_rows(view: SnapshotView) -> dict[str, HostRow]:
    """Rows by host name, hosts with the most workers first."""
    found: dict[str, HostRow] = {}
    for agent in view.agents:
        row = HostRow(1, 0, agent.cpu_percent, agent.resident_bytes, agent.lag_seconds)
        row.memory_bytes, row.disk_bytes, row.moved_bytes = agent.memory_bytes, agent.disk_bytes, agent.moved_bytes
        row.received_bytes, row.sent_bytes = agent.received_bytes, agent.sent_bytes
        row.coming_bytes = agent.coming_bytes
        found.setdefault(agent.host, HostRow()).add(row)
    for worker in view.workers:
        found.setdefault(worker.host, HostRow()).add(HostRow(0, 1, worker.cpu_percent, worker.resident_bytes))
    rows: dict[str, HostRow] = {}
    for host, row in sorted(found.items(), key=lambda item: (-item[1].workers, item[0])):
        rows.setdefault(host if len(rows) < MAX_HOSTS else OTHER_HOSTS, HostRow()).add(row)
    return rows
