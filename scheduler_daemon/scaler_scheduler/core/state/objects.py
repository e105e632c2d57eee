"""The table of objects: bytes that clients sent, and results that are kept for tasks that read them.

An object lives while its client needs it, or while an open task reads it. Its bytes go once to each host agent or
worker that needs them.
"""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core.state.records import Agent, Client, Copies, StoredObject, Worker


class ObjectTable:
    """Counts objects and keeps them in step with the peers that have copies. Client records hold the objects."""

    def __init__(self) -> None:
        self._count = 0
        self.bytes = 0
        """The bytes of the objects that the scheduler has."""

    def __len__(self) -> int:
        return self._count

    def find(self, client: Client, object_id: int) -> StoredObject | None:
        return client.objects.get(object_id)

    def add(self, stored: StoredObject) -> None:
        stored.client.objects[stored.id] = stored
        self._count += 1

    def fill(self, stored: StoredObject, frames: list[bytes]) -> None:
        """Store the bytes of an object, which is in the table or about to be added."""
        stored.fill(frames)
        self.bytes += stored.size

    def release_frames(self, stored: StoredObject) -> None:
        """Drop the bytes of an object that its home still has."""
        self.bytes -= stored.size
        stored.frames = None

    def remove(self, stored: StoredObject) -> None:
        """Remove an object and the records of its copies. Only tasks that have ended may still wait for it."""
        stored.unblock()
        del stored.client.objects[stored.id]
        self._count -= 1
        if stored.frames is not None:
            self.bytes -= stored.size
        if stored.copies is not None:
            for worker in stored.copies.holders:
                worker.objects.discard(stored)
            for agent in stored.copies.agents | stored.copies.stale_agents:
                agent.objects.discard(stored)
                agent.forget_copy(stored)

    def shared_files(self, agent: Agent, workers: Iterable[Worker]) -> list[StoredObject]:
        """Return the objects that this agent's workers expect as files that the agent writes, of those whose bytes the
        scheduler has."""
        found: set[StoredObject] = set()
        for worker in workers:
            if worker.agent == agent.incarnation:
                found.update(stored for stored in worker.objects if worker in _copies_of(stored).file_readers)
        return sorted(
            (stored for stored in found if agent not in _copies_of(stored).hosts and stored.frames is not None),
            key=_name,
        )

    def add_agent_copy(self, stored: StoredObject, agent: Agent) -> None:
        """Note that the object is sent to this host agent."""
        _copies_of(stored).stale_agents.discard(agent)
        _copies_of(stored).agents.add(agent)
        agent.objects.add(stored)
        agent.add_copy(stored)

    def remove_worker(self, worker: Worker) -> None:
        """Forget the copies of a lost worker."""
        for stored in worker.objects:
            _copies_of(stored).workers.discard(worker)
            _copies_of(stored).file_readers.discard(worker)
        worker.objects = set()

    def remove_agent(self, agent: Agent) -> tuple[list[StoredObject], list[StoredObject]]:
        """Forget the copies of a lost host agent. Returns the objects that no other peer has, and those that have
        another home now."""
        lost: list[StoredObject] = []
        moved: list[StoredObject] = []
        for stored in agent.objects:
            copies = _copies_of(stored)
            copies.agents.discard(agent)
            copies.stale_agents.discard(agent)
            copies.hosts.discard(agent)
            if stored.home is agent:
                if stored.move_home():
                    moved.append(stored)
                elif stored.frames is None:
                    lost.append(stored)
        agent.objects = set()
        return sorted(lost, key=_name), sorted(moved, key=_name)

    def reconnect_agent(self, agent: Agent) -> list[StoredObject]:
        """Note that a host agent has a new connection. Objects on their way to it may be lost.

        Returns the objects whose files its workers made, or came from other hosts: the agent still has these.
        """
        for stored in agent.objects:
            if agent not in _copies_of(stored).hosts:
                _copies_of(stored).agents.discard(agent)
                agent.forget_copy(stored)
        made = [stored for stored in agent.objects if agent in _copies_of(stored).hosts]
        agent.objects = {*made, *(stored for stored in agent.objects if agent in _copies_of(stored).stale_agents)}
        return sorted(made, key=_name)


def _name(stored: StoredObject) -> tuple[int, int]:
    return stored.client.incarnation, stored.id


def _copies_of(stored: StoredObject) -> Copies:
    """The copies of an object that was sent to a peer."""
    assert stored.copies is not None
    return stored.copies
