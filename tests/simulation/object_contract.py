"""The scheduler's obligations about objects, checked from its messages alone, as in contract.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.ids import file_id, value_id

from .held_tasks import TaskId
from .trace import SimulationError


class ObjectContract:
    def __init__(self) -> None:
        self._sent: dict[bytes, set[TaskId]] = {}
        """Objects that a worker or agent was sent and not told to forget, by route."""
        self._inputs: dict[TaskId, list[TaskId]] = {}
        """The inputs of open tasks."""
        self._keep: dict[TaskId, int] = {}
        """Whether the results of submitted tasks are kept."""
        self._readers: Counter[TaskId] = Counter()
        """How many open tasks read an object."""
        self._referred: set[TaskId] = set()
        """Objects that a client has sent, or whose task it has submitted, and that it has not forgotten."""
        self._homes: dict[TaskId, set[int]] = {}
        """Kept results that only the hosts of these agents have."""
        self._unneeded_files: set[TaskId] = set()
        """Files of clients that the scheduler does not need, and has not told their clients to remove."""
        self._copied: dict[TaskId, set[int]] = {}
        """Kept results that were fetched."""
        self._ordered: set[tuple[TaskId, int]] = set()
        """Files that agents were told to get, with the incarnation of the agent."""
        self._files_forgotten: set[tuple[TaskId, int]] = set()
        """Files of needed objects that workers were told to forget in this step, with their agent: it has to be told
        too."""
        self._lost: set[TaskId] = set()
        """Kept results that were lost with their host and not submitted again."""
        self._anew: set[TaskId] = set()
        """Results whose task was submitted, and objects that were sent, in this step. A forgotten object is then the
        one of an earlier life, if any."""
        self._named: dict[int, set[TaskId]] = {}
        """The files that agents have named, and were not told to remove."""
        self._claimed: set[TaskId] = set()
        """Results that clients have named, and that no agent has named yet."""
        self._files: dict[TaskId, int] = {}
        """The ids of files, of results that workers have made."""
        self._failed: dict[TaskId, set[int]] = {}
        """Tasks that ended without a value, and their outcome."""

    # -------------------------------------------------------------------------------------------------- what comes in

    def submitted(self, event: events.Submit, row: int, name: TaskId, inputs: list[int], is_kept: bool) -> None:
        """Note a row that the scheduler does not have. `is_kept`: the scheduler has its result."""
        keep = event.keep[row] if event.keep else events.KEEP_NO
        if not is_kept and name in self._homes:
            _expect(name not in self._referred, "the scheduler has lost a result that a host has", name)
            del self._homes[name]
        if keep and not is_kept:
            self._referred.add(name)
            self._anew.add(name)
        self._keep[name] = keep or (events.KEEP_BOTH if is_kept else events.KEEP_NO)
        self._failed.pop(name, None)
        self._claimed.discard(name)
        if not is_kept:
            self._lost.discard(name)
        self.closed(name)
        if inputs and not is_kept:
            self._inputs[name] = [(name[0], each) for each in inputs]
            self._readers.update(set(self._inputs[name]))

    def submitted_again(self, name: TaskId, inputs: list[int]) -> None:
        """Note a row that the scheduler has. Its client may have been lost, and the row may read objects that are made
        again."""
        if inputs and name not in self._inputs:
            self._inputs[name] = [(name[0], each) for each in inputs]
            self._readers.update(set(self._inputs[name]))

    def kept_earlier(self, names: list[TaskId]) -> None:
        """Note open tasks whose results are kept from now on."""
        for name in names:
            if not self._keep.get(name):
                self._keep[name] = events.KEEP_BOTH
            self._referred.add(name)

    def made(self, name: TaskId, attempt: int) -> None:
        """Note the attempt whose result counts."""
        self._files[name] = file_id(name[1], attempt)

    def named_at(self, agent: int, files: set[TaskId]) -> None:
        """Note the files that an agent names when it joins."""
        self._named[agent] = files
        for file in files:
            self.found_at(agent, file)

    def found_at(self, agent: int, file: TaskId) -> None:
        """Note that an agent has this file, which a client may have named before."""
        name = self._value_of(file)
        if name is not None and name in self._claimed:
            self._claimed.discard(name)
            self._homes[name] = {agent}

    def named(self, agent: int, effect: effects.ForgetObjects) -> list[TaskId]:
        """Return those of these files that the agent has named."""
        return [file for file in zip(effect.clients, effect.ids) if file in self._named.get(agent, ())]

    def claimed(self, file: TaskId, hosts: set[int], here: set[int]) -> None:
        """Note a kept result that a client names after a restart.

        Args:
            file: the name of its file.
            hosts: the agents that are known to have it.
            here: the agents that have joined.
        """
        name = file[0], value_id(file[1])
        self._files[name] = file[1]
        self._keep[name] = events.KEEP_YES
        self._referred.add(name)
        self._lost.discard(name)
        hosts = hosts | {agent for agent in here if file in self._named.get(agent, ())}
        if hosts:
            self._homes[name] = hosts
        else:
            self._claimed.add(name)

    def _value_of(self, file: TaskId) -> TaskId | None:
        """Return the object of which a host has this file. None: it is of an attempt that does not count."""
        name = file[0], value_id(file[1])
        return name if self._files.get(name, name[1]) == file[1] else None

    def object_sent(self, name: TaskId, is_file: bool = False) -> None:
        """Note an object that a client sends, or that is a file of the client now."""
        if name not in self._referred:
            self._anew.add(name)  # it may be a forgotten one: announced after a second welcome, or asked for before
        self._referred.add(name)
        self._files.pop(name, None)
        if is_file:
            self._homes[name] = {name[0]}
            self._lost.discard(name)

    def announced_again(self, name: TaskId) -> None:
        """Note a file of an object that the scheduler knows. It does not need the file if it has the result itself."""
        if name[0] not in self._hosts_of(name):
            self._unneeded_files.add(name)

    def forgotten(self, names: list[TaskId]) -> None:
        """Note objects that a client forgets."""
        self._referred.difference_update(names)

    def is_kept(self, name: TaskId) -> bool:
        """Whether the client gets no value of this task, but the answer that its result is kept."""
        return self._keep.get(name) == events.KEEP_YES

    def stored(self, name: TaskId, agent: int) -> bool:
        """Note that a worker of this agent has written the task's result to a file. Returns whether it may count."""
        if self._keep.get(name) != events.KEEP_YES:
            return False
        self._homes[name] = {agent}
        return True

    def transferred(self, file: TaskId, agent: int) -> None:
        """Note that the agent says that it has got the file from another one."""
        name = self._value_of(file)
        if name is None or (file, agent) not in self._ordered:
            return  # an earlier scheduler has asked it
        for names in (self._homes, self._copied):
            if name in names:
                names[name].add(agent)

    def ordered(self, names: Iterable[TaskId], agent: int) -> None:
        """Note the files that the agent is told to get."""
        self._ordered.update((name, agent) for name in names)

    def fetched(self, file: TaskId, agent: int) -> None:
        """Note that the agent sends the content of the file."""
        name = self._value_of(file)
        if name is not None and agent in self._homes.get(name, ()):
            self._copied[name] = self._homes.pop(name)

    def missing(self, file: TaskId, agent: int) -> None:
        """Note that the agent does not have the file."""
        name = self._value_of(file)
        if name is None:
            return
        hosts = self._homes.get(name, set())
        if agent in hosts:
            hosts.discard(agent)
            if not hosts:
                del self._homes[name]
                self._lose(name)

    def _hosts_of(self, name: TaskId) -> set[int]:
        return self._homes.get(name, set()) | self._copied.get(name, set())

    def agents_gone(self, here: set[int]) -> int:
        """Note which agents are connected. Returns how many results are lost."""
        for hosts in (*self._homes.values(), *self._copied.values()):
            hosts &= here
        lost = [name for name, hosts in self._homes.items() if not hosts]
        for name in lost:
            del self._homes[name]
            self._lose(name)
        for name in [name for name, hosts in self._copied.items() if not hosts]:
            del self._copied[name]
        return len(lost)

    def _lose(self, name: TaskId) -> None:
        self._lost.add(name)
        self._claimed.discard(name)
        self._referred.discard(name)

    def told_missing(self, names: Iterable[TaskId]) -> None:
        """Note results of which the scheduler tells their client that it does not have them."""
        for name in names:
            self._homes.pop(name, None)
            self._copied.pop(name, None)
            self._lose(name)

    def client_gone(self, client: int) -> None:
        self._referred = {name for name in self._referred if name[0] != client}
        for name in [name for name in self._inputs if name[0] == client]:
            self.closed(name)
        for names in (self._homes, self._copied):
            for name in [name for name in names if name[0] == client]:
                del names[name]
        self._lost = {name for name in self._lost if name[0] != client}
        self._claimed = {name for name in self._claimed if name[0] != client}

    # ------------------------------------------------------------------------------------------------- what goes out

    def sent(self, effect: effects.Object) -> None:
        self._sent.setdefault(effect.route, set()).add((effect.client, effect.id))

    def reads(self, task: TaskId, name: TaskId) -> bool:
        """Whether an open task reads an object."""
        return name in self._inputs.get(task, ())

    def forgotten_at_agent(self, effect: effects.ForgetObjects, agent: int) -> list[TaskId]:
        """Check the objects of a ForgetObjects to an agent. Returns those that are still needed: the agent removes
        copies, and another host or the scheduler has the objects."""
        sent = self._sent.setdefault(effect.route, set())
        removed = []
        for file in zip(effect.clients, effect.ids):
            was_sent = file in sent
            self._named.get(agent, set()).discard(file)
            sent.discard(file)
            self._files_forgotten.discard((file, agent))
            name = self._value_of(file)
            if name is None:
                continue
            if self._is_copy(name, agent, was_sent):
                removed.append(name)
                for hosts in (self._homes.get(name, set()), self._copied.get(name, set())):
                    hosts.discard(agent)
            else:
                self.freed_at(name, agent, was_sent)
        return removed

    def _is_copy(self, name: TaskId, agent: int, was_sent: bool) -> bool:
        """Whether an agent has a file of a needed object that is also elsewhere."""
        if not self._readers[name] and name not in self._referred:
            return False
        homes = self._homes.get(name, set())
        return was_sent or agent in self._copied.get(name, ()) or (agent in homes and len(homes) > 1)

    def forgotten_at_worker(self, effect: effects.ForgetObjects, agent: int) -> None:
        """Check the objects of a ForgetObjects to a worker of this agent. 0: the agent is lost with its files."""
        sent = self._sent.setdefault(effect.route, set())
        for file in zip(effect.clients, effect.ids):
            name = self._value_of(file)
            if name is None:
                sent.discard(file)
            elif agent and file not in sent and (self._readers[name] or name in self._referred):
                if agent in self._hosts_of(name):  # else the agent has said that it does not have the file
                    self._files_forgotten.add((file, agent))
            else:
                sent.discard(file)
                self.freed_at(name, 0, True)

    def freed_at(self, name: TaskId, agent: int, was_sent: bool) -> None:
        """Check an object that an agent, a worker (0) or a client with its file is told to forget."""
        if name in self._lost or name in self._anew:
            return  # no peer has it any more
        if agent and not was_sent and agent not in self._hosts_of(name):
            return  # a file of an attempt that does not count
        for names in (self._homes, self._copied):
            if agent and agent in names.get(name, ()):
                names[name].discard(agent)
                if not names[name]:
                    del names[name]
        _expect(not self._readers[name], "freed while a task reads it", name)
        _expect(name not in self._referred, "freed while its client refers to it", name)

    def split_own_files(self, client: int, ids: Iterable[int]) -> tuple[list[TaskId], list[TaskId]]:
        """Return which of these objects are files of this client, and which are not."""
        names = [(client, each) for each in ids]
        own = [name for name in names if client in self._hosts_of(name)]
        unneeded = self._unneeded_files.intersection(names)
        self._unneeded_files -= unneeded
        return own, [name for name in names if name not in own and name not in unneeded]

    def route_gone(self, route: bytes) -> None:
        self._sent.pop(route, None)

    def dispatched(
        self,
        name: TaskId,
        inputs: list[tuple[int, int, int]],
        worker: bytes,
        agent_route: bytes | None,
        agent: int,
    ) -> None:
        """`inputs`: id, which file, whether the bytes are inside the row."""
        _expect(name not in self._homes, "made again, though a host has it", name)
        read = self._inputs.get(name, [])
        ids = [(name[0], value_id(each)) for each, *_ in inputs]
        _expect(ids == read, "dispatched with other inputs", name, inputs, read)
        for each, is_shared, is_inlined in inputs:
            if is_shared == effects.INPUT_OF_ROW_BEFORE:
                continue  # it is not there yet
            if is_inlined:
                _expect(not is_shared, "is inside the row and a file", name, each)
                continue
            if is_shared == effects.INPUT_IN_WORKER_FILE:
                value = self._value_of((name[0], each))
                is_home = value is not None and agent in self._hosts_of(value)
                _expect(is_home, "sent to read a file of another host", name, each)
                continue
            route = agent_route if is_shared else worker
            there = route is not None and (name[0], each) in self._sent.get(route, ())
            _expect(there, "dispatched without its input", name, each, is_shared)

    def ended(self, name: TaskId, outcome: int) -> None:
        """Note an answer. Call it for all answers before `resolved` for any."""
        if outcome not in (effects.OUTCOME_VALUE, effects.OUTCOME_KEPT, effects.OUTCOME_FILE):
            self._failed.setdefault(name, set()).add(outcome)
            self._referred.discard(name)

    def step_over(self) -> None:
        """Note that all messages of one step were checked."""
        self._anew.clear()
        _expect(not self._files_forgotten, "workers forget a file that stays on their host", *self._files_forgotten)

    def may_inherit(self, name: TaskId, outcome: int) -> bool:
        """Whether an input of the task has ended with this outcome."""
        return any(outcome in self._failed.get(each, ()) for each in self._inputs.get(name, ()))

    def resolved(self, name: TaskId, outcome: int, returned: int | None, is_graph: bool) -> bool:
        """Check an answer. Returns whether it repeats the value of a result that the scheduler keeps."""
        keep = self._keep.get(name, events.KEEP_NO)
        if outcome == effects.OUTCOME_KEPT:
            _expect(keep == events.KEEP_YES, "its result is not kept", name)
            _expect(is_graph or returned != effects.OUTCOME_VALUE, "its client does not get its small result", name)
        elif outcome in (effects.OUTCOME_VALUE, effects.OUTCOME_FILE):
            _expect(keep != events.KEEP_YES or not is_graph, "its kept result is sent", name)
            return keep != events.KEEP_NO and returned is None
        return False

    def closed(self, name: TaskId) -> None:
        """Note that the task has ended."""
        for each in set(self._inputs.pop(name, ())):
            self._readers[each] -= 1


def dispatched_inputs(effect: effects.Dispatch) -> list[list[tuple[int, int, int]]]:
    """Return for each row the ids of its inputs, which ones are files, and which are inside the row."""
    rows = []
    begin = 0
    for row in range(len(effect.ids)):
        end = begin + effect.input_counts.get(row, 0)
        rows.append(
            list(zip(effect.inputs[begin:end], effect.input_sources[begin:end], effect.inline_sizes[begin:end]))
        )
        begin = end
    return rows


def inputs_of(event: events.Submit) -> list[list[int]]:
    """Return the inputs of each row."""
    if not event.input_counts:
        return [[] for _ in event.ids]
    rows = []
    begin = 0
    for count in event.input_counts:
        rows.append(list(event.inputs[begin : begin + count]))
        begin += count
    return rows


def _expect(condition: bool, text: str, *what: Any) -> None:
    if not condition:
        raise SimulationError(f"{text}: {' '.join(map(str, what))}")
