"""Tasks that read what others leave: inputs, kept results, and what follows when one fails.

A row of a Submit that has inputs, or whose result is kept, is a task with an object of its own from the start: blocked
while an input is not there, waiting once all are. A failure goes on to those that are blocked by it, and to no others.
"""

from typing import List, Optional, Sequence

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.closing import close
from scaler_scheduler.core.credit import TASK_OVERHEAD
from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client, Function, StoredObject, Task
from scaler_scheduler.core.states import BLOCKED, CANCEL, GIVE_UP, READY
from scaler_scheduler.core.tables import Tables


class Graphs:
    def __init__(self, tables: Tables, dispatcher: Dispatcher, outbox: Outbox) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._outbox = outbox
        self.unneeded: List[Task] = []
        """Tasks whose kept result nobody is going to read."""

    # ---------------------------------------------------------------------------------------------------------- objects

    def take_object(self, client: Client, event: events.Object) -> None:
        """Bytes that the client sends; what is here already stays."""
        if self._tables.objects.find(client, event.id) is None:
            stored = StoredObject(client, event.id, event.name, None)
            stored.fill(event.frames)
            client.held += stored.size + TASK_OVERHEAD
            self._tables.objects.add(stored)

    def forget(self, client: Client, ids: Sequence[int]) -> None:
        """The client refers to these no longer."""
        for object_id in ids:
            stored = self._tables.objects.find(client, object_id)
            if stored is not None and stored.is_referred:
                stored.is_referred = False
                self._drop_unneeded(stored)

    def client_left(self, client: Client) -> None:
        """All of the client's objects go; its tasks are gone already, or abandoned."""
        for stored in list(client.objects.values()):
            stored.is_referred = False
            stored.readers = 0
            self._drop_unneeded(stored)
        self.unneeded = [task for task in self.unneeded if task.client is not client]

    def take_unneeded(self) -> List[Task]:
        """Tasks to be cancelled, as nobody is going to read their results."""
        unneeded, self.unneeded = self.unneeded, []
        return [task for task in unneeded if task.client.tasks.get(task.id) is task]

    def _drop_unneeded(self, stored: StoredObject) -> None:
        if stored.is_needed:
            return
        if stored.producer is not None and stored.producer.keep == events.KEEP_YES:
            self.unneeded.append(stored.producer)
        if stored.is_sent:
            stored.client.returned += stored.size + TASK_OVERHEAD
            stored.client.held -= stored.size + TASK_OVERHEAD
        for worker in stored.holders:
            self._outbox.forget_object(worker.route, stored.client.incarnation, stored.id)
        for agent in stored.agents:
            self._outbox.forget_object(agent.route, stored.client.incarnation, stored.id)
        self._tables.objects.remove(stored)

    # ----------------------------------------------------------------------------------------------------------- submit

    def submit(self, client: Client, event: events.Submit, functions: List[Function]) -> None:
        """Rows of which some have inputs or are to be kept."""
        begin = position = 0
        for row, task_id in enumerate(event.ids):
            count = event.input_counts[row] if event.input_counts else 0
            inputs = event.inputs[begin : begin + count]
            begin += count
            size = event.sizes[row]
            large = event.large.get(row)
            keep = event.keep[row] if event.keep else events.KEEP_NO
            if not self._is_known(client, task_id, keep):
                function = functions[row] if len(functions) > 1 else functions[0]
                payload, start = (event.payload, position) if large is None else (large, 0)
                length = size if large is None else len(large)
                task = self._dispatcher.new_task(
                    task_id, client, function, event.options, payload, start, length, large is not None
                )
                self._admit(task, keep, inputs)
            position += size

    def _is_known(self, client: Client, task_id: int, keep: int) -> bool:
        """A client that says again what it has no answer to: what is here already is not taken twice."""
        if task_id in client.tasks:
            return True
        stored = self._tables.objects.find(client, task_id)
        if stored is None or stored.frames is None:
            return False
        if keep == events.KEEP_BOTH:
            self._outbox.answer(client, task_id, effects.OUTCOME_VALUE, b"".join(stored.frames))
        else:
            self._outbox.answer(client, task_id, effects.OUTCOME_KEPT, b"")
        return True

    def _admit(self, task: Task, keep: int, inputs: Sequence[int]) -> None:
        client = task.client
        task.keep = keep
        client.tasks[task.id] = task
        task.function.tasks += 1
        if keep:
            self._tables.objects.add(StoredObject(client, task.id, task.name, task))
        lost = self._bind(task, inputs)
        if lost is not None:
            task.move(GIVE_UP)
            text = f"{task.name}: object {lost}, which it reads, is not there (any more)"
            self._answer(task, effects.OUTCOME_INPUT_LOST, text.encode())
            self.failed(task, effects.OUTCOME_INPUT_LOST, text.encode())
        elif not task.missing:
            task.move(READY)
            self._dispatcher.requeue(task)

    def _bind(self, task: Task, inputs: Sequence[int]) -> Optional[int]:
        """Find the task's inputs; returns the id of one that is not there."""
        bound = task.inputs = []
        for object_id in inputs:
            stored = self._tables.objects.find(task.client, object_id)
            if stored is None:
                return object_id
            if stored not in bound:
                stored.readers += 1
                if stored.frames is None:
                    task.missing += 1
                    stored.blocked[task] = None
            bound.append(stored)
        return None

    # ------------------------------------------------------------------------------------------------------------- ends

    def take_result(self, task: Task, outcome: int, payload: bytes) -> bool:
        """The task has left its worker with this; returns whether its client still is to be told."""
        if outcome != effects.OUTCOME_VALUE:
            self.failed(task, outcome, payload)
            return True
        self._produced(task, payload)
        if task.keep != events.KEEP_YES:
            return True
        self._answer(task, effects.OUTCOME_KEPT, b"")
        return False

    def _produced(self, task: Task, payload: bytes) -> None:
        self._release_inputs(task)
        stored = self._tables.objects.find(task.client, task.id) if task.keep else None
        if stored is None or stored.producer is not task:
            return
        stored.fill([payload])
        blocked, stored.blocked = stored.blocked, {}
        for reader in blocked:
            reader.missing -= 1
            if reader.state == BLOCKED and not reader.missing:
                reader.move(READY)
                self._dispatcher.requeue(reader)
        self._drop_unneeded(stored)

    def failed(self, task: Task, outcome: int, payload: bytes) -> None:
        """The task has ended without a value: those that are blocked by it end as it did."""
        failing = [task]
        while failing:
            over = failing.pop()
            self._release_inputs(over)
            stored = self._tables.objects.find(over.client, over.id) if over.keep else None
            if stored is None or stored.producer is not over:
                continue
            for reader in stored.blocked:
                if reader.state == BLOCKED:
                    reader.move(GIVE_UP)
                    self._answer(reader, outcome, payload)
                    failing.append(reader)
            stored.blocked = {}
            stored.producer = None
            stored.is_referred = False
            stored.readers = 0
            self._drop_unneeded(stored)

    def cancel_blocked(self, task: Task) -> None:
        """The user's cancel of a task whose inputs are not there yet."""
        task.move(CANCEL)
        self._answer(task, effects.OUTCOME_CANCELLED, b"")
        self.failed(task, effects.OUTCOME_CANCELLED, b"")

    def _release_inputs(self, task: Task) -> None:
        inputs, task.inputs = task.inputs, []
        for stored in dict.fromkeys(inputs):
            if stored.readers:
                stored.readers -= 1
                stored.blocked.pop(task, None)
                self._drop_unneeded(stored)

    def _answer(self, task: Task, outcome: int, payload: bytes) -> None:
        self._tables.counts.resolved += 1
        client = task.client
        close(self._tables, task)
        if not client.is_gone:
            self._outbox.answer(client, task.id, outcome, payload)
