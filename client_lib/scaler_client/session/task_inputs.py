"""The results of tasks that other tasks of the client read: a future among the arguments of a call.

The scheduler keeps the result of an open task from the time when its first reader is submitted. If the task has ended
by then, the scheduler asks the client for the bytes, and the reader waits for them. If the result stays on its host
(`KeptResult`), the client has no bytes, and submits the task again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..futures.kept_results import KeptResult
from ..pickling.call_pickles import SMALL_BYTES, with_small_values
from ..pickling.references import Call, CallWithInputs, Reference, ResultObject, StoredInput, call_payload, read_result
from ..protocol.messages import ForgetObjects, Submit
from .held_objects import HeldObjects
from .open_tasks import OpenTasks
from .result_sinks import SingleSink
from .submit_batch import SubmitBatch


class TaskInputs:
    """Makes the results that tasks read known to the scheduler.

    Args:
        batch: takes the rows.
        objects: sends results that the client has.
        tasks: the open tasks.
        new_id: returns an unused id.
    """

    def __init__(self, batch: SubmitBatch, objects: HeldObjects, tasks: OpenTasks, new_id: Callable[[], int]) -> None:
        self.is_joined = False
        """Whether rows can be sent. If not, the next join submits all open tasks."""
        self._tasks = tasks
        self._batch = batch
        self._objects = objects
        self._new_id = new_id
        self._wanted: list[ResultObject] = []
        """Results of open tasks that the scheduler waits for."""

    def bind_call(self, call: CallWithInputs, reader: int) -> Call:
        """Bind the inputs of a call; return what its row sends: small results that are here go inside the arguments.

        Args:
            call: the call.
            reader: the id of its row.
        """
        inputs = call.inputs
        for each in inputs:
            stored = read_result(each)
            if stored is not None and stored.frames:
                bound = with_small_values(call)
                if isinstance(bound, CallWithInputs):
                    self.bind(bound.inputs, reader)
                return bound
        self.bind(inputs, reader)
        return call

    def bind(self, inputs: Iterable[Reference | int], reader: int) -> None:
        """Tell the scheduler of the results that the next rows read, if it does not know them since the last join.

        Args:
            inputs: what the rows read.
            reader: the id of the last of these rows.
        """
        for each in inputs:
            stored = read_result(each)
            if stored is None:
                continue
            if reader > stored.last_reader:
                stored.last_reader = reader
            if isinstance(stored, KeptResult) and stored.is_kept and stored.failure is None:
                self._bind_kept(stored, reader)
            elif stored.known_in_join != self._objects.joins:
                self._bind(stored)
                if stored.is_gone:
                    self._objects.lend(stored, stored.last_reader)  # other rows that are sent again read it too

    def _bind(self, stored: ResultObject) -> None:
        stored.known_in_join = self._objects.joins
        if stored.producer is not None:
            stored.id = stored.producer.task_id
            if not stored.is_gone:
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

    def _bind_kept(self, stored: KeptResult, reader: int) -> None:
        """Have a result there that stays at its host: it may be lost, or freed if only its task's readers need it."""
        if (stored.is_gone or stored.is_lost) and stored.id not in self._tasks.single:
            self.make_again([stored], reader)
        elif stored.known_in_join != self._objects.joins and not stored.is_gone:
            stored.known_in_join = self._objects.joins
            self._batch.keep_result(stored.id)  # if the scheduler does not have it any more, it asks for it
        if stored.is_gone:
            self._objects.lend(stored, reader)

    # ---------------------------------------------------------------------------------------------------- lost results

    def make_again(self, lost: Sequence[KeptResult], reader: int) -> None:
        """Submit the tasks of lost results again, with the tasks of their inputs that were freed or lost.

        A result that can't be made again gets its `failure`.

        Args:
            lost: the results.
            reader: the row that reads them.
        """
        needed: dict[int, KeptResult] = {}
        stack = list(lost)
        while stack:
            stored = stack.pop()
            if stored.id in needed or stored.id in self._tasks.single:
                continue
            needed[stored.id] = stored
            for each in map(read_result, stored.payload.inputs):
                if isinstance(each, KeptResult) and each.is_kept and (each.is_gone or each.is_lost):
                    stack.append(each)
        can_run = [needed[task_id] for task_id in sorted(needed) if self._can_run(needed[task_id])]
        # Leave out the inputs of a task that can't run: no task would read them, so nothing would free them.
        wanted = {stored.id for stored in lost}
        for stored in reversed(can_run):  # readers before their inputs
            if stored.id in wanted:
                wanted.update(each.id for each in map(read_result, stored.payload.inputs) if each is not None)
        possible = [stored for stored in can_run if stored.id in wanted]
        for stored in possible:
            self._tasks.single[stored.id] = stored
            stored.is_lost = False
            if not stored.is_gone:
                stored.known_in_join = self._objects.joins
        if self.is_joined:
            self.submit_again([(stored.id, stored) for stored in possible])

    def _can_run(self, stored: KeptResult) -> bool:
        """Return whether the task of a lost result can run again. Its inputs were asked before."""
        if stored.failure is None:
            for each in stored.payload.inputs:
                missing = self._missing_input(each)
                if missing:
                    stored.set_loss(missing)
                    break
        return stored.failure is None

    def _missing_input(self, each: Reference | int) -> str:
        """Return why a task can't run again that reads this; empty: it can."""
        if type(each) is not StoredInput:
            return ""
        stored = each.stored
        if isinstance(stored, ResultObject) and stored.failure is not None:
            return bytes(stored.failure.answer).decode(errors="replace")
        if stored.is_gone and not (isinstance(stored, KeptResult) and stored.is_kept):
            what = "the result of task" if isinstance(stored, ResultObject) else "the object"
            return f"{what} {stored.name or stored.id}, which it reads, was freed"
        return ""

    def submit_again(self, rows: Sequence[tuple[int, SingleSink]]) -> None:
        """Submit open tasks again, ahead of everything that waits for credit.

        Args:
            rows: ids and sinks; ascending, so that inputs come before their readers.
        """
        batch = self._batch
        batch.flush()
        for task_id, sink in rows:
            function, call = sink.row(task_id)
            submit = Submit([task_id], [function.number], [call_payload(call)], sink.options)
            if isinstance(call, CallWithInputs):
                for each in map(read_result, call.inputs):
                    if each is not None and each.producer is not None and not isinstance(each, KeptResult):
                        each.known_in_join = 0  # its task may be submitted again too, and is not kept then
                self.bind(call.inputs, task_id)
                submit.inputs, submit.keep = call.input_ids(), [call.keep] if call.keep else ()
                submit.input_counts = [len(submit.inputs)] if submit.inputs else ()
                batch.backlog.send_ahead(submit.inputs, batch.outgoing)
            batch.use_function(function, sink.options)
            submit.keep_earlier = batch.pop_keep_earlier()
            batch.backlog.resend(submit, batch.outgoing)

    # ------------------------------------------------------------------------------------- what the scheduler asks for

    def send_wanted(self, ids: Sequence[int]) -> None:
        """Send results that the scheduler asks for, as soon as they are there."""
        missing = []
        for each in ids:
            stored = self._objects.find(each)
            if isinstance(stored, KeptResult) and stored.is_kept and not stored.frames:
                if each not in self._tasks.single:
                    self.make_again([stored], each)
                if stored.failure is not None:
                    missing.append(each)
            elif isinstance(stored, ResultObject) and stored.failure is None:
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
        small: list[ResultObject] = []
        for stored in wanted:
            if stored.producer is not None:
                self._wanted.append(stored)
            elif stored.failure is not None or stored.is_gone:
                self._batch.outgoing.append(ForgetObjects([stored.id]))
            elif len(stored.frames) == 1 and len(stored.frames[0]) <= SMALL_BYTES:
                small.append(stored)
            else:
                self._objects.send_now(stored, self._batch.outgoing)
        self._objects.send_together(small, self._batch.outgoing)

    def restart(self) -> None:
        """Forget what the scheduler waits for: it asks again after a join."""
        self._wanted.clear()
