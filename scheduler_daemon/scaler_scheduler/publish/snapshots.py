"""The messages that the scheduler publishes about itself: snapshots, history, graphs and stories."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import islice

from ..commands.options import interpreter
from ..core.report.graph_view import graph_nodes
from ..core.report.story import story, story_tracebacks
from ..core.scheduler import Scheduler
from ..core.state.clients import ClientTable
from ..core.state.counts import Durations
from ..core.state.shares import NO_LIMIT
from ..core.state.workers import AgentTable
from ..wire.columns import append_tables
from ..wire.encode import PROTOCOL_VERSION, Identity
from ..wire.message_kinds import KIND_NAMES
from ..wire.schema import Counter, Message, PoolState, SchedulerProcess, Snapshot, TaskLimit
from ..wire.schema import Share as ShareRow
from .graph_columns import graphs_frame
from .history_columns import history_frame
from .memory_trim import resident_bytes
from .need_rows import need_rows
from .resource_rows import host_pools, reservation_milliseconds, waiting_tasks
from .snapshot_columns import (
    TEXT_LIMIT,
    TextTable,
    agent_columns,
    client_columns,
    function_columns,
    host_agents,
    object_columns,
    worker_columns,
)

MAX_SHARES = 100
"""The most shares in a snapshot: those with the most open tasks."""

EXPLAINED_TASKS = 20
"""The most tasks of one story, of different clients, whose reasons to wait are told."""

MAX_PAIRS = 20
"""The most pairs of hosts that cannot reach each other in a snapshot."""

MAX_POOLS = 200
"""The most pools of autoscalers in a snapshot."""

_FIRST_TABLE = 7
"""The number of Snapshot's pointer `texts`. The pointers of the other tables follow it, as in the schema."""

SILENT_SECONDS = 3.0
"""A host that could not be reached and whose last heartbeat was so long before is probably dead, and no firewall is in
between."""


class Traffic:
    """Counts of messages by type, and of dropped messages by reason."""

    def __init__(self) -> None:
        self.received = [0] * len(KIND_NAMES)
        self.sent = [0] * len(KIND_NAMES)
        reasons = ("malformed", "unreachable", "unauthorized", "ignored", "connections")
        self.dropped: dict[str, int] = dict.fromkeys(reasons, 0)


class IncreaseTimes:
    """When counters last increased, as exact as `note` is called often."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.milliseconds: dict[str, int] = {}
        """Unix times by name of the counter."""

    def note(self, counts: Mapping[str, int], unix_seconds: float) -> None:
        """Note the counts at this time."""
        for name, count in counts.items():
            if count > self._counts.get(name, 0):
                self._counts[name] = count
                self.milliseconds[name] = int(unix_seconds * 1000)


class SnapshotWriter:
    """Makes the messages of one scheduler."""

    def __init__(self, core: Scheduler, identity: Identity, address: str, started: float) -> None:
        """`started` is the start of the scheduler, in seconds of the monotonic clock."""
        self.traffic = Traffic()
        self.loop = Durations()
        """Turns of the loop that received or sent something."""
        self.monitor_seconds = 0.0
        """Processor time of publishing."""
        self._core = core
        self._identity = identity
        self._address = address
        self._started = started
        self._sequence = 0
        self._dropped_times = IncreaseTimes()
        self._death_times = IncreaseTimes()
        self._host = socket.gethostname()

    def note_increases(self, unix_seconds: float) -> None:
        """Note which counts of dropped messages and deaths have increased. Call it often, also without subscribers."""
        self._dropped_times.note(self._dropped(), unix_seconds)
        self._death_times.note(self._core.counts.deaths, unix_seconds)

    def snapshot(self, now: float, unix_seconds: float) -> bytes:
        """Frame 0 of the next Snapshot message."""
        self._sequence += 1
        self.note_increases(unix_seconds)
        tables, counts = self._core.tables, self._core.counts
        texts = TextTable()
        workers = worker_columns(self._core, texts, now)
        agents = agent_columns(tables.agents, tables.workers, texts, self._started)
        clients = client_columns(tables.clients, texts)
        functions = function_columns(tables.functions, texts)
        objects = object_columns(tables.clients, texts)
        message = Message.new_snapshot(
            Snapshot(
                protocol_version=PROTOCOL_VERSION,
                version=self._identity.version,
                incarnation=self._identity.incarnation,
                uptime_milliseconds=int((now - self._started) * 1000),
                address=self._address,
                waiting=counts.waiting_calls,
                dispatched=counts.dispatched_calls,
                resolved=counts.resolved,
                clients=len(tables.clients),
                workers=len(tables.workers),
                agents=sum(1 for _ in host_agents(tables.agents, tables.workers)),
                received=_counters(KIND_NAMES, self.traffic.received),
                sent=_counters(KIND_NAMES, self.traffic.sent),
                dropped=_counters_with_times(self._dropped(), self._dropped_times),
                sequence=self._sequence,
                unix_milliseconds=int(unix_seconds * 1000),
                blocked=max(0, functions.open_tasks - counts.waiting_calls - counts.dispatched_calls),
                running=workers.running,
                suspended=workers.suspended,
                outcomes=counts.by_outcome(),
                functions=len(tables.functions),
                objects=len(tables.objects),
                process=self._process(),
                deaths=_counters_with_times(counts.deaths, self._death_times),
                retries=counts.retries,
                dispatch_latencies=counts.dispatch_latencies.buckets,
                dispatch_latency_microseconds=counts.dispatch_latencies.total_us,
                waiting_bytes=counts.payload_bytes,
                object_bytes=tables.objects.bytes,
                memory_limit_bytes=self._core.limits.memory_limit_bytes,
                unschedulable=self._core.unschedulable.task_count,
                unreachable_hosts=_unreachable_hosts(self._core),
                shares=_shares(tables.clients),
                limits=_limits(self._core),
                resources=host_pools(self._core),
                resources_waiting=waiting_tasks(self._core),
                reservation_milliseconds=reservation_milliseconds(self._core, now),
                needs=need_rows(tables.clients, tables.workers, self._core.core_state.pool.long_running, now),
                pools=_pools(tables.agents),
            )
        )
        columns = (texts.columns(), workers.columns, agents, clients, functions.columns, objects)
        return append_tables(message.dumps(), _FIRST_TABLE, columns)

    @property
    def history_end(self) -> int:
        """The number of the next row of history."""
        return self._core.tables.history.next_row

    def set_history_rows(self, rows: int) -> None:
        """Keep at least this many rows of history."""
        self._core.tables.history.limit = rows

    def history(self, begin: int, limit: int) -> tuple[int, bytes]:
        """Frame 0 of a History message, and the number of the row after its last one.

        Args:
            begin: the number of the first row. If it is no longer kept, the message begins with the oldest row.
            limit: the most rows.

        Returns:
            The number and the frame. The frame is empty if there are no rows.
        """
        first, runs = self._core.tables.history.rows(begin, limit)
        end = first + sum([len(run.ids) for run in runs])
        return end, history_frame(first, runs, self._identity.incarnation, self._started) if runs else b""

    def graphs(self) -> bytes:
        """Frame 0 of a Graphs message."""
        return graphs_frame(*graph_nodes(self._core.tables), self._identity.incarnation, self._started)

    def story(self, client: int, task_id: int) -> bytes:
        """Frame 0 of a History message of one task. Client 0 stands for all clients."""
        rows = story(self._core.tables, client, task_id)
        tracebacks = story_tracebacks(self._core.tables, task_id, rows)
        newest = {row.clients[0]: place for place, row in enumerate(rows)}
        reasons = [""] * len(rows)
        for each, place in islice(newest.items(), EXPLAINED_TASKS):
            reasons[place] = "\n".join(self._core.wait_reasons.lines(each, task_id))
        return history_frame(0, rows, self._identity.incarnation, self._started, tracebacks, reasons)

    def _dropped(self) -> dict[str, int]:
        counts = self._core.counts
        return dict(
            self.traffic.dropped,
            late=counts.late_results,
            output=counts.dropped_output_rows,
            refused=counts.rejected_messages,
        )

    def _process(self) -> SchedulerProcess:
        times = os.times()
        return SchedulerProcess(
            interpreter=interpreter(),
            host=self._host,
            pid=os.getpid(),
            resident_bytes=resident_bytes(),
            cpu_milliseconds=round((times.user + times.system) * 1000),
            loop_turns=self.loop.count,
            loop_microseconds=self.loop.total_us,
            loop_durations=self.loop.buckets,
            monitor_microseconds=int(self.monitor_seconds * 1e6),
        )


def _counters(names: Sequence[str], counts: Sequence[int]) -> list[Counter]:
    return [Counter(name=name, count=count) for name, count in zip(names, counts) if count]


def _unreachable_hosts(core: Scheduler) -> list[Counter]:
    pairs: dict[str, int] = {}
    for (source, target), failed_at in core.transfers.unreachable.items():
        if not isinstance(source, str) and source.last_heartbeat_at < failed_at - SILENT_SECONDS:
            continue  # the host may be dead: it has sent no heartbeat since
        name = f"{f'clients on {source}' if isinstance(source, str) else source.host} from {target.host}"
        pairs[name] = pairs.get(name, 0) + 1
    return [Counter(name=name, count=count) for name, count in list(pairs.items())[:MAX_PAIRS]]


def _shares(clients: ClientTable) -> list[ShareRow]:
    waiting = dict.fromkeys(clients.shares, 0)
    for client in clients:
        waiting[client.share] += client.waiting
    shown = nlargest(MAX_SHARES, waiting, key=lambda share: (waiting[share] + share.held, -share.number))
    return [
        ShareRow(
            name=share.display_name[:TEXT_LIMIT],
            weight=share.limits.weight,
            clients=share.client_count,
            waiting=waiting[share],
            running=share.held,
            used_milliseconds=share.used_ns // 1_000_000,
            max_running=share.limits.max_running % NO_LIMIT,
            max_waiting=share.limits.max_waiting % NO_LIMIT,
        )
        for share in shown
    ]


def _limits(core: Scheduler) -> list[TaskLimit]:
    waiting: dict[str, int] = {}
    for client in core.tables.clients:
        for lane in client.lanes.values():
            for name in lane.limits:
                waiting[name] = waiting.get(name, 0) + lane.waiting
    return [
        TaskLimit(
            name=limit.name,
            most=limit.settings.most,
            per_second=limit.settings.per_second,
            running=limit.used,
            waiting=waiting.get(limit.name, 0),
        )
        for limit in core.task_limits.by_name.values()
        if limit.used or waiting.get(limit.name) or core.task_limits.is_defined(limit.name)
    ]


def _pools(table: AgentTable) -> list[PoolState]:
    # By name: after its restart an autoscaler reports its pools anew, while the lease of the old one still lasts.
    pools = {pool.name: pool for agent in table for pool in agent.pools}
    return [PoolState(**pool._asdict()) for pool in list(pools.values())[:MAX_POOLS]]


def _counters_with_times(counts: Mapping[str, int], times: IncreaseTimes) -> list[Counter]:
    last = times.milliseconds
    return [Counter(name=name, count=count, last_milliseconds=last[name]) for name, count in counts.items() if count]
