"""What a snapshot says about the work of a scheduler and about its hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..commands.resource_amounts import UNIT
from ..protocol.snapshots import Snapshot, WorkerState


@dataclass(frozen=True)
class Need:
    """Waiting tasks with the same requirements."""

    tasks: int
    """The number of waiting tasks."""
    known_seconds: float = 0.0
    """The sum of the mean run times of the tasks whose function has returned before."""
    unknown: int = 0
    """The number of tasks whose function has never returned."""
    capabilities: Mapping[str, int] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    """The counted resources that each task needs of its host, in units by name. `cpus` are workers."""
    kind: str = ""
    """The kind of the tasks' functions, which workers must be able to run: `cloudpickle 3.11`."""
    most: float = math.inf
    """The number of these tasks that may run at once: limits and shares may allow fewer than `tasks`."""


@dataclass(frozen=True)
class AgentLoad:
    """A host agent that is connected."""

    name: str
    workers: int
    remaining: tuple[float, ...] = ()
    """The expected seconds until each worker with a task is free. Infinity: the task's function has never returned."""
    capabilities: Mapping[str, int] = field(default_factory=dict)
    kind: str = ""
    """The kind of pickled functions that its workers can run; empty: not known."""
    value_bytes: int = 0
    """The bytes of objects and kept results on this host."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """The counted resources of this host, in units by name."""
    booked: Mapping[str, float] = field(default_factory=dict)
    """The part of `resources` that running tasks have."""
    is_retiring: bool = False
    silent_seconds: float = 0.0
    """The seconds since the last heartbeat of the agent."""


@dataclass(frozen=True)
class Demand:
    """The work of a scheduler at one time."""

    needs: tuple[Need, ...] = ()
    agents: tuple[AgentLoad, ...] = ()
    submitted: int = 0
    """The number of tasks that were submitted since the scheduler's start and may run now."""
    done: int = 0
    """The number of results since the scheduler's start, of the functions in the snapshot."""
    run_seconds: float = 0.0
    """The run time of the results that `done` counts, in seconds."""

    @property
    def waiting(self) -> int:
        """The number of all waiting tasks."""
        return sum(need.tasks for need in self.needs)


def demand_of(snapshot: Snapshot) -> Demand:
    """Read the demand from a snapshot."""
    functions = snapshot.function_columns
    means = {
        number: nanoseconds / 1e9 / done
        for number, nanoseconds, done in zip(functions.numbers, functions.run_nanoseconds, functions.done)
        if done
    }
    room = {limit.name: max(0, limit.most - limit.running) for limit in snapshot.limits if limit.most}
    return Demand(
        needs=tuple(
            Need(
                tasks=need.waiting,
                known_seconds=need.known_seconds,
                unknown=need.unknown,
                capabilities=capabilities_of(need.capabilities),
                resources={name: amount / UNIT for name, amount in need.resources.items()},
                kind=need.kind,
                most=min(
                    [room[name] for name in need.limits if name in room]
                    + ([need.waiting - need.held] if need.held else []),
                    default=math.inf,
                ),
            )
            for need in snapshot.needs
        ),
        agents=_agent_loads(snapshot, means),
        submitted=snapshot.resolved + snapshot.waiting + snapshot.dispatched,
        done=sum(functions.done),
        run_seconds=sum(functions.run_nanoseconds) / 1e9,
    )


def capabilities_of(text: str) -> dict[str, int]:
    """Read capabilities as a snapshot writes them: `gpu=2 linux=1`."""
    parts = (part.rpartition("=") for part in text.split())
    return {name: int(amount) for name, _, amount in parts if name and amount.isdecimal()}


def _agent_loads(snapshot: Snapshot, means: Mapping[int, float]) -> tuple[AgentLoad, ...]:
    workers = snapshot.worker_columns
    counts: dict[int, int] = {}
    remaining: dict[int, list[float]] = {}
    capabilities: dict[int, str] = {}
    kinds: dict[int, str] = {}
    retiring: set[int] = set()
    rows = zip(
        workers.agents,
        workers.states,
        workers.held,
        workers.suspended,
        workers.attempts,
        workers.functions,
        workers.run_milliseconds,
    )
    for row, (agent, state, held, suspended, attempt, function, milliseconds) in enumerate(rows):
        counts[agent] = counts.get(agent, 0) + 1
        if agent not in capabilities:
            capabilities[agent] = workers.capabilities[row]
            kinds[agent] = _kind_of(workers.languages[row])
        if state & WorkerState.RETIRING:
            retiring.add(agent)
        if attempt:
            remaining.setdefault(agent, []).append(remaining_seconds(means.get(function), milliseconds / 1000))
        elif held:
            # Just dispatched, or short: a worker reports tasks that run for 10 ms. A suspended task stays for long.
            remaining.setdefault(agent, []).append(math.inf if suspended else 0.0)
    resources: dict[int, dict[str, float]] = {}
    booked: dict[int, dict[str, float]] = {}
    for pool in snapshot.resources:
        resources.setdefault(pool.agent, {})[pool.name] = pool.total / UNIT
        booked.setdefault(pool.agent, {})[pool.name] = pool.booked / UNIT
    agents = snapshot.agent_columns
    return tuple(
        AgentLoad(
            name=name,
            workers=counts.get(incarnation, 0),
            remaining=tuple(remaining.get(incarnation, ())),
            capabilities=capabilities_of(capabilities.get(incarnation, "")),
            kind=kinds.get(incarnation, ""),
            value_bytes=memory + disk,
            resources=resources.get(incarnation, {}),
            booked=booked.get(incarnation, {}),
            is_retiring=incarnation in retiring,
            silent_seconds=max(0.0, snapshot.uptime_seconds - heartbeat / 1000),
        )
        for incarnation, name, memory, disk, heartbeat in zip(
            agents.incarnations,
            agents.names,
            agents.memory_bytes,
            agents.disk_bytes,
            agents.last_heartbeat_milliseconds,
        )
    )


def remaining_seconds(mean: float | None, elapsed: float) -> float:
    """Return the expected rest of a running task's run time.

    Args:
        mean: the mean run time of its function; None: it has never returned.
        elapsed: how long the task runs, in seconds.
    """
    if mean is None:
        return math.inf
    # A task that runs longer than usual may run as long again: run times of such tasks have a long tail.
    return mean - elapsed if elapsed <= mean else elapsed


def _kind_of(language: str) -> str:
    name, _, version = language.partition(" ")
    return f"cloudpickle {'.'.join(version.split('.')[:2])}" if name == "python" else ""
