"""What a client offers beside calls: objects that the scheduler keeps, and graphs of tasks."""

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


@as_client_members
class DataApi(Submitter):
    """The part of a client that makes the scheduler keep values."""

    @overload
    def send_object(self, obj: Any, /, *, name: str = "") -> ObjectRef: ...

    @overload
    def send_object(self, name: str, obj: Any, /) -> ObjectRef: ...

    def send_object(self, first: Any, second: Any = NOT_GIVEN, /, *, name: str = "") -> ObjectRef:
        """Have the scheduler keep an object, and hosts that tasks read it on: `send_object(obj)`,
        `send_object("name", obj)` or `send_object(obj, name="name")`.

        It goes to the scheduler once, and once to each host. Arrays, and whatever else pickles to buffers, are not
        copied here, and are read-only in tasks; they must not be changed as long as there is the reference.

        Returns:
            Its reference, for the arguments of `submit`, `map` and graphs. When there is none any more, and no task
            that reads it, the object is freed everywhere.

        Raises:
            TypeError: it can't be pickled, or the name is no string.
            ValueError: UTF-8 can't encode the name.
            MessageTooLargeError: it has more bytes in one frame than the scheduler takes.
            ClientClosedError: the client is disconnected.
        """
        name, value = parse_send_object(first, second, name)
        task = self._current_task()
        return objects.send_object(self._io_thread, value, name, self._serializer, None if task is None else task.name)

    def submit_graph(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> list[TaskFuture[Any]]:
        """Have a graph's nodes run on the workers, as far as these keys need them.

        Args:
            graph: a dict of keys, which are whatever is hashable, and nodes. A node is a tuple of a function and its
                arguments, the name of another node, or a value. In arguments, keys stand for their nodes' values, in
                lists, tuples and dicts as well, and tuples that begin with a function for what it returns. What nodes
                read of one another is shared by the workers of a host, where it is large: arrays are read-only.
            keys: what is asked for.

        Returns:
            A future for each key.

        Raises:
            TypeError: the graph is no dict, or a node can't be pickled; the text names it.
            ValueError: a key is not in the graph, or, as `graphlib.CycleError`, nodes need one another in a circle; the
                text names them.
            ObjectNotFoundError: a node reads an object that is not kept any more.
            ClientClosedError: the client is disconnected.
        """
        return graphs.submit_graph(self, graph, keys)

    def get(self, graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of a graph's keys, as a dict. Takes, and raises, what `submit_graph` does.

        Raises:
            BaseException: what the first node that fails has raised; what has not begun is then cancelled.
        """
        return graphs.get(self, graph, keys)


def parse_send_object(first: Any, second: Any, name: Any) -> tuple[str, Any]:
    """What `send_object` was given.

    Raises:
        TypeError: the name is no string, or there are two.
        ValueError: UTF-8 can't encode the name.
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
    """End the scheduler and its clusters; returns when it is going.

    Raises:
        ProtectedSchedulerError: it is not to be ended by clients.
        ClientClosedError: the client is disconnected.
    """
    answered = slot_wait.make_event(client._io_thread)
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
    """Raise ProtectedSchedulerError where there is one."""
    if refusals:
        raise ProtectedSchedulerError(refusals[0])
