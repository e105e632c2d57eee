"""Messages that can't be sent: a frame is longer than the scheduler accepts, or the message can't be encoded.

The scheduler cuts a connection that sends a longer frame, and would cut it again after each retry. So such messages are
not sent. If rows of a Submit can't be sent, these rows fail and the other rows are sent. An error in encoding one
message never ends the thread that sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..errors import MessageTooLargeError, ScalerError
from ..pickling.large_payloads import LargePayloads
from ..pickling.serializer import dump_exception
from ..protocol import wire
from ..protocol.messages import Frames, Function, Message, Object, Objects, Outcome, Payload, Resolved, Results, Submit
from ..protocol.utf8_text import escaped
from .backlog import Backlog, rows_of

_log = logging.getLogger(__name__)

MAX_ROW_BYTES = 1 << 30
"""The most bytes of a task's arguments, or of its function, that a client sends through the scheduler. The scheduler
serves nobody else while it reads and writes them: 4.5 GB would take it 30 s and more."""


def fits_limit(frames: Sequence[Payload], limit: int) -> bool:
    """Whether every frame has at most `limit` bytes. 0: there is no limit."""
    return not limit or max(map(len, frames)) <= limit


def too_large_text(what: str, size: int, limit: int) -> str:
    """Return the error text for a frame that is too long, in one line.

    Args:
        what: what the frame holds, for example "the task".
        size: the bytes of the frame.
        limit: the scheduler's limit in bytes.
    """
    return f"{what} has {size:,} bytes in one frame, and the scheduler takes {limit:,} (--message-size-limit)"


def encoding_error_text(what: str, error: Exception) -> str:
    """Return the error text for a message that can't be encoded, in one line.

    Args:
        what: what the message holds, for example "the task".
    """
    return f"{what} can't be encoded as a message: {type(error).__name__}: {' '.join(str(error).split())}"


def encode_or_log(message: Message) -> list[Frames]:
    """Return a list with the message's frames. If the message can't be encoded, log that and return an empty list."""
    try:
        return [wire.encode(message)]
    except Exception as error:
        _log.error("not sent: %s", encoding_error_text(f"a message ({type(message).__name__})", error))
        return []


def failure_answer(ids: Sequence[int], error: ScalerError, is_named: bool) -> Resolved:
    """Return an answer, in the form of a scheduler's, that fails these tasks.

    Args:
        ids: the tasks.
        error: what the tasks raise.
        is_named: whether the tasks' function is one that workers offer by name. Its failures are plain text.
    """
    payload: Payload = escaped(str(error)).encode() if is_named else dump_exception(error, str(error))
    return Resolved(list(ids), [Outcome.EXCEPTION.value] * len(ids), [payload] * len(ids))


def result_frames(results: Results, limit: int) -> list[Frames]:
    """Return a worker's results as one or more messages within the limit.

    A result that can't be sent is replaced by the outcome RESULT_FAILED.

    Args:
        limit: the most bytes of a frame; 0: no limit.
    """
    problem = None
    try:
        frames = wire.encode(results)
        if fits_limit(frames, limit):
            return [frames]
    except Exception as error:
        problem = error
    rows = range(len(results.ids))
    if len(rows) == 1:
        if problem is None:
            text = too_large_text("the result", max(map(len, frames)), limit)
        else:
            text = encoding_error_text("the result", problem)
            results.durations, results.cpu_times, results.peaks = [0], [], []  # one of these may be the cause
            results.tracebacks = []
        results.outcomes, results.errors = [Outcome.RESULT_FAILED.value], [text]
        results.payloads = [escaped(text).encode()]
        return encode_or_log(results)
    half = len(rows) // 2
    return [each for part in (rows[:half], rows[half:]) for each in result_frames(_part(results, part), limit)]


def _part(results: Results, rows: range) -> Results:
    def of(column: Sequence[object]) -> list[object]:
        return [column[row] for row in rows] if len(column) > 1 else list(column)

    columns = {name: of(getattr(results, name)) for name in vars(results)}
    return Results(**columns)  # type: ignore[arg-type]


class FrameLimit:
    """Encodes one client's messages within the scheduler's limit.

    Args:
        backlog: has counted all rows and objects. Rows and objects that are not sent are subtracted from its count.
        resolve: called with the failures of rows that are not sent.
        is_named: tells whether workers offer a task's function by name.
    """

    def __init__(self, backlog: Backlog, resolve: Callable[[Resolved], None], is_named: Callable[[int], bool]) -> None:
        self.bytes = 0
        """The most bytes of a frame; 0: no limit."""
        self._row_bytes = MAX_ROW_BYTES
        self._backlog = backlog
        self._resolve = resolve
        self._is_named = is_named
        self.large = LargePayloads()
        """Counts large arguments, to warn of them."""
        self._has_freed = False
        self._functions: dict[int, ScalerError] = {}
        """Functions that could not be sent, by number, with the error that their tasks raise."""

    def restart(self, limit: int) -> None:
        """Reset the limit after a join.

        Args:
            limit: the most bytes of a frame; 0: no limit.
        """
        self.bytes = limit
        self._row_bytes = self._backlog.frame_bytes = min(limit or MAX_ROW_BYTES, MAX_ROW_BYTES)
        self._functions.clear()

    def pop_freed(self) -> bool:
        """Whether a row or object was not sent since the previous call: what waits may have credit now."""
        has_freed, self._has_freed = self._has_freed, False
        return has_freed

    def encode(self, message: Message) -> list[Frames]:
        """Return the frames to send: one list per message after a split, or nothing if the message can't be sent."""
        problem = None
        try:
            frames = wire.encode(message)
        except Exception as error:
            problem = error
        limit = self._row_bytes if isinstance(message, (Submit, Function)) else self.bytes
        if problem is None and not self._functions and fits_limit(frames, limit):
            if len(frames) > 1 and type(message) is Submit:
                self.large.count_frames(frames[1:])
            return [frames]
        if isinstance(message, Submit):
            return self._submit(message)
        if isinstance(message, Objects):
            each = [Object(object_id, [payload]) for object_id, payload in zip(message.ids, message.payloads)]
            return [sent for single in each for sent in self.encode(single)]
        if problem is None and fits_limit(frames, limit):
            return [frames]
        what = "a message"
        size = 0 if problem is not None else max(map(len, frames))
        if isinstance(message, Function):
            what, size = f"the function {message.name}", len(message.payload)
            self._functions[message.number] = self._error("the task's function", size, problem)
        elif isinstance(message, Object):
            what = f"object {message.name or message.id}"
            self._backlog.uncount_object(message)
            self._has_freed = True
        _log.error("not sent: %s", self._error(what, size, problem))
        return []

    def _submit(self, batch: Submit) -> list[Frames]:
        functions = batch.functions if len(batch.functions) > 1 else [*batch.functions] * len(batch.ids)
        fitting: list[int] = []
        for row, number in enumerate(functions):
            if number in self._functions:
                self._fail(batch, row, self._functions[number])
            elif len(batch.payloads[row]) > self._row_bytes:
                self._fail(batch, row, self._error("the task", len(batch.payloads[row])))
            else:
                fitting.append(row)
        if not fitting:
            self._backlog.keep_with_next(batch.keep_earlier)
            return []
        batch = rows_of(batch, fitting)
        problem = None
        size = 0
        try:
            frames = wire.encode(batch)
            if fits_limit(frames, self._row_bytes):
                return [frames]
            size = max(map(len, frames))
        except Exception as error:
            problem = error
        if len(fitting) == 1:
            self._fail(batch, 0, self._error("the task", size, problem))
            return []
        half = len(fitting) // 2
        parts = (range(half), range(half, len(fitting)))
        return [each for part in parts for each in self._submit(rows_of(batch, part))]

    def _error(self, what: str, size: int, problem: Exception | None = None) -> ScalerError:
        if problem is not None:
            return ScalerError(encoding_error_text(what, problem))
        if size > self.bytes > 0:
            return MessageTooLargeError(too_large_text(what, size, self.bytes))
        text = f"{what} has {size:,} bytes, and at most {MAX_ROW_BYTES:,} go through the scheduler"
        return MessageTooLargeError(f"{text}: send large values with client.send_object()")

    def _fail(self, batch: Submit, row: int, error: ScalerError) -> None:
        self._backlog.uncount_task(batch.payloads[row])
        self._has_freed = True
        task_id = batch.ids[row]
        self._resolve(failure_answer([task_id], error, self._is_named(task_id)))
