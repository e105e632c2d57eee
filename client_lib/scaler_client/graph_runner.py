"""Graphs in a plain form, run from the client's side: each call is a task, submitted once its inputs are there.

The values between the calls pass through the client, which drops each one when its last reader has been submitted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import suspending
from .errors import ClientClosedError

if TYPE_CHECKING:
    from .agent import Agent
    from .client import Client
    from .future import TaskFuture

MOST_OPEN = 512
"""Tasks that are submitted and not read. More of them would bring no more workers to work, but inputs and results that
nobody reads yet into the client's memory: among those that could run, the first of the graph's order go first."""


@dataclass(frozen=True, slots=True)
class Ref:
    """In a call's arguments: the value of this key."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Call:
    """`fn(*args)`, with the values of the keys in the place of the references among `args`."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]

    @property
    def inputs(self) -> set[Hashable]:
        return {arg.key for arg in self.args if type(arg) is Ref}

    def with_values(self, values: Mapping[Hashable, Any]) -> tuple[Any, ...]:
        return tuple(values[arg.key] if type(arg) is Ref else arg for arg in self.args)


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """Every reference names a call or a literal; there are no cycles."""

    calls: dict[Hashable, Call]
    """In the order in which they should begin, where there is a choice."""
    literals: dict[Hashable, Any]
    wanted: set[Hashable]
    """The keys whose values are asked for."""


def run_graph(client: Client, graph: PlainGraph) -> dict[Hashable, Any]:
    """The values of the wanted keys.

    Raises:
        TypeError: a call can't be pickled.
        ClientClosedError: the client was disconnected.
        concurrent.futures.CancelledError: a call was cancelled, by `clear`.
        BaseException: what the first failed call raised; the calls that have not begun are then cancelled.
    """
    run = _Run(client, graph)
    try:
        run.submit_ready()
        while run.futures:
            run.take_finished()
            run.submit_ready()
    except BaseException:
        run.cancel()
        raise
    return {key: run.values[key] for key in graph.wanted}


class _Finished:
    """What futures tell the thread that runs the graph: a waiter, as those of concurrent.futures are."""

    def __init__(self, agent: Agent) -> None:
        self._news = suspending.event_for(agent)
        self._futures: deque[TaskFuture[Any]] = deque()

    def watch(self, future: TaskFuture[Any]) -> None:
        with future._condition:
            if not future.done():
                future._waiters.append(self)
                return
        self.add_result(future)

    def add_result(self, future: TaskFuture[Any]) -> None:
        self._futures.append(future)
        self._news.set()

    add_exception = add_cancelled = add_result

    def take(self) -> list[TaskFuture[Any]]:
        """Those that have finished since, at least one, waited for."""
        self._news.wait()
        self._news.clear()
        futures: list[TaskFuture[Any]] = []
        while self._futures:
            futures.append(self._futures.popleft())
        return futures


class _Run:
    def __init__(self, client: Client, graph: PlainGraph) -> None:
        self.values = dict(graph.literals)
        self.futures: dict[TaskFuture[Any], Hashable] = {}
        """Those that are not read yet."""
        self._client = client
        self._graph = graph
        self._finished = _Finished(client.agent)
        self._keys = list(graph.calls)
        self._readers: dict[Hashable, list[int]] = {}
        self._left_to_read: dict[Hashable, int] = {}
        self._missing: list[int] = []
        """How many inputs each call, by its position, waits for."""
        self._ready: list[int] = []
        for position, call in enumerate(graph.calls.values()):
            inputs = call.inputs
            for key in inputs:
                self._left_to_read[key] = self._left_to_read.get(key, 0) + 1
            awaited = [key for key in inputs if key in graph.calls]
            for key in awaited:
                self._readers.setdefault(key, []).append(position)
            self._missing.append(len(awaited))
            if not awaited:
                self._ready.append(position)  # ascending, which is a heap

    def submit_ready(self) -> None:
        while self._ready and len(self.futures) < MOST_OPEN:
            key = self._keys[heapq.heappop(self._ready)]
            call = self._graph.calls[key]
            future = self._client.submit(call.fn, *call.with_values(self.values))
            self.futures[future] = key
            self._finished.watch(future)
            self._forget_read(call)

    def take_finished(self) -> None:
        self._client.agent.check_waiting()
        for future in self._finished.take():
            if future.cancelled() and self._client.agent.is_closed:
                raise ClientClosedError("the client was disconnected while it ran a graph")
            key = self.futures[future]
            self.values[key] = future.result()
            del self.futures[future]
            for position in self._readers.pop(key, ()):
                self._missing[position] -= 1
                if not self._missing[position]:
                    heapq.heappush(self._ready, position)

    def cancel(self) -> None:
        futures = list(self.futures)
        try:
            self._client.agent.cancel_many(lambda: [future.task_id for future in futures])
        except ClientClosedError:
            pass

    def _forget_read(self, call: Call) -> None:
        for key in call.inputs:
            self._left_to_read[key] -= 1
            if not self._left_to_read[key] and key not in self._graph.wanted:
                del self.values[key]
