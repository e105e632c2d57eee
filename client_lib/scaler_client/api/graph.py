"""The implementation of `Client.submit_graph` and `Client.get`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from ..errors import ClientClosedError
from ..futures.future import TaskFuture
from ..futures.kept_results import KeptFuture
from ..futures.open_graphs import GraphTasks
from ..graphs.nodes import Nodes
from ..graphs.order import order
from ..graphs.rows import RowBuilder
from ..io import objects
from ..nested import slot_wait
from ..nested.task_host import RunningTask
from ..pickling.object_frames import holds_references
from ..pickling.references import CallWithInputs
from ..protocol.messages import Keep
from .submit import Submitter

MAX_NAMED_KEYS = 3
"""The most keys of a graph that the scheduler shows in monitors."""
MAX_KEY_LENGTH = 50
"""The most characters of each shown key."""

_DASK_NODES = "dask._task_spec"


class GraphPlan:
    """A graph that is analysed and pickled, but not sent. Any thread may make it.

    Args:
        client: the client that submits the graph.
        graph: a dict of nodes by key.
        keys: the requested keys.
        task: the task that submits the graph; None outside of tasks.
        gives_futures: whether the application gets the futures of the keys, and may pass them to other tasks.

    Raises:
        TypeError: the graph is not a mapping, a key is not hashable, or a node cannot be pickled; the text names it.
        ValueError: a key is not in the graph, the graph has a cycle, or a reference belongs to another client.
        ObjectNotFoundError: the object of a reference was freed.
    """

    def __init__(
        self,
        client: Submitter,
        graph: Mapping[Any, Any],
        keys: Iterable[Any],
        task: RunningTask | None,
        gives_futures: bool = False,
    ) -> None:
        _check_graph(graph)
        self.keys = _checked_keys(keys)
        self._client = client
        self._io_thread = client._io_thread
        self._parent = None if task is None else task.name
        self._options = client._wire_options(task, None)
        self._gives_futures = gives_futures or client._keeps_results
        nodes = Nodes(graph)
        wanted = nodes.positions(self.keys)
        self._builder = RowBuilder(client, nodes)
        self._builder.add(order(nodes, wanted, client._options.graph_backend))
        self._targets: dict[int, TaskFuture[Any]] = {}
        locations = self._builder.locations
        self.futures = [
            self._targets.get(locations[each]) or self._future(each, nodes)  # type: ignore[arg-type]
            for each in wanted
        ]
        """One future for each key."""
        self._kept: list[KeptFuture[Any]] = []
        if client._keeps_results:
            self._kept = self._kept_futures()
            places = {future: self._kept[row] for row, future in self._targets.items()}
            self.futures = [places.get(each, each) for each in self.futures]
        self._tasks = self._graph_tasks() if self._targets and not self._kept else None

    def submit(self, on_change: Callable[[], None] | None = None) -> None:
        """Hand the graph to the I/O thread.

        Args:
            on_change: called by the I/O thread when a key has failed, and when all values have arrived.

        Raises:
            ClientClosedError: the client is disconnected.
        """
        if self._kept:
            self._io_thread.call_soon(self._submit_kept)
        elif self._tasks is not None:
            self._tasks.on_change = on_change
            self._io_thread.call_soon(self._submit_all)

    @property
    def is_open(self) -> bool:
        """Whether values are missing and no key has failed."""
        return self._tasks is not None and bool(self._tasks.targets) and self._tasks.failed is None

    def raise_failure(self) -> None:
        """Raise the exception of the first key that failed, if one did."""
        if self._tasks is None or self._tasks.failed is None:
            return
        try:
            self._tasks.failed.result()
        except CancelledError:
            if self._io_thread.is_closed:
                raise ClientClosedError("the client was disconnected while it waited for a graph") from None
            raise
        finally:
            self = None  # type: ignore[assignment]  # breaks the reference cycle of exception, traceback and frame

    def cancel_rest(self, force: bool = False) -> None:
        """Cancel the tasks that have not begun. `force`: stop the others too."""
        if self._tasks is None:
            return
        try:
            self._io_thread.cancel_many(self._tasks.open_ids, force=force)
        except ClientClosedError:
            pass  # closing the client has cancelled them

    def values(self) -> dict[Any, Any]:
        """Return the values by key, once all have arrived."""
        return {key: future.result() for key, future in zip(self.keys, self.futures)}

    def _kept_futures(self) -> list[KeptFuture[Any]]:
        """Return a future for each row. Each row is a task of its own, whose result stays on its host."""
        rows, begin = self._builder.rows, 0
        kept: list[KeptFuture[Any]] = []
        for number, payload, count in zip(rows.numbers, rows.payloads, rows.input_counts):
            read = rows.inputs[begin : begin + count]
            begin += count
            inputs = [kept[each].reference if each >= 0 else rows.objects[~each] for each in read]
            call = CallWithInputs(payload, inputs)
            function = rows.functions[number]
            kept.append(KeptFuture(self._io_thread, function, call, options=self._options, parent=self._parent))
        return kept

    def _submit_kept(self, session: Any) -> None:
        kept, self._kept = self._kept, []  # intermediate results are freed when they were read
        for reference in self._builder.new_objects:
            objects.send(session, reference)
        for future in kept:
            session.submit_kept(future)

    def _submit_all(self, session: Any) -> None:
        assert self._tasks is not None
        for reference in self._builder.new_objects:
            objects.send(session, reference)
        session.submit_graph(self._tasks)

    def _future(self, position: int, nodes: Nodes) -> TaskFuture[Any]:
        location = self._builder.locations[position]
        if location is None or location < 0:
            value = nodes.values[position]
            if not holds_references(value):
                own_serializer: Any = self._client._serializer
                return TaskFuture.finished(self._io_thread, value, own_serializer, is_input=self._gives_futures)
            location = self._builder.locations[position] = self._builder.add_literal(value, position)
        rows = self._builder.rows
        future: TaskFuture[Any] = TaskFuture(self._io_thread, rows.functions[rows.numbers[location]], b"")
        if self._options is not None:
            future.options = self._options
            future.parent = self._parent
        self._targets[location] = future
        return future

    def _graph_tasks(self) -> GraphTasks:
        rows = self._builder.rows
        read = set(rows.inputs)
        keep = bytearray([Keep.YES]) * len(rows.numbers)
        for row in self._targets:
            keep[row] = Keep.BOTH if row in read else Keep.NO
        return GraphTasks(
            rows,
            bytes(keep),
            self._targets,
            self._builder.names(),
            options=self._options,
            parent=self._parent,
            keys=_keys_text(self.keys),
        )


def submit_graph(client: Submitter, graph: Mapping[Any, Any], keys: Iterable[Any]) -> list[TaskFuture[Any]]:
    """Submit a graph; returns the futures of the keys. Raises what GraphPlan raises."""
    plan = GraphPlan(client, graph, keys, client._current_task(), gives_futures=True)
    plan.submit()
    return plan.futures


def get(client: Submitter, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Submit a graph, and wait for the values of the keys.

    If a node fails, its exception is raised and the nodes that have not begun are cancelled.
    """
    plan = GraphPlan(client, graph, keys, client._current_task())
    changed = slot_wait.Event(client._io_thread)
    plan.submit(changed.set)
    if client._keeps_results:
        return dict(zip(plan.keys, plan.futures))
    try:
        while plan.is_open:
            client._io_thread.check_can_wait()
            changed.wait()
            changed.clear()
        plan.raise_failure()
        return plan.values()
    except BaseException:
        plan.cancel_rest()
        raise
    finally:
        del plan  # breaks the reference cycle of exception, traceback, frame and future


def _keys_text(keys: Sequence[Hashable]) -> str:
    """Return the first keys as text, for views of the graph."""
    text = ", ".join(map(_key_text, keys[:MAX_NAMED_KEYS]))
    more = len(keys) - MAX_NAMED_KEYS
    return f"{text} and {more:,} more" if more > 0 else text


def _key_text(key: Hashable) -> str:
    """Return one key as text that UTF-8 can encode. An error in `__repr__` does not stop the submission."""
    try:
        text = key if isinstance(key, str) else repr(key)
    except Exception:
        text = type(key).__name__
    if len(text) > MAX_KEY_LENGTH:
        text = text[: MAX_KEY_LENGTH - 1] + "\u2026"
    return text.encode("utf-8", "replace").decode()


def _check_graph(graph: Any) -> None:
    is_mapping = isinstance(graph, Mapping)
    if type(graph).__module__.startswith("dask.") or (is_mapping and _DASK_NODES in _modules(graph)):
        raise TypeError("this is a graph of dask: pass it to client.dask_get, as in compute(scheduler=client.dask_get)")
    if not is_mapping:
        raise TypeError(f"a graph must be a dict of keys and nodes, not {type(graph).__name__}: {graph!r}")


def _modules(graph: Mapping[Any, Any]) -> set[str]:
    """Return the modules that define the types of the nodes."""
    return {kind.__module__ for kind in set(map(type, graph.values()))}


def _checked_keys(keys: Iterable[Any]) -> list[Hashable]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise TypeError(f"keys must be a list of a graph's keys, not {keys!r}")
    checked = list(keys)
    for key in checked:
        try:
            hash(key)
        except TypeError as error:
            raise TypeError(f"{key!r} can't be a graph's key: {error}") from None
    return checked
