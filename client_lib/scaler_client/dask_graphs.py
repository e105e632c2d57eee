"""dask's graphs, read into the plain form that `graph_runner` runs.

Their nodes are those of dask's task specification (Task, Alias, DataNode, List and so on), or the older tuples and
keys, which dask itself turns into the former.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .graph_runner import Call, PlainGraph, Ref, run_graph

if TYPE_CHECKING:
    from .client import Client

Node = Any
"""A `dask._task_spec.GraphNode`."""


def dask_get(client: Client, dsk: Any, keys: Any) -> Any:
    """What dask calls a scheduler's `get`; see `Client.dask_get`."""
    wanted = set(flat(keys))
    graph, names = plain_graph(dsk, wanted)
    values = run_graph(client, graph)
    return in_shape(keys, {key: values[names[key]] for key in wanted})


def plain_graph(dsk: Any, wanted: set[Hashable]) -> tuple[PlainGraph, dict[Hashable, Hashable]]:
    """What the wanted keys need of a dask graph, and under which key each of them is found in it.

    Raises:
        TypeError: it is no dask graph.
        KeyError: a wanted key is not in the graph.
        ValueError: a key that another one needs is not in the graph.
        RuntimeError: keys need one another in a circle.
    """
    from dask._task_spec import Alias, DataNode

    nodes = _needed(_nodes(dsk), wanted)
    calls: dict[Hashable, Call] = {}
    literals: dict[Hashable, Any] = {}
    names: dict[Hashable, Hashable] = {}
    """Aliases, and what they stand for."""
    for key in _in_order(nodes):
        node = nodes[key]
        inputs = tuple(node.dependencies)
        if isinstance(node, DataNode):
            literals[key] = node.value
        elif isinstance(node, Alias):
            (target,) = inputs
            names[key] = names.get(target, target)
        else:
            calls[key] = Call(run_node, (node, inputs, *(Ref(names.get(name, name)) for name in inputs)))
    found = {key: names.get(key, key) for key in wanted}
    targets = set(found.values())
    return PlainGraph(_fused(calls, targets), literals, targets), found


def flat(keys: Any) -> Iterator[Hashable]:
    """The keys in lists of lists of keys, to any depth."""
    if isinstance(keys, list):
        for each in keys:
            yield from flat(each)
    else:
        yield keys


def in_shape(keys: Any, values: Mapping[Hashable, Any]) -> Any:
    """The values of the keys, with a tuple in the place of each list, as dask's own schedulers answer."""
    if isinstance(keys, list):
        return tuple(in_shape(each, values) for each in keys)
    return values[keys]


def run_node(node: Node, names: tuple[Hashable, ...], *values: Any) -> Any:
    """On the worker: what a node is, once the keys of these names have these values."""
    return node(dict(zip(names, values)))


def _nodes(dsk: Any) -> dict[Hashable, Node]:
    """The graph as a dict of nodes of the task specification, which dask makes of tuples and keys."""
    from dask._task_spec import convert_legacy_graph
    from dask.utils import ensure_dict

    graph = dsk if isinstance(dsk, Mapping) or not hasattr(dsk, "__dask_graph__") else dsk.__dask_graph__()
    if not isinstance(graph, Mapping):
        raise TypeError(f"dask_get needs a dask graph, not a {type(dsk).__name__}")
    nodes: dict[Hashable, Node] = convert_legacy_graph(ensure_dict(graph))
    return nodes


def _needed(nodes: Mapping[Hashable, Node], wanted: set[Hashable]) -> dict[Hashable, Node]:
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


def _in_order(nodes: dict[Hashable, Node]) -> list[Hashable]:
    """The keys in the order in which dask would have them run: no key before one that it needs, and few values kept."""
    from dask.order import order

    places: dict[Hashable, int] = order(nodes)
    return sorted(nodes, key=places.__getitem__)


def _fused(calls: dict[Hashable, Call], targets: set[Hashable]) -> dict[Hashable, Call]:
    """The calls, with those as one that hand a value on from one to the next and nowhere else."""
    readers: dict[Hashable, int] = {}
    for call in calls.values():
        for key in call.inputs:
            readers[key] = readers.get(key, 0) + 1
    chains: dict[Hashable, list[Call]] = {}
    for key, call in calls.items():
        inputs = call.inputs
        chain: list[Call] = []
        if len(inputs) == 1:
            (before,) = inputs
            if before in chains and readers[before] == 1 and before not in targets:
                chain = chains.pop(before)
        chain.append(call)
        chains[key] = chain
    return {key: chain[0] if len(chain) == 1 else _as_one(chain) for key, chain in chains.items()}


def _as_one(chain: list[Call]) -> Call:
    first, *others = chain
    return Call(run_chain, (first.fn, tuple(others), *first.args))


def run_chain(fn: Callable[..., Any], others: tuple[Call, ...], *args: Any) -> Any:
    """On the worker: the first call's value, passed on from call to call."""
    value = fn(*args)
    for call in others:
        (key,) = call.inputs
        value = call.fn(*call.with_values({key: value}))
    return value
