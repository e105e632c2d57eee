"""Tasks with inputs or kept results: their objects, and the effects of their ends and failures.

A row of a Submit that has inputs, or whose result is kept, gets a task record at once. It is blocked while an input is
missing, and waits for a worker when all inputs exist. If a task fails, only the tasks that are blocked by it fail too.
"""

from __future__ import annotations

from collections.abc import Sequence

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.evacuation import Evacuation
from scaler_scheduler.core.completion.task_end import answer_task, detach
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.ids import file_id
from scaler_scheduler.core.report.graph_view import ended_node
from scaler_scheduler.core.state.counts import WASTED_ROW_US
from scaler_scheduler.core.state.functions import LARGE_BYTES, Function
from scaler_scheduler.core.state.records import Client, StoredObject, Task, Worker
from scaler_scheduler.core.state.transitions import (
    BLOCKED,
    CANCEL,
    DISPATCHED,
    GIVE_UP,
    INTENT_BALANCE,
    INTENT_CANCEL,
    NO_INTENT,
    READY,
    RETRACT,
    UNREADY,
    WAITING,
)
from scaler_scheduler.core.tables import ENDED_NODES

CROWDED_SECONDS = 1.0
"""At most ENDED_NODES nodes that ended with a value are remembered in this time."""


class Graphs:
    """The tasks with inputs or kept results, and the objects of clients."""

    def __init__(self, core: CoreState, evacuation: Evacuation) -> None:
        self._tables = core.tables
        self._limits = core.limits
        self._evacuation = evacuation
        self._queues = core.queues
        self._pool = core.pool
        self._writer = core.writer
        self._outbox = core.outbox
        self._next_record_at = 0.0
        """When the next node that ends with a value is remembered, in seconds of the monotonic clock."""
        self.unneeded: list[Task] = []
        """Tasks whose kept result no task is going to read."""
        self.raised: list[Task] = []
        """Tasks that got a higher priority while they were queued at a worker."""
        self.ready: list[Task] = []
        """Tasks that just became ready and may already run on a worker that has joined again."""

    # ---------------------------------------------------------------------------------------------------------- objects

    def add_object(self, client: Client, event: events.Object) -> None:
        """Store an object that the client sends. If the scheduler has an object with this id already, it keeps the old
        one."""
        stored = self._tables.objects.find(client, event.id)
        if stored is not None and not stored.is_awaited:
            return
        is_new = stored is None
        if stored is None:
            stored = StoredObject(client, event.id, event.name, None)
            self._tables.objects.add(stored)
        if event.file_bytes:
            self._tables.objects.store_at(stored, client.place_at(event.data), event.file_bytes)
        else:
            self._tables.objects.fill(stored, event.frames)
        stored.is_from_client = True
        client.object_bytes += stored.size + TASK_OVERHEAD
        if not is_new:
            self.object_available(stored)

    def release_objects(self, client: Client, ids: Sequence[int]) -> None:
        """Note that the client no longer needs these objects."""
        for object_id in ids:
            stored = self._tables.objects.find(client, object_id)
            if stored is None:
                self._tables.counts.wasted_us += WASTED_ROW_US
            elif stored.is_awaited:
                self._fail_awaited(stored)
            elif stored.is_referenced:
                stored.is_referenced = False
                self.drop_unneeded(stored)

    def _fail_awaited(self, stored: StoredObject) -> None:
        """Fail the tasks that read an object which its client does not have."""
        blocked = stored.unblock()
        stored.is_referenced = False
        for task in blocked:
            if task.state == BLOCKED:
                self.fail_input_lost(task, f"{task.name}: result {stored.id}, which it reads, does not exist")
        if stored.client.objects.get(stored.id) is stored:
            self.drop_unneeded(stored)

    def remove_client(self, client: Client) -> None:
        """Drop all objects of a client that has left. Its tasks are removed or abandoned."""
        for stored in list(client.objects.values()):
            self._tables.objects.give_up(stored)
            self.drop_unneeded(stored)
        self.unneeded = [task for task in self.unneeded if task.client is not client]

    def pop_unneeded(self) -> list[Task]:
        """Return and forget the tasks that can be cancelled because no task is going to read their results."""
        unneeded, self.unneeded = self.unneeded, []
        # Some of them may have been submitted again.
        return [
            task for task in unneeded if task.client.tasks.get(task.id) is task and self._result_object(task) is None
        ]

    def pop_ready(self) -> list[Task]:
        """Return and forget the tasks that just became ready."""
        ready, self.ready = self.ready, []
        return ready

    def drop_unneeded(self, stored: StoredObject) -> None:
        """Drop the object if neither its client nor an open task needs it, and tell the peers that have copies."""
        if stored.is_needed:
            return
        if stored.producer is not None and stored.producer.keep == events.KEEP_YES:
            self.unneeded.append(stored.producer)
        if stored.is_from_client:
            stored.client.returned_bytes += stored.size + TASK_OVERHEAD
            stored.client.object_bytes -= stored.size + TASK_OVERHEAD
        for worker in stored.workers or ():
            self._outbox.forget_object(worker.route, stored.client.incarnation, stored.file_id)
        for place in stored.copies or ():
            if not (place.is_client and stored.client.is_gone):
                self._outbox.forget_object(place.route, stored.client.incarnation, stored.file_id)
        self._tables.objects.remove(stored)

    # ----------------------------------------------------------------------------------------------------------- submit

    def submit(self, client: Client, event: events.Submit, functions: list[Function]) -> None:
        """Accept rows, some of which have inputs or kept results."""
        begin = position = 0
        for row, task_id in enumerate(event.ids):
            end = begin + event.input_counts[row] if event.input_counts else begin
            size = event.sizes[row]
            large = event.large.get(row)
            keep = event.keep[row] if event.keep else events.KEEP_NO
            if self._is_known(client, task_id, keep, bool(event.options.graph)):
                if task_id <= client.highest_counted_id or not self._is_open(client, task_id):
                    # The client counts the row again. No later end would return these bytes: the task is over, or its
                    # end returns the bytes that were counted before.
                    client.returned_bytes += size + (0 if large is None else len(large)) + TASK_OVERHEAD
            else:
                function = functions[row] if len(functions) > 1 else functions[0]
                payload, start = (event.payload, position) if large is None else (large, 0)
                length = size if large is None else len(large)
                task = self._writer.new_task(
                    task_id, client, function, event.options, payload, start, length, large is not None
                )
                self._admit(task, keep, event.inputs, begin, end)
            position += size
            begin = end

    def keep_results(self, client: Client, ids: Sequence[int]) -> None:
        """Keep the results of tasks, because new tasks are going to read them.

        The client has the results of tasks that have ended, or is about to get them. It is asked for these.
        """
        for task_id in ids:
            task = client.tasks.get(task_id) or self._queued_task(client, task_id)
            if task is not None and not (task.options.calls or task.options.gang_size):
                if not task.keep:
                    task.keep = events.KEEP_BOTH
                self._reference_again(task)
                continue
            stored = self._tables.objects.find(client, task_id)
            if stored is None:
                if len(client.objects) >= self._limits.client_objects:
                    continue  # its readers get the outcome INPUT_LOST
                stored = StoredObject(client, task_id, "", None)
                stored.is_from_client = False
                self._tables.objects.add(stored)
                self._outbox.fetch_object(client.route, client.incarnation, task_id)
            stored.is_referenced = True

    def _queued_task(self, client: Client, task_id: int) -> Task | None:
        """Take a row that waits in a batch out of it; return the task. Returns None if no such row waits."""
        for lane in client.lanes.values():
            found = lane.batches.find(task_id)
            if found is not None and not (found[0].options.calls or found[0].options.gang_size):
                batch, row = found
                function, payload = batch.function_at(row), batch.take_row(row)
                task = self._writer.new_task(task_id, client, function, batch.options, *payload)
                client.tasks[task_id] = task
                self._tables.counts.add_waiting(lane, -1, task.options.weight)
                self._make_ready(task)
                self._queues.prune(lane)
                return task
        return None

    def _is_known(self, client: Client, task_id: int, keep: int, is_graph: bool) -> bool:
        """Whether the row is known. A client submits rows without an answer again, and the rows that make their inputs.
        A known row is not accepted twice; the client needs its result again.
        """
        if not keep and task_id in client.unread.ids(client.outgoing):
            return True
        task = client.tasks.get(task_id)
        if task is None and keep and task_id <= client.highest_id:
            task = self._queued_task(client, task_id)
        if task is not None:
            if keep:
                task.keep = task.keep or keep
                self._reference_again(task)
            if task.inputs:
                self._rebind_held(task)
            return True
        if task_id <= client.highest_id and self._is_queued(client, task_id):
            return True
        stored = self._tables.objects.find(client, task_id)
        if stored is None or stored.is_missing:
            return False
        stored.is_referenced = True
        frames = () if stored.is_from_client else stored.frames or ()
        if len(frames) == 1 and (keep != events.KEEP_YES or (len(frames[0]) < LARGE_BYTES and not is_graph)):
            self._outbox.answer(client, task_id, effects.OUTCOME_VALUE, frames[0])
        else:
            self._outbox.answer(client, task_id, effects.OUTCOME_KEPT, _kept_answer(stored))
        return True

    def _is_open(self, client: Client, task_id: int) -> bool:
        """Whether the task has no answer yet."""
        return task_id in client.tasks or self._is_queued(client, task_id)

    def _reference_again(self, task: Task) -> None:
        """Keep the result of an open task that is submitted again. It was not needed, or its client was lost."""
        stored = self._tables.objects.find(task.client, task.id)
        if stored is not None and not stored.is_awaited:
            stored.is_referenced = True
            return
        self._add_result(task)
        if task.intent == INTENT_CANCEL and task.keep == events.KEEP_YES:
            # It was being cancelled because its result was not needed. If the worker gives it back, it runs elsewhere.
            task.intent = INTENT_BALANCE

    def _add_result(self, task: Task) -> None:
        """Add the object that the task's result becomes."""
        stored = self._tables.objects.find(task.client, task.id)
        if stored is not None and stored.is_missing and stored.producer is None:  # submitted again
            self._tables.objects.make(stored, task)
        else:
            self._tables.objects.add(StoredObject(task.client, task.id, task.name, task))

    def _is_queued(self, client: Client, task_id: int) -> bool:
        """Whether the task waits as a row of a batch without inputs."""
        return any(lane.batches.find(task_id) is not None for lane in client.lanes.values())

    def _admit(self, task: Task, keep: int, inputs: Sequence[int], begin: int, end: int) -> None:
        """Add a new task, and bind it to its inputs, `inputs[begin:end]`."""
        client = task.client
        if task.id <= client.highest_id:
            client.skip_attempts(client.newest_attempt)  # it is submitted again
        task.keep = keep
        client.tasks[task.id] = task
        task.function.tasks += 1
        further = task.options.weight - 1
        if further:
            task.function.further_calls += further
            client.further_calls += further
        self._tables.counts.payload_bytes += task.size
        if keep:
            self._add_result(task)
        lost = self._bind(task, inputs, begin, end) if end > begin else None
        if lost is not None:
            self.fail_input_lost(task, f"{task.name}: object {lost}, which it reads, is not there (any more)")
        elif not task.missing_inputs or self._has_early_result(task):
            self._make_ready(task)

    def requeue(self, task: Task) -> bool:
        """Let a task that has just left its worker run again. Returns False if its inputs no longer exist."""
        find = self._tables.objects.find
        if any(find(task.client, stored.id) is not stored for stored in task.inputs):
            # The inputs were removed with the client, which was lost, or with a host. The client sends and submits them
            # again.
            if not self._rebind(task):
                return False
        if task.missing_inputs:
            task.transition(UNREADY)
        else:
            self._queues.requeue(task)
        return True

    def _rebind_held(self, task: Task) -> None:
        """Bind a held task to inputs that its returned client sends again.

        The new inputs stay until the task has ended, because the task may have to run again.
        """
        if task.gang is not None:  # it binds them when all members have left their workers
            return
        find = self._tables.objects.find
        now = [find(task.client, stored.id) for stored in task.inputs]
        if all(there is not None and there is not stored for there, stored in zip(now, task.inputs)):
            self._rebind(task)

    def _rebind(self, task: Task) -> bool:
        """Bind the task's inputs to the objects that have their ids now. Returns False if one does not exist."""
        before = task.inputs
        if task.missing_inputs:  # it was bound again before, on a worker
            for stored in before:
                stored.remove_blocked(task)
        ids = [stored.id for stored in before]
        task.missing_inputs = 0
        lost = self._bind(task, ids, 0, len(ids))
        # The former inputs are released after the binding, because some of them may be the same.
        bound, task.inputs = task.inputs, before
        self.release_inputs(task)
        task.inputs = bound
        return lost is None

    def _has_early_result(self, task: Task) -> bool:
        """Whether a result of the task is here, so that the task is not going to run."""
        early = self._tables.early.get((task.client.incarnation, task.id)) if self._tables.early else None
        return early is not None and early.results is not None and not task.options.gang_size

    def early_result_came(self, task: Task) -> None:
        """Let a result count whose task waits for its inputs: nobody has to make them again for it."""
        if task.state == BLOCKED and self._has_early_result(task):
            self._make_ready(task)

    def _make_ready(self, task: Task) -> None:
        """Queue a task whose inputs all exist, or whose result is here."""
        task.transition(READY)
        self._queues.requeue(task)
        if self._tables.unclaimed or self._tables.early:
            self.ready.append(task)

    def _bind(self, task: Task, inputs: Sequence[int], begin: int, end: int) -> int | None:
        """Bind the task to its inputs, `inputs[begin:end]`. Returns the id of an input that does not exist, or None."""
        bound: list[StoredObject] = []
        lost: int | None = None
        for place in range(begin, end):
            stored = self._tables.objects.find(task.client, inputs[place])
            if stored is None:
                lost = inputs[place]
                break
            stored.readers += 1
            if stored.is_missing:
                task.missing_inputs += 1
                stored.block(task)
                producer = stored.producer
                if producer is not None and producer.options.priority < task.options.priority:
                    self._raise(producer, task.options.priority)
            bound.append(stored)
        task.inputs = tuple(bound)  # PyPy keeps it in 112 bytes with ten inputs, and a list in 192
        return lost

    def _raise(self, task: Task, priority: int) -> None:
        """Give an open task, and the tasks that make its inputs, the higher priority of a task that reads its
        result."""
        rising = [task]
        while rising:
            each = rising.pop()
            if each.options.priority >= priority:
                continue
            if each.state == WAITING:
                lane = each.client.lane_of(each)
                lane.remove(each)
                self._tables.counts.add_waiting(lane, -1, each.options.weight)
                each.options = each.options.with_priority(priority)
                self._queues.requeue(each)
                self._queues.prune(lane)
            else:
                each.options = each.options.with_priority(priority)
                if each.state == DISPATCHED and each.gang is None:
                    self.raised.append(each)
            rising += [stored.producer for stored in each.inputs if stored.is_missing and stored.producer is not None]

    def pop_raised(self) -> list[Task]:
        """Return and forget the tasks that got a higher priority in the queue of a worker."""
        raised, self.raised = self.raised, []
        return raised

    # ------------------------------------------------------------------------------------------------------------- ends

    def complete(self, task: Task, outcome: int, payload: bytes, worker: Worker) -> bool:
        """Complete a task that left its worker with this outcome. Returns whether its client still needs an answer."""
        if outcome == effects.OUTCOME_VALUE:
            self._store_value(task, payload)
        elif outcome == effects.OUTCOME_STORED:
            self._keep_on_host(task, worker, int.from_bytes(payload, "little"))
        elif outcome == effects.OUTCOME_FILE:
            self._hand_over(task)
        else:
            self.fail_readers(task, outcome, payload)
            return True
        if task.keep != events.KEEP_YES:
            return True
        if outcome == effects.OUTCOME_VALUE and len(payload) < LARGE_BYTES and not task.options.graph:
            return True  # a small result goes to its client too: it is not lost with this scheduler
        stored = None if task.options.graph else self._tables.objects.find(task.client, task.id)
        self._answer(task, effects.OUTCOME_KEPT, b"" if stored is None else _kept_answer(stored))
        return False

    def _store_value(self, task: Task, payload: bytes) -> None:
        self._record_node_end(task)
        self.release_inputs(task)
        stored = self._result_object(task)
        if stored is not None:
            if task.keep == events.KEEP_YES:  # the others are answered, and never files
                task.function.observe_kept_size(len(payload), not task.options.graph)
            stored.file_id = file_id(task.id, task.attempt)
            self._tables.objects.fill(stored, [payload])
            self.object_available(stored)

    def _keep_on_host(self, task: Task, worker: Worker, size: int) -> None:
        self._record_node_end(task)
        self.release_inputs(task)
        task.function.observe_kept_size(size, not task.options.graph)
        agent = self._tables.agents.find(worker.agent)
        assert agent is not None
        stored = self._result_object(task)
        if stored is None:
            self._outbox.forget_object(agent.route, task.client.incarnation, file_id(task.id, task.attempt))
            return
        stored.file_id = file_id(task.id, task.attempt)
        self._tables.objects.store_at(stored, agent, size)
        self.object_available(stored)
        if agent.is_retiring and stored.is_needed:
            self._evacuation.fetch(agent, [stored])

    def _hand_over(self, task: Task) -> None:
        """Ask the client for the result of a task, which has written it to a file of the client."""
        self._record_node_end(task)
        self.release_inputs(task)
        stored = self._result_object(task)
        if stored is not None:
            self._tables.objects.hand_over(stored)
            if stored.is_needed:
                self._outbox.fetch_object(task.client.route, task.client.incarnation, task.id)
            else:
                self.drop_unneeded(stored)

    def _result_object(self, task: Task) -> StoredObject | None:
        """Return the object that the task's result becomes, if it is needed."""
        stored = self._tables.objects.find(task.client, task.id) if task.keep else None
        return stored if stored is not None and stored.producer is task else None

    def object_available(self, stored: StoredObject) -> None:
        """Make the readers ready for an object that has been produced, or whose bytes have been fetched."""
        for reader in stored.unblock():
            reader.missing_inputs -= 1
            if reader.state == BLOCKED and not reader.missing_inputs:
                self._make_ready(reader)
        if not stored.is_needed:
            self.drop_unneeded(stored)

    # --------------------------------------------------------------------------------------------------------- failures

    def fail_readers(self, task: Task, outcome: int, payload: bytes) -> None:
        """End the tasks that are blocked by a task without a value. They get the same outcome."""
        failing = [task]
        while failing:
            over = failing.pop()
            self._record_node_end(over, has_failed=True)
            self.release_inputs(over)
            stored = self._result_object(over)
            if stored is None:
                continue
            for reader in stored.unblock():
                if reader.state == DISPATCHED and reader.intent <= INTENT_BALANCE:
                    self._take_back(reader)
                if reader.state == BLOCKED:  # not ended, and not failed by another of its inputs
                    reader.transition(GIVE_UP)
                    self._answer(reader, outcome, payload)
                    failing.append(reader)
            self._tables.objects.give_up(stored)
            self.drop_unneeded(stored)

    def _take_back(self, follower: Task) -> None:
        """Take back a task that its worker can't begin, because the task before it has failed."""
        worker = follower.worker
        assert worker is not None
        self._outbox.retract(follower)
        detach(self._tables, follower)
        follower.intent = NO_INTENT
        follower.transition(RETRACT)
        follower.transition(UNREADY)
        self._tables.history.record_returned(follower, worker, effects.OUTCOME_VALUE, 0, "")
        self._tables.counts.retracted += 1
        if not worker.task_count:
            self._pool.add(worker)

    def fail_input_lost(self, task: Task, text: str, outcome: int = effects.OUTCOME_INPUT_LOST) -> None:
        """Fail a task on no worker that cannot read an input."""
        task.transition(GIVE_UP)
        self._answer(task, outcome, text.encode())
        self.fail_readers(task, outcome, text.encode())

    def fail_blocked(self, stored: StoredObject, text: str) -> None:
        """Fail the tasks that wait for an object whose bytes can't come to them. The object stays where it is."""
        for reader in stored.unblock():
            reader.missing_inputs -= 1
            if reader.state == BLOCKED:
                why = f"{reader.name} can't read object {stored.id} on another host: {text}"
                self.fail_input_lost(reader, why, effects.OUTCOME_RESULT_FAILED)
        if not stored.is_needed and self._tables.objects.find(stored.client, stored.id) is stored:
            self.drop_unneeded(stored)

    def cancel_blocked(self, task: Task) -> None:
        """Cancel a task whose inputs do not all exist yet."""
        task.transition(CANCEL)
        self._answer(task, effects.OUTCOME_CANCELLED, b"")
        self.fail_readers(task, effects.OUTCOME_CANCELLED, b"")

    def _record_node_end(self, task: Task, has_failed: bool = False) -> None:
        """Remember the node's shape before its inputs are released."""
        ended, now = self._tables.ended_nodes, self._tables.clock.now
        # A record costs about a microsecond. Nodes of fast graphs would displace one another, so not all of them get a
        # record.
        if has_failed or now >= self._next_record_at:
            ended.append(ended_node(task, now, has_failed))
            if len(ended) == ENDED_NODES:
                self._next_record_at = ended[0].ended_at + CROWDED_SECONDS

    def release_inputs(self, task: Task) -> None:
        """Note that a task no longer reads its inputs."""
        inputs, task.inputs = task.inputs, ()
        for stored in inputs:
            if stored.readers:
                stored.readers -= 1
                if not stored.is_needed:
                    self.drop_unneeded(stored)

    def _answer(self, task: Task, outcome: int, payload: bytes) -> None:
        answer_task(self._tables, self._outbox, task, outcome, payload)


def _kept_answer(stored: StoredObject) -> bytes:
    """Return the payload of OUTCOME_KEPT: the size, the id of the file, and the name of the host with the result."""
    host = stored.home.host if stored.is_remote and stored.home is not None else ""
    return stored.size.to_bytes(8, "little") + stored.file_id.to_bytes(8, "little") + host.encode()
