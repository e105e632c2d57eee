"""The data that the scheduler keeps for a client's session: its objects, and results of graph nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..pickling.references import ResultObject, StoredObject
from ..protocol.messages import ForgetObjects, Message, Object, Objects, TaskAttempt
from .backlog import BATCH_ROWS, Backlog

OBJECTS_ROWS = 256
"""The most small objects of one message: 64 KiB."""


class HeldObjects:
    """Sends objects, and tells the scheduler which objects and kept results have no references any more."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self.joins = 1
        """One more than the number of joins. After a join the scheduler may have no object."""
        self._objects: dict[int, StoredObject] = {}
        """Objects with references in this process, by id, ascending."""
        self._forgotten: list[int] = []
        """Ids that the scheduler is to forget; not sent yet."""
        self._deferred: deque[tuple[int, Sequence[int]]] = deque()
        """Ids to forget once all rows up to the given id are sent, because these rows read them."""
        self._unread: deque[tuple[int, int]] = deque()
        """Results without references: the last row that reads each, and its id. They are forgotten when that row is
        sent, or was dropped: rows say which results are kept."""
        self._unconfirmed: deque[tuple[int, list[int]]] = deque()
        """Ids that were sent as forgotten, each with the heartbeat whose echo confirms that.

        The message may have been lost with a connection.
        """

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, stored: StoredObject, outgoing: list[Message] | None) -> None:
        """Add a new object, which has its id.

        Args:
            outgoing: takes the message; None: there is no scheduler, the next join sends the object.
        """
        self._objects[stored.id] = stored
        if outgoing is not None:
            self._backlog.add_object(_message(stored), outgoing)

    def send_all(self, outgoing: list[Message]) -> None:
        """Send all objects to a scheduler that this client has just joined: it may have none of them.

        Results are sent when a task that reads them is submitted again.
        """
        self._deferred.clear()
        self._forgotten += [each for _, each in self._unread]
        self._unread.clear()
        self.joins += 1
        for stored in self._objects.values():
            if type(stored) is StoredObject:
                self.send_now(stored, outgoing)

    def send_now(self, stored: StoredObject, outgoing: list[Message]) -> None:
        """Send an object without waiting for credit: the scheduler had it before, or asks for it."""
        message = _message(stored)
        self._backlog.count_object(message)
        outgoing.append(message)

    def send_together(self, stored: Sequence[StoredObject], outgoing: list[Message]) -> None:
        """As `send_now` for each of these objects, which have one small frame: many in one message
        (benchmarks/chains.py)."""
        for each in stored:
            self._backlog.count_object(_message(each))
        for begin in range(0, len(stored), OBJECTS_ROWS):
            part = sorted(stored[begin : begin + OBJECTS_ROWS], key=_id_of)
            outgoing.append(Objects([each.id for each in part], [each.frames[0] for each in part]))

    def hold(self, stored: StoredObject) -> None:
        """Add the result of an open task, which has its id. The scheduler keeps it when the task ends."""
        self._objects[stored.id] = stored

    def find(self, object_id: int) -> StoredObject | None:
        """Return the object with this id; None: it has no references."""
        return self._objects.get(object_id)

    def forget(self, stored: StoredObject) -> None:
        """Drop an object without references."""
        if self._objects.pop(stored.id, None) is not None:
            self._drop(stored)

    def forget_after(self, last_row: int, ids: Sequence[int]) -> None:
        """Forget kept results once all rows up to `last_row` are sent. The client itself has no references to them."""
        self._deferred.append((last_row, ids))

    def lend(self, stored: ResultObject, reader: int) -> None:
        """Have a result without references kept until the row that reads it is sent."""
        if stored.id in self._forgotten:
            self._forgotten.remove(stored.id)
        self._unread.append((reader, stored.id))

    def scheduler_changed(self) -> None:
        """Stop waiting for confirmations: the new scheduler has none of these objects."""
        self._unconfirmed.clear()

    def resend_forgotten(self) -> None:
        """Send the unconfirmed ids again after a join, after all rows that read these results again."""
        unconfirmed = [each for _, ids in self._unconfirmed for each in ids]
        self._unconfirmed.clear()
        if unconfirmed:
            needed = {each for _, ids in self._deferred for each in ids}
            needed.update(each for _, each in self._unread)
            self._forgotten = [*(each for each in unconfirmed if each not in needed), *self._forgotten]

    def confirm(self, heartbeat: int) -> None:
        """Note that the scheduler has echoed a heartbeat, and so received everything that was sent before it."""
        while self._unconfirmed and self._unconfirmed[0][0] <= heartbeat:
            self._unconfirmed.popleft()

    def clear(self) -> None:
        """Drop all objects, even if references to them exist."""
        for stored in list(self._objects.values()):
            self.forget(stored)

    def clear_sent_by(self, parent: TaskAttempt | None) -> None:
        """Drop the objects that one task has sent, even if references to them exist.

        Args:
            parent: the task; None: the objects that were sent outside of tasks.
        """
        for stored in [each for each in self._objects.values() if each.parent == parent]:
            self.forget(stored)

    def close(self) -> None:
        """Drop everything without a message, because the scheduler does the same when the client leaves."""
        for stored in self._objects.values():
            stored.drop()
        self._objects.clear()
        self._deferred.clear()
        self._unread.clear()
        self._unconfirmed.clear()

    def pop_messages(self, heartbeat: int, unsent_row: int | None) -> list[Message]:
        """Return the messages to send last to a scheduler that this client has joined.

        Args:
            heartbeat: the number of the last heartbeat.
            unsent_row: the first row that is not in the backlog yet; None: there is none.
        """
        while self._unread:
            row, each = self._unread[0]
            if not self._backlog.is_past(row) or (unsent_row is not None and row >= unsent_row):
                break
            self._unread.popleft()
            if each not in self._objects:
                self._backlog.drop_keep(each)
                self._forgotten.append(each)
        while self._deferred and self._backlog.is_past(self._deferred[0][0]):
            self._forgotten += [each for each in self._deferred.popleft()[1] if each not in self._objects]
        if not self._forgotten:
            return []
        ids, self._forgotten = self._forgotten, []
        self._unconfirmed.append((heartbeat + 1, ids))
        return [ForgetObjects(ids[begin : begin + BATCH_ROWS]) for begin in range(0, len(ids), BATCH_ROWS)]

    def _drop(self, stored: StoredObject) -> None:
        stored.drop()
        result = stored if isinstance(stored, ResultObject) else None
        if self._backlog.drop_object(stored.id) and (result is None or self.joins <= 2):
            return  # it was not sent; after further joins the scheduler may have a result nevertheless
        if result is not None and result.last_reader >= 0:
            self._unread.append((result.last_reader, result.id))
        else:
            self._forgotten.append(stored.id)


def _id_of(stored: StoredObject) -> int:
    return stored.id


def _message(stored: StoredObject) -> Object:
    return Object(stored.id, stored.frames, name=stored.name)
