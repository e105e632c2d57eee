"""dask's graphs on the workers, as graphs of the scheduler's: what `Client.dask_get` does.

Their nodes are those of dask's task specification (Task, Alias, DataNode, List and so on), or the older tuples and
keys, which dask itself turns into the former.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..commands.install_hints import install_hint

Node = Any
"""A `dask._task_spec.GraphNode`."""

OBJECT_BYTES = 64 * 1024
"""A literal of about this size goes to the scheduler by itself, and to each host once; smaller ones go with readers."""


class GraphClient(Protocol):
    """What dask's graphs need of a client."""

    def get(self, graph: Any, keys: Any) -> Any:
        """Run a graph and return the values of some of its keys."""

    def send_object(self, value: Any) -> Any:
        """Have the scheduler keep a value; returns its reference."""


@dataclass(frozen=True, slots=True)
class Call:
    """A node, or a chain of nodes each of which reads the one before it and is read by nothing else."""

    nodes: tuple[Node, ...]
    names: tuple[Hashable, ...]
    """What the first one reads, by the names that it has for it. The others read one key each."""
    inputs: tuple[Hashable, ...]
    """The calls and literals that these names stand for."""


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """What some keys need of a dask graph. Every input names a call or a literal; there are no cycles."""

    calls: dict[Hashable, Call]
    literals: dict[Hashable, Any]
    resolved: dict[Hashable, Hashable]
    """Of each wanted key the one of the call or literal that it stands for."""

    @property
    def targets(self) -> list[Hashable]:
        """The calls whose values are asked for, in their order."""
        wanted = set(self.resolved.values())
        return [key for key in self.calls if key in wanted]


def dask_get(client: GraphClient, dsk: Any, keys: Any) -> Any:
    """What dask calls a scheduler's `get`; see `Client.dask_get`."""
    try:
        import dask._task_spec  # noqa: F401  # not at the top: dask is an extra
    except ImportError as error:
        raise ImportError(f"dask_get needs dask 2024.12 or newer: {install_hint('dask')}") from error
    graph = plain_graph(dsk, set(flatten_keys(keys)))
    values = {**graph.literals, **client.get(_client_graph(client, graph), graph.targets)}
    return restore_shape(keys, {key: values[name] for key, name in graph.resolved.items()})


def plain_graph(dsk: Any, wanted: set[Hashable]) -> PlainGraph:
    """What the wanted keys need.

    Raises:
        TypeError: it is no dask graph.
        KeyError: a wanted key is not in the graph.
        ValueError: a key that another one needs is not in the graph.
        RuntimeError: keys need one another in a circle.
    """
    from dask._task_spec import Alias, DataNode

    nodes = _select_needed(_nodes(dsk), wanted)
    calls: dict[Hashable, Call] = {}
    literals: dict[Hashable, Any] = {}
    names: dict[Hashable, Hashable] = {}
    """Aliases, and what they stand for."""
    ranks = _ranks(nodes)
    for key in sorted(nodes, key=ranks.__getitem__):
        node = nodes[key]
        if isinstance(node, DataNode):
            literals[key] = node.value
        elif isinstance(node, Alias):
            (target,) = node.dependencies
            names[key] = names.get(target, target)
        else:
            read = sorted(node.dependencies, key=ranks.__getitem__)
            calls[key] = Call((node,), tuple(read), tuple(names.get(name, name) for name in read))
    resolved = {key: names.get(key, key) for key in wanted}
    return PlainGraph(_fuse_chains(calls, set(resolved.values())), literals, resolved)


def flatten_keys(keys: Any) -> Iterator[Hashable]:
    """The keys in lists of lists of keys, to any depth."""
    if isinstance(keys, list):
        for each in keys:
            yield from flatten_keys(each)
    else:
        yield keys


def restore_shape(keys: Any, values: Mapping[Hashable, Any]) -> Any:
    """The values of the keys, with a tuple in the place of each list, as dask's own schedulers answer."""
    if isinstance(keys, list):
        return tuple(restore_shape(each, values) for each in keys)
    return values[keys]


def _nodes(dsk: Any) -> dict[Hashable, Node]:
    """The graph as a dict of nodes of the task specification, which dask makes of tuples and keys."""
    from dask._task_spec import convert_legacy_graph
    from dask.utils import ensure_dict

    graph = dsk if isinstance(dsk, Mapping) or not hasattr(dsk, "__dask_graph__") else dsk.__dask_graph__()
    if not isinstance(graph, Mapping):
        raise TypeError(f"dask_get needs a dask graph, not a {type(dsk).__name__}")
    nodes: dict[Hashable, Node] = convert_legacy_graph(ensure_dict(graph))
    return nodes


def _select_needed(nodes: Mapping[Hashable, Node], wanted: set[Hashable]) -> dict[Hashable, Node]:
    """The nodes of the wanted keys, and of those that they need."""
    needed: dict[Hashable, Node] = {}
    open_keys: list[tuple[Hashable, Hashable]] = [(key, None) for key in wanted]
    while open_keys:
        key, reader = open_keys.pop()
        if key in needed:
            continue
        if key not in nodes:
            if reader is None:
                raise KeyError(key)
            raise ValueError(f"the graph has no key {key!r}, which {reader!r} needs")
        needed[key] = nodes[key]
        open_keys.extend((name, key) for name in nodes[key].dependencies)
    return needed


def _ranks(nodes: dict[Hashable, Node]) -> dict[Hashable, int]:
    """When dask would have each key run: none before one that it needs, and so that few values are kept."""
    from dask.order import order

    ranks: dict[Hashable, int] = order(nodes)
    return ranks


def _fuse_chains(calls: dict[Hashable, Call], targets: set[Hashable]) -> dict[Hashable, Call]:
    """The calls, with those as one that hand a value on from one to the next and nowhere else."""
    readers = Counter(key for call in calls.values() for key in set(call.inputs))
    fused: dict[Hashable, Call] = {}
    for key, call in calls.items():
        before = call.inputs[0] if len(call.inputs) == 1 else None
        if before in fused and readers[before] == 1 and before not in targets:
            first = fused.pop(before)
            call = Call(first.nodes + call.nodes, first.names, first.inputs)
        fused[key] = call
    return fused


# --------------------------------------------------------------------------------------------------- what is submitted


def _client_graph(client: GraphClient, graph: PlainGraph) -> dict[Hashable, Any]:
    """The calls as a graph of the client's."""
    nodes: dict[Hashable, Any] = {
        key: client.send_object(graph.literals[key])
        for key in {key: None for call in graph.calls.values() for key in call.inputs if key in graph.literals}
        if _is_large(graph.literals[key])
    }
    for key, call in graph.calls.items():
        is_bound = [name in graph.literals and name not in nodes for name in call.inputs]
        bound = {name: graph.literals[of] for name, of, here in zip(call.names, call.inputs, is_bound) if here}
        read = [name for name, here in zip(call.names, is_bound) if not here]
        others = [of for of, here in zip(call.inputs, is_bound) if not here]
        nodes[key] = (_run_nodes_named(_name(key)), BoundNodes(call.nodes, tuple(read), bound), *others)
    return nodes


def _is_large(value: Any) -> bool:
    from dask.sizeof import sizeof

    return bool(sizeof(value) >= OBJECT_BYTES)


def _name(key: Hashable) -> str:
    """What tasks of this kind are called."""
    from dask.utils import key_split

    return str(key_split(key))


class BoundNodes:
    """Nodes that go to a worker, each of which reads the one before it.

    Args:
        names: what the first one reads beside the values that are bound to it.
    """

    # No dataclass: it must not be equal to a key of the graph, whatever that is.

    def __init__(self, nodes: tuple[Node, ...], names: tuple[Hashable, ...], bound: dict[Hashable, Any]) -> None:
        self._nodes = nodes
        self._names = names
        self._bound = bound

    def run(self, values: tuple[Any, ...]) -> Any:
        first, *others = self._nodes
        value = first({**self._bound, **dict(zip(self._names, values))})
        for node in others:
            (name,) = node.dependencies
            value = node({name: value})
        return value


class RunNodes:
    """The function of tasks that are called so: what is seen of them, and what their run times are kept by."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, nodes: BoundNodes, *values: Any) -> Any:
        return nodes.run(values)

    def __reduce__(self) -> Any:
        return _run_nodes_named, (self.__qualname__,)


@functools.lru_cache(maxsize=1024)
def _run_nodes_named(name: str) -> RunNodes:
    return RunNodes(name)
