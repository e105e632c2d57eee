"""Kept results from before a restart of the scheduler: hosts name their files, clients name the results that they need.

Either may come first. If both have named a result, it is a value of this scheduler, and its task does not run again. If
no host names a result in time, the result is lost. A file that no client names waits until the client timeout is over:
its client may come later, or its task has ended without an answer, and counts when its worker comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.host_results import HostResults
from scaler_scheduler.core.completion.suspension import TaskAttempt
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.ids import value_id, version_of
from scaler_scheduler.core.state.records import Agent, Client, StoredObject
from scaler_scheduler.core.state.value_states import ABSENT, ARRIVE
from scaler_scheduler.core.values.copies import move, state_at

HOST_SECONDS = 5.0
"""How long a claimed result waits for its host, after the end of the restart hold. Agents try to connect every 100
ms."""


class _Offer:
    """The files of one client that hosts have named, and that are no values yet."""

    __slots__ = ("deadline", "files")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.files: dict[int, list[Agent]] = {}
        """The hosts of each file, by its id."""


class Takeover:
    """Matches the files that hosts name with the results that clients name."""

    def __init__(self, core: CoreState, host_results: HostResults) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._limits = core.limits
        self._host_results = host_results
        self._offers: dict[int, _Offer] = {}
        """By the client's incarnation."""
        self._offers_until = core.tables.clock.now + core.limits.client_timeout_seconds
        """Later, clients of an earlier scheduler are not expected any more."""
        self._claimed: dict[StoredObject, float] = {}
        """Results that wait for their host, and until when. Some wait no longer."""

    def agent_joined(self, agent: Agent, names: Iterable[TaskAttempt]) -> None:
        """Take over the files of a host, and remove those that are no values. A request to remove them may be lost.

        Args:
            agent: has joined.
            names: the files of its host that it has not written itself.
        """
        files = [(incarnation, file) for incarnation, file, _ in names]
        for worker in self._tables.workers.of_agent(agent.incarnation):
            files += worker.unwanted_files
            worker.unwanted_files.clear()
        self.take(agent, files)

    def take(self, agent: Agent, files: Iterable[tuple[int, int]]) -> None:
        """Take over files that a host has, or tell it to remove them."""
        removed: list[tuple[int, int]] = []
        for name in dict.fromkeys(files):
            stored = self._tables.find_file(name)
            if stored is not None and stored.is_claimed:
                self._host_results.adopt(stored, [agent])
            elif self._host_results.is_needed(agent, name):
                if stored is not None and state_at(stored, agent) == ABSENT:
                    move(stored, agent, ARRIVE)
            elif not self._offer(agent, name):
                removed.append(name)
        if removed:  # at once: in a batch it would go behind objects of these names that the agent is sent now
            clients, ids = map(list, zip(*removed))
            self._outbox.add(effects.ForgetObjects(agent.route, clients, ids))

    def _offer(self, agent: Agent, name: tuple[int, int]) -> bool:
        """Keep a file until its client comes. Returns False if no client is going to need it."""
        incarnation, file = name
        client = self._tables.clients.find(incarnation)
        now = self._tables.clock.now
        offer = self._offers.get(incarnation)
        if offer is None:
            if now >= self._offers_until or (client is not None and not client.is_returning):
                return False
            offer = self._offers[incarnation] = _Offer(now + self._limits.client_timeout_seconds)
        hosts = offer.files.setdefault(file, [])
        if agent not in hosts:
            hosts.append(agent)
        return True

    def claim(self, client: Client, event: events.HeldResults, now: float) -> None:
        """Take over the results that a client needs."""
        offer = self._offers.get(client.incarnation)
        files = {} if offer is None else offer.files
        for file, size in zip(event.ids, event.sizes):
            task_id = value_id(file)
            client.skip_attempts(version_of(file))
            is_open = task_id in client.tasks or any(lane.batches.find(task_id) for lane in client.lanes.values())
            if is_open or task_id in client.objects or len(client.objects) >= self._limits.client_objects:
                continue
            stored = StoredObject(client, task_id, "", None)
            self._tables.objects.claim(stored, file, size)
            hosts = [agent for agent in files.pop(file, []) if self._tables.agents.find(agent.incarnation) is agent]
            early = self._tables.early.get((client.incarnation, task_id))
            if early is not None and early.is_file and version_of(file) == early.version:
                self._tables.pop_early(client.incarnation, task_id)
                agent = self._tables.agents.find(early.worker.agent)
                hosts += [] if agent is None else [agent]
            if hosts:
                self._host_results.adopt(stored, list(dict.fromkeys(hosts)))
            else:
                self._claimed[stored] = now + HOST_SECONDS

    def agent_left(self, agent: Agent) -> None:
        """Forget the files of a host that has left."""
        for client, offer in list(self._offers.items()):
            for file in [file for file, hosts in offer.files.items() if agent in hosts]:
                offer.files[file].remove(agent)
                if not offer.files[file]:
                    del offer.files[file]
            if not offer.files:
                del self._offers[client]

    def check(self, now: float, is_held: bool) -> None:
        """Give up the results whose hosts have not come, and remove the files that nobody needs.

        Args:
            now: seconds of the monotonic clock.
            is_held: whether the restart hold lasts: the hellos of hosts may wait.
        """
        if is_held and self._claimed:
            self._claimed = dict.fromkeys(self._claimed, now + HOST_SECONDS)
        late = [stored for stored, until in self._claimed.items() if now >= until]
        for stored in late:
            del self._claimed[stored]
        lost = [each for each in late if each.is_claimed and self._tables.objects.find(each.client, each.id) is each]
        self._host_results.lose_objects(lost)
        for client in [client for client, offer in self._offers.items() if now >= offer.deadline]:
            for file, hosts in self._offers.pop(client).files.items():
                for agent in hosts:
                    self._host_results.discard_unless_needed(agent, (client, file))
