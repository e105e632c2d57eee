"""How a worker comes to have the objects that a task reads."""

from typing import List, Sequence, Tuple

from scaler_scheduler.core import effects
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.records import StoredObject, Worker
from scaler_scheduler.core.workers import AgentTable

SHARED_BYTES = 256 * 1024
"""Objects of at least this size go once to the host agent, which shares them as a file among its workers."""


def supply(inputs: Sequence[StoredObject], worker: Worker, agents: AgentTable, outbox: Outbox) -> List[Tuple[int, int]]:
    """Send what is missing there; returns for each input its id, and 1 where the worker finds it in a file."""
    return [(stored.id, _supply_one(stored, worker, agents, outbox)) for stored in inputs]


def _supply_one(stored: StoredObject, worker: Worker, agents: AgentTable, outbox: Outbox) -> int:
    agent = agents.find(worker.agent) if stored.size >= SHARED_BYTES else None
    if agent is not None and worker not in stored.workers:
        if agent not in stored.agents:
            stored.agents.add(agent)
            agent.objects.add(stored)
            send(stored, agent.route, outbox)
        if worker not in stored.file_readers:
            stored.file_readers.add(worker)
            worker.objects.add(stored)
        return 1
    if worker not in stored.workers:
        _send_to_worker(stored, worker, outbox)
    return 0


def send_unread(inputs: Sequence[StoredObject], worker: Worker, outbox: Outbox) -> None:
    """The worker could not read some of these: it gets the bytes of those that it was to find in files."""
    for stored in inputs:
        if worker not in stored.workers:
            stored.file_readers.discard(worker)
            _send_to_worker(stored, worker, outbox)


def _send_to_worker(stored: StoredObject, worker: Worker, outbox: Outbox) -> None:
    stored.workers.add(worker)
    worker.objects.add(stored)
    send(stored, worker.route, outbox)


def send(stored: StoredObject, route: bytes, outbox: Outbox) -> None:
    """Send the object's bytes there."""
    assert stored.frames is not None
    outbox.add(effects.Object(route, stored.client.incarnation, stored.id, stored.name, stored.frames))
