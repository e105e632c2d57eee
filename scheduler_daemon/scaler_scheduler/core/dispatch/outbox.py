"""Outgoing effects until the next collect: one growing batch for each peer, all others in order."""

from typing import Dict, List

from scaler_scheduler.core.effects import Dispatch, Effect, FetchObjects, ForgetObjects, Resolved
from scaler_scheduler.core.state.records import Client, Worker


class Outbox:
    """Effects that wait for the next collect."""

    def __init__(self) -> None:
        self._effects: List[Effect] = []
        self._last: List[Effect] = []
        self._forgotten: Dict[bytes, ForgetObjects] = {}
        self._fetched: Dict[bytes, FetchObjects] = {}
        self.clients: List[Client] = []
        """Clients with a batch of answers."""
        self._workers: List[Worker] = []

    def add(self, effect: Effect) -> None:
        """Add an effect. It goes before all batches."""
        self._effects.append(effect)

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

    def add_last(self, effect: Effect) -> None:
        """Add an effect that goes behind all batches, because it refers to tasks in them or says that all was sent."""
        self._last.append(effect)

    def resolved_batch(self, client: Client) -> Resolved:
        """Return the growing batch of answers for this client."""
        batch = client.outgoing
        if batch is None:
            batch = client.outgoing = Resolved(client.route)
            self.clients.append(client)
        return batch

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

    def drain(self) -> List[Effect]:
        """Return all effects and empty the outbox."""
        taken = self._effects
        for worker in self._workers:
            if worker.outgoing is not None:
                taken.append(worker.outgoing)
                worker.outgoing = None
        for client in self.clients:
            if client.outgoing is not None:
                client.answered_tasks += len(client.outgoing.ids)
                taken.append(client.outgoing)
                client.outgoing = None
        if self._fetched:
            taken.extend(self._fetched.values())
            self._fetched = {}
        taken.extend(self._last)
        # Behind all effects that may name these objects. They go by route: a worker that joins again does not need
        # them.
        taken.extend(self._forgotten.values())
        self._forgotten = {}
        self._effects, self._last, self.clients, self._workers = [], [], [], []
        return taken
