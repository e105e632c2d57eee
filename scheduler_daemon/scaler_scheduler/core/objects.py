"""The table of objects: bytes that clients have sent, and results that are kept for the tasks that read them.

An object lives while its client refers to it or a task that reads it is not over. Its bytes go once to each host agent
or worker that needs them.
"""

from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from scaler_scheduler.core.records import Agent, Client, StoredObject, Worker


class ObjectTable:
    def __init__(self) -> None:
        self._objects: Dict[Tuple[int, int], StoredObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(list(self._objects.values()))

    def find(self, client: Client, object_id: int) -> Optional[StoredObject]:
        return self._objects.get((client.incarnation, object_id))

    def add(self, stored: StoredObject) -> None:
        self._objects[stored.client.incarnation, stored.id] = stored
        stored.client.objects[stored.id] = stored

    def remove(self, stored: StoredObject) -> None:
        del self._objects[stored.client.incarnation, stored.id]
        del stored.client.objects[stored.id]
        for worker in stored.holders:
            worker.objects.discard(stored)
        for agent in stored.agents:
            agent.objects.discard(stored)

    def files_of(self, agent: Agent, workers: Iterable[Worker]) -> List[StoredObject]:
        """What workers of this host agent were told to find as its files."""
        found: Set[StoredObject] = set()
        for worker in workers:
            if worker.agent == agent.incarnation:
                found.update(stored for stored in worker.objects if worker in stored.file_readers)
        return sorted(found, key=lambda stored: (stored.client.incarnation, stored.id))

    def give(self, stored: StoredObject, agent: Agent) -> None:
        """The host agent is sent the object."""
        stored.agents.add(agent)
        agent.objects.add(stored)

    def worker_left(self, worker: Worker) -> None:
        """What the worker had is gone."""
        for stored in worker.objects:
            stored.workers.discard(worker)
            stored.file_readers.discard(worker)
        worker.objects = set()

    def agent_left(self, agent: Agent) -> None:
        """What the host agent had is gone."""
        for stored in agent.objects:
            stored.agents.discard(agent)
        agent.objects = set()
