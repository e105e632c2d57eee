"""The scheduler's work once a second besides messages: status, rejected connections, memory, the parent process."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field

from ..auth.keyring import Keyring
from ..commands import logs
from ..commands.object_directory import STALE_SECONDS, remove_stale
from ..commands.systemd_notify import SystemdNotifier
from ..core.scheduler import Scheduler
from ..net.router import Router
from ..net.zap import ZapHandler
from ..publish.memory_trim import MemoryTrim
from ..publish.snapshots import SnapshotWriter

CONNECTIONS_LOG_SECONDS = 10.0
"""The least time between two groups of log lines about cut connections. Lines of one second form a group."""

_log = logging.getLogger(__name__)


@dataclass
class Housekeeping:
    """The parts of the scheduler that are checked or reported once a second."""

    core: Scheduler
    router: Router
    zap: ZapHandler
    snapshot_writer: SnapshotWriter
    systemd: SystemdNotifier
    keyring: Keyring | None
    """None: peers have no keys."""
    parent_process: int
    """The process id of the parent at the start; 0: the parent is not checked."""
    is_parent_gone: bool = False
    _memory_trim: MemoryTrim = field(default_factory=MemoryTrim)
    _next_connections_line: float = 0.0
    _remove_stale_at: float = 0.0
    _resolved: int = 0
    """Tasks that were resolved at the previous call of `run`."""

    def run(self, now: float) -> None:
        """Do all of it. Call it once a second.

        Args:
            now: the time in seconds of the monotonic clock.
        """
        self._report_status()
        self._report_rejections(now)
        self.snapshot_writer.note_increases(time.time())
        self._trim_memory()
        self._remove_stale_directories(now)
        self._check_parent()

    def _report_status(self) -> None:
        tables, counts = self.core.tables, self.core.counts
        self.systemd.status(
            f"{len(tables.workers)} workers on {len(tables.agents)} hosts, {len(tables.clients)} clients; "
            f"{counts.waiting_calls:,} tasks wait, {counts.dispatched_calls:,} are with workers, "
            f"{counts.resolved:,} are done"
        )

    def _report_rejections(self, now: float) -> None:
        connections, dropped = self.zap.connections, self.snapshot_writer.traffic.dropped
        dropped["connections"] = connections.cut_count
        if now >= self._next_connections_line:
            for line in connections.pop_log_lines():
                self._next_connections_line = now + CONNECTIONS_LOG_SECONDS
                _log.warning("%s", logs.on_one_line(line))
        if self.keyring is not None:
            dropped["unauthorized"] = self.zap.rejected + self.router.rejected
            self.keyring.log_rejections(self.zap, self.router, now)

    def _trim_memory(self) -> None:
        counts = self.core.counts
        is_idle = not counts.waiting and not counts.dispatched and counts.resolved == self._resolved
        self._resolved = counts.resolved
        self._memory_trim.check(is_idle)

    def _remove_stale_directories(self, now: float) -> None:
        """Remove the files of clients on this host that were killed."""
        if now >= self._remove_stale_at:
            self._remove_stale_at = now + STALE_SECONDS
            remove_stale()

    def _check_parent(self) -> None:
        if self.parent_process and os.getppid() != self.parent_process and not self.is_parent_gone:
            _log.info("the parent process %d has ended", self.parent_process)
            self.is_parent_gone = True
