"""`Client.map`: many tasks of one function without a future each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import serializer
from .errors import ClientClosedError
from .functions import Function
from .messages import Outcome, Payload
from .session import CHUNK_ROWS

if TYPE_CHECKING:
    from .agent import Agent

class Progress:
    """What the I/O thread tells the thread that called `map`."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self.has_failed = False


class Chunk:
    """Tasks of a map that went to the I/O thread together; the owner of their ids."""

    def __init__(self, function: Function, payloads: list[Payload], progress: Progress) -> None:
        self.first = -1
        self.answers: list[Payload | None] = [None] * len(payloads)
        self.outcomes: dict[int, int] = {}
        """Those that are not plain values, by position."""
        self.error: BaseException | None = None
        self.is_done = False
        self._function = function
        self._payloads = payloads
        self._left = len(payloads)
        self._progress = progress

    def submitted(self, first: int) -> None:
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
            self._tell_failure()
        self._left -= 1
        if self._left:
            return False
        self._payloads = []
        self.is_done = True
        self._progress.news.set()
        return True

    def fail(self, _task_id: int, error: BaseException) -> None:
        self.error = error
        self._tell_failure()

    def start(self) -> None:
        pass

    def open_ids(self) -> list[int]:
        """Tasks that have no answer yet."""
        return [self.first + position for position, answer in enumerate(self.answers) if answer is None]

    def _tell_failure(self) -> None:
        self._progress.has_failed = True
        self._progress.news.set()


DumpCall = Callable[[tuple[Any, ...], Mapping[str, Any]], bytes]


def run_map(agent: Agent, function: Function, dump_call: DumpCall, iterable: Iterable[Iterable[Any]]) -> list[Any]:
    """Submit one task for each tuple of arguments; returns the results in order.

    Raises what the first failed task raised, and cancels the others.
    """
    progress = Progress()
    chunks: list[Chunk] = []
    try:
        for payloads in _payload_chunks(dump_call, iterable):
            if progress.has_failed:
                break
            chunk = Chunk(function, payloads, progress)
            chunks.append(chunk)
            agent.submit_chunk(chunk, function, payloads)
        return _gather(agent, function, chunks, progress)
    except BaseException:
        _cancel_rest(agent, chunks)
        raise


def _payload_chunks(dump_call: DumpCall, iterable: Iterable[Iterable[Any]]) -> Iterator[list[Payload]]:
    payloads: list[Payload] = []
    for position, arguments in enumerate(iterable):
        payloads.append(dump_call(arguments if type(arguments) is tuple else _as_tuple(arguments, position), {}))
        if len(payloads) == CHUNK_ROWS:
            yield payloads
            payloads = []
    if payloads:
        yield payloads


def _as_tuple(arguments: Iterable[Any], position: int) -> tuple[Any, ...]:
    try:
        if not isinstance(arguments, (str, bytes)):
            return tuple(arguments)
    except TypeError:
        pass
    kind = type(arguments).__name__
    raise TypeError(f"map needs a tuple of arguments for each task; item {position} is {kind}")


def _gather(agent: Agent, function: Function, chunks: list[Chunk], progress: Progress) -> list[Any]:
    """Read each chunk as it is complete, while later ones are still on their way."""
    results: list[Any] = []
    for chunk in chunks:
        while not chunk.is_done and not progress.has_failed:
            agent.check_waiting()
            progress.news.wait()
            progress.news.clear()
        if progress.has_failed:
            _raise_first_failure(function, chunks)
        results.extend(_read(function, chunk))
        chunk.answers = []
    return results


def _read(function: Function, chunk: Chunk) -> list[Any]:
    if function.serializer is None:
        try:
            return list(map(serializer.loads, chunk.answers))  # type: ignore[arg-type]
        except Exception:
            pass  # below each is read by itself, and the one that can't be is named
    values = []
    for answer in chunk.answers:
        assert answer is not None
        value, error = function.read_answer(Outcome.VALUE, answer)
        if error is not None:
            raise error
        values.append(value)
    return values


def _raise_first_failure(function: Function, chunks: list[Chunk]) -> None:
    for chunk in chunks:
        for position in sorted(chunk.outcomes):
            answer = chunk.answers[position]
            assert answer is not None
            if chunk.outcomes[position] == Outcome.CANCELLED:
                raise ClientClosedError("the client was disconnected during map")
            _, error = function.read_answer(chunk.outcomes[position], answer)
            if error is not None:
                raise error
        if chunk.error is not None:
            raise chunk.error


def _cancel_rest(agent: Agent, chunks: list[Chunk]) -> None:
    for chunk in chunks:
        if not chunk.is_done and chunk.error is None:
            try:
                agent.cancel_many(chunk.open_ids)
            except ClientClosedError:
                return
