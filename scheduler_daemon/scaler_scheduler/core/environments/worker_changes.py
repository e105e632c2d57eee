"""Which workers change to which environment.

A worker belongs to one environment, or to none, for the life of its process. If tasks wait that no worker's environment
suits, an agent prepares the environment of these tasks, and replaces workers by workers of this environment. Workers
that have nothing to do change first. If there are none, the environments share the workers as the clients share their
time: an environment with fewer workers than its part gets some of another one, which finish their tasks before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.environments.supply import EnvironmentSupply
from scaler_scheduler.core.lines import printable_ends
from scaler_scheduler.core.placement.gang_reservation import most_members
from scaler_scheduler.core.placement.prefetch import wants_work
from scaler_scheduler.core.state.environments import split_kind
from scaler_scheduler.core.state.records import Agent, AgentEnvironment, Lane, Worker
from scaler_scheduler.core.state.shares import Share

CHANGE_NS = 50_000_000
"""A worker changes for at least so much waiting work: about what the change itself takes."""

GAP_SECONDS = 0.005
"""The least time between two looks at what waits."""

CHECK_SECONDS = 0.05
"""The time between two looks while tasks wait for a change."""

TURN_SECONDS = 1.0
"""An environment without any worker gets one after so long, even if others do not have more than their part."""

CHANGE_SECONDS = 30.0
"""A change that takes longer is given up. The worker then gets tasks again, if it is still there."""

RETRY_SECONDS = 10.0
"""How long after an error an agent is asked again to prepare an environment."""

RETURN_SECONDS = 60.0
"""An idle worker keeps an environment for so long that no client and no task uses. The same program may run again."""

MAX_CHANGES = 64
"""The most workers that change at one time."""

LANES = 32
"""So many waiting lanes of an environment decide what it needs."""

INFINITY = float("inf")


class Demand:
    """Waiting tasks of one environment that no idle worker can run."""

    __slots__ = ("environment", "gangs", "lanes", "workers")

    def __init__(self, environment: str) -> None:
        self.environment = environment
        self.lanes: list[Lane] = []
        self.gangs: list[Lane] = []
        """Lanes of gangs without the reservation. Their environment is prepared, and no worker changes for them:
        several gangs would take the same workers from one another for ever."""
        self.workers = 0
        """How many workers they are worth."""

    def add(self, lane: Lane, mean_ns: int) -> None:
        """Add a lane. `mean_ns` is the mean run time of a call; negative: not known."""
        if mean_ns < 0 or lane.gang_size:
            self.workers += lane.waiting * max(1, lane.gang_size)
        else:
            work_ns = (lane.waiting + lane.further_calls) * mean_ns
            self.workers += min(lane.waiting, -(-work_ns // CHANGE_NS))
        if len(self.lanes) < LANES:
            self.lanes.append(lane)


class Change:
    """A worker that gives way to a worker of another environment."""

    __slots__ = ("agent", "deadline", "environment", "has_successor", "is_sent", "worker")

    def __init__(self, worker: int, agent: int, environment: str, deadline: float) -> None:
        self.worker = worker
        self.agent = agent
        self.environment = environment
        self.deadline = deadline
        self.is_sent = False
        """Whether the agent was told. Before that, the worker finishes its tasks."""
        self.has_successor = False
        """Whether a worker has joined that takes its place. Its own end may be known later."""


class WorkerChanges:
    """Has workers change to the environments whose tasks wait."""

    def __init__(self, core: CoreState, supply: EnvironmentSupply) -> None:
        self._tables = core.tables
        self._bookings = core.bookings
        self._queues = core.queues
        self._pool = core.pool
        self._gang_reservation = core.gangs
        self._hosts = core.hosts
        self._placement = core.placement
        self._hosts.could_change = self._could_change_at_once
        self._gang_reservation.could_change = self._could_change_at_once
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._queue_size = core.limits.queue_size
        self._supply = supply
        self._changes: dict[int, Change] = {}
        """By the incarnation of the worker that gives way."""
        self._starved_since: dict[str, float] = {}
        """Since when environments without any worker have waiting tasks."""
        self._unused_since: dict[str, float] = {}
        """Since when environments of idle workers are not used."""
        self._failed: list[str] = []
        """Environments that an agent could not prepare since the last look."""
        self._looked_at = -INFINITY
        self.next_look_at = INFINITY
        """When to look again at what waits, in seconds of the monotonic clock."""

    @property
    def is_active(self) -> bool:
        """Whether any environment is known, or any worker has one."""
        return len(self._tables.environments) > 0 or self._tables.workers.in_environments > 0

    def pending(self) -> Collection[int]:
        """The incarnations of the workers that give way to others. Some may have left."""
        return self._changes.keys()

    # ---------------------------------------------------------------------------------------------------------- events

    def environment_ready(self, agent: Agent, event: events.EnvironmentReady, now: float) -> None:
        """Handle an agent's answer about an environment."""
        state = agent.environments.get(event.name)
        if state is None:
            return
        state.is_ready, state.error = not event.error, event.error
        if event.error:
            state.retry_at = now + RETRY_SECONDS
            text = printable_ends(event.error)
            self._operator_log.warning(f"agent {agent.name} cannot prepare environment {event.name[:12]}: {text}")
            for change in [each for each in self._changes.values() if each.agent == agent.incarnation]:
                if change.environment == event.name:
                    self._give_up(change)
            self._failed.append(event.name)
        self.next_look_at = now

    def worker_joined(self, worker: Worker) -> None:
        """Handle a worker that has joined: perhaps it takes the place of one that changed."""
        for change in self._changes.values():
            if not change.is_sent or change.has_successor or change.worker == worker.incarnation:
                continue
            if change.agent == worker.agent and change.environment == worker.environment:
                change.has_successor = True
                if self._tables.workers.find(change.worker) is None:
                    del self._changes[change.worker]
                return

    def worker_left(self, worker: Worker) -> None:
        """Handle a worker that has left. Without an order to its agent, none of its environment takes its place."""
        change = self._changes.get(worker.incarnation)
        if change is not None and (not change.is_sent or change.has_successor):
            del self._changes[worker.incarnation]

    def agent_left(self, agent: Agent) -> None:
        """Drop the changes of a lost agent."""
        for change in [each for each in self._changes.values() if each.agent == agent.incarnation]:
            self._give_up(change)

    def repeat(self, agent: Agent) -> None:
        """Repeat what an agent with a new connection may not have got."""
        for name, state in list(agent.environments.items()):
            if not state.is_ready and not state.error:
                del agent.environments[name]
        for change in self._changes.values():
            if change.is_sent and change.agent == agent.incarnation:
                self._send(change, agent)

    # ------------------------------------------------------------------------------------------------------ what waits

    def look(self, now: float, cancellation: Cancellation) -> None:
        """Have workers change, if tasks wait for it. Call it after each run of the dispatcher."""
        if now < self._looked_at + GAP_SECONDS and now < self.next_look_at:
            self.next_look_at = self._looked_at + GAP_SECONDS
            return
        self._looked_at = now
        demands = self._demands()
        self._starved_since = {name: since for name, since in self._starved_since.items() if name in demands}
        for name in self._failed:
            demand = demands.get(name)
            if demand is not None and self._is_hopeless(demand):
                self._fail(demand, cancellation)
                del demands[name]
        self._failed = []
        for demand in demands.values():
            self._serve(demand, demands, now, cancellation)
        self.next_look_at = now + CHECK_SECONDS if demands or self._changes else INFINITY

    def may_serve(self, lane: Lane) -> bool:
        """Whether some worker could run this lane's tasks after a change."""
        kind, environment = split_kind(lane.kind)
        return any(
            self._could_serve(worker, environment, lane, kind)
            for worker in self._tables.workers
            if not worker.is_retiring and worker.environment != environment
        )

    def return_unused(self, now: float) -> None:
        """Let idle workers whose environment was not used for long return to none. Call it once a second."""
        environments = self._tables.environments
        unused: dict[str, float] = {}
        for worker in list(self._pool.idle) if self._tables.workers.in_environments else ():
            environment = environments.find(worker.environment) if worker.environment else None
            if not worker.environment or (environment is not None and environment.is_used):
                continue
            since = unused[worker.environment] = self._unused_since.get(worker.environment, now)
            if now >= since + RETURN_SECONDS:
                self._begin(worker, "", now)
        self._unused_since = unused

    def _demands(self) -> dict[str, Demand]:
        """The waiting tasks that no idle worker can run, by environment."""
        demands: dict[str, Demand] = {}
        for lane in self._queues.lanes():
            if not self._placement.waits_for_worker(lane):
                continue
            function = self._queues.next_function(lane)
            if function is None or self._is_served(lane):
                continue
            environment = function.environment
            demand = demands.get(environment)
            if demand is None:
                demand = demands[environment] = Demand(environment)
            if lane.gang_size and self._gang_reservation.lane is not lane:
                demand.gangs.append(lane)
            else:
                demand.add(lane, function.mean_ns)
        return demands

    def _is_served(self, lane: Lane) -> bool:
        """Whether enough idle workers have the lane's environment, on hosts that have its resources, free or not."""
        idle = self._pool.idle
        if not lane.resources and not lane.gang_size:
            return idle.can_serve(lane.capabilities, lane.kind)
        able = [worker for worker in idle if worker.can_serve(lane.capabilities, lane.kind)]
        if lane.gang_size:
            return self._gang_reservation.count_members(lane, able) >= lane.gang_size
        count = sum(self._may_have(worker, lane) for worker in able)
        kept = self._bookings.reservations.get(lane)
        if kept is not None:
            count += sum(worker.can_serve(lane.capabilities, lane.kind) for worker in kept.host.aside)
        return count > 0

    def _is_there_room(self, worker: Worker, lane: Lane) -> bool:
        """Whether the lane's next task could begin on the worker's host, perhaps without idle workers. If the lane has
        a reservation, it begins there. A host has room for a gang if it lacks workers for members, not resources."""
        if not lane.resources:
            return True
        host = self._bookings.hosts.get(worker.agent)
        if host is not None and lane.gang_size:
            workers = self._tables.workers.of_agent(host.agent)
            able = sum(each.can_serve(lane.capabilities, lane.kind) for each in workers)
            coming = self._coming(split_kind(lane.kind)[1], host.agent)
            return able + coming < most_members(host, lane, host.slots)
        kept = self._bookings.reservations.get(lane)
        if host is None or (kept is not None and kept.host is not host):
            return False
        return host.has_amounts(lane.resources, lane)

    def _may_have(self, worker: Worker, lane: Lane) -> bool:
        """Whether the worker's host has the resources that the lane's tasks ask for, free or not."""
        if not lane.resources:
            return True
        host = self._bookings.hosts.get(worker.agent)
        if host is None or not host.could_have(lane.resources):
            return False
        return not host.slots or host.slots_for(lane.resources) <= host.slots

    def _serve(self, demand: Demand, demands: dict[str, Demand], now: float, cancellation: Cancellation) -> None:
        environment = demand.environment
        coming = self._coming(environment)
        wanted = demand.workers - coming
        if demand.gangs:
            for worker in self._tables.workers:
                if self._can_change(worker, demand):
                    self._is_ready(worker, environment, now)  # else its agent is asked to prepare the environment
        for worker in [*self._pool.idle, *self._aside(demand)]:
            if wanted <= 0:
                return
            if not self._is_wanted(worker, demand) or self._is_kept(worker):
                continue
            if self._is_ready(worker, environment, now):
                self._begin(worker, environment, now)
            elif not self._is_preparing(worker, environment):
                continue
            wanted -= 1
        if wanted <= 0:
            return
        counts, parts = self._parts(demands)
        have = counts.get(environment, 0)
        is_turn = False
        if not have:
            since = self._starved_since.setdefault(environment, now)
            is_turn = now >= since + TURN_SECONDS
        missing = min(wanted, int(parts.get(environment, 0)) - have)
        gang, members = self._lacking_members(demand)
        if missing <= 0 and not is_turn and members <= 0:
            return
        for worker in sorted(self._tables.workers, key=_load):
            if not worker.task_count or not self._is_wanted(worker, demand):
                continue
            surplus = counts[worker.environment] - parts.get(worker.environment, 0)
            # A gang has no use for its part of the workers while a host lacks one.
            is_lacking = gang is not None and members > 0 and self._is_there_room(worker, gang)
            if (missing > 0 and surplus >= 1) or is_turn or is_lacking:
                if not self._is_ready(worker, environment, now):
                    continue
                self._begin(worker, environment, now)
                cancellation.rebalance(worker.tasks.values())
                counts[worker.environment] -= 1
                missing -= 1
                members -= is_lacking
                is_turn = False
                if missing <= 0 and members <= 0:
                    return

    def _aside(self, demand: Demand) -> Iterator[Worker]:
        """Workers that are set aside for a task of this demand. If the host's other workers have suspended tasks, one
        of the workers that are set aside must change to run the task."""
        for lane in demand.lanes:
            kept = self._bookings.reservations.get(lane)
            if kept is not None:
                yield from kept.host.aside

    def _lacking_members(self, demand: Demand) -> tuple[Lane | None, int]:
        """The lane of the gang with the reservation, if it is of this demand, and how many of its members have no
        worker that can run them, idle or not."""
        lane = self._gang_reservation.lane
        if lane is None or lane not in demand.lanes:
            return None, 0
        able = [worker for worker in self._tables.workers if worker.can_serve(lane.capabilities, lane.kind)]
        there = self._gang_reservation.count_members(lane, able)
        return lane, lane.gang_size - there - self._coming(demand.environment)

    def _coming(self, environment: str, agent: int = 0) -> int:
        """How many workers are about to join with this environment, of one agent or of all (0)."""
        return sum(
            change.environment == environment and not change.has_successor and agent in (0, change.agent)
            for change in self._changes.values()
        )

    def _parts(self, demands: dict[str, Demand]) -> tuple[dict[str, int], dict[str, float]]:
        """How many workers each environment has, with those that change to it, and how many are its part.

        An environment's weight is that of the shares whose tasks wait for it or run in it.
        """
        counts: dict[str, int] = {}
        shares: dict[str, set[Share]] = {
            name: {lane.client.share for lane in demand.lanes} for name, demand in demands.items()
        }
        for worker in self._tables.workers:
            if not (worker.is_changing or worker.is_holder):
                counts[worker.environment] = counts.get(worker.environment, 0) + 1
            client = worker.present_client
            if client is not None:
                shares.setdefault(worker.environment, set()).add(client.share)
        for change in self._changes.values():
            if not change.has_successor:
                counts[change.environment] = counts.get(change.environment, 0) + 1
        weights = {name: sum(share.limits.weight for share in of) for name, of in shares.items()}
        total = sum(counts.values()) / (sum(weights.values()) or 1.0)
        return counts, {name: max(1.0, weight * total) for name, weight in weights.items()}

    # --------------------------------------------------------------------------------------------------- who may change

    def _can_change(self, worker: Worker, demand: Demand) -> bool:
        """Whether the worker could run some of these tasks after a change, now or later."""
        if worker.environment == demand.environment or worker.is_changing or worker.is_retiring or worker.is_holder:
            return False
        if worker.is_unreachable or worker.unclaimed or worker.suspended:
            return False
        return any(
            self._could_serve(worker, demand.environment, lane, split_kind(lane.kind)[0])
            for lane in [*demand.lanes, *demand.gangs]
        )

    def _is_wanted(self, worker: Worker, demand: Demand) -> bool:
        """Whether the worker would run some of these tasks at once after a change."""
        return self._can_change(worker, demand) and any(
            self._is_there_room(worker, lane)
            and self._could_serve(worker, demand.environment, lane, split_kind(lane.kind)[0])
            for lane in demand.lanes
        )

    def _is_kept(self, worker: Worker) -> bool:
        """Whether an idle worker waits for the other members of a gang. While tasks wait for tasks of their own, none
        is kept: the gang may wait for what they hold, and their tasks for this worker."""
        return self._gang_reservation.gathers(worker) and not any(each.suspended for each in self._tables.workers)

    def _could_serve(self, worker: Worker, environment: str, lane: Lane, kind: str) -> bool:
        agent = self._tables.agents.find(worker.agent)
        if agent is None:
            return False
        if environment:
            known = self._tables.environments.find(environment)
            if known is None or not known.is_declared or agent.level < known.level:
                return False
            if known.platform and known.platform != agent.platform:
                return False
            has_own_python = known.level > events.LEVEL_MODULES
        else:
            has_own_python = worker.environment != "" and not self._has_modules_only(worker.environment)
        if not has_own_python and worker.plain_kinds and kind not in worker.plain_kinds:
            return False
        own = worker.capabilities
        if not self._may_have(worker, lane):
            return False
        return all(own.get(name, 0) >= amount for name, amount in lane.capabilities)

    def _could_change_at_once(self, worker: Worker, lane: Lane) -> bool:
        """Whether the worker could run the lane's tasks after a change, and its agent has all that the change needs."""
        kind, environment = split_kind(lane.kind)
        if worker.environment == environment or worker.suspended:
            return False
        if not self._could_serve(worker, environment, lane, kind):
            return False
        agent = self._tables.agents.find(worker.agent)
        state = None if agent is None else agent.environments.get(environment)
        return not environment or (state is not None and state.is_ready)

    def _has_modules_only(self, environment: str) -> bool:
        known = self._tables.environments.find(environment)
        return known is not None and known.level == events.LEVEL_MODULES

    def _is_ready(self, worker: Worker, environment: str, now: float) -> bool:
        """Whether the worker's agent can start workers of this environment. If not, it is asked to prepare it."""
        agent = self._tables.agents.find(worker.agent)
        if agent is None:
            return False
        if not environment:
            return True
        state = agent.environments.get(environment)
        if state is not None and (state.is_ready or not state.error or now < state.retry_at):
            return state.is_ready
        known = self._tables.environments.find(environment)
        if known is not None and known.is_complete:
            self._supply.prepare(agent, known)
        return False

    def _is_preparing(self, worker: Worker, environment: str) -> bool:
        agent = self._tables.agents.find(worker.agent)
        state = None if agent is None else agent.environments.get(environment)
        return state is not None and not state.is_ready and not state.error

    # --------------------------------------------------------------------------------------------------------- changes

    def _begin(self, worker: Worker, environment: str, now: float) -> None:
        """Let a worker finish its tasks, and then change."""
        if len(self._changes) >= MAX_CHANGES:
            return
        change = Change(worker.incarnation, worker.agent, environment, now + CHANGE_SECONDS)
        self._changes[worker.incarnation] = change
        self._pool.remove(worker)
        worker.is_changing = True
        self._send_if_empty(change)

    def _send_if_empty(self, change: Change) -> None:
        worker = self._tables.workers.find(change.worker)
        agent = self._tables.agents.find(change.agent)
        if worker is not None and agent is not None and not worker.tasks and not worker.unclaimed:
            self._send(change, agent)

    def _send(self, change: Change, agent: Agent) -> None:
        change.is_sent = True
        self._outbox.add(effects.ChangeWorker(agent.route, change.worker, change.environment))

    def advance(self, now: float) -> None:
        """Order the changes of workers that have finished their tasks, and give up late changes."""
        for change in list(self._changes.values()):
            if not change.is_sent:
                self._send_if_empty(change)
            worker = self._tables.workers.find(change.worker)
            # A suspended task waits for its children, which need a worker of the same environment: perhaps this one.
            has_parent = worker is not None and worker.suspended and not change.is_sent
            if now >= change.deadline or has_parent:
                self._give_up(change)

    def _give_up(self, change: Change) -> None:
        """Forget a change. Its worker gets tasks again, if it is still there."""
        self._changes.pop(change.worker, None)
        worker = self._tables.workers.find(change.worker)
        if worker is not None:
            worker.is_changing = False
            if wants_work(worker, self._queue_size):
                self._pool.add(worker)

    def _is_hopeless(self, demand: Demand) -> bool:
        """Whether every agent that might prepare this environment has failed to, and no worker has it."""
        states: list[AgentEnvironment | None] = []
        for worker in self._tables.workers:
            if worker.environment == demand.environment:
                return False
            if self._can_change(worker, demand):
                agent = self._tables.agents.find(worker.agent)
                states.append(None if agent is None else agent.environments.get(demand.environment))
        return all(state is not None and state.error for state in states)

    def _fail(self, demand: Demand, cancellation: Cancellation) -> None:
        """End the tasks that wait for an environment that no agent could prepare."""
        payload = self._failure_text(demand.environment, self._tables.agents).encode(errors="replace")
        for client in list(self._tables.clients):
            for lane in list(client.lanes.values()):
                if split_kind(lane.kind)[1] == demand.environment:
                    cancellation.fail_waiting(lane, effects.OUTCOME_ENVIRONMENT_FAILED, payload)

    @staticmethod
    def _failure_text(environment: str, agents: Iterable[Agent]) -> str:
        failures = [
            f"host {agent.host}: {agent.environments[environment].error}"
            for agent in agents
            if environment in agent.environments and agent.environments[environment].error
        ]
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        return f"no host could prepare the environment {environment[:12]}: {failures[0] if failures else ''}{more}"


def _load(worker: Worker) -> int:
    return worker.load_ns
