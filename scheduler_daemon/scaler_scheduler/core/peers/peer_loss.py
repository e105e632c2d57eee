"""What becomes of tasks when a worker or a client is gone."""

from typing import Dict, Optional, Sequence, Set

from scaler_scheduler.core.completion.cancellation import Withdrawals
from scaler_scheduler.core.completion.closing import note_client_left
from scaler_scheduler.core.completion.endings import Endings
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import Name
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.effects import OUTCOME_WORKER_DIED
from scaler_scheduler.core.lines import as_line
from scaler_scheduler.core.peers.reattach import Adoption
from scaler_scheduler.core.state.operator_log import Notices
from scaler_scheduler.core.state.records import (
    FORCE,
    NO_WISH,
    RERUN,
    STALLED,
    Agent,
    Client,
    StoredObject,
    Task,
    Worker,
)
from scaler_scheduler.core.state.tables import Tables
from scaler_scheduler.core.state.transitions import BLOCKED, CANCEL, DISPATCHED, RUNNING, WAITING, WORKER_LOST


class Losses:
    def __init__(
        self,
        tables: Tables,
        dispatcher: Dispatcher,
        endings: Endings,
        graphs: Graphs,
        host_results: HostResults,
        withdrawals: Withdrawals,
        adoption: Adoption,
        notices: Notices,
    ) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._endings = endings
        self._graphs = graphs
        self._host_results = host_results
        self._withdrawals = withdrawals
        self._adoption = adoption
        self._notices = notices

    def worker_died(
        self,
        worker: Worker,
        cause: str,
        peak_bytes: int,
        running: Optional[Task],
        now: float,
        is_worth_a_line: bool = True,
    ) -> None:
        """The worker's process is gone, or was given up. Only the task that was running counts an attempt."""
        self._tables.counts.died(cause)
        peak = f", peak memory {peak_bytes / 2**20:.0f} MiB" if peak_bytes else ""
        if running is not None and running.wish != RERUN:  # that death was asked for
            running.failures += 1
            death = f"attempt {running.failures} on {worker.host} (pid {worker.pid}): {cause}{peak}"
            running.deaths = [*(running.deaths or []), death]
        if is_worth_a_line:
            self._tell_of(worker, f"{cause}{peak}", running)
        self.worker_left(worker, now, cause)

    def _tell_of(self, worker: Worker, cause: str, running: Optional[Task]) -> None:
        """The one warning of a worker's death: which function it ran, and what follows, is known here alone."""
        text = f"worker {worker.name} of {worker.host} (process {worker.pid}) was lost: {cause}, while it ran "
        others = len(worker.tasks)
        tell = self._notices.warning
        if running is None:
            text += "nothing"
        else:
            others -= 1
            client = running.client
            text += f"{running.name} (task {client.incarnation}/{running.id} of client {client.name})"
            if running.wish >= FORCE:
                tell = self._notices.info
                text += ", which was to be stopped"
            elif self._endings.has_retries_left(running):
                text += ", which runs again"
            else:
                text += ", which is given up"
        if others:
            text += f"; {others} other task(s) that it held run elsewhere"
        tell(text)

    def worker_left(self, worker: Worker, now: float, cause: str = "it has left") -> None:
        """The worker is gone, and with it the clients of its tasks."""
        for client in self._tables.clients.nested_in(worker.incarnation):
            self.client_left(client, now)
        self.connection_lost(worker, cause=cause)

    def agent_left(self, agent: Agent) -> None:
        """The host agent is gone, and what it alone had."""
        self._tables.agents.remove(agent)
        lost = self._tables.objects.agent_left(agent)
        if not lost:
            return
        self._host_results.lose(lost)
        gone = set(lost)
        for worker in self._tables.workers:
            if worker.agent == agent.incarnation:
                self._give_up_readers(worker, gone)

    def _give_up_readers(self, worker: Worker, gone: Set[StoredObject]) -> None:
        """The worker's host has gone with these. Its own lease may run for longer, but what it holds of their readers
        ends now: so the client is told of all of them at once."""
        for serial in sorted(worker.tasks):
            task = worker.tasks[serial]
            if not gone.isdisjoint(task.inputs):
                self._endings.leave_worker(task)
                task.move(WORKER_LOST)
                self._endings.settle_returned(task, worker, OUTCOME_WORKER_DIED, "its host is gone")
        if not worker.held:
            self._dispatcher.offer(worker)

    def connection_lost(
        self, worker: Worker, running: Sequence[Name] = (), cause: str = "its connection was lost"
    ) -> Dict[Task, int]:
        """Nothing says what this worker holds, beyond what it says that it runs: all of it waits again.

        Returns:
            Of the tasks that it runs those of which something was wanted, and what: they are not settled.
        """
        self._tables.workers.remove(worker)
        worker.outgoing = None
        self._dispatcher.withdraw(worker)
        self._withdrawals.forget(worker)
        self._adoption.forget(worker)
        self._tables.objects.worker_left(worker)
        names = set(running)
        wishes: Dict[Task, int] = {}
        for serial in sorted(worker.tasks):
            task = worker.tasks[serial]
            name = (task.client.incarnation, task.id, task.attempt)
            if task.wish and name in names:
                wishes[task] = task.wish
                task.wish = NO_WISH
            self._endings.leave_worker(task)
            task.move(WORKER_LOST)
            self._endings.settle_returned(task, worker, OUTCOME_WORKER_DIED, as_line(cause.encode()))
            if task.may_store and name not in names:
                self._host_results.forget_file(worker, task.client.incarnation, task.id)
        return wishes

    def client_left(self, client: Client, now: float) -> None:
        """The client is gone: what waits is dropped, what workers hold is taken back or stopped."""
        self._tables.clients.leave(client)
        client.outbox = None
        functions = self._tables.functions
        for lane in client.lanes.values():
            for batch in lane.batches:
                rows = batch.waiting_rows()
                if rows:
                    self._tables.history.dropped(
                        client, [batch.ids[row] for row in rows], list(map(batch.function_at, rows)), batch.options.name
                    )
                for row in rows:
                    functions.let_go(batch.function_at(row))
                    self._tables.counts.payload_bytes -= batch.size_of(row)
            self._tables.counts.client_left(lane.waiting)
            self._dispatcher.dequeue(lane)
            self._tables.counts.waiting -= lane.waiting
        client.lanes = {}
        self._graphs.client_left(client)
        for task in list(client.tasks.values()):
            if task.state in (WAITING, BLOCKED):
                task.move(CANCEL)
                note_client_left(self._tables, task)
                del client.tasks[task.id]
                functions.let_go(task.function)
                self._tables.counts.payload_bytes -= task.size
        self._withdrawals.abandon(client, now)
        for function in client.functions.values():
            functions.release(function, client.incarnation)
        client.functions = {}
        client.suspended.clear()
        client.pauses &= ~STALLED
        self._tables.clients.bury(client)


def likely_running(worker: Worker) -> Optional[Task]:
    """What a worker was busy with that can't be asked any more: a task that it said it began, else its oldest."""
    # In the order that it was given them; serial numbers tell who was dispatched first, if only to another worker.
    begun = [task for task in worker.tasks.values() if task.state == RUNNING]
    queued = [task for task in worker.tasks.values() if task.state == DISPATCHED]
    return next(iter(begun or queued), None)
