"""A worker's results: the hot half of the way back."""

from typing import Optional

from scaler_scheduler.core.clients import ClientTable
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.effects import Resolved
from scaler_scheduler.core.events import Results
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Client, Function, Worker
from scaler_scheduler.core.states import RESULT


def take_results(
    event: Results, worker: Worker, clients: ClientTable, functions: FunctionTable, outbox: Outbox, counts: Counts
) -> None:
    """Resolve each row that is still waited for. Bytes of rows in a row for one client go on as one slice."""
    ids, attempts, outcomes = event.ids, event.attempts, event.outcomes
    durations, sizes, payload = event.durations, event.sizes, event.payload
    client_numbers, large = event.clients, event.large
    worker_tasks = worker.tasks
    client: Optional[Client] = None
    client_number = -1
    position = 0  # where this row's bytes begin
    begin = 0  # where the bytes begin that have not gone to the outbox yet
    pending: Optional[Resolved] = None  # whose they are
    function: Optional[Function] = None
    spent = 0
    count = 0
    for row in range(len(ids)):
        if client_numbers[row] != client_number:
            client_number = client_numbers[row]
            client = clients.by_number.get(client_number)
        size = sizes[row]
        task = None if client is None else client.tasks.get(ids[row])
        if task is None or task.worker is not worker or task.attempt != attempts[row]:
            counts.late += 1
            if pending is not None:
                pending.rows.parts.append(payload[begin:position])
                pending = None
            position += size
            continue
        assert client is not None
        task.move(RESULT)
        task.worker = None
        del client.tasks[task.id]
        del worker_tasks[task.serial]
        worker.load -= task.cost
        worker.bytes -= task.size
        if task.function is not function:
            if function is not None:
                function.observe(spent, count)
            function = task.function
            spent = count = 0
        spent += durations[row]
        count += 1
        counts.dispatched -= 1
        counts.resolved += 1
        functions.let_go(function)
        batch = None if client.is_gone else outbox.resolved(client)
        if batch is not pending:
            if pending is not None:
                pending.rows.parts.append(payload[begin:position])
            pending = batch
            begin = position
        if batch is None:
            clients.bury(client)
        else:
            if large and row in large:
                batch.rows.large_rows.append(len(batch.ids))
                batch.rows.large_frames.append(large[row])
            batch.ids.append(task.id)
            batch.outcomes.append(outcomes[row])
            batch.rows.sizes.append(size)
        position += size
    if pending is not None:
        pending.rows.parts.append(payload[begin:position])
    if function is not None:
        function.observe(spent, count)
