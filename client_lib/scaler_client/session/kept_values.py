"""The values of kept results: fetched when the application asks for them, made again when they are lost.

The client knows how a kept result was made as long as it is referred to, or another such result that was made of it is.
If the scheduler does not have the result any more, the client submits its task again, under the same id, with the tasks
of those of its inputs that were freed or lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ..errors import ClientClosedError, ObjectNotFoundError
from ..futures.kept_results import FetchedValue, KeptResult
from ..protocol.messages import FetchObjects, Message, Object, Outcome, Payload, Resolved
from .held_objects import HeldObjects
from .open_tasks import OpenTasks
from .task_inputs import TaskInputs

FETCH_BYTES = 64 << 20
"""The bytes that may be on their way to the client before it asks for more values. The scheduler holds them then."""


class KeptValues:
    """Fetches the values of kept results.

    Args:
        tasks: the open tasks.
        objects: the results with references.
        inputs: submits lost results again.
    """

    def __init__(self, tasks: OpenTasks, objects: HeldObjects, inputs: TaskInputs) -> None:
        self._tasks = tasks
        self._objects = objects
        self._inputs = inputs
        self._pending: list[KeptResult] = []
        """Results whose values are wanted, and whose tasks are open."""
        self._queue: deque[KeptResult] = deque()
        """Results whose values the scheduler is going to be asked for."""
        self._asked: dict[int, KeptResult] = {}
        """Results whose values the scheduler was asked for, by id."""
        self._asked_bytes = 0

    def fetch(self, wanted: Iterable[tuple[KeptResult, FetchedValue[object]]]) -> None:
        """Fetch values that the application asks for."""
        for stored, value in wanted:
            if stored.is_gone:
                value.fail(stored.id, ObjectNotFoundError(f"the result of {stored.label} was freed: {_CLEARED}"))
                continue
            is_first = not stored.fetches
            stored.fetches.append(value)
            if is_first:
                self._pending.append(stored)
        self.advance()

    def advance(self) -> None:
        """Go on with the results whose tasks have ended."""
        pending, self._pending = self._pending, []
        for stored in pending:
            if stored.producer is not None or stored.id in self._tasks.single:
                self._pending.append(stored)
            elif stored.failure is not None:
                stored.give_failure()
            elif stored.frames:  # small
                self._give(stored, stored.frames)
            elif stored.is_lost:
                self._make_again(stored)
            elif stored.fetches:
                self._queue.append(stored)

    def _make_again(self, stored: KeptResult) -> None:
        self._inputs.make_again([stored], stored.id)
        if stored.failure is None:
            self._pending.append(stored)
        else:
            stored.give_failure()

    def pop_messages(self) -> list[Message]:
        """Return the message that asks for the next values. There must be a scheduler."""
        ids = []
        while self._queue and (not self._asked or self._asked_bytes + self._queue[0].size <= FETCH_BYTES):
            stored = self._queue.popleft()
            self._asked[stored.id] = stored
            self._asked_bytes += stored.size
            ids.append(stored.id)
        return [FetchObjects(ids)] if ids else []

    def receive(self, message: Object) -> None:
        """Take a value."""
        stored = self._pop_asked(message.id)
        if stored is not None:
            self._give(stored, message.frames)

    def refuse(self, message: Resolved) -> None:
        """Fail the fetches of values that can't be sent: they are too large. The results stay on their hosts."""
        if not self._asked:
            return
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            if outcome == Outcome.RESULT_FAILED and task_id in self._asked and task_id not in self._tasks.single:
                stored = self._asked[task_id]
                self._pop_asked(task_id)
                fetches, stored.fetches = stored.fetches, []
                for each in fetches:
                    each.resolve(task_id, outcome, answer)

    def note_lost(self, ids: Sequence[int]) -> None:
        """Note that the scheduler does not have these results."""
        for each in ids:
            asked = self._pop_asked(each)
            stored = asked or self._objects.find(each)
            if not isinstance(stored, KeptResult):
                continue
            if stored.producer is not None or each in self._tasks.single:
                if asked is not None:  # a reader needs it too, and its task runs again already
                    self._pending.append(stored)
                continue
            stored.is_lost = not stored.frames
            stored.known_in_join = 0
            if asked is not None and stored.is_gone:
                stored.fail(each, ObjectNotFoundError(f"the result of {stored.label} was freed: {_CLEARED}"))
            elif asked is not None:
                self._make_again(stored)

    def restart(self) -> None:
        """Ask again after a join."""
        self._queue.extendleft(reversed(self._asked.values()))
        self._asked.clear()
        self._asked_bytes = 0

    def fail(self, error: BaseException) -> None:
        """Fail everything that waits for a value."""
        waiting = [*self._pending, *self._queue, *self._asked.values()]
        self._pending, self._asked_bytes = [], 0
        self._queue.clear()
        self._asked.clear()
        for stored in waiting:
            fetches, stored.fetches = stored.fetches, []
            for each in fetches:
                each.fail(stored.id, error)

    def close(self) -> None:
        """Fail everything that waits for a value, because the client is disconnected."""
        self.fail(ClientClosedError("the client is disconnected"))

    def _pop_asked(self, task_id: int) -> KeptResult | None:
        stored = self._asked.pop(task_id, None)
        if stored is not None:
            self._asked_bytes -= stored.size
        return stored

    def _give(self, stored: KeptResult, frames: Sequence[Payload]) -> None:
        fetches, stored.fetches = stored.fetches, []
        for each in fetches:
            each.set_frames(stored.id, frames)


_CLEARED = "its client was cleared or disconnected"
