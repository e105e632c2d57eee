"""The table of objects: bytes that clients have sent, and results that are kept for the tasks that read them.

An object lives while its client refers to it or a task that reads it is not over. Its bytes go once to each host agent
or worker that needs them.
"""

from typing import Optional

from scaler_scheduler.core.records import Agent, Client, StoredObject, Worker


class ObjectTable:
    """The objects themselves stand in their clients' records."""

    def __init__(self) -> None:
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, client: Client, object_id: int) -> Optional[StoredObject]:
        return client.objects.get(object_id)

    def add(self, stored: StoredObject) -> None:
        stored.client.objects[stored.id] = stored
        self._count += 1

    def remove(self, stored: StoredObject) -> None:
        del stored.client.objects[stored.id]
        self._count -= 1
        if stored.copies is not None:
            for worker in stored.copies.holders:
                worker.objects.discard(stored)
            for agent in stored.copies.agents:
                agent.objects.discard(stored)

    def worker_left(self, worker: Worker) -> None:
        """What the worker had is gone."""
        for stored in worker.objects:
            assert stored.copies is not None
            stored.copies.workers.discard(worker)
            stored.copies.file_readers.discard(worker)
        worker.objects = set()

    def agent_left(self, agent: Agent) -> None:
        """What the host agent had is gone."""
        for stored in agent.objects:
            assert stored.copies is not None
            stored.copies.agents.discard(agent)
        agent.objects = set()
