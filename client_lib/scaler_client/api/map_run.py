"""A running `map`: packs its calls for the I/O thread, and reads its results."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import ClientClosedError, SerializerError
from ..futures.failure_origin import cancellation_text, cancelled_error, input_origin, read_answer
from ..futures.kept_results import KeptFuture
from ..pickling.call_rows import (
    MAX_BLOCK_BYTES,
    MAX_CALLS,
    CallBlock,
    PackedCalls,
    PackError,
    RowAnswer,
    pack_calls,
    pack_immutable,
)
from ..pickling.functions import Function
from ..pickling.load_failures import add_note
from ..pickling.references import Call, call_payload, reads_results
from ..protocol.messages import Options, Outcome, Payload, TaskAttempt
from ..session.map_feed import ROW_NS, ChangeEvent, MapFeed
from .progress import ProgressBar

if TYPE_CHECKING:
    from ..io.io_thread import IoThread

T = TypeVar("T")

Arguments = tuple[Any, ...] | list[Any]
"""The positional arguments of one call."""

DumpCall = Callable[[tuple[Any, ...], Mapping[str, Any]], Call]

_TUPLES = frozenset({tuple})

FIRST_CALLS = 64
"""The calls that are sent one by one, before a run time is known."""

_UNKNOWN_CALLS = 16
"""The calls of each later block while no run time is known."""

_CALLS_AHEAD = 1 << 17
"""The most calls that `map` packs ahead of those that were submitted. More would only cost memory."""

HANDOVER_BLOCKS = 4
"""The most blocks that are handed to the I/O thread together."""


@dataclass(frozen=True)
class MapPlan(Generic[T]):
    """The checked arguments of a `map`."""

    function: Function
    dump_call: DumpCall
    iterable: Iterable[Arguments]
    """The arguments of each task."""
    options: Options | None
    parent: TaskAttempt | None
    """The task that submits them; None outside of tasks."""
    progress: bool = False
    """Whether to show a progress bar."""
    row_calls: int | None = None
    """A fixed number of calls for each row; None: by their run time."""
    can_retry: bool = False
    """Whether a call is run again after certain exceptions (`retry_on`)."""
    keep: bool = False
    """Whether results stay on their hosts."""
    shares_inputs: bool = False
    """Whether the tasks of a worker share the values of their inputs."""
    client: object = None
    """The client. A map keeps it: a client without references disconnects."""

    @property
    def can_pack(self) -> bool:
        """Whether a row may stand for several calls.

        Options that apply to each call separately need a row for each call: a time limit, retries, a profile, output.
        Kept results need it too, because they are freed and made again one by one. Custom serializers and functions in
        other languages need it, because their payloads have forms of their own.
        """
        options = self.options
        return (self.function.answers_pickles and not (self.can_retry or self.keep)) and (
            options is None
            or not (
                options.timeout_milliseconds
                or options.retries >= 0
                or options.profiling
                or options.stream_output
                or options.limits
                or options.release_resources  # else the first call would release those of the others
            )
        )


class CallPacker:
    """Makes blocks of calls.

    Args:
        io_thread: the I/O thread of the client that calls.
        plan: the arguments of the map.
    """

    def __init__(self, io_thread: object, plan: MapPlan[Any]) -> None:
        self._io_thread = io_thread
        self._plan = plan
        self._calls = iter(plan.iterable)
        self._gives_equal_tuples = type(plan.iterable) is zip
        """Whether all items are tuples of one length, so that none needs to be checked or kept."""
        self._call_bytes = 0.0
        """The mean packed size of a call in the newest block; 0: not known."""
        self.count = 0
        """The number of calls that were packed."""

    def next_blocks(self, limit: int = MAX_CALLS) -> list[CallBlock]:
        """Return the next calls, at most `limit`. An empty list: there are no more.

        Raises:
            TypeError: an item is no tuple or list, or can't be pickled; the text names it.
        """
        wanted = min(limit, self._wanted_calls())
        items: list[Any]
        if self._gives_equal_tuples and self._may_pack:
            arity, values = self._next_values(wanted)
            packed = pack_immutable(arity, values) if values else None
            blocks = None if packed is None else self._block(packed, len(values) // arity)
            if blocks is not None:
                return blocks
            items = list(zip(*[iter(values)] * arity, strict=True))
        else:
            items = list(islice(self._calls, wanted))
        if not items:
            return []
        if not _TUPLES.issuperset(map(type, items)):
            items = [_as_tuple(each, self.count + position) for position, each in enumerate(items)]
        return self._pack(items)

    def _next_values(self, wanted: int) -> tuple[int, list[Any]]:
        """Return the number of arguments of the next calls, and the arguments, one after another.

        `zip` uses its tuple again if nobody keeps it. So no tuple is made for a call: a tuple costs more than the
        packing (`make bench ONLY=map`).
        """
        calls: Iterator[Any] = self._calls
        first = next(calls, ())
        values = list(first)
        if len(values) == 1:
            values += [value for (value,) in islice(calls, wanted - 1)]  # half the time of `chain`
        else:
            values += chain.from_iterable(islice(calls, wanted - 1))
        return len(first), values

    @property
    def _may_pack(self) -> bool:
        """Whether the next calls may go into one block."""
        return self._plan.can_pack and self._call_bytes <= MAX_BLOCK_BYTES

    def _wanted_calls(self) -> int:
        plan = self._plan
        if not plan.can_pack:
            return MAX_CALLS
        if plan.row_calls is not None:
            count = min(plan.row_calls, MAX_CALLS)
        else:
            mean_ns = plan.function.call_time.mean_ns
            if mean_ns:
                count = min(ROW_NS // mean_ns, MAX_CALLS)
            else:
                count = 1 if self.count < FIRST_CALLS else _UNKNOWN_CALLS
        if self._call_bytes:
            count = min(count, int(MAX_BLOCK_BYTES / self._call_bytes))
        return max(1, count)

    def _pack(self, calls: list[tuple[Any, ...]]) -> list[CallBlock]:
        blocks = None
        if self._may_pack:
            try:
                packed = pack_calls(self._io_thread, calls, self._plan.shares_inputs)
            except PackError as error:
                raise self._named(error.position, error.error) from error.error.__cause__
            if reads_results(packed.inputs):
                return self._pack_one_by_one(calls)  # a call fails alone if one of its inputs fails
            blocks = self._block(packed, len(calls))
        return self._pack_one_by_one(calls) if blocks is None else blocks

    def _block(self, packed: PackedCalls, count: int) -> list[CallBlock] | None:
        """Return the block of these calls. None: they are too large for one, unexpectedly."""
        self._call_bytes = packed.size / count
        if packed.size > 4 * MAX_BLOCK_BYTES:
            return None
        self.count += count
        return [CallBlock(self.count - count, count, packed)]

    def _pack_one_by_one(self, calls: list[tuple[Any, ...]]) -> list[CallBlock]:
        blocks = []
        size = 0
        for position, call in enumerate(calls):
            try:
                payload = self._plan.dump_call(call, {})
            except TypeError as error:
                raise self._named(position, error) from error.__cause__
            size += len(call_payload(payload))
            blocks.append(CallBlock(self.count + position, 1, payload, self._kept(payload)))
        self._call_bytes = size / len(calls)
        self.count += len(calls)
        return blocks

    def _kept(self, payload: Call) -> KeptFuture[Any] | None:
        """Return the future of a call whose result stays on its host."""
        plan = self._plan
        if not plan.keep:
            return None
        io_thread: Any = self._io_thread
        return KeptFuture(io_thread, plan.function, payload, options=plan.options, parent=plan.parent)

    def _named(self, position: int, error: Exception) -> Exception:
        if not isinstance(error, TypeError):
            return error
        kind = SerializerError if isinstance(error, SerializerError) else TypeError
        return kind(f"item {self.count + position}: {error}")


class MapRun(Generic[T]):
    """A running `map`: hands blocks of calls over, and reads their results in order.

    Args:
        io_thread: the I/O thread that the calls are handed to.
        plan: the arguments of the map.
        changed: set by the I/O thread when awaited results are there, or a call has failed.
        fails_fast: whether the failure of any call ends the run at once. Otherwise the results before it come first.
        runs_all: whether the calls behind a failed one run too.
        bar: shows how many calls are done; None: no bar.
    """

    def __init__(
        self,
        io_thread: IoThread,
        plan: MapPlan[T],
        changed: ChangeEvent,
        fails_fast: bool,
        bar: ProgressBar | None = None,
        *,
        runs_all: bool = False,
    ) -> None:
        self.feed = MapFeed(plan.function, plan.options, plan.parent, changed, plan.row_calls, runs_all)
        self.has_all = False
        """Whether all calls were handed over."""
        self.is_adaptive = plan.row_calls is None
        """Whether the number of calls of a row depends on their run time."""
        self._io_thread = io_thread
        self._function = plan.function
        self._packer = CallPacker(io_thread, plan)
        self._fails_fast = fails_fast
        # One wake-up for several blocks: this thread and the I/O thread share the interpreter.
        self._stride = 2 * HANDOVER_BLOCKS if fails_fast else 1
        self._bar = bar
        self._blocks: deque[CallBlock] = deque()
        """Blocks whose results were not read."""
        self._is_failing = False
        """Whether the results in front of the failed call were read."""

    @property
    def count(self) -> int:
        """The number of calls that were handed over."""
        return self._packer.count

    @property
    def is_over(self) -> bool:
        """Whether all results were read."""
        return self.has_all and not self._blocks

    def submit(self) -> Iterator[bool]:
        """Hand all calls over, not far ahead of those that were submitted.

        Yields after each part: whether the caller should wait for `changed`.
        """
        feed = self.feed
        while not self.has_all and not feed.has_failed:
            self.submit_some(MAX_CALLS)
            self.show()
            yield False
            while self.count - feed.submitted > _CALLS_AHEAD and not feed.has_failed:
                feed.changed.clear()
                feed.wanted_submitted = self.count - _CALLS_AHEAD // 2
                if feed.submitted < feed.wanted_submitted and not feed.has_failed:
                    self._io_thread.check_can_wait()
                    yield True
                    self.show()
        if self._bar is not None and self.has_all:
            self._bar.show_total(self.count)

    def submit_some(self, limit: int) -> None:
        """Hand the next calls over, at most `limit`."""
        blocks: list[CallBlock] = []
        end = self.count + limit
        while len(blocks) < HANDOVER_BLOCKS and self.count < end:
            more = self._packer.next_blocks(end - self.count)
            if not more:
                self.has_all = True
                break
            blocks += more
        self._blocks += blocks
        self._io_thread.submit_calls(self.feed, blocks, self.has_all)

    def await_run_time(self) -> bool:
        """Have `changed` set when the first result is there. Return whether that result tells a new run time."""
        block = self._blocks[0]
        self.feed.awaited = block
        return not block.is_plain and not self._function.call_time.mean_ns and block.left > 0

    def poll(self) -> list[T] | None:
        """Return the next results. None: the caller should wait for `changed`, which it has cleared before this call.

        Raises:
            BaseException: the exception of the next call, or with `fails_fast` of any call.
        """
        feed, blocks = self.feed, self._blocks
        if feed.error is not None or (self._fails_fast and feed.failure is not None):
            raise self._failure()
        ahead = list(islice(blocks, self._stride))
        for block in reversed(ahead):
            feed.awaited = block
            if block.left:
                break
        else:
            values: list[T] = []
            feed.awaited = None  # a kept result is freed with its future
            for block in ahead:
                values += self._read(block)
                blocks.popleft()
            return values
        if feed.failure is not None and not self._fails_fast:
            return self._poll_before_failure(blocks[0])
        self._io_thread.check_can_wait()
        return None

    def poll_any(self) -> list[T] | None:
        """As `poll`, for results in the order in which they come."""
        feed = self.feed
        if feed.ready:
            block, begin, count, answer = feed.ready.popleft()
            self._blocks = deque(each for each in self._blocks if each.left) if not block.left else self._blocks
            return self._values(block, begin, count, answer)
        if feed.has_failed:
            raise self._failure()
        self._io_thread.check_can_wait()
        return None

    def _poll_before_failure(self, block: CallBlock) -> list[T] | None:
        """Return the results of a block in front of its failed call, once; then raise the failure."""
        position = self.feed.failure.position - block.first  # type: ignore[union-attr]
        if position >= block.count:
            return None  # a later block has failed: this one is still to come
        answers = sorted(answer for answer in block.answers if answer[0] < position)
        if sum(count for _, count, _ in answers) < position:
            return None
        if self._is_failing or not answers:
            raise self._failure()
        self._is_failing = True
        return [value for begin, count, answer in answers for value in self._values(block, begin, count, answer)]

    def cancel_rest(self, force: bool = False) -> None:
        """Cancel the calls that have not begun. `force`: stop the others too."""
        if self.feed.answered < self.count or not self.has_all:
            self.has_all = True
            try:
                self._io_thread.cancel_many(self.feed.open_ids, force=force)
            except ClientClosedError:
                pass  # closing the client has cancelled them

    def show(self) -> None:
        """Show the progress."""
        if self._bar is not None:
            self._bar.show(self.feed.answered)

    def _read(self, block: CallBlock) -> list[T]:
        answers = block.answers
        if len(answers) > 1:
            answers.sort()
        values: list[T] = []
        for begin, count, answer in answers:
            values += self._values(block, begin, count, answer)
        return values

    def _values(self, block: CallBlock, begin: int, count: int, answer: Payload) -> list[T]:
        """Unpickle results. If a result stays on its host, return its future.

        Raises:
            Exception: a result can't be unpickled; the error names its item.
        """
        if block.kept is not None:
            return [block.kept]
        values: list[T] = []
        if not block.is_plain:
            answers = RowAnswer(answer).payloads()
            if answers is None:
                return RowAnswer(answer).values()
        else:
            answers = [answer]
        for payload in answers:
            value, error = self._function.read_answer(Outcome.VALUE, payload)
            if error is not None:
                self._name_item(error, block.first + begin + len(values))
                raise error
            values.append(value)
        return values

    def _failure(self) -> BaseException:
        """Return the exception of the failed call that is first in the map."""
        feed = self.feed
        if feed.error is not None:  # first: calls in front of a failed one may have no answer
            return feed.error
        failure = feed.failure
        assert failure is not None
        name = "" if feed.options is None else feed.options.name
        task = f"{name or self._function.name}#{failure.task_id}"
        origin = None if failure.failed_input is None else input_origin(failure.failed_input, lambda: task)
        error: BaseException | None
        if failure.outcome == Outcome.CANCELLED:
            if self._io_thread.is_closed:
                return ClientClosedError("the client was disconnected during map")
            if origin is None:
                return CancelledError("the map's tasks were cancelled")
            error = cancelled_error(origin, cancellation_text(origin, task))
        else:
            _, error = read_answer(self._function, failure.outcome, failure.payload, task, origin)
            assert error is not None
        self._name_item(error, failure.position)
        return error

    def _name_item(self, error: BaseException, position: int) -> None:
        add_note(error, f"of item {position} of map")


def _as_tuple(arguments: Any, position: int) -> tuple[Any, ...]:
    # Other iterables are rejected: a dict would pass its keys as arguments, an array the elements of its rows.
    if isinstance(arguments, (tuple, list)):
        return tuple(arguments)
    raise TypeError(
        f"map needs a tuple of arguments for each call; item {position} is {type(arguments).__name__}: "
        f"{reprlib.repr(arguments)}. To pass each item as the only argument, make it a tuple, (item,), or use "
        "client.executor().map(fn, items)"
    )
