"""What becomes of tasks when a worker or a client is gone."""

from typing import Optional

from scaler_scheduler.core import effects
from scaler_scheduler.core.clients import ClientTable
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client, Task, Worker
from scaler_scheduler.core.states import CANCEL, GIVE_UP, RUNNING, WAITING, WORKER_LOST
from scaler_scheduler.core.workers import WorkerTable


class Losses:
    def __init__(
        self,
        clients: ClientTable,
        workers: WorkerTable,
        functions: FunctionTable,
        dispatcher: Dispatcher,
        outbox: Outbox,
        counts: Counts,
        task_retries: int,
    ) -> None:
        self._clients = clients
        self._workers = workers
        self._functions = functions
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._counts = counts
        self._task_retries = task_retries

    def lose_worker(self, worker: Worker, cause: str, peak_bytes: int, running: Optional[Task]) -> None:
        """The worker is gone: what it held waits again. Only the task that was running counts an attempt."""
        self._workers.remove(worker)
        worker.outgoing = None
        self._dispatcher.withdraw(worker)
        if running is not None:
            peak = f", peak memory {peak_bytes / 2**20:.0f} MiB" if peak_bytes else ""
            death = f"attempt {running.attempt} on {worker.host} (pid {worker.pid}): {cause}{peak}"
            running.deaths = [*(running.deaths or []), death]
        for serial in sorted(worker.tasks):
            task = worker.tasks[serial]
            task.move(WORKER_LOST)
            task.worker = None
            self._counts.dispatched -= 1
            client = task.client
            if client.is_gone:
                self._forget_task(client, task)
            elif task.deaths is not None and len(task.deaths) > self._task_retries:
                self._give_up(client, task)
            else:
                client.requeued.append(task)
                self._dispatcher.enqueue(client, 1)
        worker.tasks = {}

    def _give_up(self, client: Client, task: Task) -> None:
        assert task.deaths is not None
        task.move(GIVE_UP)
        del client.tasks[task.id]
        self._counts.resolved += 1
        self._functions.let_go(task.function)
        text = f"{task.function.name}: the worker died in each of {len(task.deaths)} attempts: {'; '.join(task.deaths)}"
        self._outbox.answer(client, task.id, effects.OUTCOME_WORKER_DIED, text.encode())

    def _forget_task(self, client: Client, task: Task) -> None:
        """A task of a client that has left, and that no worker holds any more."""
        task.move(CANCEL)
        del client.tasks[task.id]
        self._functions.let_go(task.function)
        self._clients.bury(client)

    def remove_client(self, client: Client) -> None:
        """The client is gone: nothing of it is dispatched any more; what workers hold is dropped when it comes back."""
        self._clients.leave(client)
        client.outbox = None
        for batch in client.batches:
            for row in batch.waiting_rows():
                self._functions.let_go(batch.function_at(row))
        client.batches.clear()
        client.requeued.clear()
        for task in list(client.tasks.values()):
            if task.state == WAITING:
                task.move(CANCEL)
                del client.tasks[task.id]
                self._functions.let_go(task.function)
        self._dispatcher.dequeue(client)
        for function in client.functions.values():
            self._functions.release(function, client)
        client.functions = {}
        self._clients.bury(client)


def likely_running(worker: Worker) -> Optional[Task]:
    """What a worker was busy with that can't be asked any more: a task that it said it began, else its oldest."""
    tasks = sorted(worker.tasks.values(), key=lambda task: task.serial)
    for task in tasks:
        if task.state == RUNNING:
            return task
    return tasks[0] if tasks else None
