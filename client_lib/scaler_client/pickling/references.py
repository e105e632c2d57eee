"""References to objects and graph nodes, which stand in the arguments of a call in place of their values.

While arguments are pickled, an `InputCollector` numbers the references in them. Reference k pickles to a call of
`load_input(k)`, which the worker's unpickling replaces by the value.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Union

from ..errors import ObjectNotFoundError
from ..protocol.messages import Payload, TaskName
from .input_lookup import load_input

MAX_INPUTS = 1 << 20
"""The most inputs of a call, by the protocol."""


class StoredObject:
    """An object in the client's session. The scheduler keeps it until nothing refers to it any more.

    Args:
        name: for display; may be empty.
        frames: the object's frames.
        parent: the task that has sent it; None: it was sent outside of tasks.
    """

    __slots__ = ("frames", "id", "is_gone", "name", "parent", "size")

    def __init__(self, name: str, frames: Sequence[Payload], parent: TaskName | None) -> None:
        self.id = -1
        """Its id; -1 until the session sends it."""
        self.name = name
        self.frames = frames
        self.size = sum(map(len, frames))
        self.parent = parent
        """The task that has sent it; None: it was sent outside of tasks."""
        self.is_gone = False
        """Whether the scheduler has dropped it, even if references to it exist."""

    def drop(self) -> None:
        """Mark the object as gone and free its bytes."""
        self.is_gone = True
        self.frames = ()


class ObjectHolder(Protocol):
    """The client's I/O thread, as references to objects see it."""

    def forget_object(self, stored: StoredObject) -> None:
        """Drop an object that nothing refers to any more. The garbage collector calls this, in any thread."""


class ObjectRef:
    """A reference to an object that the scheduler keeps. `Client.send_object` returns it; users do not create it.

    It stands for the object among the arguments of `submit`, `map` and graphs. The object is kept while the reference
    exists, or a task that reads the object.
    """

    __slots__ = ("__weakref__", "_io_thread", "_stored")

    def __init__(self, io_thread: ObjectHolder, stored: StoredObject) -> None:
        self._io_thread = io_thread
        self._stored = stored
        weakref.finalize(self, io_thread.forget_object, stored).atexit = False

    @property
    def name(self) -> str:
        """The name from `send_object`; empty: it has none."""
        return self._stored.name

    @property
    def object_id(self) -> int:
        """The object's id; -1 until the session sends the object."""
        return self._stored.id

    def check(self, io_thread: object) -> None:
        """Check that a client may pass this reference.

        Args:
            io_thread: the client's I/O thread.

        Raises:
            ObjectNotFoundError: the object is not kept any more.
            ValueError: the reference belongs to another client.
        """
        if self._stored.is_gone:
            raise ObjectNotFoundError(f"{self!r} is not kept any more: its client was cleared or disconnected")
        if self._io_thread is not io_thread:
            raise ValueError(f"{self!r} belongs to another client: send the object with this one")

    def __reduce__(self) -> Any:
        return _reduced(self)

    def __copy__(self) -> ObjectRef:
        return self

    def __deepcopy__(self, _memo: object) -> ObjectRef:
        return self

    def __repr__(self) -> str:
        named = f" {self._stored.name!r}" if self._stored.name else ""
        return f"<ObjectRef{named}, {self._stored.size:,} bytes{', gone' if self._stored.is_gone else ''}>"


class NodeRef:
    """A reference to the kept result of a graph's node."""

    __slots__ = ("row",)

    def __init__(self, row: int) -> None:
        self.row = row
        """The number of the node in its graph."""

    def check(self, _io_thread: object) -> None:
        """Do nothing: a graph refers only to its own nodes."""

    def __reduce__(self) -> Any:
        return _reduced(self)


Reference = Union[ObjectRef, NodeRef]
REFERENCES = frozenset({ObjectRef, NodeRef})


class CallWithInputs(bytes):
    """The payload of a call that reads objects."""

    inputs: Sequence[Reference | int] = ()
    """What the call reads, by position. Integers are ids."""
    keep = 0
    """A value of `Keep`."""

    def input_ids(self) -> list[int]:
        """Return the ids of all inputs. All objects among them must have their ids."""
        return [each if type(each) is int else each.object_id for each in self.inputs]  # type: ignore[union-attr]


def call_with_inputs(payload: Payload, inputs: Sequence[Reference | int], keep: int = 0) -> CallWithInputs:
    """Return the payload of a call with inputs.

    Args:
        inputs: references or ids, by position.
        keep: a value of `Keep`.
    """
    call = CallWithInputs(payload)
    call.inputs = inputs
    call.keep = keep
    return call


class _Collecting(threading.local):
    collector: InputCollector | None = None


_collecting = _Collecting()


class InputCollector:
    """Numbers the references in the arguments of one call, while the calling thread pickles these arguments.

    Args:
        io_thread: the I/O thread of the client that calls.
    """

    def __init__(self, io_thread: object) -> None:
        self.inputs: list[Reference] = []
        self.problem: Exception | None = None
        """Why a reference can't be passed. The user gets this error, not the one that pickle makes of it."""
        self._io_thread = io_thread
        self._positions: dict[Reference, int] = {}
        self._outer: InputCollector | None = None

    def position(self, reference: Reference) -> int:
        """Return the number of a reference's input.

        Raises:
            ObjectNotFoundError: the object is not kept any more.
            ValueError: the reference belongs to another client, or there are too many inputs.
        """
        position = self._positions.get(reference)
        if position is None:
            try:
                reference.check(self._io_thread)
                if len(self.inputs) == MAX_INPUTS:
                    raise ValueError(f"a call can't refer to more than {MAX_INPUTS:,} objects and nodes")
            except Exception as error:
                self.problem = error
                raise
            position = self._positions[reference] = len(self.inputs)
            self.inputs.append(reference)
        return position

    def payload(self, data: bytes) -> bytes:
        """Return the payload of the call.

        Args:
            data: the pickle of its arguments.
        """
        return call_with_inputs(data, self.inputs) if self.inputs else data

    def __enter__(self) -> InputCollector:
        self._outer, _collecting.collector = _collecting.collector, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _collecting.collector = self._outer


def _reduced(reference: Reference) -> Any:
    collector = _collecting.collector
    if collector is None:
        raise TypeError(f"{reference!r} can't be pickled: a reference is for the arguments of submit, map and graphs")
    return load_input, (collector.position(reference),)
