"""Large kept results that stay on their host, as files.

They are fetched when another host needs them, lost with their host, and removed if their attempt does not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.suspension import TaskAttempt
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.dispatch.input_delivery import send_object
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.state.records import Agent, Client, StoredObject, Task, Worker
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.state.value_states import DAMAGE, DOUBT, is_file
from scaler_scheduler.core.values.copies import READS, move, promote_other, state_at


class HostResults:
    """The kept results that are files of hosts."""

    def __init__(self, core: CoreState, graphs: Graphs) -> None:
        self._tables = core.tables
        self._dispatcher = core.dispatcher
        self._outbox = core.outbox
        self._transfers = core.transfers
        self._graphs = graphs

    def can_store(self, task: Task, worker: Worker) -> bool:
        """Whether the task's result may stay on the worker's host."""
        return task.keep == events.KEEP_YES and self._tables.agents.find(worker.agent) is not None

    def fetch_unread(self, task: Task) -> None:
        """Fetch inputs that a waiting task could not read as files of its last host, or fail it if they are lost."""
        away = [stored for stored in task.inputs if stored.is_remote]
        if away:
            self._dispatcher.block_on_fetch(task, away)
            self._dispatcher.prune(task.client.lane_of(task))

    def receive_object(self, agent: Agent, event: events.Object) -> None:
        """Store the bytes of an object that the scheduler has requested from a host agent."""
        client = self._tables.clients.find(event.client)
        stored = None if client is None else client.objects.get(event.id)
        if stored is None or not stored.is_remote or not is_file(state_at(stored, agent)):
            return
        if stored.is_from_client and event.size != stored.size:  # its size counts in the client's credit
            self._lose_file(stored, agent)
            raise ProtocolError(f"object {stored.id} has {event.size} bytes, and not {stored.size} as its client said")
        is_for_client_only = not stored.is_blocking and stored not in agent.evacuated
        self._tables.objects.fill(stored, event.frames)
        self._graphs.object_available(stored)
        if stored.is_wanted and stored.is_needed:
            stored.is_wanted = False
            send_object(stored, stored.client.route, self._outbox)
            if is_for_client_only:
                self._tables.objects.release_frames(stored)

    def receive_from_client(self, client: Client, stored: StoredObject, event: events.Object) -> None:
        """Store the bytes of a client's file that the scheduler has requested.

        Raises:
            ProtocolError: they are not those of the file. The object is lost.
        """
        if stored.fetched_from is None or event.file_bytes:
            return
        if event.size != stored.size:
            self._lose_file(stored, client.place)
            raise ProtocolError(f"object {stored.id} has {event.size} bytes, and not {stored.size} as its file")
        self._tables.objects.fill(stored, event.frames)
        self._graphs.object_available(stored)

    def _lose_file(self, stored: StoredObject, holder: Agent | None) -> None:
        """Note that this host or client has no right file of an object. Fetch it from another host, if one has it."""
        if holder is None:
            return
        was_home = stored.home is holder
        move(stored, holder, DAMAGE)
        if was_home and promote_other(stored):
            self._dispatcher.fetch(stored)
        elif was_home:
            self.lose_objects([stored])

    def send_to_client(self, client: Client, ids: Iterable[int]) -> None:
        """Send kept results to their client, which wants the values. Tell it which ones do not exist."""
        missing = []
        for each in ids:
            stored = self._tables.objects.find(client, each)
            if stored is None or stored.is_missing or stored.is_from_client:
                missing.append(each)
            elif not stored.is_remote:
                send_object(stored, client.route, self._outbox)
            else:
                self._dispatcher.fetch(stored)
                stored.is_wanted = True
        self._tell_missing(client, missing)

    def _tell_missing(self, client: Client, ids: list[int]) -> None:
        """Tell a client that the scheduler does not have these kept results.

        It is told after the answers so far, which may say that they are kept, and before further answers, which may say
        that their readers fail.
        """
        if ids and not client.is_gone:
            self._outbox.flush_answers(client)
            self._outbox.add(effects.ForgetObjects(client.route, [client.incarnation] * len(ids), ids))

    def report_missing(self, agent: Agent, event: events.ForgetObjects) -> None:
        """Handle requested objects that the host agent does not have."""
        lost: list[StoredObject] = []
        for name, object_id in zip(event.clients, event.ids):
            client = self._tables.clients.find(name)
            stored = None if client is None else client.objects.get(object_id)
            if stored is not None and stored.home is agent and stored.is_remote:
                move(stored, agent, DAMAGE)
                if promote_other(stored):
                    self._dispatcher.fetch(stored)
                else:
                    lost.append(stored)
        self.lose_objects(lost)

    def fetch_refused(self, agent: Agent, name: tuple[int, int], error: str) -> None:
        """Handle a requested object that is too large for a message. It stays on its host: tasks can read it there, and
        it may go from host to host. The tasks that wait for its bytes fail, and its client gets the reason."""
        client = self._tables.clients.find(name[0])
        stored = None if client is None else client.objects.get(name[1])
        if stored is None or not stored.is_remote or stored.fetched_from is not agent:
            return
        stored.fetched_from = None
        agent.evacuated.discard(stored)
        if stored.is_wanted:
            stored.is_wanted = False
            if stored.is_needed and not stored.client.is_gone:
                self._outbox.answer(stored.client, stored.id, effects.OUTCOME_RESULT_FAILED, error.encode())
        if not self._transfers.of(stored):  # at their end, the tasks are looked at again
            self._graphs.fail_blocked(stored, error)

    def lose_objects(self, lost: Iterable[StoredObject]) -> None:
        """Fail the waiting readers of objects whose bytes are lost. The client can submit the tasks that make them
        again.

        Tasks on workers go on, because a worker may have a copy.
        """
        gone = dict.fromkeys(lost)
        for client in dict.fromkeys(stored.client for stored in gone):
            self._tell_missing(client, [each.id for each in gone if each.client is client and each.is_referenced])
            for task in list(client.tasks.values()):
                # not over, not failed by another of its inputs, and no gang of which workers hold members
                if (task.state == WAITING or task.state == BLOCKED) and task.gang is None:
                    for stored in task.inputs:
                        if stored in gone:
                            self._fail_reader(task, stored)
                            break
        for stored in gone:
            if self._tables.objects.find(stored.client, stored.id) is stored:
                self._tables.objects.give_up(stored)
                self._graphs.drop_unneeded(stored)

    def _fail_reader(self, task: Task, lost: StoredObject) -> None:
        """Fail a waiting task that can no longer read this object."""
        lane = None
        if task.state == WAITING:
            lane = task.client.lane_of(task)
            self._tables.counts.add_waiting(lane, -1, task.options.weight)
        text = f"{task.name}: object {lost.id}, which it reads, is lost with the host that had it"
        self._graphs.fail_input_lost(task, text)
        if lane is not None:
            self._dispatcher.prune(lane)

    def discard_file(self, worker: Worker, incarnation: int, task_id: int) -> None:
        """Have a host agent remove a file of this worker that may exist and does not count. The file is removed when no
        other attempt can have written the present file.
        """
        agent = self._tables.agents.find(worker.agent)
        if agent is not None:
            self.discard_file_of(agent, incarnation, task_id)
        else:
            worker.unwanted_files.append((incarnation, task_id))

    def reconcile_files(self, agent: Agent, names: Iterable[TaskAttempt], is_new: bool) -> None:
        """Remove files that do not count on the host of an agent that has joined.

        Args:
            agent: the agent.
            names: the files of its host that it has not written itself.
            is_new: whether this scheduler did not know the agent. Then most files are those of an earlier scheduler,
            and they are removed. If it knew the agent, a request to remove a file may be lost.
        """
        removed: list[tuple[int, int]] = []
        files = [(incarnation, task_id) for incarnation, task_id, _ in names]
        for worker in self._tables.workers.of_agent(agent.incarnation):
            files += worker.unwanted_files
            worker.unwanted_files.clear()
        for incarnation, task_id in dict.fromkeys(files):
            if is_new and not self._may_count(agent, incarnation, task_id):
                removed.append((incarnation, task_id))
            else:
                self.discard_file_of(agent, incarnation, task_id)
        if removed:  # at once: in a batch it would go behind objects of these names that the agent is sent now
            clients, ids = map(list, zip(*removed))
            self._outbox.add(effects.ForgetObjects(agent.route, clients, ids))

    def _may_count(self, agent: Agent, incarnation: int, task_id: int) -> bool:
        """Whether a file on the host of an agent that has just joined may be the result of an attempt that counts, or
        its workers were told to read it. The task of the attempt may be blocked, until results count that have waited
        for this agent."""
        unclaimed = self._tables.unclaimed.get((incarnation, task_id))
        if unclaimed is not None and unclaimed.worker.agent == agent.incarnation:
            return True
        client = self._tables.clients.find(incarnation)
        if client is None:
            return False
        stored, task = client.objects.get(task_id), client.tasks.get(task_id)
        if stored is not None and stored.workers is not None:
            if any(state == READS and reader.agent == agent.incarnation for reader, state in stored.workers.items()):
                return True
        return task is not None and task.worker is not None and task.worker.agent == agent.incarnation

    def discard_file_of(self, agent: Agent, incarnation: int, task_id: int) -> None:
        """Have a host agent remove a file that does not count, now or with its object."""
        client = self._tables.clients.find(incarnation)
        stored = None if client is None else client.objects.get(task_id)
        task = None if client is None else client.tasks.get(task_id)
        if stored is not None:
            move(stored, agent, DOUBT)
        elif task is None or task.worker is None or task.worker.agent != agent.incarnation:
            self._outbox.forget_object(agent.route, incarnation, task_id)
