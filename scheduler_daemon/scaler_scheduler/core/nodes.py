"""Nodes of graphs that are not over, for whoever has them drawn."""

from itertools import islice
from typing import List, NamedTuple, Sequence, Tuple

from scaler_scheduler.core.records import Client, FailedNode, Task
from scaler_scheduler.core.states import BLOCKED, WAITING
from scaler_scheduler.core.tables import Tables

NODE_BLOCKED = 0
NODE_WAITING = 1
NODE_RUNNING = 2
NODE_DONE = 3
NODE_FAILED = 4

NODES = 2000
"""Most that are shown."""

INPUTS = 100
"""Most that are shown of what one of them reads."""

LOOKED_AT = 100_000
"""Tasks and objects that are looked at for that, of each client: more would keep the loop from its work."""

FAILED_SECONDS = 30.0
"""For so long a failed one is shown: it is over."""


class Node(NamedTuple):
    client: int
    id: int
    name: str
    state: int
    inputs: Sequence[int]


def nodes(tables: Tables, limit: int = NODES) -> Tuple[int, List[Node]]:
    """How many there are, and some of them: what workers have, then a share of each other state that has any.

    Of graphs so large that not all is looked at the number is that of all of the client's tasks.
    """
    total = 0
    found: List[List[Node]] = [[], [], [], [], []]
    for client in tables.clients:
        total += _find(client, found, limit)
    for each in tables.failed_nodes:
        if tables.history.now - each.seconds <= FAILED_SECONDS:
            total += 1
            found[NODE_FAILED].append(Node(each.client, each.id, each.name, NODE_FAILED, each.inputs))
    return total, _chosen(found, limit)


def _find(client: Client, found: List[List[Node]], limit: int) -> int:
    """Add the client's nodes by their states, up to so many of each; returns how many it has."""
    name, tasks, objects = client.incarnation, client.tasks, client.objects
    total = max(0, len(tasks) - LOOKED_AT) + max(0, len(objects) - LOOKED_AT)
    # The newest first: a graph's rows come in the order in which they are to run.
    for task in islice(reversed(tasks.values()), LOOKED_AT):
        if task.is_node:
            total += 1
            state = _state_of(task)
            if len(found[state]) < limit:
                found[state].append(Node(name, task.id, task.name, state, _inputs_of(task)))
    for stored in islice(reversed(objects.values()), LOOKED_AT):
        if stored.producer is None and not stored.is_sent:
            total += 1
            if len(found[NODE_DONE]) < limit:
                found[NODE_DONE].append(Node(name, stored.id, stored.name, NODE_DONE, ()))
    return total


def _chosen(found: List[List[Node]], limit: int) -> List[Node]:
    """Running ones first, and of the others what there is room for, each state in turn."""
    chosen = found[NODE_RUNNING][:limit]
    others = [found[NODE_WAITING], found[NODE_FAILED], found[NODE_DONE], found[NODE_BLOCKED]]
    for left, there in zip((4, 3, 2, 1), sorted(others, key=len)):
        chosen += there[: (limit - len(chosen)) // left]
    return chosen


def _state_of(task: Task) -> int:
    if task.state == BLOCKED:
        return NODE_BLOCKED
    return NODE_WAITING if task.state == WAITING else NODE_RUNNING


def _inputs_of(task: Task) -> List[int]:
    return [stored.id for stored in task.inputs[:INPUTS]]


def failed_node(task: Task, seconds: float) -> FailedNode:
    """The task, which has just failed."""
    return FailedNode(task.client.incarnation, task.id, task.name, _inputs_of(task), seconds)
