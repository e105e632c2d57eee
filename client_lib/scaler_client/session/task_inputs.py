"""The results of tasks that other tasks of the client read: a future among the arguments of a call.

The scheduler keeps the result of an open task from the time when its first reader is submitted. If the task has ended
by then, the scheduler asks the client for the bytes, and the reader waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..pickling.references import ObjectRef, Reference, ResultObject
from ..protocol.messages import ForgetObjects
from .held_objects import HeldObjects
from .submit_batch import SubmitBatch


class TaskInputs:
    """Makes the results that tasks read known to the scheduler.

    Args:
        batch: takes the rows.
        objects: sends results that the client has.
        new_id: returns an unused id.
    """

    def __init__(self, batch: SubmitBatch, objects: HeldObjects, new_id: Callable[[], int]) -> None:
        self._batch = batch
        self._objects = objects
        self._new_id = new_id
        self._wanted: list[ResultObject] = []
        """Results of open tasks that the scheduler waits for."""

    def bind(self, inputs: Iterable[Reference | int], reader: int) -> None:
        """Tell the scheduler of the results that the next rows read, if it does not know them since the last join.

        Args:
            inputs: what the rows read.
            reader: the id of the last of these rows.
        """
        for each in inputs:
            if type(each) is ObjectRef and type(each.stored) is ResultObject:
                each.stored.last_reader = max(each.stored.last_reader, reader)
                self._bind(each.stored)

    def _bind(self, stored: ResultObject) -> None:
        if stored.known_in_join == self._objects.joins:
            return
        stored.known_in_join = self._objects.joins
        if stored.producer is not None:
            stored.id = stored.producer.task_id
            self._objects.hold(stored)
            self._batch.keep_result(stored.id)
            return
        if stored.id < 0:
            stored.id = self._new_id()
        if stored.failure is None and not stored.is_gone:
            self._batch.flush()
            self._objects.add(stored, self._batch.outgoing)
        else:
            self._batch.keep_result(stored.id)  # the scheduler asks for it in vain, and answers INPUT_LOST

    def send_wanted(self, ids: Sequence[int]) -> None:
        """Send results that the scheduler asks for, as soon as they are there."""
        missing = []
        for each in ids:
            stored = self._objects.find(each)
            if type(stored) is ResultObject and stored.failure is None:
                self._wanted.append(stored)
            else:
                missing.append(each)
        if missing:
            # Its readers get the outcome INPUT_LOST, and fail as the result did (`OpenTasks.resolve_all`).
            self._batch.outgoing.append(ForgetObjects(missing))
        self.send_available()

    def send_available(self) -> None:
        """Send the wanted results that have come."""
        if not self._wanted:
            return
        wanted, self._wanted = self._wanted, []
        for stored in wanted:
            if stored.producer is not None:
                self._wanted.append(stored)
            elif stored.failure is not None or stored.is_gone:
                self._batch.outgoing.append(ForgetObjects([stored.id]))
            else:
                self._objects.send_now(stored, self._batch.outgoing)

    def restart(self) -> None:
        """Forget what the scheduler waits for: it asks again after a join."""
        self._wanted.clear()
