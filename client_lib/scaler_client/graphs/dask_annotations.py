"""dask's annotations as options of tasks, and graphs whose nodes have different options.

A graph of the scheduler has one set of options. So an annotated graph is cut into groups of calls with equal options.
Each group is a graph of its own. It reads the results of earlier groups on the hosts that have them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol

from ..futures.kept_results import KeptFuture, fetch_values
from .dask_locks import LockedNodes

OPTIONS = ("capabilities", "cpus", "limit", "priority", "resources", "retries", "retry_on", "timeout")
"""The annotations that are options of `Client.options`. All others, such as `workers`, have no effect."""

LOCAL_OPTIONS = frozenset({
    "cache", "callbacks", "chunksize", "dumps", "flush", "func_dumps", "func_loads", "get_id", "initializer", "loads",
    "num_workers", "optimize_graph", "pack_exception", "pool", "raise_exception", "rerun_exceptions_locally",
})  # fmt: skip
"""The keywords of dask's own schedulers. They say how these run a graph, and have no meaning here. `flush` is one that
xarray passes through `dask.array.store`."""

_log = logging.getLogger(__name__)
_ignored: set[str] = set()
"""The annotations and keywords without effect that this process has logged."""


class OptionsClient(Protocol):
    """The part of a client that this module uses."""

    @property
    def options(self) -> Callable[..., Any]:
        """Returns a view of the client, whose tasks have other options."""

    @property
    def _options(self) -> Any:
        """The options of the client's tasks."""

    @property
    def _keeps_results(self) -> bool:
        """Whether results stay on their hosts."""

    def wait(self, futures: Any, *, return_when: str) -> Any:
        """Wait for futures."""


class Options:
    """The options of the nodes of one graph."""

    def __init__(self, dsk: Any, limits: Iterable[str] = ()) -> None:
        """
        Args:
            dsk: a dask graph, or the expression of a collection.
            limits: the names of the limits of calls that have no annotation `limit`.
        """
        self._limits = limits
        self._by_key: dict[Hashable, dict[str, Any]] = {}
        for name, values in _annotations(dsk).items():
            if name in OPTIONS:
                for key, value in values.items():
                    # dask calls an annotation that is callable with each key: a class has become an instance.
                    given = type(value) if name == "retry_on" and isinstance(value, BaseException) else value
                    self._by_key.setdefault(key, {})[name] = given
            else:
                _warn_once("annotation", name)
        for options in self._by_key.values():
            _complete(options)

    def add_locks(self, locked: LockedNodes) -> None:
        """Add the limits of dask's locks to the nodes that hold them."""
        for key, reader in locked.readers.items():
            if reader in self._by_key:
                self._by_key[key] = dict(self._by_key[reader])
        for key, names in locked.limits.items():
            options = self._by_key.setdefault(key, {})
            given = options.get("limit", self._limits)
            options["limit"] = sorted({*([given] if isinstance(given, str) else given), *names})

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def of(self, key: Hashable) -> dict[str, Any]:
        """Return the options of a node."""
        return self._by_key.get(key, {})


def options_of_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of all nodes, from the keywords of `compute`. They mean what annotations mean."""
    for name in keywords.keys() - LOCAL_OPTIONS - {*OPTIONS}:
        _warn_once("keyword", name)
    options = {name: keywords[name] for name in OPTIONS if name in keywords}
    _complete(options)
    return options


def _complete(options: dict[str, Any]) -> None:
    if options.get("retries") is not None and options.get("retry_on") is None:
        options["retry_on"] = Exception  # as dask means it: after any exception


def _warn_once(kind: str, name: str) -> None:
    if name not in _ignored:
        _ignored.add(name)
        _log.warning("dask's %s %r has no effect; supported %ss: %s", kind, name, kind, ", ".join(OPTIONS))


def run_groups(
    client: OptionsClient,
    nodes: Mapping[Hashable, Any],
    inputs: Mapping[Hashable, tuple[Hashable, ...]],
    targets: Iterable[Hashable],
    options: Options,
) -> dict[Hashable, Any]:
    """Run a graph whose calls have different options, and return the values of the targets.

    Args:
        client: the client, or a view whose options hold for all calls that have no other.
        nodes: the graph as `Client.submit_graph` takes it.
        inputs: the calls that each call reads. The mapping has each call after the calls that it reads.
        targets: the wanted calls.
        options: the options of the calls.

    Raises:
        TypeError: an option has a wrong type; the text names it.
        ValueError: an option is out of range; the text names it.
        BaseException: the exception of the first call that failed. Calls that have not begun are cancelled.
    """
    wanted = list(targets)
    groups = groups_of(inputs, options)
    views = [client.options(keep=True, **options.of(keys[0])) for keys in groups]  # all, before the first group is sent
    futures: dict[Hashable, KeptFuture[Any]] = {}
    needed = {*wanted, *_read_by_others(groups, inputs)}
    try:
        for keys, view in zip(groups, views):
            own = set(keys)
            graph = {key: nodes[key] for key in keys}
            for name in {name for key in keys for name in inputs[key]} - own:
                if name in futures or name in nodes:
                    graph[name] = futures[name] if name in futures else nodes[name]
            asked = [key for key in keys if key in needed]
            futures.update(zip(asked, view.submit_graph(graph, asked)))
        client.wait(list(futures.values()), return_when="FIRST_EXCEPTION")
        for future in futures.values():  # inputs come before their readers
            if future.done() and (future.cancelled() or future.exception() is not None):
                future.result()
        results = [futures[key] for key in wanted]
        if client._keeps_results:
            return dict(zip(wanted, results))
        fetch_values(results)
        return {key: future.result() for key, future in zip(wanted, results)}
    except BaseException:
        for future in futures.values():
            future.cancel()
        raise


def _annotations(dsk: Any) -> dict[str, dict[Hashable, Any]]:
    """Return the values of annotations by name and key."""
    if hasattr(dsk, "__dask_annotations__"):
        found: dict[str, dict[Hashable, Any]] = dsk.__dask_annotations__()
        return found
    by_name: dict[str, dict[Hashable, Any]] = {}
    for layer in getattr(dsk, "layers", {}).values():  # of older dask
        for name, value in (getattr(layer, "annotations", None) or {}).items():
            by_name.setdefault(name, {}).update((key, value(key) if callable(value) else value) for key in layer)
    return by_name


def groups_of(inputs: Mapping[Hashable, tuple[Hashable, ...]], options: Options) -> list[list[Hashable]]:
    """Return groups of calls with equal options. Each group comes after the groups that it reads.

    Args:
        inputs: the calls that each call reads. The mapping has each call after the calls that it reads.
        options: the options of the calls.
    """
    kind_of: dict[Hashable, str] = {}
    levels: dict[Hashable, int] = {}
    groups: dict[tuple[int, str], list[Hashable]] = {}
    for key, read in inputs.items():
        kind = kind_of[key] = repr(sorted(options.of(key).items()))
        levels[key] = max((levels[each] + (kind_of[each] != kind) for each in read if each in levels), default=0)
        groups.setdefault((levels[key], kind), []).append(key)
    return [groups[each] for each in sorted(groups)]


def _read_by_others(groups: list[list[Hashable]], inputs: Mapping[Hashable, tuple[Hashable, ...]]) -> set[Hashable]:
    """Return the calls that calls of other groups read."""
    group_of = {key: number for number, keys in enumerate(groups) for key in keys}
    return {
        name for key, read in inputs.items() for name in read if name in group_of and group_of[name] != group_of[key]
    }
