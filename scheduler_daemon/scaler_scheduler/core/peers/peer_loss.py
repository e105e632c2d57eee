"""Handles the loss of a worker, a client or a host agent."""

from __future__ import annotations

from collections.abc import Sequence

from scaler_scheduler.core.completion.attempt_end import AttemptEnd
from scaler_scheduler.core.completion.cancellation import Cancellation
from scaler_scheduler.core.completion.gangs import Gangs
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import TaskAttempt
from scaler_scheduler.core.completion.takeover import Takeover
from scaler_scheduler.core.completion.task_end import end_with_client
from scaler_scheduler.core.completion.transfer_end import TransferEnd
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.effects import OUTCOME_WORKER_DIED
from scaler_scheduler.core.environments.worker_changes import WorkerChanges
from scaler_scheduler.core.lines import printable_line
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.state.records import (
    PAUSE_SLOW_CONSUMER,
    Agent,
    Client,
    GangTask,
    StoredObject,
    Task,
    Worker,
)
from scaler_scheduler.core.state.transitions import (
    BLOCKED,
    CANCEL,
    DISPATCHED,
    INTENT_FORCE,
    INTENT_RERUN,
    NO_INTENT,
    RUNNING,
    SUSPENDED,
    WAITING,
    WORKER_LOST,
)


class PeerLoss:
    """Handles lost workers, clients and host agents."""

    def __init__(
        self,
        core: CoreState,
        *,
        attempt_end: AttemptEnd,
        cancellation: Cancellation,
        gangs: Gangs,
        graphs: Graphs,
        host_results: HostResults,
        reattach: Reattach,
        takeover: Takeover,
        transfer_end: TransferEnd,
        changes: WorkerChanges,
    ) -> None:
        self._changes = changes
        self._tables = core.tables
        self._holdings = core.holdings
        self._bookings = core.bookings
        self._queues = core.queues
        self._pool = core.pool
        self._attempt_end = attempt_end
        self._gangs = gangs
        self._graphs = graphs
        self._host_results = host_results
        self._cancellation = cancellation
        self._reattach = reattach
        self._takeover = takeover
        self._transfer_end = transfer_end
        self._operator_log = core.operator_log

    def worker_died(
        self,
        worker: Worker,
        cause: str,
        *,
        now: float,
        running: Task | None,
        ran: TaskAttempt = (0, 0, 0),
        peak_bytes: int = 0,
        is_logged: bool = True,
    ) -> None:
        """Handle a worker whose process has ended or whose lease ran out. All attempts that had begun have failed: that
        of its running task, those of its suspended tasks, and those whose answers are lost with it.

        Args:
            worker: the worker.
            cause: why it has died.
            now: seconds of the monotonic clock.
            running: the task that it ran, if it is known here.
            ran: the attempt that it ran, as its agent says. The number 0: none is known.
            peak_bytes: the largest resident size of its process. 0: not known.
            is_logged: whether a warning is logged.
        """
        self._tables.counts.count_death(cause)
        peak = f", peak memory {peak_bytes / 2**20:.0f} MiB" if peak_bytes else ""
        if running is not None:
            running.client.share.used_ns += int((now - worker.started_at.get(running, now)) * 1e9)
        beside = "" if running is None else f", while {running.name}#{running.id} ran in the same process"
        for task in _begun(worker, running):
            if task.intent != INTENT_RERUN:  # else its end was requested
                _count_death(task, worker, f"{cause}{peak}{'' if task is running else beside}")
        if is_logged:
            self._log_death(worker, f"{cause}{peak}", running)
        self._reattach.worker_died(worker, cause, now, ran)
        self.worker_left(worker, now, cause)

    def end_attempt(self, task: Task, worker: Worker, cause: str) -> None:
        """Count a failed attempt of a task whose worker had died before its client submitted it to this scheduler."""
        _count_death(task, worker, cause)
        self._attempt_end.detach(task)
        task.transition(WORKER_LOST)
        self._attempt_end.retry_or_end(task, worker, OUTCOME_WORKER_DIED, printable_line(cause.encode()))

    def _log_death(self, worker: Worker, cause: str, running: Task | None) -> None:
        """Log one warning about a worker's death. Only this method knows the task that it ran and the task's next
        state."""
        text = f"worker {worker.name} on {worker.host} (process {worker.pid}) was lost: {cause}. It ran "
        others = len(worker.tasks)
        log = self._operator_log.warning
        if running is None:
            text += "no task"
        else:
            others -= 1
            client = running.client
            text += f"{running.name} (task {client.incarnation}/{running.id} of client {client.name})"
            if running.intent >= INTENT_FORCE:
                log = self._operator_log.info
                text += ", which was being stopped"
            elif self._runs_again(running):
                text += ", which runs again"
            else:
                text += ", which has no retries left"
        ended = [task for task in worker.tasks.values() if task.state == SUSPENDED and not self._runs_again(task)]
        if ended:
            log = self._operator_log.warning
            text += f"; {len(ended)} suspended task(s), such as {ended[0].name}#{ended[0].id}, have no retries left"
            others -= len(ended)
        if others:
            text += f"; its {others} other task(s) move to other workers"
        log(text)

    def _runs_again(self, task: Task) -> bool:
        return self._attempt_end.has_retries_left(task if task.gang is None else task.gang.lead)

    def worker_left(self, worker: Worker, now: float, cause: str = "it has left") -> None:
        """Handle a worker that has left, with the nested clients of its tasks."""
        for client in self._tables.clients.nested_in(worker.incarnation):
            self.client_left(client, now)
        self.remove_worker(worker, cause=cause)

    def agent_left(self, agent: Agent) -> None:
        """Handle a host agent that has left, with the objects that only its host had."""
        self._tables.agents.remove(agent)
        self._bookings.agent_left(agent.incarnation)
        self._changes.agent_left(agent)
        self._takeover.agent_left(agent)
        lost, moved = self._tables.objects.remove_agent(agent)
        self._transfer_end.agent_lost(agent, moved)
        if not lost:
            return
        self._host_results.lose_objects(lost)
        gone = set(lost)
        for worker in self._tables.workers:
            if worker.agent == agent.incarnation:
                self._end_readers(worker, gone)

    def _end_readers(self, worker: Worker, gone: set[StoredObject]) -> None:
        """Take the readers of lost objects from a worker whose host agent is lost. The worker's own lease may run for
        longer. So the client learns of all lost tasks at once.
        """
        for task in sorted(worker.tasks.values(), key=_serial):
            if task.worker is worker and not gone.isdisjoint(task.inputs):
                self._attempt_end.detach(task)
                task.transition(WORKER_LOST)
                self._attempt_end.retry_or_end(task, worker, OUTCOME_WORKER_DIED, "its host is lost")
        if not worker.task_count:
            self._pool.add(worker)

    def remove_worker(
        self, worker: Worker, running: Sequence[TaskAttempt] = (), cause: str = "its connection was lost"
    ) -> dict[Task, int]:
        """Remove a worker that has left, has died or has a new connection.

        The tasks that it holds wait again, or end if their intents say so.

        Args:
            worker: the worker.
            running: the tasks that it runs, from the hello on its new connection; empty: it has left or died.
            cause: why the tasks are returned.

        Returns:
            The intents of its running tasks. These intents are not applied yet.
        """
        self._tables.workers.remove(worker)
        self._holdings.worker_lost(worker)
        self._changes.worker_left(worker)
        worker.outgoing = None
        self._pool.remove(worker)
        self._cancellation.remove_worker(worker)
        self._reattach.remove_worker(worker)
        self._tables.objects.remove_worker(worker)
        names = set(running)
        intents: dict[Task, int] = {}
        for task in reversed(list(worker.tasks.values())):  # a task before the tasks whose results it reads
            name = (task.client.incarnation, task.id, task.attempt)
            if task.intent and name in names:
                intents[task] = task.intent
                task.intent = NO_INTENT
            if isinstance(task, GangTask) and task.gang is not None and name in names:
                self._gangs.move(task)
                continue
            self._attempt_end.detach(task)
            task.transition(WORKER_LOST)
            self._attempt_end.retry_or_end(task, worker, OUTCOME_WORKER_DIED, printable_line(cause.encode()))
            if task.may_store and name not in names:
                self._host_results.discard_file(worker, task)
        return intents

    def client_left(self, client: Client, now: float) -> None:
        """Handle a client that has left: drop its waiting tasks, and retract or stop the tasks that workers hold."""
        self._tables.clients.mark_gone(client)
        client.outgoing = None
        functions, counts = self._tables.functions, self._tables.counts
        for lane in client.lanes.values():
            for batch in lane.batches:
                rows = batch.waiting_rows()
                if rows:
                    self._tables.history.record_client_left(
                        client, [batch.ids[row] for row in rows], list(map(batch.function_at, rows)), batch.options.name
                    )
                for row in rows:
                    self._tables.remove_row(client, batch.function_at(row), batch.options)
                    counts.payload_bytes -= batch.size_of(row)
                counts.count_client_left(len(rows) * batch.options.weight)
            self._queues.dequeue(lane)
            counts.waiting -= lane.waiting
            counts.further_waiting -= lane.further_calls
        client.lanes = {}
        self._graphs.remove_client(client)
        self._reattach.remove_client(client)
        if client.place is not None:
            self._transfer_end.agent_lost(client.place, [])
            client.place = None
        for task in list(client.tasks.values()):
            if task.state in (WAITING, BLOCKED) and task.gang is None:
                task.transition(CANCEL)
                end_with_client(self._tables, task)
                del client.tasks[task.id]
                self._tables.remove_row(client, task.function, task.options)
                counts.payload_bytes -= task.size
        self._cancellation.abandon(client, now)
        for function in client.functions.values():
            functions.remove_client(function, client.incarnation)
        client.functions = {}
        self._tables.environments.remove_client(client.incarnation)
        client.suspended.clear()
        client.pause_reasons &= ~PAUSE_SLOW_CONSUMER
        self._tables.clients.remove_if_done(client)


def _begun(worker: Worker, running: Task | None) -> list[Task]:
    """The tasks of a worker that have begun. It begins tasks in the order in which it got them, so all tasks before one
    that has begun have begun too, even if it has not reported them. Rows of several calls that have ended are left out:
    their calls are not the cause, and their client would fail all of them."""
    tasks = list(worker.tasks.values())
    while tasks and tasks[-1] is not running and tasks[-1].state == DISPATCHED:
        tasks.pop()
    return [task for task in tasks if task is running or task.state != DISPATCHED or task.options.weight == 1]


def _count_death(task: Task, worker: Worker, cause: str) -> None:
    """Count a failed attempt of a task that ends with its worker. A gang counts as one task."""
    counted = task if task.gang is None else task.gang.lead
    counted.failures += 1
    death = f"attempt {counted.failures} on {worker.host} (pid {worker.pid}): {cause}"
    counted.deaths = [*(counted.deaths or []), death]


def _serial(task: Task) -> int:
    return task.serial


def likely_running(worker: Worker) -> Task | None:
    """Return the task that a lost worker probably ran: a task that it reported as begun, or else its oldest task."""
    # The worker's own table has the order of its tasks. Serial numbers only give the order of dispatches to all
    # workers.
    begun = [task for task in worker.tasks.values() if task.state == RUNNING]
    queued = [task for task in worker.tasks.values() if task.state == DISPATCHED]
    return next(iter(begun or queued), None)
