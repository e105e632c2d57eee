"""Successors of workers that have suspended tasks.

Suspended tasks end with their process. So a task that may have to be ended with its process does not run beside them: a
task with a time limit, or one that has ended a process before. If only workers with suspended tasks are idle, the host
agent starts another worker beside one of them. This successor has the slot from then on; the other worker is a holder.
It gets no tasks, and its suspended tasks continue in it. A holder without tasks can be a successor itself. If no holder
is needed for a while, it ends.
"""

from __future__ import annotations

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.placement.wait import LANE_WAITS, Wait
from scaler_scheduler.core.state.records import Agent, Worker

START_SECONDS = 5.0
"""A successor that has not joined after so long is not waited for: tasks share the process of its holder."""

SPARE_SECONDS = 5.0
"""A holder without tasks ends after so long, and is asked again after so long if it lives."""

MIN_HOLDERS = 16
"""A host may have this many holders, or as many as other workers if these are more. This limits its processes."""


class Successors:
    """Passes slots from workers with suspended tasks to other workers."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._pool = core.pool
        self._outbox = core.outbox
        self._coming: list[tuple[Worker, float]] = []
        """Holders whose successors have not joined, and until when these are waited for."""
        self._short_since: dict[Agent, float] = {}
        """When each host began to have fewer workers with a slot than it has slots, while no successor comes."""
        core.placement.successors = self

    def are_enough(self, tasks: int) -> bool:
        """Whether a successor is starting for each task that waits for one."""
        return len(self._coming) >= tasks

    def find(self, worker: Worker) -> Worker | Wait:
        """Pass on the slot of an idle worker that is in no list of free workers.

        Returns:
            A worker that takes over at once and is in no list. The same worker: none can come. Or a successor comes, or
            the agent of the worker.
        """
        agent = self._tables.agents.find(worker.agent)
        now = self._tables.clock.now
        if agent is None and worker.agent_until > now:
            self._pool.add(worker)
            return Wait(worker.agent_until)
        if agent is None or worker.is_shared:
            return worker
        spare = self._spare(worker)
        if spare is not None:
            worker.is_holder, spare.is_holder = True, False
            spare.holder_since = 0.0
            return spare
        workers = self._tables.workers.of_agent(worker.agent)
        holders = sum(each.is_holder for each in workers)
        if holders >= max(MIN_HOLDERS, sum(not each.is_holder for each in workers)):
            return worker
        worker.is_holder = True
        self._coming.append((worker, now + START_SECONDS))
        self._change(agent, worker, effects.CHANGE_BESIDE)
        return LANE_WAITS

    def are_coming(self, worker: Worker) -> bool:
        """Whether a task waits instead of sharing this worker's process: a successor, or the worker's agent, comes."""
        return len(self._coming) > 0 or worker.agent_until > self._tables.clock.now

    def worker_joined(self, worker: Worker) -> None:
        """Handle a worker that has joined: perhaps it is a successor that was waited for."""
        for index, (holder, _) in enumerate(self._coming):
            if holder.agent == worker.agent and holder.incarnation != worker.incarnation:
                del self._coming[index]
                return

    def check(self, now: float) -> None:
        """End holders that are not needed, and give up successors that do not come. Call it once a second."""
        for holder, deadline in self._coming[:]:
            if now >= deadline:
                self._coming.remove((holder, deadline))
                self._release(holder)
                holder.is_shared = True
        short_since, self._short_since = self._short_since, {}
        for agent in self._tables.agents:
            if not agent.is_retiring:
                self._check_host(agent, now, short_since.get(agent, now))

    def _check_host(self, agent: Agent, now: float, short_since: float) -> None:
        workers = list(self._tables.workers.of_agent(agent.incarnation))
        holders = [worker for worker in workers if worker.is_holder]
        surplus = len(workers) - len(holders) - agent.slots if agent.slots else 0
        if surplus > 0:
            # A restarted scheduler does not know which workers were holders.
            free = [worker for worker in workers if not (worker.is_holder or worker.is_changing or worker.task_count)]
            for worker in [worker for worker in free if not self._has_suspended(worker)][:surplus]:
                self._pool.remove(worker)
                worker.is_holder = True
                holders.append(worker)
        lacking = -surplus - sum(holder.agent == agent.incarnation for holder, _ in self._coming)
        if lacking > 0:
            self._short_since[agent] = short_since
        for holder in holders:
            if holder.tasks or self._has_suspended(holder):
                holder.holder_since = 0.0
                if lacking > 0 and now >= short_since + START_SECONDS:  # the order, or the successor, was lost
                    lacking -= 1
                    surplus += 1
                    self._release(holder)
                    holder.is_shared = True
            elif surplus < 0 and not holder.is_retiring:
                surplus += 1
                self._release(holder)
            elif not holder.holder_since:
                holder.holder_since = now
            elif now >= holder.holder_since + SPARE_SECONDS:
                holder.holder_since, holder.is_retiring = now, True
                self._change(agent, holder, effects.CHANGE_END)

    def _spare(self, worker: Worker) -> Worker | None:
        """A holder without tasks of the same host and kind."""
        for each in self._tables.workers.of_agent(worker.agent):
            is_free = each.is_holder and not (each.tasks or each.is_unreachable or each.is_retiring or each.unclaimed)
            if is_free and each.profile == worker.profile and not self._has_suspended(each):
                return each
        return None

    def _has_suspended(self, worker: Worker) -> bool:
        """Whether the worker has suspended tasks, submitted again by their client or not."""
        return worker.has_parents or any(each.worker is worker for each in self._tables.unclaimed.values())

    def _release(self, holder: Worker) -> None:
        """Let a holder have a slot again, if it is still there."""
        if holder.is_holder and self._tables.workers.find(holder.incarnation) is holder:
            holder.is_holder = False
            holder.holder_since = 0.0
            self._pool.add(holder)

    def _change(self, agent: Agent, worker: Worker, mode: int) -> None:
        self._outbox.add(effects.ChangeWorker(agent.route, worker.incarnation, worker.environment, mode))
