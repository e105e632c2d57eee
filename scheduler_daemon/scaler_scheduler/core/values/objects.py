"""The table of objects: bytes that clients sent, and results that are kept for tasks that read them.

An object lives while its client needs it, or while an open task reads it. Its bytes go once to each host agent or
worker that needs them.
"""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core.state.records import Agent, Client, StoredObject, Task, Worker
from scaler_scheduler.core.state.value_states import (
    ARRIVE,
    CLAIM,
    DROP,
    FILL,
    HAND_OVER,
    MAKE,
    REJOIN,
    REMOVE,
    WRITE,
    is_file,
    next_value_state,
)
from scaler_scheduler.core.values.copies import READS, drop_worker, move, promote_other, state_at


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
        self._note_there(stored)
        stored.frames = frames
        stored.fetched_from = None
        size = 0
        for frame in frames:
            size += len(frame)
        stored.size = size
        self.bytes += size

    def claim(self, stored: StoredObject, file: int, size: int) -> None:
        """Add a result that its client refers to, and that some host may have as the file with this id."""
        stored.state = next_value_state(stored.state, CLAIM)
        stored.file_id = file
        stored.size = size
        stored.is_from_client = False
        self.add(stored)

    def adopt(self, stored: StoredObject, places: list[Agent]) -> None:
        """Note that these hosts have the file of a claimed result."""
        self._note_there(stored)
        first, *others = places
        move(stored, first, WRITE)
        for place in others:
            move(stored, place, ARRIVE)

    def make(self, stored: StoredObject, task: Task) -> None:
        """Note that this task makes an object that is not there."""
        stored.state = next_value_state(stored.state, MAKE)
        stored.file_id = stored.id
        stored.producer = task

    def hand_over(self, stored: StoredObject) -> None:
        """Note that only its client has the result of a task, and is going to send it."""
        stored.state = next_value_state(stored.state, HAND_OVER)
        stored.producer = None

    def give_up(self, stored: StoredObject) -> None:
        """Note that nobody needs an object any more, and that no task makes it. Then remove it."""
        stored.producer = None
        stored.is_referenced = False
        stored.readers = 0

    @staticmethod
    def _note_there(stored: StoredObject) -> None:
        stored.state = next_value_state(stored.state, FILL)
        stored.producer = None

    def store_at(self, stored: StoredObject, place: Agent, size: int) -> None:
        """Note that a worker of this host, or the client at this place, has written it as a file of `size` bytes."""
        self._note_there(stored)
        stored.size = size
        move(stored, place, WRITE)
        place.room.free -= size

    def release_frames(self, stored: StoredObject) -> None:
        """Drop the bytes of an object that its home still has."""
        self.bytes -= stored.size
        stored.frames = None

    def remove(self, stored: StoredObject) -> None:
        """Remove an object and the records of its copies. Only tasks that have ended may still wait for it."""
        stored.unblock()
        stored.state = next_value_state(stored.state, REMOVE)
        del stored.client.objects[stored.id]
        self._count -= 1
        if stored.frames is not None:
            self.bytes -= stored.size
        for worker in list(stored.workers or ()):
            drop_worker(stored, worker)
        for place in list(stored.copies or ()):
            move(stored, place, DROP)

    def shared_files(self, agent: Agent, workers: Iterable[Worker]) -> list[StoredObject]:
        """Return the objects that this agent's workers expect as files that the agent writes, of those whose bytes the
        scheduler has."""
        found: set[StoredObject] = set()
        for worker in workers:
            if worker.agent == agent.incarnation:
                found.update(stored for stored in worker.objects if (stored.workers or {}).get(worker) == READS)
        return sorted(
            (stored for stored in found if not is_file(state_at(stored, agent)) and stored.frames is not None),
            key=_name,
        )

    def remove_worker(self, worker: Worker) -> None:
        """Forget the copies of a lost worker."""
        for stored in list(worker.objects):
            drop_worker(stored, worker)

    def remove_agent(self, agent: Agent) -> tuple[list[StoredObject], list[StoredObject]]:
        """Forget the copies of a lost host agent. Returns the objects that no other peer has, and those that have
        another home now."""
        lost: list[StoredObject] = []
        moved: list[StoredObject] = []
        for stored in sorted(agent.objects, key=_name):
            was_home = stored.home is agent
            move(stored, agent, DROP)
            if was_home:
                if promote_other(stored):
                    moved.append(stored)
                elif stored.frames is None:
                    lost.append(stored)
        return lost, moved

    def reconnect_agent(self, agent: Agent) -> list[StoredObject]:
        """Note that a host agent has a new connection. Objects on their way to it may be lost.

        Returns the objects whose files its workers made, or came from other hosts: the agent still has these.
        """
        known = sorted(agent.objects, key=_name)
        return [stored for stored in known if is_file(move(stored, agent, REJOIN))]


def _name(stored: StoredObject) -> tuple[int, int]:
    return stored.client.incarnation, stored.id
