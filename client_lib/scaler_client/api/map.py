"""`Client.map`: many tasks of one function without a future each."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Union

from ..errors import ClientClosedError
from ..nested import slot_wait
from ..pickling import serializer
from ..pickling.functions import Function
from ..pickling.load_failures import add_note, name_task
from ..protocol.messages import Options, Outcome, Payload, TaskName
from ..session.result_sinks import CHUNK_ROWS
from .progress import REFRESH_SECONDS, ProgressBar, progress_bar

if TYPE_CHECKING:
    from ..io.io_thread import IoThread

T = TypeVar("T")


class ChangeEvent(Protocol):
    """What whoever runs a `map` waits for."""

    def set(self) -> None:
        """Called by the I/O thread."""

    def clear(self) -> None: ...


class MapProgress:
    """What the I/O thread tells whoever runs a `map`."""

    def __init__(self, changed: ChangeEvent) -> None:
        self.changed = changed
        self.has_failed = False


class MapChunk:
    """Tasks of a map that went to the I/O thread together; the owner of their ids."""

    def __init__(
        self,
        function: Function,
        payloads: list[Payload],
        progress: MapProgress,
        options: Options | None = None,
        parent: TaskName | None = None,
    ) -> None:
        self.first = -1
        self.options = options
        self.parent = parent
        self.answers: list[Payload | None] = [None] * len(payloads)
        self.outcomes: dict[int, int] = {}
        """Those that are not plain values, by position."""
        self.error: BaseException | None = None
        self.is_done = False
        self._function = function
        self._payloads = payloads
        self.count = self._left = len(payloads)
        self._progress = progress

    def set_first_id(self, first: int) -> None:
        self.first = first

    def row(self, task_id: int) -> tuple[Function, Payload]:
        return self._function, self._payloads[task_id - self.first]

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        position = task_id - self.first
        if self.answers[position] is not None:
            return False
        self.answers[position] = answer
        if outcome:
            self.outcomes[position] = outcome
            self._signal_failure()
        self._left -= 1
        if self._left:
            return False
        self._payloads = []
        self.is_done = True
        self._progress.changed.set()
        return True

    def fail(self, _task_id: int, error: BaseException) -> None:
        self.error = error
        self._signal_failure()

    def open_ids(self) -> list[int]:
        """Tasks that have no answer yet."""
        return [self.first + position for position, answer in enumerate(self.answers) if answer is None]

    @property
    def answered(self) -> int:
        """How many tasks have their answer."""
        return self.count - self._left

    def _signal_failure(self) -> None:
        self._progress.has_failed = True
        self._progress.changed.set()


Arguments = Union[tuple[Any, ...], list[Any]]
"""Of one call, by position."""

DumpCall = Callable[[tuple[Any, ...], Mapping[str, Any]], bytes]


@dataclass(frozen=True)
class MapPlan(Generic[T]):
    """What a `map` is to do."""

    function: Function
    dump_call: DumpCall
    iterable: Iterable[Arguments]
    """The arguments of each task."""
    options: Options | None
    parent: TaskName | None
    """The task that submits them, where one does."""
    progress: bool
    """Whether to show a bar."""


class MapRun(Generic[T]):
    """A `map` under way: tasks are handed over in chunks, and each chunk is read as soon as all of it is there.

    Args:
        changed: set by the I/O thread when there is something to look at.
        bar: shows how many are done.
    """

    def __init__(self, io_thread: IoThread, plan: MapPlan[T], changed: ChangeEvent, bar: ProgressBar | None) -> None:
        self.results: list[T] = []
        self._io_thread = io_thread
        self._plan = plan
        self._progress = MapProgress(changed)
        self._bar = bar
        self._chunks: list[MapChunk] = []

    def submit(self) -> Iterator[None]:
        """Hand the tasks over; yields after each chunk."""
        plan = self._plan
        total = 0
        for payloads in _payload_chunks(plan.dump_call, plan.iterable):
            if self._progress.has_failed:
                return
            chunk = MapChunk(plan.function, payloads, self._progress, plan.options, plan.parent)
            self._chunks.append(chunk)
            self._io_thread.submit_chunk(chunk, plan.function, payloads)
            total += len(payloads)
            self._show()
            yield
        if self._bar is not None:
            self._bar.show_total(total)

    def collect(self) -> Iterator[None]:
        """Read the results; yields where it is time to wait for changed.

        Raises:
            BaseException: what the first failed task raised.
        """
        progress = self._progress
        for chunk in self._chunks:
            while not chunk.is_done and not progress.has_failed:
                self._io_thread.check_can_wait()
                yield
                progress.changed.clear()
                self._show()
            if progress.has_failed:
                _raise_first_failure(self._io_thread, self._plan.function, self._chunks)
            self.results.extend(_read(self._plan.function, chunk, len(self.results)))
            chunk.answers = []
        self._show()

    def cancel_rest(self) -> None:
        """Something has failed: what has not begun need not."""
        _cancel_rest(self._io_thread, self._chunks)

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.show(sum(chunk.answered for chunk in self._chunks))


def run_map(io_thread: IoThread, plan: MapPlan[T]) -> list[T]:
    """Submit one task for each tuple of arguments; returns the results in order.

    Raises what the first failed task raised, and cancels the others.
    """
    changed = slot_wait.make_event(io_thread)
    # A task gives up its slot to wait, and takes it again to look: not ten times a second.
    poll_seconds = REFRESH_SECONDS if plan.progress and plan.parent is None else None
    with progress_bar(plan.progress, plan.iterable) as bar:
        run = MapRun(io_thread, plan, changed, bar)
        try:
            for _ in run.submit():
                pass
            for _ in run.collect():
                changed.wait(poll_seconds)
            return run.results
        except BaseException:
            run.cancel_rest()
            raise


def check_one_iterable(client: str, others: tuple[Any, ...], instead: str) -> None:
    """Raise TypeError if `map` got several iterables, as the built-in map takes them. `instead` is what to write."""
    if others:
        raise TypeError(
            f"{client}.map() takes one iterable, of tuples of arguments, but {1 + len(others)} were given: "
            f"for several iterables use {instead}"
        )


def _payload_chunks(dump_call: DumpCall, iterable: Iterable[Arguments]) -> Iterator[list[Payload]]:
    payloads: list[Payload] = []
    for position, arguments in enumerate(iterable):
        call = arguments if type(arguments) is tuple else _as_tuple(arguments, position)
        try:
            payloads.append(dump_call(call, {}))
        except TypeError as error:
            raise TypeError(f"item {position}: {error}") from error.__cause__
        if len(payloads) == CHUNK_ROWS:
            yield payloads
            payloads = []
    if payloads:
        yield payloads


def _as_tuple(arguments: Any, position: int) -> tuple[Any, ...]:
    # No other iterable is unpacked: a dict would call the function with its keys, an array with its rows' elements.
    if isinstance(arguments, (tuple, list)):
        return tuple(arguments)
    raise TypeError(
        f"map needs a tuple of arguments for each call; item {position} is {type(arguments).__name__}: "
        f"{reprlib.repr(arguments)}. To pass each item as the only argument, make it a tuple, (item,), or use "
        "client.executor().map(fn, items)"
    )


def _read(function: Function, chunk: MapChunk, before: int) -> list[Any]:
    if function.answers_pickles:
        try:
            return list(map(serializer.loads, chunk.answers))  # type: ignore[arg-type]
        except Exception:
            pass  # below each is read by itself, and the one that can't be is named
    values = []
    for position, answer in enumerate(chunk.answers):
        assert answer is not None
        value, error = function.read_answer(Outcome.VALUE, answer)
        if error is not None:
            _add_item_note(error, function, chunk, position, before)
            raise error
        values.append(value)
    return values


def _add_item_note(error: BaseException, function: Function, chunk: MapChunk, position: int, before: int) -> None:
    name = "" if chunk.options is None else chunk.options.name
    name_task(error, f"{name or function.name}#{chunk.first + position}")
    add_note(error, f"of item {before + position} of map")


def _raise_first_failure(io_thread: IoThread, function: Function, chunks: list[MapChunk]) -> None:
    before = 0
    for chunk in chunks:
        for position in sorted(chunk.outcomes):
            answer = chunk.answers[position]
            assert answer is not None
            if chunk.outcomes[position] == Outcome.CANCELLED:
                if io_thread.is_closed:
                    raise ClientClosedError("the client was disconnected during map")
                raise CancelledError("the map's tasks were cancelled")
            _, error = function.read_answer(chunk.outcomes[position], answer)
            if error is not None:
                _add_item_note(error, function, chunk, position, before)
                raise error
        if chunk.error is not None:
            raise chunk.error
        before += chunk.count


def _cancel_rest(io_thread: IoThread, chunks: list[MapChunk]) -> None:
    for chunk in chunks:
        if not chunk.is_done and chunk.error is None:
            try:
                io_thread.cancel_many(chunk.open_ids)
            except ClientClosedError:
                return
