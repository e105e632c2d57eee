"""Handles a worker's results. The loop over their rows is a hot path."""

from __future__ import annotations

from scaler_scheduler.core.completion.attempt_end import AttemptEnd
from scaler_scheduler.core.completion.gangs import Gangs
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.task_end import exceeds_limit
from scaler_scheduler.core.data.input_delivery import resend_unread
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.effects import (
    OUTCOME_EXCEPTION,
    OUTCOME_FILE,
    OUTCOME_INPUT_LOST,
    OUTCOME_NO_ROOM,
    OUTCOME_RESULT_FAILED,
    OUTCOME_RETRYABLE,
    OUTCOME_STORED,
    OUTCOME_VALUE,
    OUTCOME_WORKER_DIED,
    Resolved,
)
from scaler_scheduler.core.events import KEEP_YES, Results
from scaler_scheduler.core.state.functions import MOST_ROW_NS, Function
from scaler_scheduler.core.state.records import Client, GangTask, Task, Worker
from scaler_scheduler.core.state.transitions import (
    DISPATCHED,
    INTENT_FORCE,
    INTENT_RERUN,
    INTENT_TIME_LIMIT,
    NO_INTENT,
    RESULT,
    RETRY,
    WAITING,
)
from scaler_scheduler.core.tables import EarlyAnswer, Tables, UnclaimedTask

_VALUES = (OUTCOME_VALUE, OUTCOME_STORED, OUTCOME_FILE)
_AGAIN = -1
"""In place of an outcome: the task waits again."""

_ANSWERED = -2
"""In place of an outcome: the task has been answered already."""


EARLY_DIVISOR = 8
"""Results that have come before their clients take this part of the memory limit at most. The tasks of further results
run again."""


class ResultHandler:
    """Handles the results of workers."""

    def __init__(
        self, core: CoreState, attempt_end: AttemptEnd, graphs: Graphs, host_results: HostResults, gangs: Gangs
    ) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._attempt_end = attempt_end
        self._graphs = graphs
        self._host_results = host_results
        self._gangs = gangs
        self._near_data = core.near_data
        self._most_early_bytes = core.limits.memory_limit_bytes // EARLY_DIVISOR

    def handle(self, event: Results, worker: Worker) -> None:
        """Resolve each row whose task waits for it. The bytes of neighbouring rows for one client are sent as one
        slice.

        A row is late, and does not count, if its task is over or another worker or attempt has it.
        """
        tables, outbox, graphs, host_results = self._tables, self._outbox, self._graphs, self._host_results
        ids, attempts, outcomes = event.ids, event.attempts, event.outcomes
        durations, sizes, payload = event.durations, event.sizes, event.payload
        incarnations, large = event.clients, event.large
        is_profiled = len(event.cpu_times) > 0
        clients, functions, counts = tables.clients, tables.functions, tables.counts
        worker_tasks = worker.tasks
        client: Client | None = None
        incarnation = -1
        position = 0  # the offset of this row's bytes
        begin = 0  # the offset of the first bytes that are not in the outbox yet
        pending: Resolved | None = None  # the client's batch that these bytes go to
        function: Function | None = None
        name = ""  # the user-given name of the tasks of the present run of rows
        run_ns = excess_ns = 0
        counted = large_bytes = 0  # the bytes before this run's first row, and those of its large rows
        count = 0
        # Of the present run of rows of one client: the time of all, the number of those that are detached here, and
        # their expected time.
        used_ns = freed = freed_ns = 0
        ended_bytes = 0
        late_before = counts.late_results
        history = tables.history
        tracebacks = event.tracebacks
        recorded = 0  # rows before this one are in the history; rows in `skipped` do not belong there
        skipped: list[int] = []
        for row in range(len(ids)):
            if incarnations[row] != incarnation:
                if client is not None:
                    client.share.end(freed, freed_ns, used_ns)
                    used_ns = freed = freed_ns = 0
                incarnation = incarnations[row]
                client = clients.by_incarnation.get(incarnation)
            size = sizes[row]
            task = None if client is None else client.tasks.get(ids[row])
            if task is None or task.worker is not worker or task.attempt != attempts[row]:
                counts.late_results += 1
                skipped.append(row)
                if tables.unclaimed or tables.early:
                    self._keep_early(event, row, position, worker)
                if outcomes[row] == OUTCOME_STORED:
                    host_results.discard_late_file(worker, incarnation, ids[row], attempts[row])
                if pending is not None:
                    pending.rows.parts.append(payload[begin:position])
                    pending = None
                position += size
                continue
            assert client is not None
            outcome = outcomes[row]
            if outcome and tracebacks and tracebacks[row]:
                history.tracebacks.add(incarnation, task.id, task.attempt, tracebacks[row])
            if task.function is not function or task.options.name != name:
                if function is not None:
                    function.count_results(run_ns, count, excess_ns, position - counted + large_bytes)
                    history.record_results(event, worker, function, name, recorded, row, skipped)
                    recorded = row
                function, name = task.function, task.options.name
                run_ns = count = excess_ns = large_bytes = 0
                counted = position
            run_ns += durations[row]
            used_ns += durations[row]
            count += 1
            weight = task.options.weight
            if weight > 1:
                further = _ended_calls(event, row, weight) - 1
                count += further
                excess_ns += max(0, durations[row] - MOST_ROW_NS)
                worker.done_tasks += further
            if task.state != DISPATCHED or task.intent or outcome >= OUTCOME_RETRYABLE or task.is_node or task.gang:
                if pending is not None:  # before the scheduler adds its own answer to the same batch
                    pending.rows.parts.append(payload[begin:position])
                    pending = None
                if task.gang is not None and isinstance(task, GangTask):
                    task.client.share.forget_late(durations[row] - task.cost)
                    if outcome == OUTCOME_NO_ROOM:
                        outcome = OUTCOME_RESULT_FAILED
                    value = large[row] if row in large else payload[position : position + size]
                    error = event.errors[row] if event.errors else ""
                    if not self._gangs.end_with_result(
                        task, outcome, value, worker, error=error, duration=durations[row]
                    ):
                        skipped.append(row)
                    position += size
                    continue
                outcome = self._process_special(task, event, row, worker)
                if outcome < 0:
                    skipped.append(row)
                if outcome >= 0 and task.is_node:
                    value = large[row] if row in large else payload[position : position + size]
                    if not graphs.complete(task, outcome, value, worker):
                        outcome = _ANSWERED
                if outcome < 0:
                    position += size
                    continue
            else:
                # AttemptEnd.detach with Worker.release, inline for tasks that only wait for this result. A call for
                # each task shows in `make bench ONLY=scheduler`.
                task.transition(RESULT)
                task.worker = None
                del worker_tasks[task.serial]
                worker.load_ns -= task.cost
                freed += 1
                freed_ns += task.cost
                worker.payload_bytes -= task.size
                counts.dispatched -= 1
                if weight > 1:
                    counts.further_dispatched -= weight - 1
            # task_end.close_task and Outbox.answer, inline for the same reason.
            del client.tasks[task.id]
            client.returned_bytes += task.size + TASK_OVERHEAD
            ended_bytes += task.size
            counts.resolved += 1
            if outcome and outcome != OUTCOME_FILE:
                counts.outcomes[outcome] += 1
                function.failed_tasks += 1
            functions.remove_task(function)
            if weight > 1:  # Tables.remove_row, and the answered calls; the client submits the others again
                client.further_calls -= weight - 1
                function.further_calls -= weight - 1
                counts.resolved += further
                client.answered_tasks += further
            batch = None if client.is_gone else outbox.resolved_batch(client)
            if batch is not pending:
                if pending is not None:
                    pending.rows.parts.append(payload[begin:position])
                pending = batch
                begin = position
            if batch is None:
                clients.remove_if_done(client)
            else:
                if large and row in large:
                    batch.rows.large_rows.append(len(batch.ids))
                    batch.rows.large_frames.append(large[row])
                    client.sent_bytes += len(large[row])
                    large_bytes += len(large[row])
                if is_profiled and task.options.profiling:
                    batch.profiles[len(batch.ids)] = durations[row], event.cpu_times[row], event.peaks[row]
                batch.ids.append(task.id)
                batch.outcomes.append(outcome)
                batch.rows.sizes.append(size)
                client.sent_bytes += size
                if outcome == OUTCOME_FILE:
                    file_bytes = int.from_bytes(payload[position + 8 : position + size], "little")
                    batch.rows.file_bytes += file_bytes
                    client.sent_bytes += file_bytes
            position += size
        if pending is not None:
            pending.rows.parts.append(payload[begin:position])
        if function is not None:
            function.count_results(run_ns, count, excess_ns, position - counted + large_bytes)
            history.record_results(event, worker, function, name, recorded, len(ids), skipped)
        if client is not None:
            client.share.end(freed, freed_ns, used_ns)
        counts.payload_bytes -= ended_bytes
        worker.done_tasks += len(ids) - (counts.late_results - late_before)

    def _keep_early(self, event: Results, row: int, begin: int, worker: Worker) -> None:
        """Keep a result whose client has not submitted its task again yet. `begin` is the offset of its bytes."""
        tables, client, task_id = self._tables, event.clients[row], event.ids[row]
        name = tables.unclaimed.get((client, task_id)) or tables.early.get((client, task_id))
        if name is None or name.worker is not worker or name.attempt != event.attempts[row]:
            return
        drop_unclaimed(tables, worker, client, task_id)
        tables.pop_early(client, task_id)
        is_over = isinstance(name, UnclaimedTask) and name.is_over
        size = len(event.large[row]) if row in event.large else event.sizes[row]
        outcome = event.outcomes[row]
        has_ended = outcome < OUTCOME_RETRYABLE or outcome in (OUTCOME_STORED, OUTCOME_FILE)
        if is_over or not has_ended or tables.early_bytes + size > self._most_early_bytes:
            return
        results = row_of(event, row, begin)
        tables.keep_early(EarlyAnswer(worker, name.attempt, name.deadline, results), client, task_id)
        blocked = tables.find_open(client, task_id)
        if blocked is not None:
            self._graphs.early_result_came(blocked)

    def _process_special(self, task: Task, event: Results, row: int, worker: Worker) -> int:
        """Handle a row whose task has an intent, a special outcome or a special state. Returns the outcome to hand on,
        _AGAIN or _ANSWERED."""
        outcome, duration = event.outcomes[row], event.durations[row]
        task.client.share.forget_late(duration - task.cost)
        error = event.errors[row] if event.errors else ""
        self._attempt_end.detach(task)
        intent = task.intent
        if intent == INTENT_TIME_LIMIT and outcome in _VALUES and exceeds_limit(task, duration):
            outcome = OUTCOME_EXCEPTION  # it has ignored its stop
        if outcome == OUTCOME_VALUE or (outcome == OUTCOME_FILE and task.keep != KEEP_YES):
            pass
        elif outcome == OUTCOME_FILE:
            # It was kept only after it had begun, at an earlier scheduler. The client can't take the file.
            return self._retry(task, worker, OUTCOME_WORKER_DIED, "its result is a file of its client", duration)
        elif outcome == OUTCOME_STORED:
            if not self._host_results.can_store(task, worker):
                self._host_results.discard_file(worker, task)
                cause = "its result is out of reach on its host"
                is_here = self._tables.workers.find(worker.incarnation) is worker  # else it was to wait for its agent
                if is_here and (task.keep != KEEP_YES or task.since >= worker.agent_until):
                    task.failures += 1
                    death = f"attempt {task.failures} on {worker.host} (pid {worker.pid}): {cause}"
                    task.deaths = [*(task.deaths or []), death]
                return self._retry(task, worker, OUTCOME_WORKER_DIED, cause, duration)
        elif intent == INTENT_RERUN:
            return self._retry(task, worker, outcome, error, duration)
        elif intent >= INTENT_FORCE:
            if task.keep == KEEP_YES:  # the task may have been interrupted after its file was written
                self._host_results.discard_file(worker, task)
            task.transition(RESULT)
            self._attempt_end.end_stopped(task, event.tracebacks[row] if event.tracebacks else b"")
            return _ANSWERED
        if outcome == OUTCOME_INPUT_LOST and task.reads_files:
            # The host had no space for the file, or its agent was lost. The scheduler has the bytes and sends them.
            resend_unread(task.inputs, worker, self._outbox)
            outcome = self._retry(task, worker, outcome, error, duration)
            if task.state == WAITING:
                self._host_results.fetch_unread(task)
            return outcome
        if outcome == OUTCOME_NO_ROOM:
            task.full_agent = worker.agent
            task.failures += 1
            if self._attempt_end.has_retries_left(task) and (
                self._near_data.has_room_elsewhere(task) or self._near_data.makes_room_for_result(task, worker)
            ):
                return self._retry(task, worker, outcome, error, duration)
            outcome = OUTCOME_RESULT_FAILED
        if outcome == OUTCOME_RETRYABLE:
            task.failures += 1
            if self._attempt_end.has_retries_left(task):
                return self._retry(task, worker, outcome, error, duration)
            outcome = OUTCOME_EXCEPTION
        task.intent = NO_INTENT
        task.transition(RESULT)
        return outcome

    def _retry(self, task: Task, worker: Worker, outcome: int, error: str, duration: int) -> int:
        """Let the task wait again, unless its intent says otherwise."""
        task.transition(RETRY)
        self._attempt_end.retry_or_end(task, worker, outcome, error, duration)
        return _AGAIN


def _ended_calls(event: Results, row: int, weight: int) -> int:
    """Return how many calls of a row have ended. The worker's number may be wrong."""
    return min((event.calls[row] if event.calls else 0) or weight, weight)


def row_of(event: Results, row: int, begin: int) -> Results:
    """Return one row of a message as a message. `begin` is the offset of its bytes."""
    one = slice(row, row + 1)
    return Results(
        event.route,
        event.clients[one],
        event.ids[one],
        event.attempts[one],
        event.outcomes[one],
        event.durations[one],
        event.sizes[one],
        b"" if row in event.large else event.payload[begin : begin + event.sizes[row]],
        {0: event.large[row]} if row in event.large else {},
        event.cpu_times[one],
        event.peaks[one],
        event.errors[one],
        event.tracebacks[one],
        event.calls[one],
    )


def drop_unclaimed(tables: Tables, worker: Worker, client: int, task_id: int) -> None:
    """Forget an unclaimed task that the worker has ended."""
    unclaimed = tables.unclaimed.get((client, task_id))
    if unclaimed is not None and unclaimed.worker is worker:
        del tables.unclaimed[client, task_id]
        if not unclaimed.is_suspended:
            worker.unclaimed -= 1
