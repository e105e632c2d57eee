"""Who gets which waiting task: clients in turn, workers as they have room."""

from collections import OrderedDict, deque
from typing import Deque, List, Optional

from scaler_scheduler.core import effects
from scaler_scheduler.core.batches import Batch
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.dispatch import allowance, cost, wants_work
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client, Function, Task, Worker
from scaler_scheduler.core.states import DISPATCH, WAITING


class Dispatcher:
    def __init__(self, outbox: Outbox, counts: Counts, queue_size: int) -> None:
        self.queue: Deque[Client] = deque()
        """Clients with waiting tasks; each gets its turn."""
        self.idle: List[Worker] = []
        """Workers that hold nothing."""
        self.partial: OrderedDict[Worker, None] = OrderedDict()
        """Workers that hold something and have room for more."""
        self._outbox = outbox
        self._counts = counts
        self._queue_size = queue_size
        self._next_serial = 1

    def enqueue(self, client: Client, count: int) -> None:
        """So many more of the client's tasks wait."""
        client.waiting += count
        self._counts.waiting += count
        if not client.is_queued:
            client.is_queued = True
            self.queue.append(client)

    def offer(self, worker: Worker) -> None:
        """The worker can take more: put it where it is looked for."""
        if worker.is_ready:
            if worker.tasks or worker not in self.partial:
                return
            del self.partial[worker]  # it has run dry
        worker.is_ready = True
        if worker.tasks:
            self.partial[worker] = None
        else:
            # A stack: the worker that was busy last has the warmest caches, and with few tasks the others can rest.
            self.idle.append(worker)

    def run(self) -> None:
        """Give out what waits, as far as workers want it."""
        queue_size = self._queue_size
        declined: List[Worker] = []
        while self.queue and (self.idle or self.partial):
            client = self.queue[0]
            function = self.next_function(client)
            if function is None:
                client.is_queued = False
                self.queue.popleft()
                continue
            worker = self.idle.pop() if self.idle else self.partial.popitem(last=False)[0]
            worker.is_ready = False
            workers = len(self.idle) + len(self.partial) + 1
            count = allowance(worker, function, self._counts.waiting, workers, queue_size)
            if count == 0:
                declined.append(worker)
                continue
            self._give(worker, client, function, count)
            self.queue.rotate(-1)
            if wants_work(worker, queue_size):
                self.offer(worker)
        for worker in declined:
            self.offer(worker)

    def next_function(self, client: Client) -> Optional[Function]:
        """The function of the task that this client's next dispatch begins with; None when nothing waits."""
        while client.requeued:
            task = client.requeued[0]
            if task.state == WAITING:
                return task.function
            client.requeued.popleft()
        while client.batches:
            batch = client.batches.first
            batch.skip_cancelled()
            if not batch.is_empty:
                return batch.function_at(batch.next)
            client.batches.remove_first()
        return None

    def _give(self, worker: Worker, client: Client, function: Function, count: int) -> None:
        """Dispatch up to `count` of the client's next tasks, all of `function`, to the worker."""
        if function not in worker.functions:
            worker.functions.add(function)
            self._outbox.add(
                effects.Function(worker.route, function.number, function.name, function.serializer, function.payload)
            )
        outgoing = self._outbox.dispatch(worker)
        if client.requeued:
            taken = self._give_again(worker, client, outgoing)
        else:
            taken = self._give_run(worker, client, function, client.batches.first, count, outgoing)
        client.waiting -= taken
        self._counts.waiting -= taken
        self._counts.dispatched += taken

    def _give_again(self, worker: Worker, client: Client, outgoing: effects.Dispatch) -> int:
        task = client.requeued.popleft()
        task.move(DISPATCH)
        task.attempt += 1
        task.worker = worker
        task.cost = cost(task.function)
        worker.tasks[task.serial] = task
        worker.load += task.cost
        worker.bytes += task.size
        outgoing.clients.append(client.number)
        outgoing.ids.append(task.id)
        outgoing.attempts.append(task.attempt)
        outgoing.functions.append(task.function.number)
        if task.is_large:
            outgoing.rows.append_large(task.payload)
        else:
            outgoing.rows.append_run([task.size], task.payload[task.start : task.start + task.size])
        return 1

    def _give_run(
        self,
        worker: Worker,
        client: Client,
        function: Function,
        batch: Batch,
        count: int,
        outgoing: effects.Dispatch,
    ) -> int:
        """Dispatch rows from the front of a batch: their bytes lie behind one another and go as one slice."""
        first = batch.next
        count = batch.run_length(count)
        ids = batch.ids[first : first + count]
        sizes = batch.sizes[first : first + count]
        large = batch.large.pop(first, None) if batch.large else None
        task_cost = cost(function)
        serial = self._next_serial
        position = batch.position
        payload = batch.payload if large is None else large
        large_size = 0 if large is None else len(large)
        client_tasks = client.tasks
        worker_tasks = worker.tasks
        for row in range(count):
            task_id = ids[row]
            size = sizes[row]
            task = Task(
                task_id,
                client,
                function,
                payload,
                position,
                size + large_size,
                large is not None,
                serial,
                task_cost,
                worker,
            )
            client_tasks[task_id] = task
            worker_tasks[serial] = task
            serial += 1
            position += size
        worker.load += task_cost * count
        worker.bytes += position - batch.position + large_size
        outgoing.clients.extend([client.number] * count)
        outgoing.ids.extend(ids)
        outgoing.attempts.extend([1] * count)
        outgoing.functions.extend([function.number] * count)
        if large is not None:
            outgoing.rows.append_large(large)
        else:
            outgoing.rows.append_run(sizes, payload[batch.position : position])
        self._next_serial = serial
        batch.next = first + count
        batch.position = position
        if batch.is_empty:
            client.batches.remove_first()
        return count

    def withdraw(self, worker: Worker) -> None:
        """The worker is gone: what stands in these lists shares the waiting tasks."""
        if worker.is_ready:
            worker.is_ready = False
            if worker in self.partial:
                del self.partial[worker]
            else:
                self.idle.remove(worker)

    def dequeue(self, client: Client) -> None:
        """The client is gone, and with it what waits."""
        if client.is_queued:
            client.is_queued = False
            self.queue.remove(client)
        self._counts.waiting -= client.waiting
        client.waiting = 0
