"""The tasks of a client that have no answer yet, and who waits for them."""

from __future__ import annotations

from .messages import Payload, Resolved, TaskName
from .owners import CHUNK_BITS, ChunkOwner, Owner, SingleOwner


class OpenTasks:
    def __init__(self) -> None:
        self.single: dict[int, SingleOwner] = {}
        """Who waits for which single task, in the order of submission."""
        self.chunks: dict[int, ChunkOwner] = {}
        """Who waits for the tasks of a chunk, by their ids without the last CHUNK_BITS bits."""

    def ids(self) -> list[int]:
        """All of them, ascending."""
        ids = list(self.single)
        for owner in self.chunks.values():
            ids += owner.open_ids()
        return sorted(ids)

    def count(self) -> int:
        """How many there are. Called by any thread."""
        return len(self.single) + sum(len(owner.open_ids()) for owner in list(self.chunks.values()))

    def ids_of_children(self, parent: TaskName | None) -> list[int]:
        """Those that this task has submitted; None: those that no task has."""
        ids = [task_id for task_id, owner in self.single.items() if owner.parent == parent]
        for owner in self.chunks.values():
            if owner.parent == parent:
                ids += owner.open_ids()
        return ids

    def are_known(self, task_id: int) -> bool:
        """Whether the id is of an open task, or of a chunk that has open tasks."""
        return task_id in self.single or task_id >> CHUNK_BITS in self.chunks

    def owner(self, task_id: int) -> Owner:
        """Who waits for this task. Raises KeyError when nobody does."""
        return self.single.get(task_id) or self.chunks[task_id >> CHUNK_BITS]

    def start(self, ids: list[int]) -> None:
        """Workers run these."""
        for task_id in ids:
            owner = self.single.get(task_id)
            if owner is not None:
                owner.start()

    def take(self, message: Resolved) -> None:
        """Give each owner its answer; what nobody waits for is passed over."""
        if message.cpu_times:
            self._tell_measurements(message)
        pop = self.single.pop
        chunks = self.chunks
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            owner = pop(task_id, None)
            if owner is not None:
                owner.resolve(task_id, outcome, answer)
                continue
            chunk = chunks.get(task_id >> CHUNK_BITS)
            if chunk is not None and chunk.resolve(task_id, outcome, answer):
                del chunks[task_id >> CHUNK_BITS]

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """The same for one task, with an answer of the client's own."""
        self.take(Resolved([task_id], [outcome], [answer]))

    def fail(self, error: BaseException) -> list[int]:
        """End all with this error; returns their ids."""
        ids = self.ids()
        for task_id in ids:
            owner = self.single.pop(task_id, None) or self.chunks[task_id >> CHUNK_BITS]
            owner.fail(task_id, error)
        self.chunks.clear()
        return ids

    def _tell_measurements(self, message: Resolved) -> None:
        for row, peak in enumerate(message.peaks):
            owner = self.single.get(message.ids[row]) if peak else None
            if owner is not None:
                owner.measured(message.durations[row], message.cpu_times[row], peak)
