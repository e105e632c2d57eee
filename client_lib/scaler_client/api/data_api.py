"""The part of a client for objects that the scheduler keeps, and for graphs of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from ..errors import ProtectedSchedulerError
from ..futures.future import TaskFuture
from ..io import objects
from ..io.io_thread import IoThread
from ..nested import slot_wait
from ..pickling.references import ObjectRef
from ..protocol.utf8_text import checked_text
from . import graph as graphs
from .submit import NOT_GIVEN, Submitter, as_client_members
from .task_options import checked_bool


@as_client_members
class DataApi(Submitter):
    """Submits tasks, objects and graphs."""

    @overload
    def send_object(self, obj: Any, /, *, name: str = "", shared: bool = False) -> ObjectRef: ...

    @overload
    def send_object(self, name: str, obj: Any, /, *, shared: bool = False) -> ObjectRef: ...

    def send_object(self, first: Any, second: Any = NOT_GIVEN, /, *, name: str = "", shared: bool = False) -> ObjectRef:
        """Send an object to the scheduler once, so that many tasks can read it.

        Call it as `send_object(obj)`, `send_object("name", obj)` or `send_object(obj, name="name")`. The object is sent
        once to the scheduler, and once to each host with tasks that read it. Arrays, and other objects that pickle to
        buffers, are not copied: do not change them while the reference exists. Each task gets an object of its own.
        Only the memory of arrays is shared by tasks, and is read-only.

        Args:
            first: the object; or its name, if a second argument is given.
            second: the object, if the first argument is its name.
            name: the object's name in `repr` and monitors.
            shared: whether the tasks of a worker share one object, which none of them may change. This saves time if
                the value has many Python objects, such as a dict of a million entries.

        Returns:
            The reference. Pass it in the arguments of `submit`, `map` and graphs: tasks receive the object. The object
            is freed everywhere when its last reference is deleted and no open task reads it.

        Raises:
            TypeError: the object cannot be pickled, the name is not a string, or `shared` is not a bool.
            ValueError: UTF-8 cannot encode the name.
            MessageTooLargeError: the object has more bytes in one frame than the scheduler accepts.
            ClientClosedError: the client is disconnected.

        Example:
            ```python
            prices = client.send_object([10.5, 9.5])
            print(client.submit(sum, prices).result(), client.submit(max, prices).result())  # 20.0 10.5
            ```
        """
        name, value = parse_send_object(first, second, name)
        task = self._current_task()
        parent = None if task is None else task.name
        is_shared = checked_bool("shared", shared)
        return objects.send_object(self._io_thread, value, name, self._serializer, parent, is_shared=is_shared)

    def _send_argument(self, value: Any) -> ObjectRef:
        """Send a large argument of several calls. It is kept as long as one of them may run again."""
        task = self._current_task()
        parent = None if task is None else task.name
        return objects.send_object(self._io_thread, value, "", self._serializer, parent, is_arguments=True)

    def submit_graph(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> list[TaskFuture[Any]]:
        """Run a graph of tasks on the workers. Returns at once.

        Only nodes that the requested keys need are run.

        Args:
            graph: a dict of nodes by key; keys are any hashable values. A node is a call (a tuple of a function and its
                arguments), the key of another node, or a value. In arguments, a key stands for the value of its node,
                also inside lists, tuples and dicts. A tuple that begins with a function stands for the result of that
                call. Each node gets values of its own; arrays from other nodes are read-only.
            keys: the keys whose values are requested.

        Returns:
            One future for each key, in the order of `keys`.

        Raises:
            TypeError: the graph is not a dict, or a node cannot be pickled; the text names the node.
            ValueError: a requested key is not in the graph; the text names it.
            GraphCycleError: the graph has a cycle; the text names its nodes. It is a `ValueError`.
            ObjectNotFoundError: a node reads an object that was freed.
            ClientClosedError: the client is disconnected.

        Example:
            ```python
            graph = {"a": (pow, 2, 3), "b": (pow, 3, 2), "sum": (sum, ["a", "b"])}
            (future,) = client.submit_graph(graph, ["sum"])
            print(future.result())  # 17
            ```
        """
        return graphs.submit_graph(self, graph, keys)

    def get(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
        """Run a graph of tasks on the workers, and wait for the values of the requested keys.

        Args:
            graph: a dict of nodes by key, as for `submit_graph`.
            keys: the keys whose values are requested.

        Returns:
            The values by key.

        Raises:
            BaseException: the exception of the first node that failed. Nodes that have not begun are then cancelled.
            TypeError: as for `submit_graph`.
            ValueError: as for `submit_graph`.
            GraphCycleError: as for `submit_graph`.
            ObjectNotFoundError: as for `submit_graph`.
            ClientClosedError: the client is disconnected.
        """
        return graphs.get(self, graph, keys)


def parse_send_object(first: Any, second: Any, name: Any) -> tuple[str, Any]:
    """Return the name and the object that `send_object` was given.

    Raises:
        TypeError: the name is not a string, or there are two names.
        ValueError: UTF-8 cannot encode the name.
    """
    value = first
    if second is not NOT_GIVEN:
        if name:
            raise TypeError(f"the object has two names: {first!r} and {name!r}")
        name, value = first, second
    if not isinstance(name, str):
        raise TypeError(f"an object's name must be a string, not {name!r}")
    return checked_text("an object's name", name), value


def shutdown_scheduler(client: Submitter) -> None:
    """Ask the scheduler to shut itself and its clusters down, and wait for the answer.

    Raises:
        ProtectedSchedulerError: the scheduler does not let clients shut it down.
        ClientClosedError: the client is disconnected.
    """
    answered = slot_wait.Event(client._io_thread)
    refusals = request_shutdown(client._io_thread, answered.set)
    answered.wait()
    raise_if_refused(refusals)


def request_shutdown(io_thread: IoThread, on_answer: Callable[[], None]) -> list[str]:
    """Ask the scheduler to shut down.

    Args:
        on_answer: called by the I/O thread when the answer has arrived.

    Returns:
        A list that holds the text of the refusal once `on_answer` was called; empty if the scheduler agrees.

    Raises:
        ClientClosedError: the client is disconnected.
    """
    refusals: list[str] = []

    def answered(refusal: str | None) -> None:
        if refusal is not None:
            refusals.append(refusal)
        on_answer()

    io_thread.call_soon(lambda session: session.shut_down(answered))
    return refusals


def raise_if_refused(refusals: list[str]) -> None:
    """Raise ProtectedSchedulerError if the list holds a refusal."""
    if refusals:
        raise ProtectedSchedulerError(refusals[0])
