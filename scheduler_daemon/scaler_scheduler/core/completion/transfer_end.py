"""The ends of transfers between hosts: waiting tasks go on, or their inputs come through the scheduler."""

from __future__ import annotations

from scaler_scheduler.core import events
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.data.transfers import Transfer
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import Agent, StoredObject
from scaler_scheduler.core.state.value_states import ARRIVE, CACHED, COMING, DAMAGE
from scaler_scheduler.core.values.copies import files, move, promote_other, state_at


class TransferEnd:
    """Handles the answers of host agents to `transferObjects`, silent agents and lost agents."""

    def __init__(self, core: CoreState, graphs: Graphs, host_results: HostResults) -> None:
        self._tables = core.tables
        self._transfers = core.transfers
        self._pool = core.pool
        self._fetches = core.fetches
        self._graphs = graphs
        self._host_results = host_results

    def transferred(self, target: Agent, event: events.Transferred) -> list[tuple[int, int]]:
        """Handle the answer of an agent. Returns the files that it has got and that were not ordered: their transfers
        were given up, their source was lost, or an earlier scheduler has ordered them."""
        names = list(zip(event.clients, event.ids))
        if not event.source and event.error:  # it answers `fetchObjects`
            for name in names:
                self._host_results.fetch_refused(target, name, event.error)
            return []
        transfers: dict[Transfer, None] = {}
        others = []
        for name in names:
            transfer = self._transfers.find_ordered(name, target, event.source)
            if transfer is not None:
                transfers[transfer] = None
            else:
                others.append(name)
        if not event.error:
            self._end_well(target, list(transfers))
            return others
        for transfer in transfers:
            if event.is_unreachable and transfer.source is not None:
                self._transfers.note_unreachable(transfer.source, target, event.error)
            self._give_up(transfer)
        self._transfers.start_waiting()
        for name in others:
            self._host_results.discard_unless_needed(target, name)
        return []

    def _end_well(self, target: Agent, transfers: list[Transfer]) -> None:
        """Handle files that this host has got."""
        for transfer in transfers:
            stored = transfer.stored
            self._transfers.note_success(transfer)
            if self._is_alive(stored) and move(stored, target, ARRIVE) == CACHED and stored.home is None:
                promote_other(stored)
            self._transfers.end(transfer)
        self._transfers.start_waiting()  # while the tasks are still blocked that want the files on other hosts
        for transfer in transfers:
            stored = transfer.stored
            if self._is_alive(stored):
                self._graphs.object_available(stored)
            else:  # the request to forget it may be lost
                self._host_results.discard_unless_needed(target, (stored.client.incarnation, stored.file_id))

    def check(self, now: float) -> None:
        """Give up the transfers whose deadline has passed. If another transfer is late, and a host with the file has an
        idle worker, place all tasks again that wait for this file."""
        idle = set(self._pool.idle.agents())
        late: dict[StoredObject, None] = {}
        for transfer in list(self._transfers):
            if now >= transfer.deadline:
                self._give_up(transfer)
            elif idle and self._transfers.is_late(transfer):
                late[transfer.stored] = None
        for stored in late:
            if stored.is_blocking and any(place.incarnation in idle for place in files(stored)):
                self._transfers.forget_tasks(stored)
                self._graphs.object_available(stored)
        self._transfers.start_waiting()

    def agent_lost(self, agent: Agent, moved: list[StoredObject]) -> None:
        """End the transfers from and to a lost agent. `moved` are the files that have another home now."""
        for transfer in list(self._transfers):
            if transfer.target is agent:
                self._transfers.end(transfer)
                # The tasks that waited for it find another host.
                if self._is_alive(transfer.stored) and transfer.stored.is_remote and not transfer.stored.fetched_from:
                    self._graphs.object_available(transfer.stored)
            elif transfer.source is agent:
                self._give_up(transfer)
        for stored in moved:
            is_blocking = stored.is_blocking and not self._transfers.of(stored)
            if self._is_alive(stored) and (stored.is_wanted or is_blocking):
                self._fetches.fetch(stored)
        self._transfers.forget_agent(agent)
        self._transfers.start_waiting()

    def _give_up(self, transfer: Transfer) -> None:
        """End a transfer, and those that go on from its target. If tasks wait for the file, it comes through the
        scheduler."""
        stored = transfer.stored
        ended = [transfer]
        for each in ended:  # grows in the loop
            self._transfers.end(each)
            if self._is_alive(stored) and state_at(stored, each.target) == COMING:
                move(stored, each.target, DAMAGE)
            ended += [further for further in self._transfers.of(stored) if further.source is each.target]
        if self._is_alive(stored) and stored.is_remote and stored.is_blocking:
            self._fetches.fetch(stored)

    def _is_alive(self, stored: StoredObject) -> bool:
        return self._tables.objects.find(stored.client, stored.id) is stored
