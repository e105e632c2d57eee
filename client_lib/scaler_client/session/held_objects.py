"""What the scheduler keeps for a client's session: objects it was sent, and results of graphs' nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..pickling.references import StoredObject
from ..protocol.messages import ForgetObjects, Message, Object, TaskName
from .backlog import BATCH_ROWS, Backlog


class HeldObjects:
    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._objects: dict[int, StoredObject] = {}
        """Those that somebody refers to, by their ids, ascending."""
        self._forgotten: list[int] = []
        """What the scheduler is to be told that nobody refers to."""
        self._later: deque[tuple[int, Sequence[int]]] = deque()
        """The same once all rows up to this id have left: they read it."""
        self._told: deque[tuple[int, list[int]]] = deque()
        """What the scheduler was told so, until the answer to this heartbeat shows that it knows: a lost connection may
        have taken it along."""

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, stored: StoredObject, outgoing: list[Message] | None) -> None:
        """A new object, which has its id; None: the scheduler is told of it at the next join."""
        self._objects[stored.id] = stored
        if outgoing is not None:
            self._backlog.add_object(_message(stored), outgoing)

    def join(self, outgoing: list[Message]) -> None:
        """A scheduler has accepted the client, which may have none of them."""
        self._later.clear()
        for stored in self._objects.values():
            message = _message(stored)
            self._backlog.count_object(message)
            outgoing.append(message)

    def forget(self, stored: StoredObject) -> None:
        """Nothing refers to this one any more."""
        if self._objects.pop(stored.id, None) is not None:
            self._drop(stored)

    def forget_after(self, last_row: int, ids: Sequence[int]) -> None:
        """The client itself does not refer to these results of rows; rows up to the last one read them."""
        self._later.append((last_row, ids))

    def scheduler_changed(self) -> None:
        """It is another one, which knows nothing."""
        self._told.clear()

    def resend(self) -> None:
        """After a join, and after all that reads results anew: what it may not have heard."""
        told = [each for _, ids in self._told for each in ids]
        self._told.clear()
        if told:
            needed = {each for _, ids in self._later for each in ids}
            self._forgotten = [*(each for each in told if each not in needed), *self._forgotten]

    def confirm(self, heartbeat: int) -> None:
        """The scheduler has answered this one: it has heard all that was told before."""
        while self._told and self._told[0][0] <= heartbeat:
            self._told.popleft()

    def clear(self, parent: TaskName | None, is_everything: bool) -> None:
        """Forget what this task has sent, or everything, whoever still refers to it."""
        for stored in [each for each in self._objects.values() if is_everything or each.parent == parent]:
            self.forget(stored)

    def end(self) -> None:
        """The client is gone, and everything with it."""
        for stored in self._objects.values():
            stored.drop()
        self._objects.clear()
        self._later.clear()
        self._told.clear()

    def pop_messages(self, heartbeat: int) -> list[Message]:
        """What to tell a scheduler that has joined this client, behind everything else; the last heartbeat was this."""
        while self._later and self._backlog.is_past(self._later[0][0]):
            self._forgotten += self._later.popleft()[1]
        if not self._forgotten:
            return []
        ids, self._forgotten = self._forgotten, []
        self._told.append((heartbeat + 1, ids))
        return [ForgetObjects(ids[begin : begin + BATCH_ROWS]) for begin in range(0, len(ids), BATCH_ROWS)]

    def _drop(self, stored: StoredObject) -> None:
        stored.drop()
        if not self._backlog.drop_object(stored.id):
            self._forgotten.append(stored.id)


def _message(stored: StoredObject) -> Object:
    return Object(stored.id, stored.frames, name=stored.name)
