"""Workers that join again with running tasks: their tasks are reattached and not run again.

After a restart of the scheduler or a lost connection, clients submit their open tasks again, and workers report their
running tasks. Either may come first. A waiting task leaves its lane when a worker reports that it runs the task. A
running task that no client has submitted is kept as unclaimed. A task that has ended, or that another worker got
meanwhile, is stopped; its worker continues like a new worker.

A worker also reports the tasks that have ended and whose results may be lost; it sends these results again. A result
that comes before its client is kept as early, and counts when the client submits the task, whether its inputs exist or
not. The death of a worker that ran the task counts in the same way, when the inputs exist: its own scheduler may have
ended before it could answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS, Cancellation
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import TaskAttempt, is_suspended, suspend
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.ids import ATTEMPT_LIMIT
from scaler_scheduler.core.state.batches import Batch
from scaler_scheduler.core.state.records import Client, GangTask, Lane, Task, Worker
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.tables import EarlyAnswer, UnclaimedTask


class Reattach:
    """Matches running tasks of workers with submitted tasks of clients."""

    def __init__(self, core: CoreState, cancellation: Cancellation, host_results: HostResults) -> None:
        self._tables = core.tables
        self._queues = core.queues
        self._pool = core.pool
        self._writer = core.writer
        self._holdings = core.holdings
        self._cancellation = cancellation
        self._host_results = host_results
        self._client_timeout_seconds = core.limits.client_timeout_seconds
        self.answered: deque[tuple[EarlyAnswer, Task]] = deque()
        """Early answers whose tasks were just attached to their workers: they count now."""

    def attach(self, worker: Worker, name: TaskAttempt, now: float, is_finished: bool = False) -> None:
        """Attach a task that a worker runs or has suspended, or has finished, as its hello says."""
        incarnation, task_id, attempt = name
        client = self._tables.clients.find(incarnation)
        task = None if client is None else client.tasks.get(task_id)
        if not 0 < attempt < ATTEMPT_LIMIT or (task is not None and task.worker is worker):
            return  # not a number of a scheduler, or named twice
        suspended = is_suspended(self._tables, worker, name)
        if suspended:
            self._holdings.suspend(worker, name)
        if isinstance(task, GangTask) and task.gang is not None and task in task.gang.moving:
            task.gang.moving.discard(task)
            self._writer.reattach_member(worker, task)
            self._resume(task, suspended, now)
            return
        task = None if client is None else self._attach_waiting(client, worker, name)
        if task is not None:
            self._resume(task, suspended, now)
            return
        is_over = client is not None and self._has_ended(client, task_id)
        if is_finished:
            if not is_over:
                self._keep_early(EarlyAnswer(worker, attempt, now + self._client_timeout_seconds), *name[:2])
            return
        self._add_unclaimed(worker, name, suspended, is_over, now)
        if client is not None and is_over:
            client.skip_attempts(attempt)
            self._cancellation.stop_copy(worker, name)

    def match_batch(self, client: Client, lane: Lane, batch: Batch, now: float) -> None:
        """Attach the tasks of a newly submitted batch that workers already run."""
        if batch.options.gang_size:
            for row in batch.waiting_rows():
                self._end_members(client, batch.ids[row], batch.options.gang_size, now)
            return
        for row, task_id in enumerate(batch.ids):
            if row not in batch.cancelled:
                attach = partial(self._writer.reattach_row, lane, batch, row)
                self._match(client, task_id, attach, now)
        self._queues.prune(lane)

    def match_ready(self, tasks: Iterable[Task], now: float) -> None:
        """Attach the newly ready tasks that workers already run."""
        for task in tasks:
            if task.options.gang_size:
                self._end_members(task.client, task.id, task.options.gang_size, now)
            elif task.state == WAITING:
                self._match(task.client, task.id, partial(self._attach_task, task), now)

    def _match(self, client: Client, task_id: int, attach: Callable[[Worker, int, bool], Task], now: float) -> None:
        """Attach a task that waits, if a worker runs it or its attempt has ended.

        Args:
            client: its client.
            task_id: its id.
            attach: attaches it: gets the worker, the number of the attempt, and whether the attempt has ended.
            now: seconds of the monotonic clock.
        """
        early = self._tables.pop_early(client.incarnation, task_id)
        if early is not None:
            may_wait = early.is_awaited or early.is_file  # a file waits for the agent of its host
            is_over = not may_wait or self._tables.workers.find(early.worker.incarnation) is not early.worker
            self._take_early(early, attach(early.worker, early.attempt, is_over), now)
            return
        unclaimed = self._tables.unclaimed.get((client.incarnation, task_id))
        if unclaimed is None:
            return
        if unclaimed.is_over:
            client.skip_attempts(unclaimed.attempt)
            return
        del self._tables.unclaimed[client.incarnation, task_id]
        unclaimed.worker.unclaimed -= not unclaimed.is_suspended
        self._resume(attach(unclaimed.worker, unclaimed.attempt, False), unclaimed.is_suspended, now)

    def note_death(self, worker: Worker, name: TaskAttempt, cause: str, now: float, ran: TaskAttempt) -> None:
        """Note that a worker has died during an attempt whose task its client has not submitted to this scheduler, as
        far as its agent knows. The attempt counts as failed.

        Args:
            worker: the worker. It has not joined, or it is about to be removed.
            name: the attempt.
            cause: why it has died.
            now: seconds of the monotonic clock.
            ran: the attempt that it ran when it died.
        """
        incarnation, task_id, attempt = name
        if not 0 < attempt < ATTEMPT_LIMIT:
            return
        deadline = now + self._client_timeout_seconds
        death = EarlyAnswer(worker, attempt, deadline, death=cause or "unknown cause", ends_workers=name == ran)
        client = self._tables.clients.find(incarnation)
        if client is not None:
            if attempt <= client.stale_attempt:  # of an earlier submission
                return
            known = client.tasks.get(task_id)
            if known is not None and known.attempt >= attempt:  # this scheduler knows of it
                return
            task = self._attach_waiting(client, worker, name, has_ended=True)
            if task is not None:
                self._take_early(death, task, now)
                return
            if self._has_ended(client, task_id):
                return
        unclaimed = self._tables.unclaimed.get((incarnation, task_id))
        if unclaimed is None or unclaimed.worker is worker or unclaimed.attempt < attempt:
            self._keep_early(death, incarnation, task_id)

    def _end_members(self, client: Client, first: int, size: int, now: float) -> None:
        """Stop the members of a gang that workers still run from before. The gang begins again: results of members that
        had ended, and values on their way between members, are lost with the former scheduler."""
        for member in range(first, first + size):
            self._drop_early(client.incarnation, member)
            unclaimed = self._tables.unclaimed.get((client.incarnation, member))
            if unclaimed is not None:
                client.skip_attempts(unclaimed.attempt)
                if not unclaimed.is_over:
                    unclaimed.is_over = True
                    unclaimed.deadline = now + GRACE_SECONDS
                    self._cancellation.stop_copy(unclaimed.worker, (client.incarnation, member, unclaimed.attempt))

    def expire(self, now: float) -> None:
        """Stop unclaimed tasks that no client has submitted in time."""
        for (client, task_id), unclaimed in self._tables.unclaimed.items():
            if unclaimed.deadline > now:
                continue
            name = (client, task_id, unclaimed.attempt)
            if unclaimed.is_over:
                self._cancellation.end_copy(unclaimed.worker, name)
            else:
                unclaimed.is_over = True
                self._cancellation.stop_copy(unclaimed.worker, name)
            unclaimed.deadline = now + GRACE_SECONDS
        for key in [key for key, early in self._tables.early.items() if early.deadline <= now]:
            if self._tables.find_open(*key) is None:  # else the death of its worker counts as soon as its inputs exist
                self._drop_early(*key)

    def remove_worker(self, worker: Worker) -> None:
        """Forget the unclaimed tasks of a lost worker, and those early results of it that have not come."""
        gone = [key for key, unclaimed in self._tables.unclaimed.items() if unclaimed.worker is worker]
        for key in gone:
            del self._tables.unclaimed[key]
        for key in [key for key, early in self._tables.early.items() if early.worker is worker and early.is_awaited]:
            self._drop_early(*key)

    def remove_client(self, client: Client) -> None:
        """Forget the early answers of a client that has left."""
        for key in [key for key in self._tables.early if key[0] == client.incarnation]:
            self._drop_early(*key)

    def worker_died(self, worker: Worker, cause: str, now: float, ran: TaskAttempt) -> None:
        """Note the death of a worker that is about to be removed: the attempts of its unclaimed tasks have failed. For
        the arguments see `note_death`."""
        for (client, task_id), unclaimed in list(self._tables.unclaimed.items()):
            if unclaimed.worker is worker and not unclaimed.is_over:
                self.note_death(worker, (client, task_id, unclaimed.attempt), cause, now, ran)

    def _keep_early(self, early: EarlyAnswer, client: int, task_id: int) -> None:
        """Keep the end of an attempt until the client submits the task again, unless a later one is known."""
        there = self._tables.early.get((client, task_id))
        if there is not None and there.results is not None and early.is_awaited and there.attempt == early.attempt:
            there.worker = early.worker  # it says hello again, and its result has come already
            return
        known = self._tables.unclaimed.get((client, task_id)) or there
        if known is None or known.attempt <= early.attempt:
            self._drop_early(client, task_id)
            self._tables.keep_early(early, client, task_id)

    def _drop_early(self, client: int, task_id: int) -> None:
        """Forget the end of an attempt, which counts for nobody. Its result may be a file."""
        early = self._tables.pop_early(client, task_id)
        if early is not None and early.is_file:
            self._host_results.discard_late_file(early.worker, client, task_id, early.attempt)

    def _take_early(self, early: EarlyAnswer, task: Task, now: float) -> None:
        """Let an early answer count, for its task that was just attached."""
        if self._tables.workers.find(early.worker.incarnation) is early.worker:
            self._pool.mark_busy(early.worker)
        self._resume(task, False, now)
        if not early.is_awaited:
            self.answered.append((early, task))

    def _add_unclaimed(self, worker: Worker, name: TaskAttempt, suspended: bool, is_over: bool, now: float) -> None:
        """Keep an unclaimed task. It occupies a slot of its worker."""
        early = self._tables.early.get(name[:2])
        if early is not None and early.attempt < name[2]:
            self._drop_early(*name[:2])
        if name[:2] not in self._tables.unclaimed:
            deadline = now + (GRACE_SECONDS if is_over else self._client_timeout_seconds)
            self._tables.unclaimed[name[:2]] = UnclaimedTask(worker, name[2], suspended, is_over, deadline)
            worker.unclaimed += not suspended

    def _attach_waiting(
        self, client: Client, worker: Worker, name: TaskAttempt, has_ended: bool = False
    ) -> Task | None:
        """Take the client's waiting task out of its lane or batch, and attach it. Returns None if it does not wait."""
        _, task_id, attempt = name
        task = client.tasks.get(task_id)
        if task is not None:
            if task.state != WAITING or task.options.gang_size:
                return None
            return self._attach_task(task, worker, attempt, has_ended)
        for lane in list(client.lanes.values()):
            found = lane.batches.find(task_id)
            if found is not None and found[0].options.gang_size:
                return None
            if found is not None:
                task = self._writer.reattach_row(lane, *found, worker, attempt, has_ended)
                self._queues.prune(lane)
                return task
        return None

    def _attach_task(self, task: Task, worker: Worker, attempt: int, has_ended: bool) -> Task:
        lane = task.client.lane_of(task)  # the task stays in the lane's `requeued` for now, and no longer waits
        self._writer.reattach(task, lane, worker, attempt, has_ended)
        self._queues.prune(lane)
        return task

    def _has_ended(self, client: Client, task_id: int) -> bool:
        """Whether a task that does not wait has ended, or runs elsewhere.

        Clients submit in the order of their ids, also after a restart. So a task without a record has ended if its id
        is not above the client's highest id. If the client has left, the scheduler has dropped the records of its open
        tasks: the client may come back and submit them again.
        """
        task = client.tasks.get(task_id)
        if task is None:
            return task_id <= client.highest_id and not client.is_gone
        return task.state != BLOCKED or task.gang is not None

    def _resume(self, task: Task, suspended: bool, now: float) -> None:
        """Record that an attached task runs or is suspended, and start its time limit."""
        assert task.worker is not None
        self._tables.history.record_reattached(task, task.worker)
        task.worker.started_at[task] = now  # it began earlier, at an unknown time
        if suspended:
            suspend(task, self._holdings)
        if task.options.timeout_seconds:
            self._tables.timers.set(task, now + task.options.timeout_seconds)
