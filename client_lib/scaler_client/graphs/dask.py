"""The implementation of `Client.dask_get`: runs dask graphs as graphs of the scheduler.

Nodes follow dask's task specification (Task, Alias, DataNode, List and others). dask itself converts the older form of
tuples and keys.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..commands.install_hints import install_hint
from ..futures.kept_results import KeptFuture, fetch_values
from .dask_annotations import Options, OptionsClient, options_of_keywords, run_groups
from .dask_locks import find_locks
from .nodes import RESULT_FUTURES

Node = Any
"""A `dask._task_spec.GraphNode`."""

OBJECT_BYTES = 64 * 1024
"""A literal of at least this size is sent as an object, once to each host. A smaller one is sent with each reader."""


class GraphClient(OptionsClient, Protocol):
    """The part of a client that this module uses."""

    def get(self, graph: Any, keys: Any) -> Any:
        """Run a graph, and return values by key."""

    def _send_argument(self, value: Any) -> Any:
        """Let the scheduler keep a value that calls read; returns its reference."""


@dataclass(frozen=True, slots=True)
class Call:
    """A node, or a chain of nodes. In a chain each node reads only the previous one, and no other node reads it."""

    nodes: tuple[Node, ...]
    names: tuple[Hashable, ...]
    """The names of the inputs of the first node. The other nodes have one input each."""
    inputs: tuple[Hashable, ...]
    """For each name the call or literal that it stands for."""


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """The part of a dask graph that the wanted keys need. Each input names a call or a literal; there are no cycles."""

    calls: dict[Hashable, Call]
    literals: dict[Hashable, Any]
    resolved: dict[Hashable, Hashable]
    """For each wanted key the key of the call or literal that it stands for."""

    @property
    def targets(self) -> list[Hashable]:
        """The calls whose values are wanted, in order."""
        wanted = set(self.resolved.values())
        return [key for key in self.calls if key in wanted]


def dask_get(client: GraphClient, dsk: Any, keys: Any, **keywords: Any) -> Any:
    """Run a dask graph; see `Client.dask_get`. dask calls such a function the `get` of a scheduler."""
    try:
        import dask._task_spec  # noqa: F401  # not at the top: dask is an extra
    except ImportError as error:
        raise ImportError(f"dask_get needs dask 2024.12 or newer: {install_hint('dask')}") from error
    # dask's rule: tasks do not change their inputs.
    client = client.options(shared_inputs=True, **options_of_keywords(keywords))
    options = Options(dsk, client._options.limits)
    graph = plain_graph(dsk, set(flatten_keys(keys)), options)
    nodes = _client_graph(client, graph)
    if options:
        inputs = {key: call.inputs for key, call in graph.calls.items()}
        computed = run_groups(client, nodes, inputs, graph.targets, options)
    else:
        computed = client.get(nodes, graph.targets)
    literals = {name: graph.literals[name] for name in graph.resolved.values() if name in graph.literals}
    if not client._keeps_results:
        futures = {name: value for name, value in literals.items() if type(value) in RESULT_FUTURES}
        fetch_values([future for future in futures.values() if isinstance(future, KeptFuture)])
        literals.update((name, future.result()) for name, future in futures.items())
    values = {**literals, **computed}
    return restore_shape(keys, {key: values[name] for key, name in graph.resolved.items()})


def plain_graph(dsk: Any, wanted: set[Hashable], options: Options) -> PlainGraph:
    """Return the part of a dask graph that the wanted keys need.

    Args:
        dsk: the graph.
        wanted: the keys.
        options: the options of the nodes; it gets the limits of dask's locks. A chain of nodes is one call only if they
            have the same options.

    Raises:
        TypeError: `dsk` is no dask graph.
        KeyError: a wanted key is not in the graph.
        ValueError: a key that another node needs is not in the graph.
        RuntimeError: the graph has a cycle.
    """
    from dask._task_spec import Alias, DataNode

    locked = find_locks(_select_needed(_nodes(dsk), wanted))
    options.add_locks(locked)
    nodes = locked.nodes
    calls: dict[Hashable, Call] = {}
    literals: dict[Hashable, Any] = {}
    names: dict[Hashable, Hashable] = {}
    """For each alias the key that it stands for."""
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
    return PlainGraph(_fuse_chains(calls, set(resolved.values()), options), literals, resolved)


def flatten_keys(keys: Any) -> Iterator[Hashable]:
    """Yield the keys of lists that are nested to any depth."""
    if isinstance(keys, list):
        for each in keys:
            yield from flatten_keys(each)
    else:
        yield keys


def restore_shape(keys: Any, values: Mapping[Hashable, Any]) -> Any:
    """Return the values of nested keys, with a tuple for each list, as dask's own schedulers do."""
    if isinstance(keys, list):
        return tuple(restore_shape(each, values) for each in keys)
    return values[keys]


def _nodes(dsk: Any) -> dict[Hashable, Node]:
    """Return the graph as a dict of nodes of the task specification."""
    from dask._task_spec import convert_legacy_graph
    from dask.utils import ensure_dict

    graph = dsk if isinstance(dsk, Mapping) or not hasattr(dsk, "__dask_graph__") else dsk.__dask_graph__()
    if not isinstance(graph, Mapping):
        raise TypeError(f"dask_get needs a dask graph, not a {type(dsk).__name__}")
    nodes: dict[Hashable, Node] = convert_legacy_graph(ensure_dict(graph))
    return nodes


def _select_needed(nodes: Mapping[Hashable, Node], wanted: set[Hashable]) -> dict[Hashable, Node]:
    """Return the wanted nodes and all nodes that they need."""
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
    """Return dask's order of the keys: inputs before their readers, and few values in memory."""
    from dask.order import order

    ranks: dict[Hashable, int] = order(nodes)
    return ranks


def _fuse_chains(calls: dict[Hashable, Call], targets: set[Hashable], options: Options) -> dict[Hashable, Call]:
    """Return the calls, with each chain of calls as one call."""
    readers = Counter(key for call in calls.values() for key in set(call.inputs))
    fused: dict[Hashable, Call] = {}
    for key, call in calls.items():
        before = call.inputs[0] if len(call.inputs) == 1 else None
        is_chain = before in fused and readers[before] == 1 and before not in targets
        if is_chain and options.of(before) == options.of(key):
            first = fused.pop(before)
            call = Call(first.nodes + call.nodes, first.names, first.inputs)
        fused[key] = call
    return fused


# ---------------------------------------------------------------------------------------------------------- submission


def _client_graph(client: GraphClient, graph: PlainGraph) -> dict[Hashable, Any]:
    """Return the calls as a graph for `Client.get`."""
    nodes: dict[Hashable, Any] = {
        key: value if type(value := graph.literals[key]) in RESULT_FUTURES else client._send_argument(value)
        for key in {key: None for call in graph.calls.values() for key in call.inputs if key in graph.literals}
        if type(graph.literals[key]) in RESULT_FUTURES or _is_large(graph.literals[key])
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
    """Return the name that logs and monitors show for tasks of this key."""
    from dask.utils import key_split

    return str(key_split(key))


class BoundNodes:
    """A chain of nodes to run on a worker.

    Args:
        nodes: the nodes; each one reads the previous one.
        names: the inputs of the first node that are values of other tasks.
        bound: the other inputs of the first node, by name.
    """

    # No dataclass: an instance must not be equal to a key of the graph.

    def __init__(self, nodes: tuple[Node, ...], names: tuple[Hashable, ...], bound: dict[Hashable, Any]) -> None:
        self._nodes = nodes
        self._names = names
        self._bound = bound

    def run(self, values: tuple[Any, ...]) -> Any:
        """Run the nodes, with one value for each name."""
        first, *others = self._nodes
        value = first({**self._bound, **dict(zip(self._names, values))})
        for node in others:
            (name,) = node.dependencies
            value = node({name: value})
        return value


class RunNodes:
    """The function of tasks with this name. Monitors show the name, and the scheduler keeps run times by name."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, nodes: BoundNodes, *values: Any) -> Any:
        return nodes.run(values)

    def __reduce__(self) -> Any:
        return _run_nodes_named, (self.__qualname__,)


@functools.lru_cache(maxsize=1024)
def _run_nodes_named(name: str) -> RunNodes:
    return RunNodes(name)
