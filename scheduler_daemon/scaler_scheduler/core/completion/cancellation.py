"""Takes tasks back from workers and stops them: for a cancel, a time limit, a lost client, or work stealing.

A task that a worker holds is retracted first, unless it is known to have begun. The worker answers whether it gives the
task back. If the task has begun and the intent is FORCE or higher, the scheduler sends the worker a Stop. If the task
has not ended after GRACE_SECONDS, the scheduler sends the host agent an EndWorker. The agent then ends the worker's
process if it runs this task.
"""

from array import array
from collections.abc import Iterable

from scaler_scheduler.core import effects
from scaler_scheduler.core.completion.attempt_end import AttemptEnd
from scaler_scheduler.core.completion.gangs import Gangs
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import TaskAttempt
from scaler_scheduler.core.dispatch import work_stealing
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.events import Retracted
from scaler_scheduler.core.state.batches import Batch
from scaler_scheduler.core.state.counts import WASTED_ROW_US
from scaler_scheduler.core.state.records import Client, Lane, Task, Worker
from scaler_scheduler.core.state.transitions import (
    BLOCKED,
    DISPATCHED,
    GIVE_UP,
    INTENT_ABANDON,
    INTENT_BALANCE,
    INTENT_CANCEL,
    INTENT_FORCE,
    INTENT_RERUN,
    INTENT_TIME_LIMIT,
    NO_INTENT,
    RETRACT,
    START,
    WAITING,
    WORKER_LOST,
)

GRACE_SECONDS = 2.0
"""The time from the request to stop a task to the end of its worker's process, and between two such requests."""


_REASONS = {INTENT_ABANDON: "its client has left", INTENT_RERUN: "its client had left"}


class Cancellation:
    """Applies intents to tasks on workers: retracts them, stops them, and has their processes ended."""

    def __init__(
        self, core: CoreState, graphs: Graphs, host_results: HostResults, attempt_end: AttemptEnd, gangs: Gangs
    ) -> None:
        self._tables = core.tables
        self._queues = core.queues
        self._pool = core.pool
        self._outbox = core.outbox
        self._operator_log = core.operator_log
        self._graphs = graphs
        self._host_results = host_results
        self._attempt_end = attempt_end
        self._gangs = gangs
        self._stops: dict[Worker, list[TaskAttempt]] = {}
        """Stops until the next collect: one message for each worker."""

    # ------------------------------------------------------------------------------------------------ the user's cancel

    def cancel(self, client: Client, ids: Iterable[int], force: bool, now: float) -> None:
        """Cancel tasks as their user asks.

        Args:
            client: the client of the tasks.
            ids: task ids. Unknown and finished tasks are ignored.
            force: whether running tasks are stopped. Without it their cancel is refused.
            now: seconds of the monotonic clock.
        """
        refused = array("q")
        touched: set[Lane] = set()
        for task_id in ids:
            task = client.tasks.get(task_id)
            if task is None:
                self._cancel_row(client, task_id, touched)
            elif task.gang is not None:
                if force:
                    self._gangs.cancel(task.gang)
                else:
                    refused.append(task_id)
            elif task.state == BLOCKED:
                self._graphs.cancel_blocked(task)
            elif task.state == WAITING:
                touched.add(client.lane_of(task))
                self._cancel_waiting(task)
            elif task.intent == INTENT_RERUN:
                task.intent = INTENT_FORCE  # the task is being stopped already
            elif force:
                self._set_intent(task, INTENT_FORCE, now)
            elif task.intent in (NO_INTENT, INTENT_BALANCE) and task.state != DISPATCHED:
                refused.append(task_id)
            else:
                self._set_intent(task, INTENT_CANCEL, now)
        for lane in touched:
            self._queues.prune(lane)
        if refused:
            self._outbox.add(effects.CancelRefused(client.route, refused))

    def _cancel_row(self, client: Client, task_id: int, touched: set[Lane]) -> None:
        """Cancel a task that was never dispatched. If the task has ended, its answer is on its way."""
        for lane in client.lanes.values():
            found = lane.batches.find(task_id)
            if found is None:
                continue
            batch, row = found
            touched.add(lane)
            self._end_row(lane, batch, row, effects.OUTCOME_CANCELLED, b"")
            return
        self._tables.counts.wasted_us += WASTED_ROW_US

    def _end_row(self, lane: Lane, batch: Batch, row: int, outcome: int, payload: bytes) -> None:
        """End a task that was never dispatched."""
        client = lane.client
        client.returned_bytes += batch.size_of(row) + TASK_OVERHEAD
        self._tables.counts.payload_bytes -= batch.size_of(row)
        batch.cancelled.add(row)
        batch.large.pop(row, None)
        weight = batch.options.weight
        self._tables.counts.add_waiting(lane, -1, weight)
        self._tables.counts.resolved += weight
        self._tables.counts.outcomes[outcome] += weight
        client.answered_tasks += weight - 1  # the outbox counts the row
        function = batch.function_at(row)
        if outcome != effects.OUTCOME_CANCELLED:
            function.failed_tasks += weight
        self._tables.history.record_ended(client, batch.ids[row], 0, function, batch.options.name, outcome, payload)
        self._tables.remove_row(client, function, batch.options)
        self._outbox.answer(client, batch.ids[row], outcome, payload)

    def fail_waiting(self, lane: Lane, outcome: int, payload: bytes) -> None:
        """End all tasks that wait in a lane.

        Args:
            lane: the lane.
            outcome: the outcome that their client gets.
            payload: the payload of this outcome.
        """
        for task in list(lane.requeued.values()):
            if task.state == WAITING:
                self._tables.counts.add_waiting(lane, -1, task.options.weight)
                task.transition(GIVE_UP)
                self._attempt_end.answer(task, outcome, payload)
        for batch in list(lane.batches):
            for row in batch.waiting_rows():
                self._end_row(lane, batch, row, outcome, payload)
        self._queues.prune(lane)

    def _cancel_waiting(self, task: Task) -> None:
        self._tables.counts.add_waiting(task.client.lane_of(task), -1, task.options.weight)
        task.intent = INTENT_CANCEL
        self._attempt_end.retry_or_end(task, None)

    def cancel_unneeded(self) -> None:
        """Cancel tasks whose kept results no task is going to read. Running tasks go on."""
        while self._graphs.unneeded:
            for task in self._graphs.pop_unneeded():
                if task.worker is None or task.state == DISPATCHED:
                    self.cancel(task.client, [task.id], False, 0.0)  # the time matters only with force

    # ---------------------------------------------------------------------------------------------------- other intents

    def abandon(self, client: Client, now: float) -> None:
        """End the tasks that workers hold for a client that has left. Its waiting tasks are removed already."""
        for task in client.tasks.values():
            if task.gang is not None:
                self._gangs.abandon(task.gang)
                if task.worker is None:  # its lead, which has left its worker
                    continue
            if task.intent == INTENT_RERUN:
                task.intent = INTENT_ABANDON  # the client had left before and came back
            else:
                self._set_intent(task, INTENT_ABANDON, now)

    def stop_broken_gangs(self, now: float) -> None:
        """Stop the members of gangs that have lost a member, or that were cancelled."""
        broken, self._gangs.broken = self._gangs.broken, []
        for gang in broken:
            for member in gang.members:
                if member.gang is gang and member.worker is not None and not member.client.is_gone:
                    self._set_intent(member, INTENT_RERUN, now)

    def restore_abandoned(self, client: Client) -> None:
        """Rerun the abandoned tasks of a client that is back."""
        for task in client.tasks.values():
            if task.intent == INTENT_ABANDON:
                task.intent = INTENT_RERUN

    def repeat_intent(self, task: Task, intent: int, now: float) -> None:
        """Repeat an intent for a task that runs on a worker with a new connection. The first request may be lost."""
        if task.worker is None:
            self._apply_to_waiting(task, intent)
        elif intent == INTENT_CANCEL:
            self._outbox.add(effects.CancelRefused(task.client.route, [task.id]))
        elif intent >= INTENT_FORCE:
            self._set_intent(task, intent, now)

    def _apply_to_waiting(self, task: Task, intent: int) -> None:
        """Apply a repeated intent to a task that the worker no longer runs."""
        if task.client.tasks.get(task.id) is not task or intent not in (INTENT_CANCEL, INTENT_FORCE, INTENT_ABANDON):
            return
        if task.state == BLOCKED:
            self._graphs.cancel_blocked(task)
        elif task.state == WAITING:
            self._cancel_waiting(task)

    def stop_copy(self, worker: Worker, name: TaskAttempt) -> None:
        """Send a worker a Stop for a task that has ended, or that another worker holds. Its answers do not count."""
        self._tables.counts.stopped += 1
        self._stops.setdefault(worker, []).append(name)

    def end_copy(self, worker: Worker, name: TaskAttempt) -> None:
        """Have the host agent end a worker that still runs such a copy in spite of the Stop."""
        agent = self._tables.agents.find(worker.agent)
        if agent is not None:
            self._outbox.add(
                effects.EndWorker(agent.route, worker.incarnation, *name, "its result is not needed any more")
            )

    def rebalance(self, tasks: Iterable[Task]) -> None:
        """Ask for these dispatched tasks back, to run them elsewhere."""
        for task in tasks:
            if task.intent == NO_INTENT and task.state == DISPATCHED:
                task.intent = INTENT_BALANCE
                self._outbox.retract(task)

    def reassign(self, tasks: list[Task]) -> None:
        """Run these queued tasks of one unresponsive worker elsewhere.

        The worker gets another Retract for them, and reads it before it begins another task. Its answers about them no
        longer count.
        """
        worker = tasks[0].worker
        assert worker is not None
        for task in tasks:
            task.is_retracting = False
            self._outbox.retract(task)
            self._attempt_end.detach(task)
            task.transition(WORKER_LOST)
            if task.may_store:
                self._host_results.discard_file(worker, task)
            self._attempt_end.retry_or_end(task, worker)

    def reassign_silent(self) -> None:
        """Reassign queued tasks of workers that do not answer, and log it. Call it once a second.

        The running task of such a worker prevents it from answering.
        """
        workers = self._tables.workers
        for tasks in work_stealing.tasks_of_silent_workers(workers, self._pool.idle):
            worker = tasks[0].worker
            assert worker is not None
            text = f"worker {worker.name} on {worker.host} (process {worker.pid}) does not answer while it runs a task"
            self._operator_log.info(f"{text}: its {len(tasks)} queued task(s) move to other workers")
            self.reassign(tasks)
        for worker in workers:
            if work_stealing.needs_probe(worker):
                self._outbox.add(effects.HeartbeatEcho(worker.route, 0))

    def check_timers(self, now: float) -> None:
        """Handle the timers that are due: a time limit is over, or the grace time of a stop.

        Neither needs an answer of the worker: a process that is frozen is killed as well.
        """
        for task in self._tables.timers.pop_due(now):
            if task.is_stopping or task.intent >= INTENT_FORCE:
                self._end_worker(task)
                self._tables.timers.set(task, now + GRACE_SECONDS)
            else:
                self._set_intent(task, INTENT_TIME_LIMIT, now)

    def _set_intent(self, task: Task, intent: int, now: float) -> None:
        """Set an intent, if it is higher than the present one: retract the task or, from INTENT_FORCE on, stop it."""
        if intent <= task.intent:
            return
        task.intent = intent
        if task.is_stopping or (task.state != DISPATCHED and intent < INTENT_FORCE):
            return
        if task.state == DISPATCHED:
            self._outbox.retract(task)
            if intent >= INTENT_FORCE and task.timer is None:
                # It may run already and hold the GIL, so that its worker cannot even answer.
                self._tables.timers.set(task, now + GRACE_SECONDS)
        else:
            self._stop(task, now)

    def _stop(self, task: Task, now: float) -> None:
        assert task.worker is not None
        task.is_stopping = True
        self._tables.counts.stopped += 1
        self._stops.setdefault(task.worker, []).append((task.client.incarnation, task.id, task.attempt))
        self._tables.timers.set(task, now + GRACE_SECONDS)

    def _end_worker(self, task: Task) -> None:
        worker = task.worker
        assert worker is not None
        agent = self._tables.agents.find(worker.agent)
        if agent is not None:
            reason = "its gang has ended" if task.gang is not None else _REASONS.get(task.intent, "cancelled")
            if task.intent == INTENT_TIME_LIMIT:
                reason = f"time limit of {task.options.timeout_seconds:g} s"
            client = task.client.incarnation
            self._outbox.add(
                effects.EndWorker(
                    agent.route, worker.incarnation, client=client, task_id=task.id, attempt=task.attempt, reason=reason
                )
            )

    # ---------------------------------------------------------------------------------------------- the worker's answer

    def process_retracted(self, event: Retracted, worker: Worker, now: float) -> None:
        """Handle a worker's answers to retracts: tasks that it gives back, and tasks that have begun."""
        refused: dict[Client, list[int]] = {}
        for row in range(len(event.ids)):
            task = self._tables.find_held(worker, event.clients[row], event.ids[row], event.attempts[row])
            if task is None or not (task.is_retracting or (event.returned[row] and _may_come_back(task))):
                continue
            if task.may_end_worker and not task.is_retracting:
                worker.hides_suspended = True
            task.is_retracting = False
            if event.returned[row]:
                self._tables.counts.retracted += 1
                self._return_task(worker, task)
                continue
            if task.state == DISPATCHED:
                mark_started(task, now)
            if task.intent >= INTENT_FORCE:
                if not task.is_stopping:
                    self._stop(task, now)
                continue
            if task.intent == INTENT_CANCEL:
                refused.setdefault(task.client, []).append(task.id)
            task.intent = NO_INTENT
        for client, ids in refused.items():
            self._outbox.add(effects.CancelRefused(client.route, ids))

    def return_undelivered(self, dispatch: effects.Dispatch, worker: Worker) -> None:
        """Take back tasks of a Dispatch that could not be delivered. The worker gets nothing before it joins again."""
        for client, task_id, attempt in zip(dispatch.clients, dispatch.ids, dispatch.attempts):
            task = self._tables.find_held(worker, client, task_id, attempt)
            if task is not None and task.state == DISPATCHED:
                self._return_task(worker, task)

    def _return_task(self, worker: Worker, task: Task) -> None:
        """Take a task from this worker that has not begun."""
        self._attempt_end.detach(task)
        task.transition(RETRACT)
        self._attempt_end.retry_or_end(task, worker)

    def flush(self) -> None:
        """Put the gathered stops into the outbox."""
        for worker, names in self._stops.items():
            clients, ids, attempts = zip(*names)
            self._outbox.add_last(effects.Stop(worker.route, clients, ids, attempts))
        self._stops = {}

    def remove_worker(self, worker: Worker) -> None:
        """Drop the requests for a lost worker."""
        self._outbox.remove_worker(worker)
        self._stops.pop(worker, None)


def _may_come_back(task: Task) -> bool:
    """Whether a worker may give the task back unasked: a row before it, whose result it reads, had no value; a
    suspended task keeps the booking of the row; or the task may not run beside suspended tasks."""
    if task.state != DISPATCHED:
        return False
    return len(task.inputs) > 0 or len(task.options.resources) > 0 or task.may_end_worker


def mark_started(task: Task, now: float) -> None:
    """Note that the task has begun."""
    worker = task.worker
    assert worker is not None
    if task.state == DISPATCHED:
        worker.running += 1
    worker.started_at.setdefault(task, now)
    task.transition(START)
