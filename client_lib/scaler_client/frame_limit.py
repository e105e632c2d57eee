"""Messages with a longer frame than the scheduler takes: it would cut the connection, and again after each new try.

So they are not sent. Of a Submit the rows that are too large fail, and the others go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from . import wire
from .backlog import Backlog, rows_of
from .errors import MessageTooLargeError, ScalerError
from .messages import Frames, Function, Message, Object, Outcome, Payload, Resolved, Results, Submit
from .serializer import dump_exception

_log = logging.getLogger(__name__)


def are_within(frames: Sequence[Payload], limit: int) -> bool:
    """Whether none has more bytes than the limit; 0 is none."""
    return not limit or max(map(len, frames)) <= limit


def too_large(what: str, size: int, limit: int) -> str:
    """What is wrong, in one line."""
    return f"{what} has {size:,} bytes in one frame, and the scheduler takes {limit:,} (--message-size-limit)"


def failed(ids: Sequence[int], error: ScalerError, is_named: bool) -> Resolved:
    """Tasks that have failed without a worker, as if one had said so.

    Args:
        is_named: whether their function is one that workers offer by name.
    """
    payload: Payload = str(error).encode() if is_named else dump_exception(error, str(error))
    return Resolved(list(ids), [Outcome.EXCEPTION.value] * len(ids), [payload] * len(ids))


def result_frames(results: Results, limit: int) -> list[Frames]:
    """A worker's results as messages within the limit: in place of one that is too large, its task's failure."""
    frames = wire.encode(results)
    if are_within(frames, limit):
        return [frames]
    rows = range(len(results.ids))
    if len(rows) == 1:
        text = too_large("the result", max(map(len, frames)), limit)
        results.outcomes, results.payloads, results.errors = [Outcome.RESULT_FAILED.value], [text.encode()], [text]
        return [wire.encode(results)]
    half = len(rows) // 2
    return [each for part in (rows[:half], rows[half:]) for each in result_frames(_part(results, part), limit)]


def _part(results: Results, rows: range) -> Results:
    def of(column: Sequence[object]) -> list[object]:
        return [column[row] for row in rows] if len(column) > 1 else list(column)

    columns = {name: of(getattr(results, name)) for name in vars(results)}
    return Results(**columns)  # type: ignore[arg-type]


class FrameLimit:
    """Of a client.

    Args:
        backlog: what has counted the rows that do not go.
        resolved: called with the failures of those.
        is_named: whether the task's function is one that workers offer by name.
    """

    def __init__(self, backlog: Backlog, resolved: Callable[[Resolved], None], is_named: Callable[[int], bool]) -> None:
        self.bytes = 0
        """0: none."""
        self._backlog = backlog
        self._resolved = resolved
        self._is_named = is_named
        self._functions: dict[int, int] = {}
        """Sizes of those that were not sent, by their numbers."""

    def restart(self, limit: int) -> None:
        """A scheduler has accepted the client, which takes so many bytes."""
        self.bytes = limit
        self._functions.clear()

    def encode(self, message: Message) -> list[Frames]:
        """The messages to send for this one."""
        frames = wire.encode(message)
        if not self._functions and are_within(frames, self.bytes):
            return [frames]
        if isinstance(message, Submit):
            return self._submit(message)
        if are_within(frames, self.bytes):
            return [frames]
        text = too_large("a message", max(map(len, frames)), self.bytes)
        if isinstance(message, Function):
            self._functions[message.number] = len(message.payload)
            text = too_large(f"the function {message.name}", len(message.payload), self.bytes)
        elif isinstance(message, Object):
            text = too_large(f"object {message.name or message.id}", max(map(len, frames)), self.bytes)
            self._backlog.uncount_object(message)
        _log.error("not sent: %s", text)
        return []

    def _submit(self, batch: Submit) -> list[Frames]:
        functions = batch.functions if len(batch.functions) > 1 else [*batch.functions] * len(batch.ids)
        fitting: list[int] = []
        for row, number in enumerate(functions):
            if number in self._functions:
                self._fail(batch, row, "the task's function", self._functions[number])
            elif len(batch.payloads[row]) > self.bytes > 0:
                self._fail(batch, row, "the task", len(batch.payloads[row]))
            else:
                fitting.append(row)
        if not fitting:
            return []
        batch = rows_of(batch, fitting)
        frames = wire.encode(batch)
        if are_within(frames, self.bytes):
            return [frames]
        if len(fitting) == 1:
            self._fail(batch, 0, "the task", max(map(len, frames)))
            return []
        half = len(fitting) // 2
        parts = (range(half), range(half, len(fitting)))
        return [each for part in parts for each in self._submit(rows_of(batch, part))]

    def _fail(self, batch: Submit, row: int, what: str, size: int) -> None:
        self._backlog.uncount(batch.payloads[row])
        task_id = batch.ids[row]
        text = too_large(what, size, self.bytes)
        self._resolved(failed([task_id], MessageTooLargeError(text), self._is_named(task_id)))
