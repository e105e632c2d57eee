"""dask's locks as limits of the cluster.

Under dask's own schedulers, a `SerializableLock` lets one call of the whole graph run at once. Its copies in several
worker processes are different locks. So each call that gets such a lock has a limit of the scheduler, named by the
lock's token, which lets one task run at once (`LOCK_LIMIT`).
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ..protocol.messages import LOCK_LIMIT
from .xarray_files import file_classes, share_file

Node = Any
"""A `dask._task_spec.GraphNode`."""

MODULES = ("dask.utils", "xarray.backends.locks")
"""The modules that have a class `SerializableLock`. xarray has a copy of dask's class."""

MAX_ELEMENTS = 1000
"""A longer container holds data, and is not searched."""

_CONTAINERS = (list, tuple, set, frozenset)


@dataclass(frozen=True, slots=True)
class LockedNodes:
    """The nodes of a graph, with the limits of those whose functions get locks."""

    nodes: dict[Hashable, Node]
    """All nodes, with those that were cut off from fused ones."""
    readers: dict[Hashable, Hashable]
    """For each node that was cut off the key of the node that reads it."""
    limits: dict[Hashable, list[str]]
    """For each node with locks the names of their limits."""


def find_locks(nodes: dict[Hashable, Node]) -> LockedNodes:
    """Find the nodes whose functions get locks. Nodes that dask has fused are cut, so that only the last function of
    such a node holds the lock, and not the calls that compute its inputs.

    Args:
        nodes: the nodes of a graph by key.
    """
    classes = _lock_classes()
    if not classes:
        return LockedNodes(nodes, {}, {})
    from dask._task_spec import DataNode

    data = {
        key: found for key, node in nodes.items() if isinstance(node, DataNode) and (found := _locks(node, classes))
    }
    cut: dict[Hashable, Node] = {}
    readers: dict[Hashable, Hashable] = {}
    limits: dict[Hashable, list[str]] = {}
    for key, node in nodes.items():
        if isinstance(node, DataNode):
            continue
        found = _locks(node, classes).union(*[data[each] for each in node.dependencies if each in data])
        if not found:
            continue
        limits[key] = sorted(found)
        parts = _cut(node, lambda inner: bool(_locks(inner, classes)))
        if parts is not None:
            inputs, cut[key] = parts
            cut[inputs.key] = inputs
            readers[inputs.key] = key
    return LockedNodes({**nodes, **cut}, readers, limits)


def _lock_classes() -> tuple[type, ...]:
    """Return the classes of which this program has locks, and of files that have locks."""
    found = [getattr(sys.modules.get(name), "SerializableLock", None) for name in MODULES]
    return *[each for each in found if each is not None and getattr(each, "_locks", True)], *file_classes()


def _locks(root: Any, classes: tuple[type, ...]) -> set[str]:
    """Return the names of the limits of all locks in a node or value, also of files that xarray writes. Attributes of
    other objects are not searched: xarray's reads have locks there, and run in parallel in several processes."""
    from dask._task_spec import DataNode, Task

    found: set[str] = set()
    stack = [root]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if isinstance(value, classes):
            lock = value if hasattr(value, "token") else share_file(value)
            if lock is not None:
                token = repr(lock.token).encode(errors="replace")
                found.add(LOCK_LIMIT + hashlib.blake2b(token, digest_size=16).hexdigest())
        elif isinstance(value, DataNode):
            stack.append(value.value)
        elif isinstance(value, Task):  # a NestedContainer is one
            stack += value.func, *value.args, *value.kwargs.values()
        elif isinstance(value, functools.partial):
            stack += value.func, *value.args, *value.keywords.values()
        elif isinstance(value, types.MethodType):
            stack.append(value.__self__)
        elif isinstance(value, (dict, *_CONTAINERS)) and len(value) <= MAX_ELEMENTS and id(value) not in seen:
            seen.add(id(value))
            stack += value.values() if isinstance(value, dict) else value
    return found


def _cut(node: Node, has_locks: Callable[[Node], bool]) -> tuple[Node, Node] | None:
    """Cut a fused node whose last function alone gets locks.

    Returns:
        The node that computes the inputs of the last function, and the node that calls this function; None: the node
        is not of this kind.
    """
    from dask._task_spec import GraphNode, Task, TaskRef, _execute_subgraph

    if getattr(node, "func", None) is not _execute_subgraph or node.kwargs or len(node.args) < 3:
        return None
    inner, last_key, outer_names, *values = node.args
    others = {key: each for key, each in inner.items() if key != last_key}
    last = inner.get(last_key)
    names = [key for key in getattr(last, "dependencies", ()) if key in others]
    if not names or not isinstance(last, GraphNode) or any(map(has_locks, others.values())):
        return None
    key = (names[0], "inputs of", node.key)
    read = set().union(*[each.dependencies for each in others.values()])
    inputs = Task(key, compute_inputs, others, names, *_bound(outer_names, values, read))
    return inputs, Task(
        node.key, call_last, [last], names, TaskRef(key), *_bound(outer_names, values, set(last.dependencies))
    )


def _bound(names: Collection[Hashable], values: Collection[Any], read: set[Hashable]) -> list[Any]:
    """Return the names that are read, and the value of each."""
    pairs = [(name, value) for name, value in zip(names, values) if name in read]
    return [[name for name, _ in pairs], *[value for _, value in pairs]]


def compute_inputs(nodes: Mapping[Hashable, Node], wanted: list[Hashable], names: list[Hashable], *values: Any) -> Any:
    """Return the values of some nodes of a fused graph.

    Args:
        nodes: the nodes by key.
        wanted: the keys of the wanted values.
        names: the names of the values that the nodes read.
        values: these values.
    """
    from dask._task_spec import DataNode, execute_graph

    found = execute_graph({**nodes, **{name: DataNode(None, each) for name, each in zip(names, values)}}, keys=wanted)
    return [found[key] for key in wanted]


def call_last(nodes: list[Node], read: list[Hashable], inputs: list[Any], names: list[Hashable], *values: Any) -> Any:
    """Call the last node of a fused graph.

    Args:
        nodes: this node alone. In a list, so that dask does not evaluate it as an argument.
        read: the names of the inputs that `compute_inputs` has computed.
        inputs: the values of these inputs.
        names: the names of its other inputs.
        values: the values of the other inputs.
    """
    (node,) = nodes
    return node({**dict(zip(names, values)), **dict(zip(read, inputs))})
