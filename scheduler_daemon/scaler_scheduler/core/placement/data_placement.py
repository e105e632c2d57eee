"""Places tasks by their inputs and results: near the inputs, and on hosts that have room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from scaler_scheduler.core.data.fetches import Fetches, away_from, has_copies
from scaler_scheduler.core.data.transfers import Transfers
from scaler_scheduler.core.placement.host_choice import HostChoice
from scaler_scheduler.core.placement.near_data import NearData, makes_large_result
from scaler_scheduler.core.placement.wait import TASK_WAITS, Wait
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.records import Lane, StoredObject, Task, Worker
from scaler_scheduler.core.tables import Tables

MAX_PASSED = 64
"""At most so many tasks are passed over in one run: it bounds the work of a run."""


class DataPlacement:
    """Chooses workers for tasks whose inputs or results matter for the choice of the host."""

    def __init__(
        self,
        tables: Tables,
        pool: WorkerPool,
        hosts: HostChoice,
        near_data: NearData,
        transfers: Transfers,
        fetches: Fetches,
    ) -> None:
        self._agents = tables.agents
        self._pool = pool
        self._hosts = hosts
        self._near_data = near_data
        self._transfers = transfers
        self._fetches = fetches
        self._passed: list[Task] = []
        """Tasks that this run passes over, because they wait for a host that has their inputs, or because enough tasks
        wait for the same file on the same host."""

    def pop_passed(self) -> list[Task]:
        """Return and forget the tasks that this run has passed over."""
        passed, self._passed = self._passed, []
        return passed

    def worker_with_inputs(self, lane: Lane) -> Worker | None:
        """Choose an idle worker that has the largest possible input of the next task, and remove it from its list."""
        inputs = lane.first_requeued.inputs if lane.requeued else ()
        best: Worker | None = None
        most = 0
        for stored in inputs:
            if stored.size <= most or not (stored.copies or stored.workers):
                continue
            worker = self._idle_with(stored, lane)
            if worker is not None:
                best, most = worker, stored.size
        return None if best is None else self._pool.take(best)

    def matters(self, lane: Lane, worker: Worker) -> bool:
        """Whether the host of a worker matters for the lane's next task: some peer has an input of it, or its result
        finds no room on this host."""
        task = lane.first_requeued
        return has_copies(task) or (makes_large_result(task) and self._near_data.is_full(task, worker))

    def place(self, lane: Lane, worker: Worker, cost: int) -> Worker | Wait:
        """Return the worker that gets the lane's next task: this one, a nearer one, or one of a host with room. Or the
        task waits for its inputs, or for a host that has them or has room.

        Args:
            lane: the lane. Its next task has a record of its own.
            worker: the worker that was taken for the task.
            cost: nanoseconds of the task.
        """
        task = lane.first_requeued
        worker, near = self._nearest(lane, worker, cost)
        if isinstance(near, Worker):
            worker = self._pool.replace(worker, near)
        away = away_from(worker, task)
        if isinstance(near, Worker) and self._has_enough_tasks(away, worker):
            other = self._idle_elsewhere(lane, task)
            if other is not None:
                worker = self._pool.replace(worker, other)
                away = away_from(worker, task)
        if isinstance(near, Worker) and not away:
            return worker
        lane.pop_requeued()
        self._hosts.give_up(lane)
        if isinstance(near, Wait) or self._has_enough_tasks(away, worker):
            self._passed.append(task)
        else:
            self._fetches.block_task(task, away, self._agents.find(worker.agent))
        self._pool.pass_over(worker)
        wait = near if isinstance(near, Wait) else TASK_WAITS
        return wait._replace(is_lane=len(self._passed) >= MAX_PASSED)

    def _nearest(self, lane: Lane, worker: Worker, cost: int) -> tuple[Worker, Worker | Wait]:
        """Return the worker that is taken now, of a host with room if there is one, and the worker that gets the
        task."""
        task = lane.first_requeued
        hidden_ns = lane.waiting * cost if len(self._passed) >= MAX_PASSED else 0
        is_full = self._near_data.is_full(task, worker)
        if is_full:
            other = self._idle_elsewhere(lane, task)
            if other is not None:
                worker, is_full = self._pool.replace(worker, other), False
        if not lane.resources:  # else another host may not have them
            return worker, self._near_data.choose(lane, worker, cost, self._pool.reserved, hidden_ns)
        wait = self._near_data.wait_for_room(lane, worker, self._has_busy_host(lane)) if is_full else None
        return worker, worker if wait is None else wait

    def _has_busy_host(self, lane: Lane) -> bool:
        """Whether a busy host has the resources of the lane, free or not, and may have room for the values of the
        lane's next task. The expected results of the tasks at its workers do not count."""
        for host in self._hosts.busy_hosts(lane):
            agent = self._agents.find(host.agent)
            if agent is not None and self._near_data.has_room(agent, lane.first_requeued, is_later=True):
                return True
        return False

    def _has_enough_tasks(self, away: Sequence[StoredObject], worker: Worker) -> bool:
        """Whether enough tasks wait for one of these files on the worker's host."""
        return any(self._transfers.has_enough_tasks(stored, worker.agent) for stored in away)

    def _idle_elsewhere(self, lane: Lane, task: Task) -> Worker | None:
        """Return an idle worker of a host with room for the task's inputs, where not enough tasks wait for them yet."""
        idle = self._pool.idle
        for agent in islice(idle.agents(), MAX_PASSED):  # some of which may not have joined
            if lane.resources and not self._hosts.has_room(lane, agent):
                continue
            worker = idle.newest_of_agent(agent, lane.capabilities, lane.kind)
            if worker is None or self._near_data.is_full(task, worker):
                continue
            if not self._has_enough_tasks(away_from(worker, task), worker):
                return worker
        return None

    def _idle_with(self, stored: StoredObject, lane: Lane) -> Worker | None:
        """Return an idle worker that has the object, or whose host has it."""
        for worker in stored.workers or ():
            if worker.is_ready and not worker.task_count and worker.can_serve(lane.capabilities, lane.kind):
                if not lane.resources or self._hosts.has_room(lane, worker.agent):
                    return worker
        for agent in stored.known_places:
            if lane.resources and not self._hosts.has_room(lane, agent.incarnation):
                continue
            found = self._pool.idle.newest_of_agent(agent.incarnation, lane.capabilities, lane.kind)
            if found is not None:
                return found
        return None
