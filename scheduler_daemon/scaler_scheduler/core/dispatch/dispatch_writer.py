"""Assigns tasks to workers: writes rows into a Dispatch, or records that a worker already runs a task."""

from scaler_scheduler.core import effects
from scaler_scheduler.core.data.fetches import has_copies
from scaler_scheduler.core.data.input_delivery import deliver_inputs
from scaler_scheduler.core.events import DEFAULT_OPTIONS, KEEP_YES, Options
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.placement.holdings import Holdings
from scaler_scheduler.core.placement.prefetch import cost_ns
from scaler_scheduler.core.state.batches import Batch, BatchQueue
from scaler_scheduler.core.state.environments import split_kind
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Client, Gang, GangTask, Lane, Task, Worker, may_end_worker
from scaler_scheduler.core.state.transitions import BLOCKED, DISPATCH, READY, REATTACH, WAITING
from scaler_scheduler.core.tables import Tables

SCARCE_DIVISOR = 2
"""If objects fill more than the memory limit divided by this number, small kept results are files of their hosts."""


class DispatchWriter:
    """Writes tasks into the Dispatch of a worker, and makes their records."""

    def __init__(self, outbox: Outbox, tables: Tables, holdings: Holdings, limits: Limits) -> None:
        self._clock = tables.clock
        self._objects = tables.objects
        self._scarce_bytes = limits.memory_limit_bytes // SCARCE_DIVISOR
        self._history = tables.history
        self._outbox = outbox
        self._counts = tables.counts
        self._agents = tables.agents
        self._holdings = holdings
        self.kept: list[Task] = []
        """The tasks of the last `dispatch` whose results are kept, until their followers are dispatched."""
        self._next_serial = 1
        """The serial number of the next task record."""

    def dispatch(self, worker: Worker, lane: Lane, function: Function, count: int) -> int:
        """Dispatch up to `count` of the lane's next tasks, all of `function`, to the worker. Returns their number."""
        self._send_function(worker, function)
        outgoing = self._outbox.dispatch_batch(worker)
        weight = lane.next_options.weight
        if lane.requeued:
            taken = self._dispatch_requeued(worker, lane, function, count, outgoing)
        else:
            taken = self._dispatch_run(worker, lane.client, function, lane.batches, count, outgoing)
        worker.sent_tasks += taken * weight
        self._counts.add_waiting(lane, -taken, weight)
        self._counts.add_dispatched(taken, weight)
        return taken

    def dispatch_followers(self, worker: Worker, tasks: list[Task]) -> None:
        """Dispatch blocked tasks behind the tasks of the last `dispatch` whose results they read (`followers.py`)."""
        outgoing = self._outbox.dispatch_batch(worker)
        now = self._clock.now
        begin = 0
        for end, task in enumerate(tasks, 1):
            task.transition(READY)
            task.since = now
            if end == len(tasks) or tasks[end].function is not task.function:
                self._send_function(worker, task.function)
                self._dispatch_tasks(worker, task.function, tasks[begin:end], outgoing)
                begin = end
        worker.sent_tasks += len(tasks)
        self._counts.add_dispatched(len(tasks), 1)
        self.kept = []

    def dispatch_gang(self, lane: Lane, function: Function, workers: list[Worker]) -> list[GangTask]:
        """Dispatch all members of the lane's next gang, one to each of these workers, which are idle. Returns them."""
        lead = self._pop_lead(lane)
        client = lead.client
        attempt = client.next_attempt(lead.attempt)
        members = [lead, *[self._new_member(lead, rank) for rank in range(1, len(workers))]]
        gang = Gang(members)
        hosts = [worker.host for worker in workers]
        for rank, (member, worker) in enumerate(zip(members, workers)):
            member.gang = gang
            self._send_function(worker, function)
            self._outbox.add(
                effects.GangMember(
                    worker.route,
                    client=client.incarnation,
                    task_id=member.id,
                    attempt=attempt,
                    rank=rank,
                    hosts=hosts,
                )
            )
            self._dispatch_tasks(worker, function, [member], self._outbox.dispatch_batch(worker))
            worker.sent_tasks += 1
        self._counts.add_waiting(lane, -1, 1)
        self._counts.add_dispatched(len(members), 1)
        return members

    def _pop_lead(self, lane: Lane) -> GangTask:
        """Take the task out of its lane that stands for the lane's next gang."""
        if lane.requeued:
            lead = lane.first_requeued
            lane.pop_requeued()
        else:
            batch = lane.batches.first
            row = batch.next
            lead = self.new_task(
                batch.ids[row], lane.client, batch.function_at(row), batch.options, *batch.take_row(row)
            )
            lead.submitted_at = lead.since = batch.arrived
            lead.transition(READY)
            lane.client.tasks[lead.id] = lead
        assert isinstance(lead, GangTask)
        return lead

    def _new_member(self, lead: GangTask, rank: int) -> GangTask:
        """Make the record of a further member, which waits. Its end is `Gangs.drop_member`."""
        member = self.new_task(
            lead.id + rank, lead.client, lead.function, lead.options, lead.payload, lead.start, lead.size, lead.is_large
        )
        assert isinstance(member, GangTask)
        member.rank = rank
        member.attempt = lead.attempt
        member.since, member.submitted_at = lead.since, lead.submitted_at
        member.inputs = lead.inputs
        for stored in member.inputs:
            stored.readers += 1
        member.transition(READY)
        lead.client.tasks[member.id] = member
        lead.function.tasks += 1
        self._counts.payload_bytes += lead.size
        return member

    def _send_function(self, worker: Worker, function: Function) -> None:
        if function not in worker.functions:
            worker.functions.add(function)
            self._outbox.add(
                effects.Function(
                    worker.route, function.number, function.name, split_kind(function.kind)[0], function.payload
                )
            )

    def _dispatch_requeued(
        self, worker: Worker, lane: Lane, function: Function, count: int, outgoing: effects.Dispatch
    ) -> int:
        """Dispatch tasks that have a record of their own and stand for equally many calls. Returns their number."""
        tasks: list[Task] = []
        weight = lane.next_options.weight
        while lane.requeued and len(tasks) < count:
            task = lane.first_requeued
            if task.state == WAITING:
                if tasks and (task.function is not function or task.options.weight != weight or has_copies(task)):
                    break  # another worker may be a better choice, or `count` is wrong for it
                if tasks and task.may_end_worker and worker.has_parents:
                    break
                tasks.append(task)
            lane.pop_requeued()
        self._dispatch_tasks(worker, function, tasks, outgoing)
        return len(tasks)

    def _dispatch_tasks(
        self, worker: Worker, function: Function, tasks: list[Task], outgoing: effects.Dispatch
    ) -> None:
        """Dispatch tasks of one client and one function. What they have in common is computed once, and neighbours are
        one run of the history (benchmarks/graph_rate.py)."""
        client = tasks[0].client
        now = self._clock.now
        row = len(outgoing.ids)
        outgoing.clients.extend([client.incarnation] * len(tasks))
        outgoing.functions.extend([function.number] * len(tasks))
        store_flags = 0
        # Small results of graphs pass through the scheduler, which is quicker for readers on other hosts. Other small
        # results are files, so that they are not lost with the scheduler.
        is_scarce = self._objects.bytes > self._scarce_bytes
        is_small = is_scarce or not tasks[0].options.graph
        if is_scarce:
            function.store_small()
        if function.may_store and self._agents.is_expected(worker, now):
            store_flags = effects.FLAG_MAY_STORE | (effects.FLAG_STORE_SMALL if is_small else 0)
        options = DEFAULT_OPTIONS
        run: list[int] = []
        """The ids of the last tasks with equal options and attempts."""
        attempt = -1
        for task in tasks:
            task.transition(DISPATCH)
            self._counts.dispatch_latencies.add(now - task.since)
            task.since = now
            if task.failures:
                self._counts.retries += 1
            task.attempt = client.next_attempt(task.attempt)
            task.cost = cost_ns(function, task.options)
            worker.hold(task)
            if task.options is not options or task.attempt != attempt:
                if run:
                    self._history.record_dispatched(worker, client, function, options.name, run, attempt)
                    run = []
                options, attempt = task.options, task.attempt
            flags = store_flags if task.keep == KEEP_YES else 0
            if task.keep and not flags and function not in worker.kept_functions:
                worker.kept_functions.add(function)
                flags = effects.FLAG_STORE_SMALL  # no result of this function becomes a file of its client
            if flags or options is not DEFAULT_OPTIONS or function.ends_workers:
                special = _row_options(options, flags, task.may_end_worker and not worker.has_parents)
                if any(special):
                    outgoing.row_options[row] = special
                if options.name:
                    outgoing.names[row] = options.name
            if task.keep:
                self.kept.append(task)
            if task.inputs:
                deliver_inputs(task, worker, row, outgoing, self._agents, self._outbox)
            elif task.is_large:
                outgoing.rows.append_large(task.payload)
            else:
                outgoing.rows.append_run([task.size], task.payload[task.start : task.start + task.size])
            outgoing.ids.append(task.id)
            outgoing.attempts.append(attempt)
            run.append(task.id)
            row += 1
        self._history.record_dispatched(worker, client, function, options.name, run, attempt)

    def _dispatch_run(
        self,
        worker: Worker,
        client: Client,
        function: Function,
        batches: BatchQueue,
        count: int,
        outgoing: effects.Dispatch,
    ) -> int:
        """Dispatch rows from the front of a batch. Their bytes follow one another and are sent as one slice. Returns
        their number."""
        batch = batches.first
        first = batch.next
        count = batch.run_length(count)
        ids = batch.ids[first : first + count]
        sizes = batch.sizes[first : first + count]
        large = batch.large.pop(first, None) if batch.large else None
        task_cost = cost_ns(function, batch.options)
        serial = self._next_serial
        position = batch.position
        payload = batch.payload if large is None else large
        large_size = 0 if large is None else len(large)
        options = batch.options
        attempt = client.next_attempt(0)
        arrived, now = batch.arrived, self._clock.now
        client_tasks = client.tasks
        worker_tasks = worker.tasks
        # The loop does for each row what _dispatch_tasks and Worker.hold do for one task. `make bench ONLY=scheduler`
        # pays for it: columns and sums are written once for all rows. Task takes its fields by position for the same
        # reason: PyPy calls it faster than with keywords before the loop is compiled.
        for row in range(count):
            task_id = ids[row]
            size = sizes[row]
            task = Task(
                task_id,
                client,
                function,
                options,
                payload,
                position,
                size + large_size,
                large is not None,
                serial,
                task_cost,
                worker,
                attempt,
                arrived,
                now,
            )
            client_tasks[task_id] = task
            worker_tasks[serial] = task
            serial += 1
            position += size
        share = client.share
        share.held += count
        share.held_ns += task_cost * count
        worker.load_ns += task_cost * count
        worker.payload_bytes += position - batch.position + large_size
        if options is not DEFAULT_OPTIONS or function.ends_workers:
            special = _row_options(options, 0, may_end_worker(options, function) and not worker.has_parents)
            row = len(outgoing.ids)
            if any(special):
                outgoing.row_options.update(dict.fromkeys(range(row, row + count), special))
            if options.name:
                outgoing.names.update(dict.fromkeys(range(row, row + count), options.name))
        outgoing.clients.extend([client.incarnation] * count)
        outgoing.ids.extend(ids)
        outgoing.attempts.extend([attempt] * count)
        outgoing.functions.extend([function.number] * count)
        if large is not None:
            outgoing.rows.append_large(large)
        else:
            outgoing.rows.append_run(sizes, payload[batch.position : position])
        self._next_serial = serial
        self._counts.dispatch_latencies.add(now - batch.arrived, count)
        self._history.record_dispatched(worker, client, function, options.name, ids, attempt)
        batch.next = first + count
        batch.position = position
        if batch.is_empty:
            batches.remove_first()
        return count

    def new_task(
        self,
        task_id: int,
        client: Client,
        function: Function,
        options: Options,
        payload: bytes,
        start: int,
        size: int,
        is_large: bool,
    ) -> Task:
        """Make the record of a task that may have to wait for inputs. The task is blocked and on no worker."""
        serial = self._next_serial
        self._next_serial += 1
        now = self._clock.now
        kind = GangTask if options.gang_size else Task
        task = kind(task_id, client, function, options, payload, start, size, is_large, serial, 0, None, 0, now, now)
        task.state = BLOCKED
        return task

    # --------------------------------------------------------------------------------------------------------- adopting

    def reattach(self, task: Task, lane: Lane, worker: Worker, attempt: int, has_ended: bool) -> None:
        """Record that a worker runs a task of this lane that waits for another attempt.

        Args:
            task: the task.
            lane: its lane.
            worker: the worker.
            attempt: the number of the attempt that it runs.
            has_ended: whether this attempt has ended already: then it holds no resources.
        """
        task.transition(REATTACH)
        task.attempt = attempt
        task.since = self._clock.now
        task.cost = cost_ns(task.function, task.options)
        task.reads_files = len(task.inputs) > 0
        self._count_reattached(worker, task, lane, has_ended)

    def reattach_member(self, worker: Worker, task: GangTask) -> None:
        """Record that a worker that has joined again still runs this member of a gang."""
        task.transition(READY)
        task.transition(REATTACH)
        task.cost = cost_ns(task.function, task.options)
        worker.hold(task)
        if task.options.limits or task.options.resources:
            self._holdings.take_running(task, worker)
        self._counts.add_dispatched(1, 1)

    def reattach_row(self, lane: Lane, batch: Batch, row: int, worker: Worker, attempt: int, has_ended: bool) -> Task:
        """Record that a worker runs a task whose row waits here and was not dispatched.

        Args:
            lane: the lane.
            batch: the batch with the row.
            row: the row.
            worker: the worker.
            attempt: the number of the attempt that it runs.
            has_ended: whether this attempt has ended already: then it holds no resources.
        """
        function = batch.function_at(row)
        payload, start, size, is_large = batch.take_row(row)
        serial = self._next_serial
        self._next_serial += 1
        client = lane.client
        task = Task(
            batch.ids[row],
            client,
            function,
            batch.options,
            payload,
            start,
            size,
            is_large,
            serial,
            cost_ns(function, batch.options),
            worker,
            attempt,
            batch.arrived,
            self._clock.now,
        )
        task.state = WAITING
        task.transition(REATTACH)
        client.tasks[task.id] = task
        self._count_reattached(worker, task, lane, has_ended)
        return task

    def _count_reattached(self, worker: Worker, task: Task, lane: Lane, has_ended: bool) -> None:
        worker.hold(task)
        if (task.options.limits or task.options.resources) and not has_ended:
            self._holdings.take_running(task, worker)
        task.client.newest_attempt = max(task.client.newest_attempt, task.attempt)
        weight = task.options.weight
        self._counts.add_waiting(lane, -1, weight)
        self._counts.add_dispatched(1, weight)


def _row_options(options: Options, flags: int, is_alone: bool) -> tuple[int, int, int]:
    """The flags, depth and priority of a row. `is_alone`: it may not run beside suspended tasks."""
    if options.profiling:
        flags |= effects.FLAG_PROFILE
    if is_alone:
        flags |= effects.FLAG_REPORT_START
    if options.stream_output:
        flags |= effects.FLAG_STREAM_OUTPUT
    if options.calls:
        flags |= effects.FLAG_CALLS
    if options.release_resources:
        flags |= effects.FLAG_RELEASE
    if options.gang_size:
        flags |= effects.FLAG_GANG
    return flags, options.depth, options.priority
