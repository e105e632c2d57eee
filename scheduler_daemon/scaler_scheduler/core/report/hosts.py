"""What clients are told about the hosts: interpreters, installed packages and clocks.

A client asks with a heartbeat when it needs versions: for the text of an error, or for `scaler_client doctor`.
"""

from __future__ import annotations

from scaler_scheduler.core.effects import Host
from scaler_scheduler.core.state.counts import WASTED_ROW_US
from scaler_scheduler.core.state.records import Client
from scaler_scheduler.core.tables import Tables

HOSTS_LIMIT = 256
"""The most hosts in one answer."""

PACKAGES_LIMIT = 16
"""The most different lists of packages in one answer."""

ANSWER_SECONDS = 1.0
"""A client is told about the hosts at most once in this time. An answer may have half a megabyte."""


class HostReport:
    """Answers clients that ask about the hosts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def answer(self, client: Client, now: float) -> tuple[list[Host], list[str]]:
        """The hosts, and the different lists of packages that they refer to.

        Args:
            client: who asks. If it was answered less than ANSWER_SECONDS ago, both lists are empty.
            now: seconds of the monotonic clock.
        """
        hosts: list[Host] = []
        packages: dict[str, int] = {}
        if now < client.hosts_told_at + ANSWER_SECONDS:
            return hosts, []
        client.hosts_told_at = now
        for agent in self._tables.agents:
            if len(hosts) == HOSTS_LIMIT:
                break
            if agent.pools:
                continue  # an autoscaler, which runs no tasks
            number = packages.get(agent.packages, 0)
            if not number and agent.packages and len(packages) < PACKAGES_LIMIT:
                number = packages[agent.packages] = len(packages) + 1
            clock = agent.clock_ms
            if clock:
                clock += int(1000 * (now - agent.last_heartbeat_at))
            hosts.append(Host(agent.host, agent.language, agent.version, number, clock))
        self._tables.counts.wasted_us += 2 * WASTED_ROW_US * len(hosts)
        return hosts, list(packages)
