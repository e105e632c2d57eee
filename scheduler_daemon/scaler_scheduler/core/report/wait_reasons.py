"""Why a task waits: each reason is one line, `kind: text`. Or where it runs.

The work is bounded: of a client's million waiting tasks only the batches before the task are looked at, at most
BATCH_LIMIT of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.limits import MOST_MEMBERS
from scaler_scheduler.core.report.story import waiting_gang
from scaler_scheduler.core.report.unschedulable import described_need, lacking_text
from scaler_scheduler.core.state.records import (
    PAUSE_RESTART_HOLD,
    PAUSE_SLOW_CONSUMER,
    Client,
    Lane,
    StoredObject,
    Task,
    Worker,
)
from scaler_scheduler.core.state.resource_pools import resources_text
from scaler_scheduler.core.state.transitions import BLOCKED, RUNNING, SUSPENDED, WAITING

BATCH_LIMIT = 10_000
"""The most batches that are looked at for the number of tasks before one."""

LISTED = 10
"""The most inputs and hosts that are named."""

SILENT_SECONDS = 10.0
"""A host agent without a heartbeat for this time counts as silent in a reason. Its lease is longer."""


class WaitReasons:
    """Says why tasks wait."""

    def __init__(self, core: CoreState, may_serve: Callable[[Lane], bool]) -> None:
        """`may_serve` says whether a worker could run a lane's tasks after a change of its environment."""
        self._may_serve = may_serve
        self._tables = core.tables
        self._queues = core.queues
        self._pool = core.pool
        self._gang_reservation = core.gangs
        self._near_data = core.near_data
        self._hosts = core.hosts
        self._task_limits = core.task_limits
        self._core = core

    def lines(self, incarnation: int, task_id: int) -> list[str]:
        """Return the reasons why a task waits, or where it runs. Empty if the task is not open. A member of a gang that
        has no row of its own has the reasons of its gang."""
        client = self._tables.clients.find(incarnation)
        if client is None:
            return []
        task = client.tasks.get(task_id)
        if task is None:
            return self._of_row(client, task_id) or self._of_member(client, task_id)
        if task.gang is not None and task.worker is None:
            return [f"gang: {task.gang.held} of its {len(task.gang.members)} members still run, and this one has ended"]
        if task.worker is not None:
            return self._at_worker(task, task.worker)
        since = f"since: it waits for {self._tables.clock.now - task.since:.1f} s"
        if task.state == BLOCKED:
            return [since, *self._missing(task)]
        lane = client.lane_of(task)
        requeued = islice(lane.requeued.values(), BATCH_LIMIT)
        before = sum(other.state == WAITING and other.id < task.id for other in requeued)
        is_bounded = len(lane.requeued) > BATCH_LIMIT
        return [since, *self._near_data.explain(task, self._pool.idle), *self._of_lane(lane, before, is_bounded)]

    def _of_member(self, client: Client, task_id: int) -> list[str]:
        """The reasons of a gang for its member that is no open task: it has not begun, or has left its worker."""
        lead = waiting_gang(client, task_id)
        for other in range(task_id - 1, task_id - MOST_MEMBERS, -1) if lead is None else ():
            task = client.tasks.get(other)
            if task is not None and (task.gang is None or task.gang.lead is task):
                lead = other if task_id - other < task.options.gang_size else None
                break
        if lead is None:
            return []
        return [f"gang: it is member {task_id - lead} of gang {lead}", *self.lines(client.incarnation, lead)]

    def _of_row(self, client: Client, task_id: int) -> list[str]:
        """The reasons of a task that was never dispatched."""
        for lane in client.lanes.values():
            found = lane.batches.find(task_id)
            if found is not None:
                batch, row = found
                before, is_bounded = self._rows_before(lane, batch, row)
                waited = self._tables.clock.now - batch.arrived
                return [f"since: it waits for {waited:.1f} s", *self._of_lane(lane, before, is_bounded)]
        return []

    @staticmethod
    def _rows_before(lane: Lane, last: object, row: int) -> tuple[int, bool]:
        """The number of tasks of the lane before this row, and whether there may be more."""
        before = len(lane.requeued)
        for batch in islice(lane.batches, BATCH_LIMIT):
            if batch is last:
                return before + max(0, row - batch.next), False
            before += len(batch.ids) - batch.next - len(batch.cancelled)
        return before, True

    # ------------------------------------------------------------------------------------------------------ at a worker

    def _at_worker(self, task: Task, worker: Worker) -> list[str]:
        now = self._tables.clock.now
        where = f"worker {worker.name} on {worker.host}"
        if task.state == SUSPENDED:
            return [f"suspended: on {where} it waits for its own tasks, and its slot is free"]
        if task.state == RUNNING:
            return [f"runs: on {where}, for {now - worker.started_at.get(task, task.since):.1f} s"]
        before = sum(1 for other in worker.tasks.values() if other.serial < task.serial and other.state != SUSPENDED)
        return [f"queued: on {where} behind {before} other task(s), for {now - task.since:.1f} s"]

    # ----------------------------------------------------------------------------------------------------------- inputs

    def _missing(self, task: Task) -> list[str]:
        """The inputs that a blocked task waits for."""
        missing = [stored for stored in dict.fromkeys(task.inputs) if stored.is_missing or stored.is_remote]
        now = self._tables.clock.now
        lines = [f"input: {self._input_text(stored, now)}" for stored in missing[:LISTED]]
        return lines + ([f"input: and {len(missing) - LISTED} more inputs"] if len(missing) > LISTED else [])

    def _input_text(self, stored: StoredObject, now: float) -> str:
        name = f"{stored.name}#{stored.id}" if stored.name else f"object {stored.id}"
        if stored.is_remote and stored.home is not None:
            silent = now - stored.home.last_heartbeat_at
            if stored.home is not stored.client.place and silent > SILENT_SECONDS:
                return f"{name} is on {stored.home.host}, whose host agent has been silent for {silent:.0f} s"
            text = f"{name} is on its way from {stored.home.host}"
            targets = [transfer.target for transfer in self._core.transfers.of(stored)]
            full = {target.host for target in targets if target.room.free < stored.size}
            if full:
                text += f"; {', '.join(sorted(full))} has no room for it (--object-memory, --spill-limit)"
            return text
        if stored.producer is not None:
            return f"{name} does not exist yet: its task has not ended"
        return f"{name} comes from the client"

    # --------------------------------------------------------------------------------------------------------- the lane

    def _of_lane(self, lane: Lane, before: int, is_bounded: bool) -> list[str]:
        """The reasons that all tasks of a lane have, in the order in which the dispatcher checks them."""
        limits = list(self._task_limits.explain(lane))
        is_held = bool(limits) or lane.ticket > 0  # then the other groups of its rank pass it
        return [
            *_pauses(lane.client),
            *self._turn(lane),
            *self._rank(lane, before, is_bounded, is_held),
            *limits,
            *self._workers(lane),
        ]

    def _turn(self, lane: Lane) -> Iterator[str]:
        share = lane.client.share
        size = max(1, lane.gang_size)
        if share.room < size:
            yield f"share: {share.display_name} has {share.held} of {share.limits.max_running} tasks at workers"
        queued = self._queues.by_share
        first = sum(other.virtual_ns < share.virtual_ns for other in queued if other is not share)
        if first:
            yield f"share: {first} other share(s) have used less of their time and go before {share.display_name}"

    def _rank(self, lane: Lane, before: int, is_bounded: bool, is_held: bool) -> Iterator[str]:
        queue = self._queues.by_share.get(lane.client.share)
        higher = others = 0
        for rank, lanes in queue.by_rank.items() if queue is not None else ():
            if rank > lane.rank:
                higher += sum(each.waiting for each in lanes)
            elif rank == lane.rank:
                others = sum(each is not lane for each in lanes)
        if higher:
            yield f"rank: {higher} task(s) of its share have a higher priority or depth"
        if before or is_bounded:
            yield f"before: {'at least ' if is_bounded else ''}{before} task(s) with the same needs go first"
        if others and not is_held:
            yield f"turns: it takes turns with {others} other group(s) of tasks of its rank"

    def _workers(self, lane: Lane) -> Iterator[str]:
        """Which workers and hosts could run the lane's tasks, and why they do not yet."""
        workers = list(self._tables.workers)
        able = [worker for worker in workers if worker.can_serve(lane.capabilities, lane.kind)]
        free = [worker for worker in able if worker in self._pool.idle]
        if lane.gang_size:
            yield from self._members(lane, len(able), len(free))
        if not workers:
            yield "workers: none is connected"
        elif not able:
            need = described_need(self._tables, lane.capabilities, lane.kind, workers)
            yield f"workers: none of {len(workers)} {need or 'has its environment yet'}"
        else:
            gangs = self._gang_reservation
            served = "one of its members" if lane.gang_size else "it"
            if gangs.lane is lane:
                yield "gang: idle workers are reserved for the next gang of this size"
            elif gangs.lane is not None and any(map(gangs.keeps, able)):
                yield f"gang: up to {gangs.lane.gang_size} idle workers are reserved for a gang"
            if lane.resources:
                yield f"resources: it needs {resources_text(lane.resources)} of one host"
                if gangs.lane is not None and gangs.keeps_resources(lane):
                    yield "resources: what becomes free is kept for a gang that waits"
                hosts = list(self._core.hosts.explain(lane, served))
                yield from hosts or [f"resources: {lacking_text(self._core, lane.resources, workers)}"]
            else:
                yield from self._of_hosts(able, set(free), "its members" if lane.gang_size else "it")

    def _members(self, lane: Lane, able: int, free: int) -> Iterator[str]:
        """How many workers the lane's next gang needs, and whether the connected hosts could run all its members."""
        size = lane.gang_size
        yield f"gang: it needs {size} idle workers at once; {able} can run its members, {free} of them are idle"
        most = self._gang_reservation.count_able(lane, size)
        if most < size and not self._may_serve(lane):
            each = f", with {resources_text(lane.resources)} each" if lane.resources else ""
            yield f"gang: the connected hosts can never run its {size} members at once: at most {most}{each}"

    @staticmethod
    def _of_hosts(able: list[Worker], free: set[Worker], served: str) -> Iterator[str]:
        """One line for each host whose workers could run the task: what its workers do."""
        by_agent: dict[int, list[Worker]] = {}
        for worker in able:
            by_agent.setdefault(worker.agent, []).append(worker)
        for workers in islice(by_agent.values(), LISTED):
            counts = {
                "idle": sum(worker in free for worker in workers),
                "retiring": sum(worker.is_retiring for worker in workers),
                "unreachable": sum(worker.is_unreachable for worker in workers),
            }
            counts = {"busy": len(workers) - sum(counts.values()), **counts}
            parts = [f"{count} {state}" for state, count in counts.items() if count]
            yield f"host: {workers[0].host} could serve {served}: {', '.join(parts)}"
        if len(by_agent) > LISTED:
            yield f"host: and {len(by_agent) - LISTED} more hosts"


def _pauses(client: Client) -> Iterator[str]:
    if client.pause_reasons & PAUSE_SLOW_CONSUMER:
        unread = client.sent_bytes - client.received_bytes
        yield f"client: it has not read {unread} bytes of results, so none of its tasks begins"
    if client.pause_reasons & PAUSE_RESTART_HOLD:
        yield "restart: for a second after the scheduler's restart, workers may still name the tasks that they run"
