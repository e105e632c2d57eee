"""Decides whether a task with large inputs waits for a worker of a host that has them, or goes elsewhere at once.

Both times are estimates: the wait by the mean run times of what the host's workers hold, the transfer by the rate of
the last transfers. A task waits for a host with its inputs at most as long as the transfer was expected to take.

A host is full for a task if it has no room for the task's kept result and the inputs that it lacks. A full host gets a
task only if no host with room can run the task, and if the task is unlikely to fit on the full host later. A task that
waits because hosts are full waits without a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heapify, heapreplace
from itertools import islice

from scaler_scheduler.core.data.spare_copies import SpareCopies
from scaler_scheduler.core.data.transfers import Transfers
from scaler_scheduler.core.events import KEEP_YES
from scaler_scheduler.core.placement.free_workers import FreeWorkers, Need, is_reserved
from scaler_scheduler.core.placement.wait import INFINITY, Wait
from scaler_scheduler.core.state.functions import LARGE_BYTES, Function
from scaler_scheduler.core.state.records import Agent, Lane, StoredObject, Task, Worker
from scaler_scheduler.core.state.transitions import WAITING
from scaler_scheduler.core.tables import Tables

LEAST_BYTES = LARGE_BYTES
"""A task waits for a host with its inputs only if the free worker's host lacks at least so many bytes more of them.
Smaller results and inputs need no room."""

CONSIDERED_HOSTS = 4
"""Only so many hosts are compared, those with most bytes of the inputs."""

FULL_SECONDS = 1.0
"""The time to the next look at a task that waits because hosts are full for it."""

MANY = 1000
"""If a host has room for so many results, the results of the tasks that its workers hold are not counted."""

SHOWN_HOSTS = 10
"""At most so many hosts are named."""

MOST_HOSTS = 256
"""The most hosts that are looked at for one with room."""

Queue = list[tuple[int, int, Worker]]
"""A heap of the workers of one host: nanoseconds until the worker is free, its incarnation, the worker."""


class NearData:
    """The tasks that wait for hosts that have their inputs."""

    def __init__(self, tables: Tables, transfers: Transfers, spare_copies: SpareCopies) -> None:
        self._workers = tables.workers
        self._agents = tables.agents
        self._clock = tables.clock
        self._transfers = transfers
        self._spare_copies = spare_copies
        self._queues: dict[tuple[int, Need], Queue] = {}
        """The workers that can serve a need, by host agent. Made and used in one run of the dispatcher. Their times
        include the tasks that wait for the host."""
        self._without_room: set[tuple[Function, Need, bool]] = set()
        """The functions and needs for which `_queue_with_room` has found no host in this run."""
        self.waits_until: dict[Task, float] = {}
        """When a task stops waiting for a host, in seconds of the monotonic clock. Some tasks wait no longer."""

    def end_run(self) -> None:
        """Forget the estimates of the dispatcher's run that ends."""
        if self._queues:
            self._queues.clear()
        if self._without_room:
            self._without_room.clear()

    def forget_ended(self) -> None:
        """Forget the tasks that wait no longer. Call it from time to time."""
        if self.waits_until:
            self.waits_until = {task: until for task, until in self.waits_until.items() if task.state == WAITING}

    def choose(
        self, lane: Lane, free: Worker, cost: int, reserved: Collection[Need], hidden_ns: int = 0
    ) -> Worker | Wait:
        """Return the worker that gets the lane's next task now. It may hold other tasks. Or the task waits.

        Args:
            lane: the lane. Its next task has a record of its own.
            free: the worker that gets the task if its host has room, and no host with more of its inputs is quicker.
            cost: nanoseconds of the task.
            reserved: the needs whose workers get no tasks behind others.
            hidden_ns: nanoseconds of the work that waits in this lane, if not all of it is looked at in this run.
        """
        task = lane.first_requeued
        is_full = self.is_full(task, free)
        size = 0
        for stored in task.inputs:
            size += stored.size
        if size < LEAST_BYTES and not is_full:
            return free
        inputs = dict.fromkeys(task.inputs)
        size = sum([stored.size for stored in inputs])
        sizes = _bytes_by_host(inputs)
        agent = self._agents.find(free.agent)
        own = 0 if agent is None else sizes.get(agent, 0)
        now = self._clock.now
        least: float
        if is_full:
            least, patience = INFINITY, FULL_SECONDS
            may_fit = self._may_fit(task, free)
        else:
            if max(sizes.values(), default=0) - own < LEAST_BYTES or now >= self.waits_until.get(task, INFINITY):
                return free
            least = _busy_ns(free, now) + self._transfer_ns(agent, size - own)
            patience = least / 1e9
        need = lane.capabilities, lane.kind
        best: Queue | None = None
        for host in sorted(sizes, key=lambda each: (-sizes[each], each.incarnation))[:CONSIDERED_HOSTS]:
            if not self.has_room(host, task):
                continue
            queue = self._queue(host, need)
            if queue:
                wait = max(queue[0][0], hidden_ns // len(queue))
                ns = wait + self._transfer_ns(host, size - sizes[host])
                if ns < least:
                    best, least = queue, ns
        if best is None and is_full:
            best = self._queue_with_room(task, need)
        if best is None:
            if is_full and (may_fit or self._queue_with_room(task, need, is_later=True)):
                return self._wait(task, now + patience)
            return free
        ns, incarnation, worker = best[0]
        heapreplace(best, (ns + cost, incarnation, worker))
        if worker.is_ready and (
            not worker.task_count or (task.function.mean_ns >= 0 and not is_reserved(worker, reserved))
        ):
            return worker
        return self._wait(task, now + patience)

    def wait_for_room(self, lane: Lane, worker: Worker, has_other: bool) -> Wait | None:
        """Until when the lane's next task, which asks for resources, waits because the worker's host is full. None: it
        does not wait.

        Args:
            lane: the lane.
            worker: the worker that would get the task. Its host is full for it.
            has_other: whether a busy host, perhaps this one, has the resources in total and may have room later.
        """
        task = lane.first_requeued
        if not (self._may_fit(task, worker) or has_other):
            return None
        return self._wait(task, self._clock.now + FULL_SECONDS)

    def _may_fit(self, task: Task, worker: Worker) -> bool:
        """Make a worker's host, which is full for a task, remove copies that no task there reads. Returns whether the
        task is likely to fit there later."""
        self.waits_until.pop(task, None)
        agent = self._agents.find(worker.agent)
        if agent is None:
            return False
        self._spare_copies.drop(agent, self._lacking(agent, task))
        return self._spare_copies.may_fit(agent, task, self._lacking(agent, task, is_later=True))

    def _wait(self, task: Task, until: float) -> Wait:
        """Let a task wait until then, or until its earlier end of the wait, in seconds of the monotonic clock."""
        return Wait(self.waits_until.setdefault(task, until))

    def is_full(self, task: Task, worker: Worker) -> bool:
        """Whether the worker's host has no room for the inputs of the task that it lacks, or for its result."""
        agent = self._agents.find(worker.agent)
        return agent is not None and not self.has_room(agent, task)

    def results_in_room(self, function: Function, worker: Worker) -> int:
        """How many further tasks of a function the worker may get, by the room of its host for their kept results. At
        least 1, also without room, and at most MANY."""
        agent = self._agents.find(worker.agent)
        if agent is None or agent.room.has(function.kept_bytes * MANY):
            return MANY
        room = agent.room.free - agent.room.coming - self._expected_bytes(agent)
        return max(1, room // max(1, function.kept_bytes))

    def has_room_elsewhere(self, task: Task) -> bool:
        """Whether a host that has not failed for want of room could run a task, now or when its workers have done what
        they hold."""
        need = task.options.capabilities, task.function.kind
        found = self._queue_with_room(task, need, is_later=True)
        self.end_run()
        return found is not None

    def makes_room_for_result(self, task: Task, worker: Worker) -> bool:
        """Make a worker's host remove copies, because a task's result found no room there. Returns whether the task may
        run there again."""
        agent = self._agents.find(worker.agent)
        if agent is None or not self._spare_copies.free_for_result(agent, task):
            return False
        task.full_agent = 0
        return True

    def explain(self, task: Task, idle: FreeWorkers) -> Iterator[str]:
        """Why a task waits for a host with its inputs or with room, one line for each reason."""
        until = self.waits_until.get(task, -INFINITY)
        if until <= self._clock.now:
            return
        names = ", ".join(sorted({place.host for stored in task.inputs for place in stored.known_places})[:SHOWN_HOSTS])
        lane = task.client.lane_of(task)
        workers = (idle.newest_of_agent(agent, lane.capabilities, lane.kind) for agent in list(idle.agents()))
        full = [worker.host for worker in workers if worker is not None and self.is_full(task, worker)]
        if not full:
            text = f"for at most {until - self._clock.now:.1f} s it waits for a worker of a host that has its inputs"
            yield f"data: {text}: {names}"
            return
        values = "its result or its inputs" if makes_large_result(task) else "its inputs"
        for host in full[:SHOWN_HOSTS]:
            yield f"data: {host} has no room for {values} (--object-memory, --spill-limit)"
        with_inputs = f"; these have inputs: {names}" if names else ""
        yield f"data: it waits until a host has room and a free worker{with_inputs}"

    def has_room(self, agent: Agent, task: Task, is_later: bool = False) -> bool:
        """Whether a host has room for the task's result together with those of its inputs that are neither there nor on
        their way.

        Args:
            agent: of the host.
            task: the task.
            is_later: whether the results of the tasks that its workers hold do not count. They may be small, or fail.
        """
        if agent.incarnation == task.full_agent:
            return False
        result = task.function.kept_bytes if makes_large_result(task) else 0
        inputs = 0
        for stored in task.inputs:
            inputs += stored.size
        if inputs < LEAST_BYTES:
            inputs = 0
        if not (result or inputs) or agent.room.has(result * MANY + inputs):
            return True
        lacking = self._lacking(agent, task, is_later)
        return lacking < LEAST_BYTES or agent.room.has(lacking)

    def _lacking(self, agent: Agent, task: Task, is_later: bool = False) -> int:
        """How many bytes a task needs on a host: for its result, and for those of its inputs that are neither there nor
        on their way.

        Args:
            agent: of the host.
            task: the task.
            is_later: whether the results of the tasks that its workers hold do not count.
        """
        size = 0
        if makes_large_result(task):
            size = task.function.kept_bytes
            if not is_later:
                size += self._expected_bytes(agent)
        for stored in dict.fromkeys(task.inputs):
            if not self._is_at(stored, agent):
                size += stored.size
        return size

    def _expected_bytes(self, agent: Agent) -> int:
        """The size of the large results that the tasks of the host's workers will probably make."""
        size = 0
        for worker in self._workers.of_agent(agent.incarnation):
            for task in worker.tasks.values():
                if makes_large_result(task):
                    size += task.function.kept_bytes
        return size

    def _queue_with_room(self, task: Task, need: Need, is_later: bool = False) -> Queue | None:
        """The workers of some host with room for the task that can serve a need. None: there are none among the first
        MOST_HOSTS.

        Args:
            task: the task.
            need: what its workers need.
            is_later: whether a host counts that may have room when its workers have done what they hold.
        """
        key = task.function, need, is_later
        is_usual = not task.inputs and not task.full_agent
        if is_usual and key in self._without_room:
            return None
        for agent in islice(self._agents, MOST_HOSTS):
            if self.has_room(agent, task, is_later):
                queue = self._queue(agent, need)
                if queue:
                    return queue
        if is_usual:
            self._without_room.add(key)
        return None

    def _is_at(self, stored: StoredObject, agent: Agent) -> bool:
        """Whether a host has an object, or gets it."""
        return stored.is_known_to(agent) or self._transfers.find(stored, agent) is not None

    def _transfer_ns(self, target: Agent | None, size: int) -> int:
        """Nanoseconds until these bytes are on a host, behind other files that are on their way to it."""
        return self._transfers.expected_ns(target, size) if size else 0

    def _queue(self, host: Agent, need: Need) -> Queue:
        queue = self._queues.get((host.incarnation, need))
        if queue is None:
            now = self._clock.now
            queue = [
                (_busy_ns(worker, now), worker.incarnation, worker)
                for worker in self._workers.of_agent(host.incarnation)
                if worker.can_serve(*need)
                and not (worker.is_retiring or worker.is_unreachable or worker.is_changing or worker.is_holder)
            ]
            heapify(queue)
            self._queues[host.incarnation, need] = queue
        return queue


def makes_large_result(task: Task) -> bool:
    """Whether a task probably makes a kept result of LEAST_BYTES or more."""
    return task.keep == KEEP_YES and (task.function.kept_bytes >= LEAST_BYTES or task.full_agent != 0)


def _bytes_by_host(inputs: Collection[StoredObject]) -> dict[Agent, int]:
    """The bytes of these objects that each host has as files."""
    sizes: dict[Agent, int] = {}
    for stored in inputs:
        for place in stored.known_places if stored.copies else ():
            if not place.is_client:
                sizes[place] = sizes.get(place, 0) + stored.size
    return sizes


def _busy_ns(worker: Worker, now: float) -> int:
    """Nanoseconds until a worker has probably done what it holds.

    Work that is late takes about as long again as it is late: so a host with an unusually long task soon counts as
    slow.
    """
    if not worker.task_count:
        return 0
    return abs(worker.load_ns - int((now - worker.heard_at) * 1e9))
