"""Outgoing effects until the next collect: one growing batch for each peer, all others in order."""

from scaler_scheduler.core.effects import (
    OUTCOME_KEPT,
    Dispatch,
    Effect,
    FetchObjects,
    ForgetObjects,
    Resolved,
    Retract,
    TransferObjects,
)
from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.core.state.records import Client, Task, Worker

KEPT_SECONDS = 0.05
"""How long the answer of a graph's kept result may wait for other answers to its client.

Nobody waits for it: the client only drops the row. Without the wait each step of a graph of short tasks costs a message
and wakes the client, a quarter of the processor time beside its tasks (`make bench ONLY=stencil`).
"""


class Outbox:
    """Effects that wait for the next collect."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._last: list[Effect] = []
        self._forgotten: dict[bytes, ForgetObjects] = {}
        self._fetched: dict[bytes, FetchObjects] = {}
        self._transfers: dict[tuple[bytes, int], TransferObjects] = {}
        """The orders that may grow, by the route of the target and the incarnation of the source."""
        self._retracted: dict[Worker, list[tuple[int, int, int]]] = {}
        self.clients: list[Client] = []
        """Clients with a batch of answers."""
        self._workers: list[Worker] = []
        self.kept_seconds = KEPT_SECONDS
        self.next_deadline = float("inf")
        """When the oldest batch of kept results must go out, in seconds of the monotonic clock."""

    def add(self, effect: Effect) -> None:
        """Add an effect. It goes before all batches."""
        self._effects.append(effect)
        if self._transfers:
            self._transfers = {}  # further orders go behind this effect, which may name the same objects

    def transfer_object(
        self, route: bytes, source: int, data: DataAddress, client: int, object_id: int, size: int
    ) -> None:
        """Ask a host agent to get an object file from another agent, or from a client."""
        batch = self._transfers.get((route, source))
        if batch is None or batch.data != data:
            batch = self._transfers[route, source] = TransferObjects(route, source, data)
            self._effects.append(batch)
        batch.clients.append(client)
        batch.ids.append(object_id)
        batch.bytes.append(size)

    def forget_object(self, route: bytes, client: int, object_id: int) -> None:
        """Tell a peer that an object is no longer needed."""
        batch = self._forgotten.get(route)
        if batch is None:
            batch = self._forgotten[route] = ForgetObjects(route, [], [])
        batch.clients.append(client)
        batch.ids.append(object_id)

    def fetch_object(self, route: bytes, client: int, object_id: int) -> None:
        """Ask a host agent for an object."""
        batch = self._fetched.get(route)
        if batch is None:
            batch = self._fetched[route] = FetchObjects(route, [], [])
        batch.clients.append(client)
        batch.ids.append(object_id)

    def retract(self, task: Task) -> None:
        """Ask the worker that holds the task to give it back, unless it was asked already."""
        if task.is_retracting or task.worker is None:
            return
        task.is_retracting = True
        self._retracted.setdefault(task.worker, []).append((task.client.incarnation, task.id, task.attempt))

    def remove_worker(self, worker: Worker) -> None:
        """Drop the retracts for a lost worker."""
        self._retracted.pop(worker, None)

    def add_last(self, effect: Effect) -> None:
        """Add an effect that goes behind all batches, because it refers to tasks in them or marks their end."""
        self._last.append(effect)

    def resolved_batch(self, client: Client) -> Resolved:
        """Return the growing batch of answers for this client."""
        batch = client.outgoing
        if batch is None:
            batch = client.outgoing = Resolved(client.route)
            self.clients.append(client)
        batch.deadline = 0.0
        return batch

    def answer_kept(self, client: Client, task_id: int, now: float) -> None:
        """Add the answer that the result of a graph's node is kept. It waits for others."""
        batch = client.outgoing
        if batch is None:
            batch = self.resolved_batch(client)
            batch.deadline = now + self.kept_seconds
            self.next_deadline = min(self.next_deadline, batch.deadline)
        batch.ids.append(task_id)
        batch.outcomes.append(OUTCOME_KEPT)
        batch.rows.sizes.append(0)

    def dispatch_batch(self, worker: Worker) -> Dispatch:
        """Return the growing batch of tasks for this worker."""
        batch = worker.outgoing
        if batch is None:
            batch = worker.outgoing = Dispatch(worker.route)
            self._workers.append(worker)
        return batch

    def answer(self, client: Client, task_id: int, outcome: int, payload: bytes) -> None:
        """Add an answer of the scheduler itself."""
        batch = self.resolved_batch(client)
        batch.ids.append(task_id)
        batch.outcomes.append(outcome)
        batch.rows.sizes.append(len(payload))
        if payload:
            batch.rows.parts.append(payload)
        client.sent_bytes += len(payload)

    def flush_answers(self, client: Client) -> None:
        """Let the answers so far go before the effects that are added from now on."""
        batch = client.outgoing
        if batch is not None:
            self._effects.append(batch)
            client.answered_tasks += len(batch.ids)
            client.unread.add(batch, client.sent_bytes)
            client.outgoing = None
            self.clients.remove(client)

    def drain(self, now: float) -> list[Effect]:
        """Return all effects that are due, and remove them from the outbox."""
        taken = self._effects
        for worker in self._workers:
            if worker.outgoing is not None:
                taken.append(worker.outgoing)
                worker.outgoing = None
        later: list[Client] = []
        self.next_deadline = float("inf")
        for client in self.clients:
            batch = client.outgoing
            if batch is None:
                continue
            if batch.deadline > now:
                later.append(client)
                self.next_deadline = min(self.next_deadline, batch.deadline)
                continue
            client.answered_tasks += len(batch.ids)
            client.unread.add(batch, client.sent_bytes)
            taken.append(batch)
            client.outgoing = None
        if self._fetched:
            taken.extend(self._fetched.values())
            self._fetched = {}
        for worker, names in self._retracted.items():
            clients, ids, attempts = zip(*names)
            taken.append(Retract(worker.route, clients, ids, attempts))
        self._retracted = {}
        taken.extend(self._last)
        # Behind all effects that may name these objects. They are sent by route, because a worker that joins again does
        # not need them.
        taken.extend(self._forgotten.values())
        self._forgotten = {}
        self._effects, self._last, self.clients, self._workers = [], [], later, []
        self._transfers = {}
        return taken
