"""Brings the inputs of tasks to where they run: from other hosts, or to the scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from scaler_scheduler.core.data.spare_copies import SpareCopies
from scaler_scheduler.core.data.transfers import Transfers
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.counts import Counts
from scaler_scheduler.core.state.records import Agent, StoredObject, Task, Worker
from scaler_scheduler.core.state.transitions import UNREADY


class Fetches:
    """Requests values that are not where they are needed."""

    def __init__(self, counts: Counts, transfers: Transfers, spare_copies: SpareCopies, outbox: Outbox) -> None:
        self._counts = counts
        self._transfers = transfers
        self._spare_copies = spare_copies
        self._outbox = outbox

    def block_task(self, task: Task, away: Sequence[StoredObject], target: Agent | None = None) -> None:
        """Block a waiting task until these inputs are on the target's host, or in the scheduler. None: until they are
        in the scheduler."""
        lane = task.client.lane_of(task)
        self._counts.add_waiting(lane, -1, task.options.weight)
        task.transition(UNREADY)
        if target is not None:
            self._spare_copies.note_placed(task, target)
        for stored in away:
            if target is None or not self._transfers.request(stored, target):
                self.fetch(stored)
            stored.block(task)
            task.missing_inputs += 1

    def fetch(self, stored: StoredObject) -> None:
        """Ask the home of an object for its bytes, unless it was asked already."""
        home = stored.home
        if home is not None and stored.fetched_from is not home:
            stored.fetched_from = home
            self._outbox.fetch_object(home.route, stored.client.incarnation, stored.file_id)


def away_from(worker: Worker, task: Task) -> list[StoredObject]:
    """The inputs of a task that only other hosts than this worker's have."""
    for stored in task.inputs:
        if stored.frames is None and not stored.is_on(worker.agent):
            return [each for each in task.inputs if each.is_remote and not each.is_on(worker.agent)]
    return []


def has_copies(task: Task) -> bool:
    """Whether some worker or host has an input of the task. Nobody keeps the small inputs that go inside rows."""
    for stored in task.inputs:
        if stored.copies or stored.workers:
            return True
    return False
