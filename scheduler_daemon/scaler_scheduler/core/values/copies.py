"""The relation of copies: which places have a copy of which value, in which state. Only this module writes it.

It is kept by value (`StoredObject.copies`), by place (`Agent.objects`), and for what a host can do without
(`Agent.copies`, `HostRoom.copied`). `core/state/value_states.py` has the states and the actions.
"""

from __future__ import annotations

from collections.abc import Iterator

from scaler_scheduler.core.state.records import Agent, StoredObject, Worker
from scaler_scheduler.core.state.value_states import (
    ABSENT,
    CACHED,
    PRIMARY,
    PROMOTE,
    SENT,
    is_file,
    next_copy_state,
)

GOT = 1
"""A worker has got the bytes of a value."""

READS = 2
"""A worker has got a task that reads the file of its host."""


def state_at(value: StoredObject, place: Agent) -> int:
    """The state of the copy at a place."""
    return ABSENT if value.copies is None else value.copies.get(place, ABSENT)


def move(value: StoredObject, place: Agent, action: int) -> int:
    """Take a transition of the table for the copy at a place. Returns its state.

    Raises:
        InvariantError: the action is not allowed in the state of the copy.
    """
    copies = value.copies
    before = ABSENT if copies is None else copies.get(place, ABSENT)
    after = next_copy_state(before, action)
    if after == before:
        return after
    if copies is None:
        copies = value.copies = {}
    if after == ABSENT:
        del copies[place]
        place.objects.discard(value)
    else:
        copies[place] = after
        if before == ABSENT:
            place.objects.add(value)
    if after == PRIMARY:
        value.home = place
    elif before == PRIMARY:
        value.home = None
        value.fetched_from = None
    if after == SENT or after == CACHED:
        if value not in place.copies:
            place.copies[value] = value.size
            place.room.copied += value.size
    elif value in place.copies:
        place.room.copied -= place.copies.pop(value)
    return after


def promote_other(value: StoredObject) -> bool:
    """Make another file the primary copy of a value whose primary copy is lost. Returns whether there is one."""
    places = list(files(value))
    if not places:
        return False
    move(value, min(places, key=lambda place: (place.is_retiring, place.incarnation)), PROMOTE)
    return True


def files(value: StoredObject) -> Iterator[Agent]:
    """The places with a file of a value."""
    return (place for place, state in (value.copies or {}).items() if is_file(state))


def note_worker(value: StoredObject, worker: Worker, state: int) -> None:
    """Note that a worker has got the bytes of a value (GOT), or a task that reads the file (READS)."""
    if value.workers is None:
        value.workers = {}
    value.workers[worker] = state
    worker.objects.add(value)


def drop_worker(value: StoredObject, worker: Worker) -> None:
    """Note that a worker does not have a value, or reads no file of it."""
    if value.workers is not None:
        value.workers.pop(worker, None)
    worker.objects.discard(value)
