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
"""Of one call, by the protocol."""


class StoredObject:
    """An object as the client's session knows it: it is kept until nothing refers to it any more."""

    __slots__ = ("frames", "id", "is_gone", "name", "parent", "size")

    def __init__(self, name: str, frames: Sequence[Payload], parent: TaskName | None) -> None:
        self.id = -1
        """Given when it is handed over."""
        self.name = name
        self.frames = frames
        self.size = sum(map(len, frames))
        self.parent = parent
        """The task that has sent it, where one has."""
        self.is_gone = False
        """Whether the scheduler keeps it no more, whoever refers to it."""

    def drop(self) -> None:
        self.is_gone = True
        self.frames = ()


class ObjectHolder(Protocol):
    """The client's I/O thread, as its references to objects see it."""

    def forget_object(self, stored: StoredObject) -> None:
        """Nothing refers to this object any more. The garbage collector calls this, in any thread."""


class ObjectRef:
    """A reference to an object that the scheduler keeps; made by `Client.send_object`, never by users.

    It stands for the object among the arguments of `submit`, `map` and graphs. The object is kept as long as there is
    the reference, or a task that reads it.
    """

    __slots__ = ("__weakref__", "_io_thread", "_stored")

    def __init__(self, io_thread: ObjectHolder, stored: StoredObject) -> None:
        self._io_thread = io_thread
        self._stored = stored
        weakref.finalize(self, io_thread.forget_object, stored).atexit = False

    @property
    def name(self) -> str:
        """What `send_object` was given as its name; empty where it was given none."""
        return self._stored.name

    @property
    def object_id(self) -> int:
        """Once it is handed over."""
        return self._stored.id

    def check(self, io_thread: object) -> None:
        """Raise where a client with this io_thread can't refer to the object."""
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
    """A reference to the result of a graph's node, which is kept."""

    __slots__ = ("row",)

    def __init__(self, row: int) -> None:
        self.row = row
        """The node's, within its graph."""

    def check(self, _io_thread: object) -> None:
        """A graph names none but its own."""

    def __reduce__(self) -> Any:
        return _reduced(self)


Reference = Union[ObjectRef, NodeRef]
REFERENCES = frozenset({ObjectRef, NodeRef})


class CallWithInputs(bytes):
    """A call's payload that reads objects."""

    inputs: Sequence[Reference | int] = ()
    """What it reads, by position; ints are ids."""
    keep = 0
    """Keep's."""

    def input_ids(self) -> list[int]:
        """Once all that it reads is handed over."""
        return [each if type(each) is int else each.object_id for each in self.inputs]  # type: ignore[union-attr]


def call_with_inputs(payload: Payload, inputs: Sequence[Reference | int], keep: int = 0) -> CallWithInputs:
    """The payload of a call that reads these."""
    call = CallWithInputs(payload)
    call.inputs = inputs
    call.keep = keep
    return call


class _Collecting(threading.local):
    collector: InputCollector | None = None


_collecting = _Collecting()


class InputCollector:
    """Notes what the arguments of one call refer to, while the calling thread pickles them.

    Args:
        io_thread: of the client whose call it is.
    """

    def __init__(self, io_thread: object) -> None:
        self.inputs: list[Reference] = []
        self.problem: Exception | None = None
        """Why a reference can't be passed: whatever pickling makes of it, this is what the user is to read."""
        self._io_thread = io_thread
        self._positions: dict[Reference, int] = {}
        self._outer: InputCollector | None = None

    def position(self, reference: Reference) -> int:
        """Which input it is.

        Raises:
            ObjectNotFoundError: the object is gone.
            ValueError: it is another client's, or there are too many.
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
        """The call's payload, from the pickle of its arguments."""
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
