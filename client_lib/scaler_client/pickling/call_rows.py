"""The payloads of rows that stand for several calls of one function: arguments to a worker, and results back.

`map` packs calls into blocks. A block is a list of pickles, each of some calls. A row is a range of a block's calls: it
carries the pickles that hold them. So a row can be split without pickling anything again.

Values of immutable built-in types go into one pickle for many calls. That costs a tenth of a pickle for each call.
All other values have a pickle of their own: in one pickle, equal objects would stay one object. Calls would share
mutable arguments, and a result that the function changes and returns again would come back as its last state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from struct import Struct
from struct import error as StructError
from typing import Any

from ..protocol.messages import Payload
from . import serializer
from .references import Call, CallWithInputs, InputCollector, Reference

IMMUTABLE_TYPES = frozenset({int, float, str, bytes, bool, complex, type(None)})
"""Types of arguments that calls may share."""

SMALL_RESULT_TYPES = frozenset({int, float, bool, complex, type(None)})
"""Types of results that are pickled together. Text and bytes may be long, so their size must be known."""

MAX_CALLS = 32_768
"""The most calls of a block. In the scheduler, a row costs as much as 3,000 to 7,000 calls that do nothing."""

MAX_BLOCK_BYTES = 192 << 10
"""A block ends at this size."""

CALLS_EACH = 2048
"""The calls of a pickle. Fewer would cost more; with more, a row of few calls would carry many others."""

ROW_LIMIT_NS = 20_000_000
"""A worker ends a row after this time, 2.5 times what clients aim at (`ROW_NS`). So long calls that nobody foresaw do
not wait behind one another on one worker while others are idle."""

PICKLES = 0
"""The form of calls that are pickles of tuples of arguments."""

TUPLES = 1
"""The form of calls that are tuples of arguments."""

SINGLES = 2
"""The form of calls that have one argument each, without a tuple around it."""

_ROW = Struct("<BxxxIII")  # 1: pickles of several calls; arguments of a call; calls to skip; calls
_ANSWER = Struct("<BBxxIQQ")  # 0, form, number of values, run time in nanoseconds, bytes of the values
_TOGETHER = 0
_SEPARATE = 1

_dumps = serializer.dumps
_loads = serializer.loads


@dataclass(frozen=True)
class PackedCalls:
    """The pickled arguments of some calls."""

    calls_each: int
    """The number of calls in each pickle; 0: each is the pickle of one call's tuple. The last one may hold fewer."""
    arity: int
    """The number of arguments of each call, if pickles hold several calls."""
    pickles: list[bytes]
    inputs: Sequence[Reference | int] = ()
    """What the calls read."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return sum(map(len, self.pickles))

    def row(self, begin: int, end: int) -> Call:
        """Return the payload of a row: the calls from `begin` to before `end`."""
        each = self.calls_each or 1
        first = begin // each
        head = _ROW.pack(bool(self.calls_each), self.arity, begin - first * each, end - begin)
        data = b"".join((head, *_joined(self.pickles[first : -(-end // each)])))
        return CallWithInputs(data, self.inputs) if self.inputs else data


class CallBlock:
    """Consecutive calls of a map.

    Args:
        first: the position of the first call in its map.
        count: the number of calls.
        calls: the packed calls, or the plain payload of a single call.
        kept: the future of a single call whose result stays on its host.
    """

    __slots__ = ("answers", "calls", "count", "first", "kept", "left")

    def __init__(self, first: int, count: int, calls: PackedCalls | Call, kept: Any = None) -> None:
        self.first = first
        self.count = count
        self.calls = calls
        self.kept = kept
        self.left = count
        """The number of calls without an answer."""
        self.answers: list[tuple[int, int, Payload]] = []
        """What has come back: number of the first call in this block, number of values, and their bytes."""

    @property
    def is_plain(self) -> bool:
        """Whether the block is a single call in the plain form."""
        return type(self.calls) is not PackedCalls

    def row(self, begin: int, end: int) -> Call:
        """Return the payload of a row: the calls from `begin` to before `end`."""
        calls = self.calls
        return calls.row(begin, end) if isinstance(calls, PackedCalls) else calls


def pack_calls(io_thread: object, calls: Sequence[tuple[Any, ...]], shares_inputs: bool = False) -> PackedCalls:
    """Return the packed arguments of some calls.

    Args:
        io_thread: the I/O thread of the client that calls.
        calls: the positional arguments of each call.
        shares_inputs: whether the tasks of a worker share the values of all inputs of these calls.

    Raises:
        PackError: the arguments of a call can't be pickled.
    """
    if len(set(map(len, calls))) == 1:
        arity = len(calls[0])
        packed = pack_immutable(arity, list(chain.from_iterable(calls))) if arity else PackedCalls(len(calls), 0, [])
        if packed is not None:
            return packed
    pickles: list[bytes] = []
    try:
        collector = InputCollector(io_thread, None, shares_inputs)
        for args in calls:
            pickles.append(serializer.dump_args(args, collector))
        return PackedCalls(0, 0, pickles, collector.inputs)
    except Exception as error:
        raise PackError(len(pickles), error) from error


def pack_immutable(arity: int, values: list[Any]) -> PackedCalls | None:
    """Return packed calls if all their arguments are of IMMUTABLE_TYPES, else None.

    Args:
        arity: the number of arguments of each call, at least 1.
        values: the arguments of all calls, one after another. A flat list: many short-lived objects that can hold
            others would start the garbage collector again and again.
    """
    if not IMMUTABLE_TYPES.issuperset(map(type, values)):
        return None
    step = CALLS_EACH * arity
    pickles = [serializer.dumps_plain(values[begin : begin + step]) for begin in range(0, len(values), step)]
    return PackedCalls(CALLS_EACH, arity, pickles)


class PackError(Exception):
    """The arguments of one call can't be pickled.

    Args:
        position: the number of the call among those that were packed together.
        error: the error of the pickling.
    """

    def __init__(self, position: int, error: Exception) -> None:
        super().__init__(position, error)
        self.position = position
        self.error = error


def row_calls(payload: Payload) -> tuple[int, int, Iterator[Any], Iterator[Any]]:
    """Return the calls of a row, on the worker.

    Returns:
        The form of each call (PICKLES, TUPLES or SINGLES), the number of calls, the calls, and what these are taken
        from: an iterator whose `length_hint` falls with each call that begins.

    Raises:
        Exception: the payload is malformed, or can't be unpickled.
    """
    are_together, arity, begin, count = _ROW.unpack_from(payload)
    pickles = _split(memoryview(payload)[_ROW.size :])
    if not are_together:
        each = iter(pickles)
        return PICKLES, count, each, each
    if not arity:
        nothing = repeat((), count)
        return TUPLES, count, nothing, nothing
    together = list(chain.from_iterable(map(_loads, pickles)))
    values = iter(together[begin * arity : (begin + count) * arity])
    if arity == 1:
        return SINGLES, count, values, values
    return TUPLES, count, zip(*[values] * arity, strict=True), values


def pack_answer(values: list[Any], pickles: list[bytes] | None, run_ns: int, failure: Payload = b"") -> bytes:
    """Return the payload of a row's answer.

    Args:
        values: the results, if all of them are of SMALL_RESULT_TYPES.
        pickles: else the pickles of the results.
        run_ns: the run time of the calls in nanoseconds.
        failure: the payload of the outcome of the call behind these results, if it has failed.
    """
    if pickles is None:
        data = serializer.dumps_plain(values)
        return b"".join((_ANSWER.pack(0, _TOGETHER, len(values), run_ns, len(data)), data, failure))
    data = b"".join(_joined(pickles))
    return b"".join((_ANSWER.pack(0, _SEPARATE, len(pickles), run_ns, len(data)), data, failure))


class RowAnswer:
    """The answer of a row, on the client.

    Args:
        payload: the payload of an outcome that a worker has sent.

    Raises:
        ValueError: the payload is malformed.
    """

    __slots__ = ("_form", "_values", "count", "failure", "run_ns")

    def __init__(self, payload: Payload) -> None:
        try:
            _, self._form, self.count, self.run_ns, size = _ANSWER.unpack_from(payload)
        except StructError as error:
            raise ValueError("a malformed answer of a row of calls") from error
        end = _ANSWER.size + size
        self._values = memoryview(payload)[_ANSWER.size : end]
        self.failure = memoryview(payload)[end:]
        """The payload of the failed call's outcome."""

    def payloads(self) -> Sequence[Payload] | None:
        """Return the pickles of the results; None: they are in one pickle."""
        return None if self._form == _TOGETHER else _split(self._values)

    def values(self) -> list[Any]:
        """Return results that are in one pickle."""
        values: list[Any] = _loads(self._values)
        return values


def has_row_form(payload: Payload) -> bool:
    """Whether an answer's payload has the form of rows. The scheduler's own answers and the client's do not."""
    return len(payload) >= _ANSWER.size and payload[0] == 0


def _joined(pickles: list[bytes]) -> tuple[bytes, ...]:
    """Return the parts of a payload that holds several pickles."""
    count = len(pickles)
    return Struct(f"<{1 + count}I").pack(count, *map(len, pickles)), *pickles


def _split(data: memoryview) -> list[memoryview]:
    (count,) = Struct("<I").unpack_from(data)
    sizes = Struct(f"<{count}I").unpack_from(data, 4)
    ends = list(accumulate(sizes, initial=4 + 4 * count))
    return [data[begin:end] for begin, end in zip(ends, ends[1:])]
