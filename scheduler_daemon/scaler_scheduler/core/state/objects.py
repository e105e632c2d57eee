"""The table of objects: bytes that clients have sent, and results that are kept for the tasks that read them.

An object lives while its client refers to it or a task that reads it is not over. Its bytes go once to each host agent
or worker that needs them.
"""

from typing import Iterable, List, Optional, Set, Tuple

from scaler_scheduler.core.state.records import Agent, Client, Copies, StoredObject, Worker


class ObjectTable:
    """The objects themselves stand in their clients' records."""

    def __init__(self) -> None:
        self._count = 0
        self.bytes = 0
        """Of those that are here."""

    def __len__(self) -> int:
        return self._count

    def find(self, client: Client, object_id: int) -> Optional[StoredObject]:
        return client.objects.get(object_id)

    def add(self, stored: StoredObject) -> None:
        stored.client.objects[stored.id] = stored
        self._count += 1

    def fill(self, stored: StoredObject, frames: List[bytes]) -> None:
        """The object's bytes have come: it is in the table, or about to be."""
        stored.fill(frames)
        self.bytes += stored.size

    def remove(self, stored: StoredObject) -> None:
        del stored.client.objects[stored.id]
        self._count -= 1
        if stored.frames is not None:
            self.bytes -= stored.size
        if stored.copies is not None:
            for worker in stored.copies.holders:
                worker.objects.discard(stored)
            for agent in stored.copies.agents | stored.copies.stale_agents:
                agent.objects.discard(stored)

    def shared_files(self, agent: Agent, workers: Iterable[Worker]) -> List[StoredObject]:
        """What workers of this host agent were told to find as files that it makes."""
        found: Set[StoredObject] = set()
        for worker in workers:
            if worker.agent == agent.incarnation:
                found.update(stored for stored in worker.objects if worker in _copies_of(stored).file_readers)
        return sorted((stored for stored in found if stored.home is not agent), key=_name)

    def add_agent_copy(self, stored: StoredObject, agent: Agent) -> None:
        """The host agent is sent the object."""
        _copies_of(stored).stale_agents.discard(agent)
        _copies_of(stored).agents.add(agent)
        agent.objects.add(stored)

    def remove_worker(self, worker: Worker) -> None:
        """What the worker had is gone."""
        for stored in worker.objects:
            _copies_of(stored).workers.discard(worker)
            _copies_of(stored).file_readers.discard(worker)
        worker.objects = set()

    def remove_agent(self, agent: Agent) -> List[StoredObject]:
        """What the host agent had is gone. Returns what nobody else has."""
        for stored in agent.objects:
            _copies_of(stored).agents.discard(agent)
            _copies_of(stored).stale_agents.discard(agent)
        lost = [stored for stored in agent.objects if stored.home is agent and stored.is_remote]
        for stored in agent.objects:
            if stored.home is agent:
                stored.home = None
        agent.objects = set()
        return sorted(lost, key=_name)

    def reconnect_agent(self, agent: Agent) -> List[StoredObject]:
        """What the host agent was sent may not have arrived; what it has from its workers it has still, and that is
        returned."""
        for stored in agent.objects:
            if stored.home is not agent:
                _copies_of(stored).agents.discard(agent)
        made = [stored for stored in agent.objects if stored.home is agent]
        agent.objects = {*made, *(stored for stored in agent.objects if agent in _copies_of(stored).stale_agents)}
        return sorted(made, key=_name)


def _name(stored: StoredObject) -> Tuple[int, int]:
    return stored.client.incarnation, stored.id


def _copies_of(stored: StoredObject) -> Copies:
    """Of an object that stands in the record of somebody who was sent it."""
    assert stored.copies is not None
    return stored.copies
