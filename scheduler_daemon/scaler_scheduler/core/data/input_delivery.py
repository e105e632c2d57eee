"""Delivers the inputs of tasks to workers: inside the row, in a message before it, or as a file of the host.

Inputs are objects. Arguments are the payload of their row, whatever their size. `Graphs.drop_unneeded` has the files
removed.
"""

from collections.abc import Sequence

from scaler_scheduler.core import effects
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.functions import LARGE_BYTES
from scaler_scheduler.core.state.records import StoredObject, Task, Worker
from scaler_scheduler.core.state.value_states import SEND
from scaler_scheduler.core.state.workers import AgentTable
from scaler_scheduler.core.values.copies import GOT, READS, move, note_worker

SHARED_BYTES = LARGE_BYTES
"""Objects of at least this size go once to the host agent, which shares them as a file with its workers."""

SMALL_BYTES = 256
"""Objects up to this size go inside every row that reads them, because a separate message costs more."""

INLINE_BYTES = 16 * 1024
"""Larger objects also go inside the rows, if the bytes for all remaining readers are at most this."""


def is_inlined(stored: StoredObject) -> bool:
    """Whether the object's bytes go inside the row that reads it."""
    size = stored.size
    if size > SMALL_BYTES and size * stored.readers > INLINE_BYTES:
        return False
    return stored.frames is not None and len(stored.frames) == 1


def deliver_inputs(
    task: Task, worker: Worker, row: int, outgoing: effects.Dispatch, agents: AgentTable, outbox: Outbox
) -> None:
    """Write the payload and the input columns of a row, and send inputs that the worker lacks."""
    parts = outgoing.rows.parts
    size = 0
    if task.is_large:
        outgoing.rows.append_large(task.payload)
    else:
        size = task.size
        parts.append(task.payload[task.start : task.start + size])
    task.reads_files = False
    for stored in task.inputs:
        outgoing.inputs.append(stored.file_id)
        if stored.producer is not None:
            task.reads_files = task.reads_files or stored.producer.may_store
            outgoing.input_sources.append(effects.INPUT_OF_ROW_BEFORE)
            outgoing.inline_sizes.append(0)
            continue
        is_there = stored.workers is not None and stored.workers.get(worker) == GOT
        if not task.is_large and not is_there and is_inlined(stored):
            assert stored.frames is not None
            parts.append(stored.frames[0])
            size += stored.size
            outgoing.input_sources.append(effects.INPUT_IN_MESSAGE)
            outgoing.inline_sizes.append(1 + stored.size)
        else:
            source = _deliver_one(stored, worker, agents, outbox)
            task.reads_files = task.reads_files or source != effects.INPUT_IN_MESSAGE
            outgoing.input_sources.append(source)
            outgoing.inline_sizes.append(0)
    outgoing.input_counts[row] = len(task.inputs)
    if not task.is_large:
        outgoing.rows.sizes.append(size)


def _deliver_one(stored: StoredObject, worker: Worker, agents: AgentTable, outbox: Outbox) -> int:
    """Send the object if the worker lacks it. Returns where the worker finds it."""
    if stored.workers is not None and stored.workers.get(worker) == GOT:
        return effects.INPUT_IN_MESSAGE
    if stored.is_on(worker.agent):
        note_worker(stored, worker, READS)
        return effects.INPUT_IN_WORKER_FILE
    agent = agents.find(worker.agent) if stored.size >= SHARED_BYTES else None
    if agent is None:
        _send_to_worker(stored, worker, outbox)
        return effects.INPUT_IN_MESSAGE
    if not stored.is_known_to(agent):
        move(stored, agent, SEND)
        send_object(stored, agent.route, outbox)
    note_worker(stored, worker, READS)
    return effects.INPUT_IN_AGENT_FILE


def resend_unread(inputs: Sequence[StoredObject], worker: Worker, outbox: Outbox) -> None:
    """Send the bytes of inputs that the worker should read as files but could not read."""
    for stored in inputs:
        if stored.workers is not None and stored.workers.get(worker) == READS and stored.frames is not None:
            _send_to_worker(stored, worker, outbox)


def _send_to_worker(stored: StoredObject, worker: Worker, outbox: Outbox) -> None:
    note_worker(stored, worker, GOT)
    send_object(stored, worker.route, outbox)


def send_object(stored: StoredObject, route: bytes, outbox: Outbox) -> None:
    """Send the object's bytes to a worker or a host agent."""
    assert stored.frames is not None
    outbox.add(effects.Object(route, stored.client.incarnation, stored.file_id, stored.name, stored.frames))


def send_to_client(stored: StoredObject, outbox: Outbox) -> None:
    """Send the object's bytes to its client."""
    assert stored.frames is not None
    client = stored.client
    outbox.add(effects.Object(client.route, client.incarnation, stored.id, stored.name, stored.frames))
