"""The scheduler's directory of object files, in simulated memory, and what peers of its host do with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import Object, Payload


def is_near(incarnation: int) -> bool:
    """Whether a peer is on the scheduler's host: about half of them are. No random number is drawn for it."""
    return bool(incarnation & 2)


class SimulatedStore:
    """A FileStore of one scheduler.

    Args:
        scheduler: the scheduler's incarnation.
        least_bytes: clients write objects of at least this size.
        count: counts what happens.
    """

    def __init__(self, scheduler: int, least_bytes: int, count: Callable[[str], None]) -> None:
        self.scheduler = scheduler
        self._least_bytes = least_bytes
        self._count = count
        self._files: dict[ObjectName, Sequence[Payload]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def share(self, scheduler: int, client: int, message: Object) -> Object:
        """Do what `scaler_client.io.shared_objects` does."""
        size = sum(map(len, message.frames))
        if scheduler != self.scheduler or size < self._least_bytes or not is_near(client):
            return message
        self._count("objects as files of clients")
        self._files[client, message.id] = message.frames
        return Object(message.id, (), message.client, message.name, size)

    def find(self, scheduler: int, name: ObjectName) -> Sequence[Payload] | None:
        """The frames of a file that an agent links. None: it was removed, or this scheduler has ended."""
        return self._files.get(name) if scheduler == self.scheduler else None

    def size(self, name: ObjectName) -> int:
        return sum(map(len, self._files.get(name, ())))

    def read(self, name: ObjectName) -> list[bytes]:
        frames = self._files.get(name)
        if frames is None:
            raise OSError("no such file")
        return [bytes(frame) for frame in frames]

    def clients(self) -> set[int]:
        return {client for client, _ in self._files}

    def remove(self, name: ObjectName) -> None:
        self._files.pop(name, None)

    def remove_client(self, client: int) -> None:
        for name in [name for name in self._files if name[0] == client]:
            del self._files[name]

    def is_near(self, agent: int) -> bool:
        return is_near(agent)

    def close(self) -> None:
        self._files.clear()
