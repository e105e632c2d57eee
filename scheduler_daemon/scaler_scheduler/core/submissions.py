"""Submitted tasks. Plain tasks wait as columns of their message; tasks with inputs or kept results go to `Graphs`."""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence

from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import Options, Submit
from scaler_scheduler.core.limits import MOST_MEMBERS
from scaler_scheduler.core.peers.quotas import Quotas
from scaler_scheduler.core.peers.reattach import Reattach
from scaler_scheduler.core.state.batches import Batch
from scaler_scheduler.core.state.records import Client

MAX_RESOURCE_KINDS = 1000
"""The most different sets of resources that open tasks of one client ask for: each is a lane to look at."""


class Submissions:
    """Accepts submitted tasks."""

    def __init__(self, core: CoreState, graphs: Graphs, reattach: Reattach, quotas: Quotas) -> None:
        self._tables = core.tables
        self._task_limits = core.task_limits
        self._quotas = quotas
        self._queues = core.queues
        self._graphs = graphs
        self._reattach = reattach

    def submit(self, client: Client, event: Submit, now: float) -> None:
        """Accept new tasks of a client, or tasks that it submits again because it has no answer for them.

        Raises:
            ProtocolError: the tasks need a limit that is not defined, or ask for too many kinds of resources.
            ProtocolError: some rows name an unknown function. The other rows are accepted, except in a graph.
        """
        if event.keep_earlier:
            self._graphs.keep_results(client, event.keep_earlier)
        options, last = event.options, event.ids[-1]
        fault = self._task_limits.undefined(options.limits) if options.limits else ""
        if options.resources and not client.add_resource_kind(options.resources, MAX_RESOURCE_KINDS):
            fault = (
                f"the client's open tasks ask for {MAX_RESOURCE_KINDS} different sets of resources: let some end "
                "before others are submitted, or round the amounts"
            )
        if options.gang_size:
            fault = fault or self._gang_fault(client, event.ids, options)
            last += options.gang_size - 1
        if fault:
            client.returned_bytes += sum(_size(event, row) + TASK_OVERHEAD for row in range(len(event.ids)))
            raise ProtocolError(fault, list(event.ids))
        unknown = [number for number in dict.fromkeys(event.functions) if number not in client.functions]
        if unknown:
            known, others, weight = split_by_known_functions(event, client.functions)
            client.returned_bytes += weight
            if known is not None:
                self.submit(client, known, now)
            raise ProtocolError(self._quotas.unknown_function_text(client, unknown[0]), others)
        functions = []
        kinds: list[str] = []
        """The kinds of the functions, without repetitions in a row. There is one, except for clients that mix
        languages."""
        for number in event.functions:
            function = client.functions.get(number)
            if function is None:
                raise ProtocolError(f"submit names function {number}, which this client has not sent")
            functions.append(function)
            if not kinds or function.kind != kinds[-1]:
                kinds.append(function.kind)
        if event.options.name:
            for function in dict.fromkeys(functions):
                function.add_task_name(event.options.name)
        self._tables.history.record_submitted(client, event.ids, functions, event.options.name)
        if event.inputs or event.keep:
            self._graphs.submit(client, event, functions)
            client.highest_id = max(client.highest_id, last)
            client.highest_counted_id = max(client.highest_counted_id, last)
            self.match_ready(now)
            return
        is_known = event.ids[0] <= client.highest_id
        for kind in dict.fromkeys(kinds):
            batch = Batch(event.ids, functions, event.sizes, event.payload, event.large, event.options, now)
            if len(kinds) > 1:
                batch.large = dict(event.large)
                batch.leave_out(row for row, function in enumerate(functions) if function.kind != kind)
            if is_known:
                self._drop_known_rows(client, batch)
            self._enqueue(client, batch, kind, now)
        client.highest_id = max(client.highest_id, last)
        client.highest_counted_id = max(client.highest_counted_id, last)

    def _gang_fault(self, client: Client, ids: Sequence[int], options: Options) -> str:
        """Return why gangs cannot begin; empty if they can."""
        size = options.gang_size
        if size > MOST_MEMBERS:
            return f"a gang of {size} tasks exceeds the limit of {MOST_MEMBERS}"
        if any(after - before < size for before, after in zip(ids, ids[1:])):
            return f"the ids of gangs of {size} tasks must be {size} apart: a member has the id of another gang"
        most = client.share.limits.max_running
        if size > most:
            return f"a gang of {size} tasks can never begin: its key may run {most} tasks at once (--max-running)"
        return self._task_limits.too_small(options.limits, size)

    def _enqueue(self, client: Client, batch: Batch, kind: str, now: float) -> None:
        """Queue the remaining rows of the batch in the lane of this kind of functions."""
        rows = len(batch.ids) - len(batch.cancelled)
        if not rows:
            return
        functions = batch.functions
        for row, function in enumerate(functions):
            if len(functions) == 1:
                function.tasks += rows
            elif row not in batch.cancelled:
                function.tasks += 1
        further = batch.options.weight - 1
        if further:
            client.further_calls += rows * further
            for row in batch.waiting_rows():
                batch.function_at(row).further_calls += further
        size = len(batch.payload) - sum([batch.sizes[row] for row in batch.cancelled])
        self._tables.counts.payload_bytes += size + sum(map(len, batch.large.values()))
        lane = client.lane(batch.options, kind)
        lane.batches.append(batch)
        self._queues.enqueue(lane, rows, batch.options.weight)
        if self._tables.unclaimed or self._tables.early:
            self._reattach.match_batch(client, lane, batch, now)

    def match_ready(self, now: float) -> None:
        """Tasks that just became ready may already run on a worker that joined again: match them."""
        if self._graphs.ready:
            self._reattach.match_ready(self._graphs.pop_ready(), now)

    def _drop_known_rows(self, client: Client, batch: Batch) -> None:
        """Leave out rows that the client submits again and that the scheduler still has."""
        lanes = list(client.lanes.values())
        answered = client.unread.ids(client.outgoing)
        for row, task_id in enumerate(batch.ids):
            if row in batch.cancelled:
                continue
            is_answered = task_id in answered
            if is_answered:
                client.returned_bytes += batch.sizes[row] + len(batch.large.get(row, b"")) + TASK_OVERHEAD
            if is_answered or task_id in client.tasks or any(lane.batches.find(task_id) is not None for lane in lanes):
                batch.leave_out((row,))
            elif task_id <= client.highest_id:
                client.skip_attempts(client.newest_attempt)  # the task has ended, and its answer was lost


def split_by_known_functions(event: Submit, functions: Container[int]) -> tuple[Submit | None, list[int], int]:
    """Split a submit into the rows whose function is known and the others.

    If rows read other rows, none is accepted: the graph could not finish.

    Args:
        event: the submit.
        functions: the numbers of the client's known functions.

    Returns:
        The acceptable part, if any; the ids of the other rows; the bytes that these count in the client's credit.
    """
    rows = range(len(event.ids))
    of_graph = bool(event.inputs or event.keep)
    numbers = event.functions if len(event.functions) > 1 else list(event.functions) * len(rows)
    taken: list[int] = [] if of_graph else [row for row in rows if numbers[row] in functions]
    kept = frozenset(taken)
    others = [row for row in rows if row not in kept]
    weight = sum(_size(event, row) + TASK_OVERHEAD for row in others)
    known = _rows_of(event, taken, [numbers[row] for row in taken]) if taken else None
    return known, [event.ids[row] for row in others], weight


def _size(event: Submit, row: int) -> int:
    return len(event.large[row]) if row in event.large else event.sizes[row]


def _rows_of(event: Submit, rows: list[int], numbers: list[int]) -> Submit:
    starts = [0]
    for size in event.sizes:
        starts.append(starts[-1] + size)
    return Submit(
        event.route,
        array("q", [event.ids[row] for row in rows]),
        array("I", numbers),
        array("I", [event.sizes[row] for row in rows]),
        b"".join([event.payload[starts[row] : starts[row + 1]] for row in rows]),
        {place: event.large[row] for place, row in enumerate(rows) if row in event.large},
        event.options,
    )
