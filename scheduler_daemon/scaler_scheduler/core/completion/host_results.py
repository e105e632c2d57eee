"""Large kept results that stay on their host, as files.

They are fetched when another host needs them, lost with their host, and removed if their attempt does not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.data.input_delivery import send_to_client
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.ids import file_id, value_id
from scaler_scheduler.core.state.records import Agent, Client, StoredObject, Task, Worker
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.state.value_states import ABSENT, DAMAGE, is_file
from scaler_scheduler.core.values.copies import READS, move, promote_other, state_at


class HostResults:
    """The kept results that are files of hosts."""

    def __init__(self, core: CoreState, graphs: Graphs) -> None:
        self._tables = core.tables
        self._queues = core.queues
        self._fetches = core.fetches
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
            self._fetches.block_task(task, away)
            self._queues.prune(task.client.lane_of(task))

    def receive_object(self, agent: Agent, event: events.Object) -> None:
        """Store the bytes of an object that the scheduler has requested from a host agent."""
        stored = self._tables.find_file((event.client, event.id))
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
            send_to_client(stored, self._outbox)
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
            self._fetches.fetch(stored)
        elif was_home:
            self.lose_objects([stored])

    def send_to_client(self, client: Client, ids: Iterable[int]) -> None:
        """Send kept results to their client, which wants the values. Tell it which ones do not exist."""
        missing = []
        for each in ids:
            stored = self._tables.objects.find(client, each)
            if stored is None or stored.is_from_client or (stored.is_missing and not stored.is_claimed):
                missing.append(each)
            elif stored.frames is not None:
                send_to_client(stored, self._outbox)
            else:
                stored.is_wanted = True
                self._fetches.fetch(stored)  # a claimed one has no home yet: it is fetched when its host comes
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
        for name in zip(event.clients, event.ids):
            stored = self._tables.find_file(name)
            if stored is not None and stored.home is agent and stored.is_remote:
                move(stored, agent, DAMAGE)
                if promote_other(stored):
                    self._fetches.fetch(stored)
                else:
                    lost.append(stored)
        self.lose_objects(lost)

    def fetch_refused(self, agent: Agent, name: tuple[int, int], error: str) -> None:
        """Handle a requested object that is too large for a message. It stays on its host: tasks can read it there, and
        it may go from host to host. The tasks that wait for its bytes fail, and its client gets the reason."""
        stored = self._tables.find_file(name)
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
            self._queues.prune(lane)

    def discard_file(self, worker: Worker, task: Task) -> None:
        """Have the file of an attempt removed that has ended at this worker and does not count. It may not exist."""
        name = task.client.incarnation, file_id(task.id, task.attempt)
        agent = self._tables.agents.find(worker.agent)
        if agent is None:
            worker.unwanted_files.append(name)
        else:
            self._outbox.forget_object(agent.route, *name)

    def discard_late_file(self, worker: Worker, incarnation: int, task_id: int, attempt: int) -> None:
        """Have the file of an attempt removed whose result comes late, unless it counts already or may count later."""
        name = incarnation, file_id(task_id, attempt)
        agent = self._tables.agents.find(worker.agent)
        stored = self._tables.find_file(name)
        if agent is None:
            worker.unwanted_files.append(name)
        elif stored is not None and stored.is_claimed:
            self.adopt(stored, [agent])
        else:
            self.discard_unless_needed(agent, name)

    def adopt(self, stored: StoredObject, hosts: list[Agent]) -> None:
        """Note that these hosts have a result that its client has named after a restart (`takeover.py`)."""
        self._tables.objects.adopt(stored, hosts)
        if stored.is_wanted:
            self._fetches.fetch(stored)
        self._graphs.object_available(stored)

    def discard_unless_needed(self, agent: Agent, name: tuple[int, int]) -> None:
        """Have a file of a host removed, unless it is a value or may become one."""
        if not self.is_needed(agent, name):
            self._outbox.forget_object(agent.route, *name)

    def is_needed(self, agent: Agent, name: tuple[int, int]) -> bool:
        """Whether a file of a host is a value, may become one, or was named to workers of the host. The task of the
        attempt may be blocked, until results count that have waited for this agent."""
        stored = self._tables.find_file(name)
        if stored is not None and (state_at(stored, agent) != ABSENT or _is_read_at(stored, agent)):
            return True
        key = name[0], value_id(name[1])
        for each in (self._tables.unclaimed.get(key), self._tables.early.get(key), self._tables.find_open(*key)):
            if each is not None and each.worker is not None and each.worker.agent == agent.incarnation:
                if file_id(key[1], each.attempt) == name[1]:
                    return True
        return False


def _is_read_at(stored: StoredObject, agent: Agent) -> bool:
    """Whether workers of a host were told to read the file of a value there."""
    readers = (stored.workers or {}).items()
    return any(state == READS and worker.agent == agent.incarnation for worker, state in readers)
