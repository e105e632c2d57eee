"""The newest snapshot as rows, with rates and percentages computed from an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..protocol.snapshots import ObjectState, Snapshot, WorkerState

UNKNOWN_ROOM_BYTES = 1 << 62
"""The room of a host whose limits the scheduler does not know."""

SHORT_NAME_LENGTH = 12
"""Digits of an environment's name that are shown."""


@dataclass(frozen=True)
class RunningTask:
    client: int
    id: int
    attempt: int
    name: str
    seconds: float
    """How long it was known to run when the snapshot was made."""


@dataclass(frozen=True)
class WorkerRow:
    """One worker. Rates are per second. Percentages are of one core, and 0 until they are known."""

    incarnation: int
    name: str
    host: str
    pid: int
    language: str
    version: str
    capabilities: str
    state: WorkerState
    agent: int
    agent_cpu_percent: float
    agent_resident_bytes: int
    lag_seconds: float
    """Time from a heartbeat of its agent to the echo."""
    cpu_percent: float
    resident_bytes: int
    free: int
    held: int
    queued: int
    running: int
    suspended: int
    sent: int
    sent_rate: float
    done: int
    done_rate: float
    task: RunningTask | None
    environment: str
    """The name of its environment, a SHA-256 in hex digits; empty: none."""

    @property
    def short_environment(self) -> str:
        """The first digits of the environment's name, which tell it from others."""
        return self.environment[:SHORT_NAME_LENGTH]


@dataclass(frozen=True)
class AgentRow:
    incarnation: int
    name: str
    host: str
    pid: int
    language: str
    version: str
    cpu_percent: float
    resident_bytes: int
    lag_seconds: float
    silent_seconds: float
    """Time since its last heartbeat."""
    workers: int
    memory_bytes: int
    """The objects and large results of its host that are in memory."""
    disk_bytes: int
    """Those that were spilled to disk."""
    moved_bytes: int
    """Written to disk and mapped from disk since the agent's start."""
    received_bytes: int = 0
    """Objects and large results that came from other hosts and from clients, since it joined."""
    sent_bytes: int = 0
    """Those that it has sent to other hosts."""
    coming_bytes: int = 0
    """Those that are on their way to it, or wait for their turn."""
    room_bytes: int = UNKNOWN_ROOM_BYTES
    """What further ones may take."""


@dataclass(frozen=True)
class ClientRow:
    """One client. `worker` is where a nested client lives, 0 for other clients. `not_waiting` counts the open tasks
    that a worker holds, or that are blocked."""

    incarnation: int
    name: str
    worker: int
    waiting: int
    not_waiting: int
    objects: int
    object_bytes: int
    done: int
    """Tasks whose answer was sent to it."""
    done_rate: float
    share: str = ""
    """The name of the key with which it shares the workers, or user@host."""


@dataclass(frozen=True)
class FunctionRow:
    number: int
    name: str
    tasks: int
    done: int
    done_rate: float
    failed: int
    mean_seconds: float
    """The mean of all results; 0 before the first one."""
    bytes: int
    clients: int
    task_names: str
    """Names that `options(name=)` gave to its recent tasks, separated by commas."""


@dataclass(frozen=True)
class ObjectRow:
    client: int
    id: int
    name: str
    bytes: int
    tasks: int
    state: ObjectState | int
    """A plain number for a state that only a newer scheduler knows."""


@dataclass(frozen=True)
class SnapshotView:
    """One snapshot as rows. Rates are per second, over the last `seconds`, which is 0 if there are none yet."""

    snapshot: Snapshot
    seconds: float
    cpu_percent: float
    """Percent of one core that the scheduler's process used."""
    loop_percent: float
    """Percent of the time in which its loop was busy."""
    loop_mean_seconds: float
    """The mean duration of a turn of the loop."""
    resolved_rate: float
    received_rates: Mapping[str, float]
    sent_rates: Mapping[str, float]
    workers: list[WorkerRow]
    agents: list[AgentRow]
    clients: list[ClientRow]
    functions: list[FunctionRow]
    objects: list[ObjectRow]


@dataclass(frozen=True)
class CpuUsage:
    """Processor time of a process as its host last reported it. `percent` is the use since the report before."""

    at_milliseconds: int
    cpu_milliseconds: int
    percent: float = 0.0

    def updated(self, at_milliseconds: int, cpu_milliseconds: int) -> CpuUsage:
        """The usage after another report; unchanged if the report is not newer."""
        passed, spent = at_milliseconds - self.at_milliseconds, cpu_milliseconds - self.cpu_milliseconds
        if passed <= 0:
            return self
        return CpuUsage(at_milliseconds, cpu_milliseconds, max(0.0, 100 * spent / passed))


CpuUsages = dict[int, CpuUsage]
"""By the incarnation of an agent or a worker."""


def cpu_usages(snapshot: Snapshot, before: CpuUsages) -> CpuUsages:
    """The usages of all agents and workers of a snapshot, given the previous usages."""
    agents, workers = snapshot.agent_columns, snapshot.worker_columns
    last_heartbeats = dict(zip(agents.incarnations, agents.last_heartbeat_milliseconds))
    found: CpuUsages = {}
    for incarnation, spent in zip(agents.incarnations, agents.cpu_milliseconds):
        found[incarnation] = _next_usage(before.get(incarnation), last_heartbeats[incarnation], spent)
    for incarnation, agent, spent in zip(workers.incarnations, workers.agents, workers.cpu_milliseconds):
        if agent in last_heartbeats:
            found[incarnation] = _next_usage(before.get(incarnation), last_heartbeats[agent], spent)
    return found


def _next_usage(before: CpuUsage | None, at_milliseconds: int, cpu_milliseconds: int) -> CpuUsage:
    # A worker can appear in a snapshot before its agent's first report of it. 0 is no base to count from.
    if before is None or not before.cpu_milliseconds:
        return CpuUsage(at_milliseconds, cpu_milliseconds)
    return before.updated(at_milliseconds, cpu_milliseconds)


def build_view(snapshot: Snapshot, base: Snapshot | None, usages: CpuUsages) -> SnapshotView:
    """The rows of a snapshot.

    Args:
        snapshot: the newest snapshot.
        base: an earlier snapshot of the same scheduler, from which rates are computed; None gives no rates.
        usages: processor use by incarnation.
    """
    seconds = 0.0 if base is None else max(0.0, snapshot.uptime_seconds - base.uptime_seconds)
    if base is None or not seconds:
        base, seconds = snapshot, 0.0
    interval = _RateInterval(seconds)
    process, process_before = snapshot.process, base.process
    loop_seconds = (process.loop_microseconds - process_before.loop_microseconds) / 1e6
    turns = process.loop_turns - process_before.loop_turns
    return SnapshotView(
        snapshot=snapshot,
        seconds=seconds,
        cpu_percent=interval.rate(process.cpu_milliseconds, process_before.cpu_milliseconds) / 10,
        loop_percent=100 * loop_seconds / seconds if seconds else 0.0,
        loop_mean_seconds=loop_seconds / turns if turns else 0.0,
        resolved_rate=interval.rate(snapshot.resolved, base.resolved),
        received_rates=interval.rates(snapshot.received, base.received),
        sent_rates=interval.rates(snapshot.sent, base.sent),
        workers=_worker_rows(snapshot, base, interval, usages),
        agents=_agent_rows(snapshot, usages),
        clients=_client_rows(snapshot, base, interval),
        functions=_function_rows(snapshot, base, interval),
        objects=_object_rows(snapshot),
    )


@dataclass(frozen=True)
class _RateInterval:
    seconds: float

    def rate(self, now: int, before: int) -> float:
        return (now - before) / self.seconds if self.seconds else 0.0

    def rates(self, now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
        return {name: self.rate(count, before.get(name, 0)) for name, count in now.items()}


_NO_CPU_USAGE = CpuUsage(0, 0)


def _worker_rows(snapshot: Snapshot, base: Snapshot, interval: _RateInterval, usages: CpuUsages) -> list[WorkerRow]:
    columns, before, agents = snapshot.worker_columns, base.worker_columns, snapshot.agent_columns
    agent_rows = {incarnation: row for row, incarnation in enumerate(agents.incarnations)}
    earlier = dict(zip(before.incarnations, zip(before.sent, before.done)))
    rows = []
    for row, incarnation in enumerate(columns.incarnations):
        sent, done = columns.sent[row], columns.done[row]
        sent_before, done_before = earlier.get(incarnation, (0, 0))
        at = agent_rows.get(columns.agents[row])
        task = None
        if columns.attempts[row]:
            task = RunningTask(
                client=columns.clients[row],
                id=columns.ids[row],
                attempt=columns.attempts[row],
                name=columns.tasks[row],
                seconds=columns.run_milliseconds[row] / 1000,
            )
        held, running, suspended = columns.held[row], columns.running[row], columns.suspended[row]
        rows.append(
            WorkerRow(
                incarnation=incarnation,
                name=columns.names[row],
                host=columns.hosts[row],
                pid=columns.pids[row],
                language=columns.languages[row],
                version=columns.versions[row],
                capabilities=columns.capabilities[row],
                state=WorkerState(columns.states[row]),
                agent=columns.agents[row],
                agent_cpu_percent=0.0 if at is None else usages.get(columns.agents[row], _NO_CPU_USAGE).percent,
                agent_resident_bytes=0 if at is None else agents.resident_bytes[at],
                lag_seconds=0.0 if at is None else agents.lag_microseconds[at] / 1e6,
                cpu_percent=usages.get(incarnation, _NO_CPU_USAGE).percent,
                resident_bytes=columns.resident_bytes[row],
                free=columns.free[row],
                held=held,
                queued=held - running - suspended,
                running=running,
                suspended=suspended,
                sent=sent,
                sent_rate=interval.rate(sent, sent_before),
                done=done,
                done_rate=interval.rate(done, done_before),
                task=task,
                environment=columns.environments[row],
            )
        )
    return rows


def _agent_rows(snapshot: Snapshot, usages: CpuUsages) -> list[AgentRow]:
    columns = snapshot.agent_columns
    workers: dict[int, int] = {}
    for agent in snapshot.worker_columns.agents:
        workers[agent] = workers.get(agent, 0) + 1
    return [
        AgentRow(
            incarnation=incarnation,
            name=columns.names[row],
            host=columns.hosts[row],
            pid=columns.pids[row],
            language=columns.languages[row],
            version=columns.versions[row],
            cpu_percent=usages.get(incarnation, _NO_CPU_USAGE).percent,
            resident_bytes=columns.resident_bytes[row],
            lag_seconds=columns.lag_microseconds[row] / 1e6,
            silent_seconds=max(0.0, snapshot.uptime_seconds - columns.last_heartbeat_milliseconds[row] / 1000),
            workers=workers.get(incarnation, 0),
            memory_bytes=columns.memory_bytes[row],
            disk_bytes=columns.disk_bytes[row],
            moved_bytes=columns.moved_bytes[row],
            received_bytes=columns.received_bytes[row],
            sent_bytes=columns.sent_bytes[row],
            coming_bytes=columns.coming_bytes[row],
            room_bytes=columns.room_bytes[row],
        )
        for row, incarnation in enumerate(columns.incarnations)
    ]


def _client_rows(snapshot: Snapshot, base: Snapshot, interval: _RateInterval) -> list[ClientRow]:
    columns, before = snapshot.client_columns, base.client_columns
    earlier = dict(zip(before.incarnations, before.done))
    return [
        ClientRow(
            incarnation=incarnation,
            name=columns.names[row],
            worker=columns.workers[row],
            waiting=columns.waiting[row],
            not_waiting=columns.not_waiting[row],
            objects=columns.objects[row],
            object_bytes=columns.object_bytes[row],
            done=columns.done[row],
            done_rate=interval.rate(columns.done[row], earlier.get(incarnation, 0)),
            share=columns.shares[row],
        )
        for row, incarnation in enumerate(columns.incarnations)
    ]


def _function_rows(snapshot: Snapshot, base: Snapshot, interval: _RateInterval) -> list[FunctionRow]:
    columns, before = snapshot.function_columns, base.function_columns
    earlier = dict(zip(before.numbers, before.done))
    return [
        FunctionRow(
            number=number,
            name=columns.names[row],
            tasks=columns.tasks[row],
            done=columns.done[row],
            done_rate=interval.rate(columns.done[row], earlier.get(number, 0)),
            failed=columns.failed[row],
            mean_seconds=columns.run_nanoseconds[row] / 1e9 / columns.done[row] if columns.done[row] else 0.0,
            bytes=columns.bytes[row],
            clients=columns.clients[row],
            task_names=columns.task_names[row],
        )
        for row, number in enumerate(columns.numbers)
    ]


def _object_rows(snapshot: Snapshot) -> list[ObjectRow]:
    columns = snapshot.object_columns
    known = {int(state): state for state in ObjectState}
    return [
        ObjectRow(client=client, id=number, name=name, bytes=size, tasks=tasks, state=known.get(state, state))
        for client, number, name, size, tasks, state in zip(
            columns.clients, columns.ids, columns.names, columns.bytes, columns.tasks, columns.states
        )
    ]
