"""`Client.map`: many tasks of one function, without a future for each."""

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
    """The event that the caller of a `map` waits for."""

    def set(self) -> None:
        """Set the event; the I/O thread calls this."""

    def clear(self) -> None:
        """Clear the event, before the caller looks at the chunks."""


class MapProgress:
    """What the I/O thread reports to the caller of a `map`."""

    def __init__(self, changed: ChangeEvent) -> None:
        self.changed = changed
        self.has_failed = False


class MapChunk:
    """Tasks of a map that were handed to the I/O thread together; the sink of their results (`ChunkSink`)."""

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
        """Outcomes other than a value, by position."""
        self.error: BaseException | None = None
        self.is_done = False
        self._function = function
        self._payloads = payloads
        self.count = self._left = len(payloads)
        self._progress = progress

    def set_first_id(self, first: int) -> None:
        """Set the id of the first task; the ids of the other tasks follow."""
        self.first = first

    def row(self, task_id: int) -> tuple[Function, Payload]:
        """Return the function and the arguments of a task, to submit it again."""
        return self._function, self._payloads[task_id - self.first]

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Take the answer of a task; return whether all tasks have an answer."""
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
        """End the tasks with an error of the client."""
        self.error = error
        self._signal_failure()

    def open_ids(self) -> list[int]:
        """Return the ids of the tasks without an answer."""
        return [self.first + position for position, answer in enumerate(self.answers) if answer is None]

    @property
    def answered(self) -> int:
        """The number of tasks that have an answer."""
        return self.count - self._left

    def _signal_failure(self) -> None:
        self._progress.has_failed = True
        self._progress.changed.set()


Arguments = Union[tuple[Any, ...], list[Any]]
"""The positional arguments of one call."""

DumpCall = Callable[[tuple[Any, ...], Mapping[str, Any]], bytes]


@dataclass(frozen=True)
class MapPlan(Generic[T]):
    """The checked arguments of a `map`."""

    function: Function
    dump_call: DumpCall
    iterable: Iterable[Arguments]
    """The arguments of each task."""
    options: Options | None
    parent: TaskName | None
    """The task that submits them; None outside of tasks."""
    progress: bool
    """Whether to show a progress bar."""


class MapRun(Generic[T]):
    """A running `map`: hands tasks over in chunks, and reads the results of each complete chunk.

    Args:
        io_thread: the I/O thread that the chunks are handed to.
        plan: the arguments of the map.
        changed: set by the I/O thread when a chunk is complete or a task has failed.
        bar: shows how many tasks are done; None: no bar.
    """

    def __init__(self, io_thread: IoThread, plan: MapPlan[T], changed: ChangeEvent, bar: ProgressBar | None) -> None:
        self.results: list[T] = []
        self._io_thread = io_thread
        self._plan = plan
        self._progress = MapProgress(changed)
        self._bar = bar
        self._chunks: list[MapChunk] = []

    def submit(self) -> Iterator[None]:
        """Hand the tasks over. Yields after each chunk."""
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
        """Read the results. Yields when the caller should wait for `changed`.

        Raises:
            BaseException: the exception of the first task that failed.
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
            self.results.extend(_read_chunk(self._plan.function, chunk, len(self.results)))
            chunk.answers = []
        self._show()

    def cancel_rest(self) -> None:
        """Cancel the tasks that have not begun, after a failure."""
        _cancel_rest(self._io_thread, self._chunks)

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.show(sum(chunk.answered for chunk in self._chunks))


def run_map(io_thread: IoThread, plan: MapPlan[T]) -> list[T]:
    """Submit one task for each tuple of arguments, and return the results in order.

    Raises:
        BaseException: the exception of the first task that failed; the other tasks are cancelled.
    """
    changed = slot_wait.make_event(io_thread)
    # A task that waits gives up its slot, and takes it again to update the bar: not ten times a second.
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
    """Reject several iterables, which the built-in `map` takes.

    Args:
        client: the name of the client's class.
        others: the iterables after the first one.
        instead: the code to suggest.

    Raises:
        TypeError: `others` is not empty.
    """
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
    # Other iterables are rejected: a dict would pass its keys to the function, an array the elements of its rows.
    if isinstance(arguments, (tuple, list)):
        return tuple(arguments)
    raise TypeError(
        f"map needs a tuple of arguments for each call; item {position} is {type(arguments).__name__}: "
        f"{reprlib.repr(arguments)}. To pass each item as the only argument, make it a tuple, (item,), or use "
        "client.executor().map(fn, items)"
    )


def _read_chunk(function: Function, chunk: MapChunk, first_item: int) -> list[Any]:
    if function.answers_pickles:
        try:
            return list(map(serializer.loads, chunk.answers))  # type: ignore[arg-type]
        except Exception:
            pass  # the loop below reads them one by one, and names the one that fails
    values = []
    for position, answer in enumerate(chunk.answers):
        assert answer is not None
        value, error = function.read_answer(Outcome.VALUE, answer)
        if error is not None:
            _add_item_note(error, function, chunk, position, first_item)
            raise error
        values.append(value)
    return values


def _add_item_note(error: BaseException, function: Function, chunk: MapChunk, position: int, first_item: int) -> None:
    name = "" if chunk.options is None else chunk.options.name
    name_task(error, f"{name or function.name}#{chunk.first + position}")
    add_note(error, f"of item {first_item + position} of map")


def _raise_first_failure(io_thread: IoThread, function: Function, chunks: list[MapChunk]) -> None:
    first_item = 0
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
                _add_item_note(error, function, chunk, position, first_item)
                raise error
        if chunk.error is not None:
            raise chunk.error
        first_item += chunk.count


def _cancel_rest(io_thread: IoThread, chunks: list[MapChunk]) -> None:
    for chunk in chunks:
        if not chunk.is_done and chunk.error is None:
            try:
                io_thread.cancel_many(chunk.open_ids)
            except ClientClosedError:
                return
