"""The data that the scheduler keeps for a client's session: its objects, and results of graph nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Protocol

from ..futures.kept_results import KeptResult
from ..pickling.object_frames import ResultFile
from ..pickling.references import ResultObject, StoredObject
from ..protocol.messages import FileResult, ForgetObjects, HeldResults, Message, Object, Objects, Payload, TaskAttempt
from .backlog import BATCH_ROWS, Backlog


class ClientFiles(Protocol):
    """The large objects of a client that are files of its host (io/client_files.py)."""

    def share(self, message: Object) -> Object:
        """Write an object to a file; return the message to send: the object itself if it is no file."""

    def take_results(self) -> None:
        """Let workers of this host write large results to files from now on."""

    def take_result(self, result: FileResult) -> ResultFile | Payload | None:
        """Take a result out of its file; None: there is no such file, or it is damaged."""

    def remove_results(self, is_open: Callable[[int], bool]) -> None:
        """Remove the files of results that nobody is going to take: of attempts that do not count.

        Args:
            is_open: tells whether a task may still be answered with a file.
        """

    def ids(self) -> Sequence[int]:
        """Return the ids of all files."""

    def has(self, object_id: int) -> bool:
        """Whether the object is a file."""

    def announcement(self, object_id: int) -> Object:
        """Return the message that tells the scheduler of a file."""

    def read(self, object_id: int) -> Sequence[Payload] | None:
        """Return the frames in a file; None: it can't be read."""

    def remove(self, object_id: int) -> None:
        """Remove a file, if there is one."""

    def take_ticket(self, ticket: str) -> None:
        """Give files only to agents with this ticket from now on."""


class NoFiles:
    """A client without files: it sends the bytes of all objects."""

    def share(self, message: Object) -> Object:
        """Return the message."""
        return message

    def take_results(self) -> None:
        """Do nothing."""

    def take_result(self, result: FileResult) -> ResultFile | Payload | None:
        """Return None."""
        return None

    def remove_results(self, is_open: Callable[[int], bool]) -> None:
        """Do nothing."""

    def ids(self) -> Sequence[int]:
        """Return nothing."""
        return ()

    def has(self, object_id: int) -> bool:
        """Return False."""
        return False

    def announcement(self, object_id: int) -> Object:
        """Do not call it: there is no file."""
        raise KeyError(object_id)

    def read(self, object_id: int) -> Sequence[Payload] | None:
        """Return None."""
        return None

    def remove(self, object_id: int) -> None:
        """Do nothing."""

    def take_ticket(self, ticket: str) -> None:
        """Do nothing."""


OBJECTS_ROWS = 256
"""The most small objects of one message: 64 KiB."""


class HeldObjects:
    """Sends objects, and tells the scheduler which objects and kept results have no references any more."""

    def __init__(self, backlog: Backlog) -> None:
        self.files: ClientFiles = NoFiles()
        """The objects that are files of this client."""
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
        self._refused: set[int] = set()
        """Objects with references that are files, and that the scheduler does not keep."""
        self._unconfirmed: deque[tuple[int, list[int]]] = deque()
        """Ids that were sent as forgotten, each with the heartbeat whose echo confirms that.

        The message may have been lost with a connection.
        """

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def has_kept_results(self) -> bool:
        """Whether there are references to results that stay on their hosts: their values can be fetched."""
        return any(isinstance(stored, KeptResult) for stored in self._objects.values())

    def add(self, stored: StoredObject, outgoing: list[Message] | None) -> None:
        """Add a new object, which has its id.

        Args:
            outgoing: takes the message; None: there is no scheduler, the next join sends the object.
        """
        self._objects[stored.id] = stored
        if outgoing is not None:
            self._backlog.add_object(self._message(stored), outgoing)

    def share(self, message: Object) -> Object:
        """Write a large object to a file; return the message to send: without frames if they are in the file now."""
        shared = self.files.share(message)
        stored = self._objects.get(message.id)
        if shared.file_bytes and stored is not None and stored.is_arguments:
            stored.frames = ()  # the file has the only copy
        return shared

    def send_all(self, outgoing: list[Message], takes_files: bool = False) -> None:
        """Send all objects to a scheduler that this client has just joined: it may have none of them.

        Results are sent when a task that reads them is submitted again.

        Args:
            outgoing: takes the messages.
            takes_files: whether the scheduler takes files in place of bytes.
        """
        # Open graphs defer theirs again. Those of ended graphs may still be at the scheduler.
        self._unconfirmed += [(0, list(ids)) for _, ids in self._deferred]
        self._deferred.clear()
        self._refused.clear()
        self._forgotten += [each for _, each in self._unread]
        self._unread.clear()
        self.joins += 1
        for object_id in self.files.ids():
            stored = self._objects.get(object_id)
            if not takes_files:
                if stored is not None and not stored.frames:
                    stored.frames = self.files.read(object_id) or ()
                self.files.remove(object_id)
            elif stored is None or isinstance(stored, ResultObject):
                # The scheduler may know it no more, and only the scheduler ends a file: it gets the object, and is told
                # to forget it again, now or when it has no references.
                message = self.files.announcement(object_id)
                self._backlog.count_object(message)
                outgoing.append(message)
                if stored is None:
                    self._forgotten.append(object_id)
                else:
                    stored.known_in_join = self.joins
        for stored in self._objects.values():
            if type(stored) is StoredObject:
                self.send_now(stored, outgoing)

    def claim(self, open_tasks: Container[int], outgoing: list[Message]) -> None:
        """Tell another scheduler which kept results this client refers to. It takes over those that hosts still have,
        and says which ones are lost.

        Args:
            open_tasks: the ids of results that are being made again.
            outgoing: takes the message. It goes before all rows that read these results.
        """
        held = [
            stored
            for stored in self._objects.values()
            if isinstance(stored, KeptResult) and stored.is_on_host and stored.id not in open_tasks
        ]
        for stored in held:
            stored.known_in_join = self.joins
        outgoing.append(HeldResults([stored.file_id for stored in held], [stored.size for stored in held]))

    def send_wanted(self, ids: Sequence[int], outgoing: list[Message]) -> list[int]:
        """Send the bytes of files that the scheduler asks for; return the other ids. The scheduler has counted them."""
        others, unneeded = [], []
        for each in ids:
            if self.files.has(each):
                stored = self._objects.get(each)
                frames = stored.frames if stored is not None and stored.frames else self.files.read(each)
                # If somebody has removed the file, the size is wrong, and the scheduler takes the object for lost.
                outgoing.append(Object(each, frames or [b""], is_wanted=True))
                if stored is None:
                    unneeded.append(each)
            else:
                others.append(each)
        # The scheduler may have heard meanwhile that these are forgotten. Then it takes the bytes for new objects.
        self._forgotten += self._without_needed(unneeded)
        return others

    def dropped_by_scheduler(self, ids: Sequence[int]) -> None:
        """Remove the files of objects that the scheduler does not need, as soon as they have no references here."""
        for each in ids:
            if self.files.has(each):
                if each in self._objects:
                    self._refused.add(each)
                else:
                    self.files.remove(each)

    def send_now(self, stored: StoredObject, outgoing: list[Message]) -> None:
        """Send an object without waiting for credit: the scheduler had it before, or asks for it."""
        message = self._message(stored)
        self._backlog.count_object(message)
        outgoing.append(message)

    def send_together(self, stored: Sequence[StoredObject], outgoing: list[Message]) -> None:
        """As `send_now` for each of these objects, which have one small frame: many in one message
        (benchmarks/chains.py)."""
        for each in stored:
            self._backlog.count_object(self._message(each))
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
        self._forgotten = [*self._without_needed(unconfirmed), *self._forgotten]

    def _without_needed(self, ids: list[int]) -> list[int]:
        """Return those of these ids that no row reads which is not sent yet."""
        if not ids:
            return ids
        needed = {each for _, deferred in self._deferred for each in deferred}
        needed.update(each for _, each in self._unread)
        return [each for each in ids if each not in needed]

    def confirm(self, heartbeat: int) -> None:
        """Note that the scheduler has echoed a heartbeat, and so received everything that was sent before it."""
        while self._unconfirmed and self._unconfirmed[0][0] <= heartbeat:
            self._unconfirmed.popleft()

    def clear(self) -> None:
        """Drop all objects, even if references to them exist. Arguments of calls are kept: some calls run."""
        for stored in [each for each in self._objects.values() if not each.is_arguments]:
            self.forget(stored)

    def clear_sent_by(self, parent: TaskAttempt | None) -> None:
        """Drop the objects that one task has sent, even if references to them exist.

        Args:
            parent: the task; None: the objects that were sent outside of tasks.
        """
        for stored in [each for each in self._objects.values() if each.parent == parent and not each.is_arguments]:
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

    def _message(self, stored: StoredObject) -> Object:
        if not stored.frames and self.files.has(stored.id):
            return self.files.announcement(stored.id)
        return Object(stored.id, stored.frames, name=stored.name)

    def _drop(self, stored: StoredObject) -> None:
        stored.drop()
        if self._refused and stored.id in self._refused:
            self._refused.discard(stored.id)
            self.files.remove(stored.id)
        result = stored if isinstance(stored, ResultObject) else None
        if self._backlog.drop_object(stored.id) and (result is None or self.joins <= 2):
            return  # it was not sent; after further joins the scheduler may have a result nevertheless
        if result is not None and result.last_reader >= 0:
            self._unread.append((result.last_reader, result.id))
        elif self._backlog.waits(stored.id):
            # Its answer was on its way when the client joined again. With the row, the scheduler keeps the result.
            self.forget_after(stored.id, [stored.id])
        else:
            self._forgotten.append(stored.id)


def _id_of(stored: StoredObject) -> int:
    return stored.id
