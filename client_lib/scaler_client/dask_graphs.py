"""dask's graphs, read into the plain form that `graph_runner` runs.

Both kinds that dask has: nodes of its task specification (Task, Alias, DataNode, List and so on; since 2024.12), and
tuples and keys, which newer versions turn into the former themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .graph_runner import Call, PlainGraph, Ref, run_graph

if TYPE_CHECKING:
    from .client import Client

Node = Any
"""A key's value in a dask graph."""


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
    nodes, read = _nodes(dsk)
    needed = _needed(nodes, read, wanted)
    calls: dict[Hashable, Call] = {}
    literals: dict[Hashable, Any] = {}
    names: dict[Hashable, Hashable] = {}
    """Aliases, and what they stand for."""
    for key in _in_order({key: nodes[key] for key in needed}):
        kind, inputs = needed[key]
        if kind is _ALIAS:
            (target,) = inputs
            names[key] = names.get(target, target)
        elif kind is _LITERAL:
            literals[key] = read.value(nodes[key])
        else:
            refs = tuple(Ref(names.get(name, name)) for name in inputs)
            calls[key] = Call(read.run, (nodes[key], inputs, *refs))
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
    """On the worker: what a node of the task specification is, once the keys of these names have these values."""
    return node(dict(zip(names, values)))


def run_tuple(node: Node, names: tuple[Hashable, ...], *values: Any) -> Any:
    """On the worker: the same, of the other kind."""
    from dask.core import _execute_task

    return _execute_task(node, dict(zip(names, values)))


_CALL, _LITERAL, _ALIAS = range(3)


class _Specification:
    """How nodes of dask's task specification are read."""

    run = staticmethod(run_node)

    def __init__(self, specification: Any) -> None:
        self._alias, self._data = specification.Alias, specification.DataNode

    def look(self, node: Node, _nodes: Mapping[Hashable, Node]) -> tuple[int, tuple[Hashable, ...]]:
        """What the node is, and the keys that it needs."""
        if isinstance(node, self._data):
            return _LITERAL, ()
        return _ALIAS if isinstance(node, self._alias) else _CALL, tuple(node.dependencies)

    def value(self, node: Node) -> Any:
        return node.value


class _Tuples:
    """How nodes are read that are tuples of a function and its arguments, lists of them, keys and literals."""

    run = staticmethod(run_tuple)

    def __init__(self, core: Any) -> None:
        self._core = core

    def look(self, node: Node, nodes: Mapping[Hashable, Node]) -> tuple[int, tuple[Hashable, ...]]:
        inputs = tuple(self._core.get_dependencies(nodes, task=node))
        if inputs == (node,):
            return _ALIAS, inputs
        return _CALL if inputs or self._core.has_tasks({}, node) else _LITERAL, inputs

    def value(self, node: Node) -> Any:
        return node


def _nodes(dsk: Any) -> tuple[dict[Hashable, Node], _Specification | _Tuples]:
    """The graph as a dict of nodes of one kind, and how to read them."""
    from dask import core
    from dask.utils import ensure_dict

    graph = dsk if isinstance(dsk, Mapping) or not hasattr(dsk, "__dask_graph__") else dsk.__dask_graph__()
    if not isinstance(graph, Mapping):
        raise TypeError(f"dask_get needs a dask graph, not a {type(dsk).__name__}")
    try:
        from dask import _task_spec
    except ImportError:
        return ensure_dict(graph), _Tuples(core)
    return _task_spec.convert_legacy_graph(ensure_dict(graph)), _Specification(_task_spec)


def _needed(
    nodes: Mapping[Hashable, Node], read: _Specification | _Tuples, wanted: set[Hashable]
) -> dict[Hashable, tuple[int, tuple[Hashable, ...]]]:
    """What each node is that the wanted keys need, and the keys that it needs itself."""
    needed: dict[Hashable, tuple[int, tuple[Hashable, ...]]] = {}
    open_keys: list[tuple[Hashable, Hashable]] = [(key, None) for key in wanted]
    while open_keys:
        key, reader = open_keys.pop()
        if key in needed:
            continue
        if key not in nodes:
            if reader is None:
                raise KeyError(key)
            raise ValueError(f"the graph has no key {key!r}, which {reader!r} needs")
        needed[key] = read.look(nodes[key], nodes)
        open_keys.extend((name, key) for name in needed[key][1])
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
