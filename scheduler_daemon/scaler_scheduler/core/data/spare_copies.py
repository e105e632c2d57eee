"""Removes copies that nobody reads from hosts without room.

A copy is a file of a value that another host, a client or the scheduler has too. A copy stays on its host as long as
the value, because further tasks may read it there. If the host needs the room, the scheduler tells its agent to remove
copies. The agent's next heartbeat says how much is free. An agent with little room sends it at once.
"""

from __future__ import annotations

from itertools import islice

from scaler_scheduler.core import effects
from scaler_scheduler.core.data.transfers import Transfers
from scaler_scheduler.core.outbox import Outbox
from scaler_scheduler.core.state.records import Agent, StoredObject, Task
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.state.value_states import DROP
from scaler_scheduler.core.tables import Tables
from scaler_scheduler.core.values.copies import READS, drop_worker, move

LEAST_FREE = 1 / 8
"""If less than this part of a host's larger limit is free, the host removes copies that no open task reads. So there is
room for results."""

CONFIRM_SECONDS = 1.0
"""For this time after a removal of copies, tasks wait for the heartbeat that says how much is free."""

SCANNED = 1000
"""The most copies of a host that are looked at in one go."""


class SpareCopies:
    """The copies that hosts can do without."""

    def __init__(self, tables: Tables, transfers: Transfers, outbox: Outbox) -> None:
        self._tables = tables
        self._transfers = transfers
        self._outbox = outbox
        self._without: set[Agent] = set()
        """The hosts that have no more copies to remove in this run of the dispatcher."""

    def end_run(self) -> None:
        """Forget what was found in the dispatcher's run that ends."""
        if self._without:
            self._without.clear()

    def note_placed(self, task: Task, agent: Agent) -> None:
        """Note that a task waits for inputs on their way to this host. The host keeps the inputs until the task has
        ended, or runs on another host."""
        agent.placed[task] = None

    def forget_ended(self) -> None:
        """Forget the placed tasks that wait no longer. Call it from time to time."""
        for agent in self._tables.agents:
            if agent.placed:
                agent.placed = {task: None for task in agent.placed if task.state in (WAITING, BLOCKED)}

    def may_fit(self, agent: Agent, task: Task, size: int) -> bool:
        """Whether so many bytes for a task are likely to fit on a host later: tasks there end, and then nobody reads
        their copies any more.

        Args:
            agent: of the host.
            task: the task.
            size: the bytes that the task lacks there.
        """
        room = agent.room
        if self._tables.clock.now < room.dropped_at + CONFIRM_SECONDS:
            return True
        # Not `free`, which counts some files twice: a task that has to wait would be taken for one that never fits.
        most = room.heard_free + room.dropped + room.coming + room.copied
        for stored in set(task.inputs):
            most -= agent.copies.get(stored, 0)
        if size > most:
            return False
        is_busy = any(each.task_count for each in self._tables.workers.of_agent(agent.incarnation))
        return is_busy or room.coming > 0 or room.dropped > 0

    def drop(self, agent: Agent, size: int, only_unneeded: bool = False) -> None:
        """Make a host remove copies until so many bytes fit beside the files on their way, if it has such copies.

        Copies that no open task reads go before all others. Among each kind, the oldest goes first.

        Args:
            agent: of the host.
            size: the bytes.
            only_unneeded: whether only copies may go that no open task reads.
        """
        lacking = agent.room.lacks(size)
        if lacking <= 0 or not agent.copies or agent in self._without:
            return
        dropped: list[StoredObject] = []
        for stored in sorted(self._spare(agent), key=lambda each: each.readers > 0):
            if lacking <= 0 or (only_unneeded and stored.readers):
                break
            dropped.append(stored)
            lacking -= agent.copies[stored]
        if lacking > 0:
            self._without.add(agent)
        if dropped:
            self._remove(agent, dropped)

    def keep_some_free(self, agent: Agent) -> None:
        """If less than LEAST_FREE is free on a host, make it remove copies that no open task reads."""
        self.drop(agent, int(agent.room.limit * LEAST_FREE), only_unneeded=True)
        self.end_run()

    def free_for_result(self, agent: Agent, task: Task) -> bool:
        """Make a host remove all copies that it can do without, because the result of a task found no room there.

        The size of the result is not known. The host keeps the inputs of the task.

        Returns:
            Whether it has such copies.
        """
        dropped = [stored for stored in self._spare(agent) if stored not in task.inputs]
        if dropped:
            self._remove(agent, dropped)
        return bool(dropped)

    def _spare(self, agent: Agent) -> list[StoredObject]:
        """The copies that a host can do without, the oldest first."""
        read = self._read_at(agent)
        copies = islice(agent.copies, SCANNED)
        return [stored for stored in copies if stored not in read and self._is_spare(stored, agent)]

    def _read_at(self, agent: Agent) -> set[StoredObject]:
        """The inputs of the tasks at a host's workers, and of the placed tasks that still wait."""
        read: set[StoredObject] = set()
        for worker in self._tables.workers.of_agent(agent.incarnation):
            for task in worker.tasks.values():
                read.update(task.inputs)
        for task in agent.placed:
            if task.state == WAITING or task.state == BLOCKED:
                read.update(task.inputs)
        return read

    def _is_spare(self, stored: StoredObject, agent: Agent) -> bool:
        """Whether the scheduler, or a holder that does not retire, has the value, and no transfer from this host sends
        it."""
        if stored.frames is None and (stored.home is None or stored.home.is_retiring):
            return False
        return not any(transfer.source is agent for transfer in self._transfers.of(stored))

    def _remove(self, agent: Agent, dropped: list[StoredObject]) -> None:
        room = agent.room
        room.dropped_at = self._tables.clock.now
        by_route: dict[bytes, list[StoredObject]] = {}
        for stored in dropped:
            room.dropped += agent.copies[stored]
            move(stored, agent, DROP)
            for worker in self._tables.workers.of_agent(agent.incarnation) if stored.workers else ():
                if stored.workers is not None and stored.workers.get(worker) == READS:
                    drop_worker(stored, worker)
                    by_route.setdefault(worker.route, []).append(stored)
        by_route[agent.route] = dropped
        # At once: in a batch they would go behind orders to get these values again.
        for route, objects in by_route.items():
            clients = [stored.client.incarnation for stored in objects]
            self._outbox.add(effects.ForgetObjects(route, clients, [stored.file_id for stored in objects]))
