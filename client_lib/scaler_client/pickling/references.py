"""References to objects, results and graph nodes, which stand in the arguments of a call in place of their values.

While arguments are pickled, an `InputCollector` numbers the references in them. Reference k pickles to a call of
`load_input(k)`, which the worker's unpickling replaces by the value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from ..errors import ObjectNotFoundError
from ..protocol.messages import Outcome, Payload, TaskAttempt
from .input_lookup import load_input, load_shared_input, load_value

MAX_INPUTS = 1 << 20
"""The most inputs of a call, by the protocol."""


class StoredObject:
    """An object in the client's session. The scheduler keeps it until its last reference is deleted.

    Args:
        name: for display; may be empty.
        frames: the object's frames.
        parent: the task that has sent it; None: it was sent outside of tasks.
        is_arguments: whether it is among the arguments of calls, and the user has no reference to it.
        is_shared: whether the tasks of a worker share its value.
    """

    __slots__ = ("frames", "id", "is_arguments", "is_gone", "is_shared", "name", "parent", "size")

    def __init__(
        self,
        name: str,
        frames: Sequence[Payload],
        parent: TaskAttempt | None,
        is_arguments: bool = False,
        is_shared: bool = False,
    ) -> None:
        self.id = -1
        """Its id; -1 until the session sends it."""
        self.name = name
        self.frames = frames
        self.size = sum(map(len, frames))
        self.parent = parent
        """The task that has sent it; None: it was sent outside of tasks."""
        self.is_gone = False
        """Whether the scheduler has dropped it, even if references to it exist."""
        self.is_arguments = is_arguments
        """Whether it is among the arguments of calls, and the user has no reference to it. The calls need it as long as
        they may run (io/large_arguments.py, graphs/rows.py)."""
        self.is_shared = is_shared
        """Whether the tasks of a worker share its value, which none of them changes."""

    def drop(self) -> None:
        """Mark the object as dropped and free its bytes."""

        self.is_gone = True
        self.frames = ()


class ResultProducer(Protocol):
    """The future of a task whose result other tasks read."""

    task_id: int


class InputFailure(NamedTuple):
    """Why a result that a call reads does not exist."""

    function: str
    """The name of the function of the task that failed."""
    task_id: int
    outcome: int
    """A value of `Outcome`."""
    answer: Payload
    """The payload of that outcome."""


class ResultObject(StoredObject):
    """The result of a task as an object that other tasks read.

    While the task is open, the scheduler keeps its result. The I/O thread sends the bytes to a scheduler that does not
    have them: the task had ended before it had a reader, or the scheduler has changed.

    Args:
        name: for display; may be empty.
        producer: the future of the task.
        parent: the task that has submitted this task; None: it was submitted outside of tasks.
    """

    __slots__ = ("failure", "known_in_join", "last_reader", "producer")

    def __init__(self, name: str, producer: ResultProducer, parent: TaskAttempt | None) -> None:
        # The fields of StoredObject too: a call less for each task that is read (benchmarks/chains.py).
        self.id = -1
        self.name = name
        self.frames = ()
        self.size = 0
        self.parent = parent
        self.is_gone = self.is_arguments = self.is_shared = False
        self.producer: ResultProducer | None = producer
        """The future of the task; None: the task has ended."""
        self.failure: InputFailure | None = None
        """How the task ended without a value; None: it did not."""
        self.known_in_join = 0
        """The join (`HeldObjects.joins`) in which the scheduler was told of this object; 0: in none."""
        self.last_reader = -1
        """The newest task that reads it, by id; -1: none was submitted."""

    def set_value(self, frames: Sequence[Payload]) -> None:
        """Take the result of the task."""
        if self.producer is not None:
            self.id = self.producer.task_id
            self.frames = frames
            self.size = sum(map(len, frames))
            self.producer = None

    def set_failure(self, function: str, outcome: int, answer: Payload, task_id: int = -1) -> None:
        """Take the failure of the task.

        Args:
            function: the name of the function of the task that failed first.
            outcome: a value of `Outcome`.
            answer: the payload of that outcome.
            task_id: the task that failed first; -1: the task itself.
        """
        if self.producer is not None:
            self.id = self.producer.task_id
            self.failure = InputFailure(function, self.id if task_id < 0 else task_id, outcome, answer)
            self.producer = None


class ObjectHolder(Protocol):
    """The client's I/O thread, as references to objects see it."""

    @property
    def close_reason(self) -> str:
        """Why the client is closed; empty: it is open."""

    def forget_object(self, stored: StoredObject) -> None:
        """Drop an object without references. The garbage collector calls this, in any thread."""


class ObjectRef:
    """A reference to an object that the scheduler keeps. `Client.send_object` returns it; users do not create it.

    It stands for the object among the arguments of `submit`, `map` and graphs. The object is kept while the reference
    or a task that reads the object exists. A future among arguments has a reference too.
    """

    __slots__ = ("__weakref__", "_io_thread", "_stored")

    def __init__(self, io_thread: ObjectHolder, stored: StoredObject) -> None:
        self._io_thread = io_thread
        self._stored = stored

    def __del__(self) -> None:
        # Not weakref.finalize: it costs 2 us, half as much as a whole submit.
        self._io_thread.forget_object(self._stored)

    @property
    def name(self) -> str:
        """The name from `send_object`; empty: it has none."""
        return self._stored.name

    @property
    def object_id(self) -> int:
        """The object's id; -1 until the session sends the object."""
        return self._stored.id

    @property
    def stored(self) -> StoredObject:
        """The object in the client's session."""
        return self._stored

    def check(self, io_thread: object) -> None:
        """Check that a client may pass this reference.

        Args:
            io_thread: the client's I/O thread.

        Raises:
            ObjectNotFoundError: the object is not kept any more.
            ValueError: the reference belongs to another client, which may be closed.
        """
        stored = self._stored
        is_result = isinstance(stored, ResultObject)
        is_own = self._io_thread is io_thread
        what = f"the result of {stored.name}" if is_result else repr(self)
        if stored.is_gone and (is_own or not is_result):
            raise ObjectNotFoundError(f"{what} is not kept any more: its client was cleared or disconnected")
        if not is_own:
            reason = self._io_thread.close_reason
            owner = f"a client that is closed ({reason})" if reason else "another client"
            if not is_result:
                instead = "send the object with this one"
            elif reason and not stored.frames:  # there is no result, or it is lost
                instead = "submit its task with this one"
            else:
                instead = "pass its result()"
            raise ValueError(f"{what} belongs to {owner}: {instead}")

    def __reduce__(self) -> Any:
        return reduced(self)

    def __copy__(self) -> ObjectRef:
        return self

    def __deepcopy__(self, _memo: object) -> ObjectRef:
        return self

    def __repr__(self) -> str:
        named = f" {self._stored.name!r}" if self._stored.name else ""
        return f"<ObjectRef{named}, {self._stored.size:,} bytes{', freed' if self._stored.is_gone else ''}>"


class NodeRef:
    """A reference to the kept result of a graph's node."""

    __slots__ = ("row",)

    def __init__(self, row: int) -> None:
        self.row = row
        """The number of the node in its graph."""

    def check(self, _io_thread: object) -> None:
        """Do nothing: a graph refers only to its own nodes."""

    def __reduce__(self) -> Any:
        return reduced(self)


class StoredInput:
    """What a call has read, for another run of this call. Unlike a reference, it does not keep the object."""

    __slots__ = ("stored",)

    def __init__(self, stored: StoredObject) -> None:
        self.stored = stored

    @property
    def object_id(self) -> int:
        """The object's id."""
        return self.stored.id

    def check(self, _io_thread: object) -> None:
        """Do nothing: only the session makes such inputs."""

    def __reduce__(self) -> Any:
        return reduced(self)


Reference = ObjectRef | NodeRef | StoredInput
REFERENCES = frozenset({ObjectRef, NodeRef})
STAND_INS: dict[type, Callable[[Any, InputCollector], ObjectRef | bytes]] = {}
"""Types whose values stand for a result in arguments: futures. The function returns the reference to the result, or its
pickle if the client has it and it is small. Its second argument is the collector of the call."""


class CallWithInputs(tuple[Any, ...]):
    """A call that reads objects.

    A single tuple: the garbage collector visits each object that can hold others, and that was half of what it cost to
    submit a task that reads a result (benchmarks/chains.py).

    Args:
        data: the payload of the call.
        inputs: what the call reads, by position. Integers are ids.
        keep: a value of `Keep`.
    """

    __slots__ = ()

    def __new__(cls, data: Payload, inputs: Iterable[Reference | int], keep: int = 0) -> CallWithInputs:
        return tuple.__new__(cls, (data, keep, *inputs))

    @property
    def data(self) -> Payload:
        """The payload of the call."""
        return self[0]  # type: ignore[no-any-return]

    @property
    def keep(self) -> int:
        """A value of `Keep`."""
        return self[1]  # type: ignore[no-any-return]

    @property
    def inputs(self) -> tuple[Reference | int, ...]:
        """What the call reads, by position. Integers are ids."""
        return self[2:]

    def input_ids(self) -> list[int]:
        """Return the ids of all inputs. All objects among them must have their ids."""
        return [each if type(each) is int else each.object_id for each in self[2:]]


Call = Payload | CallWithInputs
"""What a call sends: a plain payload if it reads nothing."""


def call_payload(call: Call) -> Payload:
    """Return the payload of a call."""
    return call.data if type(call) is CallWithInputs else call  # type: ignore[return-value]


class _Collecting(threading.local):
    collector: InputCollector | None = None


_collecting = _Collecting()


ResultLoaders = tuple[Callable[[bytes], Any], Callable[[int], Any]]
"""The functions that return the result of a task when a reference to it is unpickled. The first takes the pickle of the
result, the second takes the number of the input."""


class InputCollector:
    """Numbers the references in the arguments of one call, while the calling thread pickles these arguments.

    Args:
        io_thread: the I/O thread of the client that calls.
        serializer: the client's own serializer; None: cloudpickle.
        shares_inputs: whether the tasks of a worker share the values of all inputs of this call.
    """

    __slots__ = ("_outer", "_positions", "io_thread", "problem", "result_loaders", "serializer", "shares_inputs")

    _outer: InputCollector | None
    """The collector of the call in whose arguments this call is pickled."""

    def __init__(self, io_thread: object, serializer: object = None, shares_inputs: bool = False) -> None:
        self.io_thread = io_thread
        self.serializer = serializer
        self.shares_inputs = shares_inputs
        self.problem: Exception | None = None
        """Why a reference can't be passed. The user gets this error instead of pickle's error."""
        self.result_loaders: ResultLoaders | None = None
        """How results are loaded that are no plain pickles; None: they are."""
        self._positions: dict[Reference, int] = {}

    @property
    def inputs(self) -> Sequence[Reference]:
        """The references, by position."""
        return tuple(self._positions)

    def position(self, reference: Reference) -> int:
        """Return the number of a reference's input.

        Raises:
            ObjectNotFoundError: the object is not kept any more.
            ValueError: the reference belongs to another client, or there are too many inputs.
        """
        position = self._positions.get(reference)
        if position is None:
            try:
                reference.check(self.io_thread)
                if len(self._positions) == MAX_INPUTS:
                    raise ValueError(f"a call can't refer to more than {MAX_INPUTS:,} objects and nodes")
            except Exception as error:
                self.problem = error
                raise
            position = self._positions[reference] = len(self._positions)
        return position

    def place(self, value: Any) -> int | bytes:
        """Return what stands for a reference or a future in the pickle: the number of its input, or the pickle of its
        value.

        Raises:
            ObjectNotFoundError: the object is not kept any more.
            TypeError: the future's result can't be an argument.
            ValueError: the reference belongs to another client, or there are too many inputs.
        """
        stand_in = STAND_INS.get(type(value))
        if stand_in is None:
            return self.position(value)
        try:
            found = stand_in(value, self)
        except Exception as error:
            self.problem = error
            raise
        return found if type(found) is bytes else self.position(found)  # type: ignore[arg-type]

    def call(self, data: bytes) -> Call:
        """Return the call.

        Args:
            data: the pickle of its arguments.
        """
        # Not by `__new__`: a call less for each task that reads results (benchmarks/chains.py).
        return tuple.__new__(CallWithInputs, (data, 0, *self._positions)) if self._positions else data

    def __enter__(self) -> InputCollector:
        self._outer, _collecting.collector = _collecting.collector, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _collecting.collector = self._outer


def reads_results(inputs: Iterable[Reference | int]) -> bool:
    """Return whether results of other tasks are among what calls read."""
    return any(read_result(each) is not None for each in inputs)


def read_result(each: Reference | int) -> ResultObject | None:
    """Return the result of another task that stands among what a call reads; None: this is something else."""
    if type(each) is ObjectRef or type(each) is StoredInput:
        stored = each.stored
        return stored if isinstance(stored, ResultObject) else None
    return None


def input_failure(inputs: Iterable[Reference | int], outcome: int, answer: Payload) -> InputFailure | None:
    """Return the failure of a result that a failed call reads, if it is the cause of the call's failure.

    Args:
        inputs: what the call reads.
        outcome: the outcome of the call.
        answer: the payload of that outcome.
    """
    for each in inputs:
        stored = read_result(each)
        if stored is not None:
            failure = stored.failure
            if failure is not None and (outcome == Outcome.INPUT_LOST or failure[2:] == (outcome, answer)):
                return failure
    return None


def is_collecting() -> bool:
    """Return whether this thread pickles the arguments of a call."""
    return _collecting.collector is not None


def reduced(value: Any) -> Any:
    """Return what `__reduce__` returns for a reference, or for a future.

    Raises:
        TypeError: this thread does not pickle the arguments of a call.
    """
    collector = _collecting.collector
    if collector is None:
        is_future = type(value) in STAND_INS
        what, instead = ("a future", "; elsewhere pass its result()") if is_future else ("a reference", "")
        where = "the arguments of submit, map and graphs"
        raise TypeError(f"{value!r} can't be pickled: {what} is for {where}{instead}")
    place = collector.place(value)
    loaders = collector.result_loaders
    if loaders is None or (type(value) is ObjectRef and read_result(value) is None):
        is_shared = collector.shares_inputs or (type(value) is ObjectRef and value.stored.is_shared)
        loaders = load_value, load_shared_input if is_shared else load_input
    of_value, of_input = loaders
    return of_value if type(place) is bytes else of_input, (place,)
