"""Nodes of graphs that are open or ended recently, for monitors that draw the graphs."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from scaler_scheduler.core.events import DEFAULT_OPTIONS, Options
from scaler_scheduler.core.state.records import Client, Task
from scaler_scheduler.core.state.transitions import BLOCKED, WAITING
from scaler_scheduler.core.tables import EndedNode, Tables

NODE_BLOCKED = 0
NODE_WAITING = 1
NODE_RUNNING = 2
NODE_DONE = 3
NODE_FAILED = 4

NODE_LIMIT = 2000
"""The most nodes that are shown."""

INPUT_LIMIT = 100
"""The most inputs that are shown for one node."""

SCAN_LIMIT = 100_000
"""The most tasks and objects of one client that are scanned. A longer scan would block the loop."""

ENDED_SECONDS = 30.0
"""A node is shown for this long after its end, and longer while its graph is shown."""

TaskKey = tuple[int, int]
"""Client and id."""


class Node(NamedTuple):
    """A node of a graph, as a monitor shows it."""

    client: int
    id: int
    name: str
    state: int
    inputs: Sequence[int]
    options: Options = DEFAULT_OPTIONS
    """The options of its submit, which name its graph."""
    submitted_at: float = 0.0
    """When it was submitted, in seconds of the monotonic clock."""


def graph_nodes(tables: Tables, limit: int = NODE_LIMIT) -> tuple[int, list[Node]]:
    """Return the number of all nodes, and at most `limit` of them: running nodes, then a share of each other state.

    If a client has more than SCAN_LIMIT tasks, every further task is counted as a node. The same holds for objects.
    """
    found: list[list[Node]] = [[], [], [], [], []]
    names: set[TaskKey] = set()
    total = sum([_find_tasks(client, found, names, limit) for client in tables.clients])
    total += _find_ended(tables, found, names)
    total += sum([_find_objects(client, found, names, limit) for client in tables.clients])
    return total, _chosen(found, limit)


def _find_tasks(client: Client, found: list[list[Node]], names: set[TaskKey], limit: int) -> int:
    """Add the client's open nodes by state, at most `limit` of each. Returns the number of its open nodes."""
    incarnation, tasks = client.incarnation, client.tasks
    total = max(0, len(tasks) - SCAN_LIMIT)
    # The newest first: the rows of a graph are submitted in the order in which they should run.
    for task in islice(reversed(tasks.values()), SCAN_LIMIT):
        if task.is_node:
            total += 1
            state = _state_of(task)
            if len(found[state]) < limit:
                names.add((incarnation, task.id))
                inputs = _inputs_of(task)
                found[state].append(
                    Node(incarnation, task.id, task.name, state, inputs, task.options, task.submitted_at)
                )
    return total


def _find_ended(tables: Tables, found: list[list[Node]], names: set[TaskKey]) -> int:
    """Add nodes that ended recently, or whose graph has other shown nodes. So a graph keeps its shape."""
    now = tables.clock.now
    shown = {(node.client, node.options.graph) for nodes in found for node in nodes}
    shown |= {_graph_of(each) for each in tables.ended_nodes if _is_recent(each, now)}
    total = 0
    for each in reversed(tables.ended_nodes):
        name = each.client, each.id
        if name in names or not (_is_recent(each, now) or each.options.graph and _graph_of(each) in shown):
            continue
        names.add(name)
        total += 1
        state = NODE_FAILED if each.has_failed else NODE_DONE
        node = Node(each.client, each.id, each.name, state, each.inputs, each.options, each.submitted_at)
        found[state].append(node)
    return total


def _graph_of(node: EndedNode) -> tuple[int, int]:
    """The graph of a node: its client, and the client's number of the graph."""
    return node.client, node.options.graph


def _is_recent(node: EndedNode, now: float) -> bool:
    return now - node.ended_at <= ENDED_SECONDS


def _find_objects(client: Client, found: list[list[Node]], names: set[TaskKey], limit: int) -> int:
    """Add kept results whose tasks no longer have a record. Returns their number."""
    objects = client.objects
    total = max(0, len(objects) - SCAN_LIMIT)
    for stored in islice(reversed(objects.values()), SCAN_LIMIT):
        name = client.incarnation, stored.id
        if stored.producer is None and not stored.is_from_client and name not in names:
            total += 1
            if len(found[NODE_DONE]) < limit:
                found[NODE_DONE].append(Node(*name, stored.name, NODE_DONE, ()))
    return total


def _chosen(found: list[list[Node]], limit: int) -> list[Node]:
    """Return running nodes first. The other states share the remaining room."""
    chosen = found[NODE_RUNNING][:limit]
    others = [found[NODE_WAITING], found[NODE_FAILED], found[NODE_DONE], found[NODE_BLOCKED]]
    for left, there in zip((4, 3, 2, 1), sorted(others, key=len)):
        chosen += there[: (limit - len(chosen)) // left]
    return chosen


def _state_of(task: Task) -> int:
    if task.state == BLOCKED:
        return NODE_BLOCKED
    return NODE_WAITING if task.state == WAITING else NODE_RUNNING


def _inputs_of(task: Task) -> list[int]:
    return [stored.id for stored in task.inputs[:INPUT_LIMIT]]


def ended_node(task: Task, seconds: float, has_failed: bool) -> EndedNode:
    """Return the record of a task that has just ended and still has its inputs."""
    inputs = _inputs_of(task)
    client = task.client.incarnation
    return EndedNode(client, task.id, task.name, inputs, seconds, has_failed, task.options, task.submitted_at)
