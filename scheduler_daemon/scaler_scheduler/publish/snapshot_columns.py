"""The tables of the core as columns of a snapshot, in the order of the schema's fields.

A thousand workers are a thousand rows, once a second. As a list of structs, each element would cost 0.2 us; columns are
copied whole (`make bench`, monitor).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from ..core.dispatch.work_stealing import is_unresponsive
from ..core.scheduler import Scheduler
from ..core.state.clients import ClientTable
from ..core.state.functions import KEPT_TASK_NAMES, Function, FunctionTable
from ..core.state.records import Agent, Client, StoredObject, Worker
from ..core.state.transitions import RUNNING
from ..core.state.workers import AgentTable, WorkerTable
from ..wire.columns import UINT8, UINT32, WIDE, Column, compacted

WORKER_ROWS = 10_000
CLIENT_ROWS = 1000
FUNCTION_ROWS = 1000
OBJECT_ROWS = 1000
"""The most rows of each table. The scheduler may have more of each. Host agents have as many rows as workers."""

TEXT_LIMIT = 200
"""The most characters of a published name."""

TASK_NAME_LIMIT = 60
"""The most characters of each name in a function's list of task names."""

AGENT_CONNECTED = 1
HOLDS_TASK = 2
RUNS_LONG = 4
DOES_NOT_ANSWER = 8
RETIRING = 16

LONG_MILLISECONDS = 1000
"""The shortest run time that is called long in a worker's state."""

_MAX_UINT32 = (1 << 32) - 1
_MAX_UINT64 = (1 << 64) - 1
"""The highest numbers of columns. A worker may report any run time, so sums could exceed the column's range."""

OBJECT_PENDING = 0
OBJECT_IN_MEMORY = 1
OBJECT_ON_HOST = 2


class TextTable:
    """The texts of one message, each once. Columns refer to them by numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str, limit: int = TEXT_LIMIT) -> int:
        """The number of a text, which is cut to `limit` characters."""
        if len(text) > limit:
            text = text[:limit]
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self._numbers)
        return known

    def columns(self) -> list[Column]:
        """All texts joined, and their sizes in bytes."""
        encoded = [text.encode("utf-8", "replace") for text in self._numbers]
        return [(UINT8, b"".join(encoded)), (UINT32, [len(text) for text in encoded])]


class WorkerRows(NamedTuple):
    """The table of workers, and sums over all workers."""

    columns: list[Column]
    running: int
    """Tasks that run, at all workers."""
    suspended: int


class FunctionRows(NamedTuple):
    """The table of functions, and a sum over all functions."""

    columns: list[Column]
    open_tasks: int
    """Open tasks of all functions, including those without a row."""


def worker_columns(core: Scheduler, texts: TextTable, now: float) -> WorkerRows:
    """The table of workers."""
    all_workers = list(core.tables.workers)
    workers = all_workers[:WORKER_ROWS]
    queue_size = core.limits.queue_size
    agents, number = core.tables.agents, texts.number
    states: list[int] = []
    running_tasks: list[tuple[int, int, int, int, int, int]] = []
    for worker in workers:
        state = AGENT_CONNECTED if agents.find(worker.agent) is not None else 0
        if worker.tasks:
            state |= HOLDS_TASK
            if is_unresponsive(worker):
                state |= DOES_NOT_ANSWER
        if worker.is_retiring:
            state |= RETIRING
        running_tasks.append(_running_task(worker, texts, now))
        if running_tasks[-1][4] >= LONG_MILLISECONDS:
            state |= RUNS_LONG
        states.append(state)
    by_column = zip(*running_tasks) if running_tasks else ((),) * 6
    clients, ids, attempts, tasks, milliseconds, functions = by_column
    columns: list[Column] = [
        (WIDE, [worker.incarnation for worker in workers]),
        (WIDE, compacted([worker.agent for worker in workers])),
        (UINT32, [number(worker.name) for worker in workers]),
        (UINT32, compacted([number(worker.host) for worker in workers])),
        (UINT32, [worker.pid for worker in workers]),
        (UINT32, compacted([number(worker.language) for worker in workers])),
        (UINT32, compacted([number(worker.version) for worker in workers])),
        (UINT32, compacted([number(_capabilities(worker)) for worker in workers])),
        (UINT8, compacted(states)),
        (WIDE, [worker.usage[0] for worker in workers]),
        (WIDE, [worker.usage[1] for worker in workers]),
        (UINT32, compacted([_free_slots(worker, queue_size) for worker in workers])),
        (UINT32, compacted([len(worker.tasks) for worker in workers])),
        (UINT32, compacted([worker.running for worker in workers])),
        (UINT32, compacted([worker.suspended for worker in workers])),
        (WIDE, [worker.sent_tasks for worker in workers]),
        (WIDE, [worker.done_tasks for worker in workers]),
        (WIDE, compacted(clients)),
        (WIDE, compacted(ids)),
        (UINT32, compacted(attempts)),
        (UINT32, compacted(tasks)),
        (WIDE, compacted(milliseconds)),
        (UINT32, compacted(functions)),
        (UINT32, compacted([number(worker.environment) for worker in workers])),
    ]
    running, suspended = [worker.running for worker in all_workers], [worker.suspended for worker in all_workers]
    return WorkerRows(columns, sum(running), sum(suspended))


def _free_slots(worker: Worker, queue_size: int) -> int:
    return (
        0
        if worker.is_retiring or worker.is_changing or worker.is_holder
        else max(0, min(queue_size - worker.task_count, _MAX_UINT32))
    )


def _running_task(worker: Worker, texts: TextTable, now: float) -> tuple[int, int, int, int, int, int]:
    """The task that the worker runs: client, id, attempt, name, milliseconds, function. Zeros if none is known.

    A worker may have many suspended tasks. At most one runs: the last one that has begun or was resumed.
    """
    if worker.running:
        for task, since in reversed(list(worker.started_at.items())):
            if task.state == RUNNING:
                milliseconds = max(0, int((now - since) * 1000))
                name, function = texts.number(task.name), task.function.number
                return task.client.incarnation, task.id, task.attempt, name, milliseconds, function
    return 0, 0, 0, texts.number(""), 0, 0


def _capabilities(worker: Worker) -> str:
    if not worker.capabilities:
        return ""
    return " ".join(f"{name}={amount}" for name, amount in sorted(worker.capabilities.items()))


def host_agents(table: AgentTable, workers: WorkerTable) -> Iterator[Agent]:
    """The agents of hosts, without autoscalers: these have pools and no workers."""
    return (agent for agent in table if not agent.pools or workers.of_agent(agent.incarnation))


def agent_columns(table: AgentTable, workers: WorkerTable, texts: TextTable, started: float) -> list[Column]:
    """The table of host agents. `started` is the start of the scheduler in seconds of the monotonic clock."""
    agents, number = list(islice(host_agents(table, workers), WORKER_ROWS)), texts.number
    return [
        (WIDE, [agent.incarnation for agent in agents]),
        (UINT32, compacted([number(agent.name) for agent in agents])),
        (UINT32, compacted([number(agent.host) for agent in agents])),
        (UINT32, compacted([agent.pid for agent in agents])),
        (UINT32, compacted([number(agent.language) for agent in agents])),
        (UINT32, compacted([number(agent.version) for agent in agents])),
        (WIDE, compacted([agent.usage[0] for agent in agents])),
        (WIDE, compacted([agent.usage[1] for agent in agents])),
        (WIDE, compacted([agent.lag_us for agent in agents])),
        (WIDE, compacted([max(0, int((agent.last_heartbeat_at - started) * 1000)) for agent in agents])),
        *((WIDE, compacted([agent.values[place] for agent in agents])) for place in range(3)),
        (WIDE, compacted([agent.received_bytes for agent in agents])),
        (WIDE, compacted([agent.sent_bytes for agent in agents])),
        (WIDE, compacted([agent.room.coming for agent in agents])),
        (WIDE, compacted([max(0, agent.room.free) for agent in agents])),
    ]


def client_columns(table: ClientTable, texts: TextTable) -> list[Column]:
    """The table of clients: the clients with the most tasks."""
    clients = list(table)
    if len(clients) > CLIENT_ROWS:
        clients = nlargest(CLIENT_ROWS, clients, key=lambda client: len(client.tasks) + client.waiting)
    return [
        (WIDE, [client.incarnation for client in clients]),
        (UINT32, compacted([texts.number(client.name) for client in clients])),
        (WIDE, compacted([client.worker for client in clients])),
        (WIDE, compacted([client.waiting_calls for client in clients])),
        (WIDE, compacted([_not_waiting(client) for client in clients])),
        (WIDE, compacted([len(client.objects) for client in clients])),
        (WIDE, compacted([client.object_bytes for client in clients])),
        (WIDE, compacted([client.answered_tasks for client in clients])),
        (UINT32, compacted([texts.number(client.share.display_name) for client in clients])),
    ]


def _not_waiting(client: Client) -> int:
    """The number of a client's tasks that do not wait. A row of several calls counts as its calls.

    `tasks` holds requeued tasks too, which wait. `requeued` may list a few tasks that no longer wait.
    """
    not_waiting = len(client.tasks) + client.further_calls
    for lane in client.lanes.values():
        not_waiting -= len(lane.requeued) + lane.further_calls
    return max(0, not_waiting)


def function_columns(table: FunctionTable, texts: TextTable) -> FunctionRows:
    """The table of functions: the functions with the most tasks."""
    known = list(table)
    open_tasks = 0
    for function in known:
        open_tasks += function.tasks + function.further_calls
    if len(known) > FUNCTION_ROWS:
        known = nlargest(FUNCTION_ROWS, known, key=lambda function: (function.tasks, function.number))
    columns: list[Column] = [
        (UINT32, [function.number for function in known]),
        (UINT32, compacted([texts.number(function.name) for function in known])),
        (WIDE, compacted([function.tasks + function.further_calls for function in known])),
        (WIDE, compacted([function.done_tasks for function in known])),
        (WIDE, compacted([function.failed_tasks for function in known])),
        (WIDE, compacted([min(function.run_ns, _MAX_UINT64) for function in known])),
        (WIDE, compacted([len(function.payload) for function in known])),
        (UINT32, compacted([len(function.clients) for function in known])),
        (UINT32, compacted([texts.number(_task_names(function)) for function in known])),
    ]
    return FunctionRows(columns, open_tasks)


def _task_names(function: Function) -> str:
    """Some of the names from the options of a function's tasks, separated by commas."""
    names = [name[:TASK_NAME_LIMIT] for name in function.task_names[: KEPT_TASK_NAMES - 1]]
    return ", ".join([*names, "..."] if len(function.task_names) == KEPT_TASK_NAMES else names)


def object_columns(clients: ClientTable, texts: TextTable) -> list[Column]:
    """The table of objects."""
    objects = list(islice(_objects(clients), OBJECT_ROWS))
    return [
        (WIDE, compacted([stored.client.incarnation for stored in objects])),
        (WIDE, [stored.id for stored in objects]),
        (UINT32, compacted([texts.number(stored.name) for stored in objects])),
        (WIDE, compacted([stored.size for stored in objects])),
        (WIDE, compacted([stored.readers for stored in objects])),
        (UINT8, compacted([_object_state(stored) for stored in objects])),
    ]


def _objects(clients: Iterable[Client]) -> Iterator[StoredObject]:
    for client in clients:
        yield from client.objects.values()


def _object_state(stored: StoredObject) -> int:
    if stored.is_missing:
        return OBJECT_PENDING
    return OBJECT_ON_HOST if stored.is_remote else OBJECT_IN_MEMORY
