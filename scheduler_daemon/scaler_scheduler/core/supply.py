"""How a worker comes to have the objects that a task reads: along with it, before it, or in a file of its host."""

from scaler_scheduler.core import effects
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import Copies, StoredObject, Task, Worker
from scaler_scheduler.core.workers import AgentTable

SHARED_BYTES = 256 * 1024
"""Objects of at least this size go once to the host agent, which shares them as a file among its workers."""


SMALL_BYTES = 256
"""Objects of up to this size go along with every task that reads them: a message of their own costs more."""

INLINE_BYTES = 16 * 1024
"""So do larger ones of which few tasks are left to read them, as long as these are no more bytes in all."""


def is_inlined(stored: StoredObject) -> bool:
    """Whether the object's bytes go along with the task that reads it."""
    size = stored.size
    if size > SMALL_BYTES and size * stored.readers > INLINE_BYTES:
        return False
    return stored.frames is not None and len(stored.frames) == 1


def supply(task: Task, worker: Worker, outgoing: effects.Dispatch, agents: AgentTable, outbox: Outbox) -> None:
    """Add the next row's payload to the worker's batch, with the columns of its inputs, and send what is missing."""
    inlined = []
    for stored in task.inputs:
        outgoing.inputs.append(stored.id)
        copies = stored.copies
        is_there = copies is not None and worker in copies.workers
        if not task.is_large and not is_there and is_inlined(stored):
            assert stored.frames is not None
            inlined.append(stored.frames[0])
            outgoing.shared.append(0)
            outgoing.inlined.append(1 + stored.size)
        else:
            outgoing.shared.append(_supply_one(stored, worker, agents, outbox))
            outgoing.inlined.append(0)
    outgoing.input_counts[len(outgoing.ids)] = len(task.inputs)
    if task.is_large:
        outgoing.rows.append_large(task.payload)
    else:
        payload = task.payload[task.start : task.start + task.size] + b"".join(inlined)
        outgoing.rows.append_run([len(payload)], payload)


def _supply_one(stored: StoredObject, worker: Worker, agents: AgentTable, outbox: Outbox) -> int:
    """Send the object where it is missing; 1 where the worker finds it in a file."""
    copies = stored.copies
    if copies is None:
        copies = stored.copies = Copies()
    agent = agents.find(worker.agent) if stored.size >= SHARED_BYTES else None
    if agent is not None and worker not in copies.workers:
        if agent not in copies.agents:
            copies.agents.add(agent)
            agent.objects.add(stored)
            send(stored, agent.route, outbox)
        if worker not in copies.file_readers:
            copies.file_readers.add(worker)
            worker.objects.add(stored)
        return 1
    if worker not in copies.workers:
        copies.workers.add(worker)
        worker.objects.add(stored)
        send(stored, worker.route, outbox)
    return 0


def send(stored: StoredObject, route: bytes, outbox: Outbox) -> None:
    """Send the object's bytes there."""
    assert stored.frames is not None
    outbox.add(effects.Object(route, stored.client.incarnation, stored.id, stored.name, stored.frames))
