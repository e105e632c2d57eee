"""Sends the calls of one `map`: decides how many calls make a row, and how many rows are in flight.

A row is as many calls as run for a few milliseconds, by the run times measured so far. So long calls are rows of their
own, and a no-op costs a fraction of a task. A worker ends a row early when it takes too long; its other calls come back
and go out again. If a worker dies in a row, each of its calls goes out alone: only the call that ends its worker fails.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ..futures.kept_results import KeptFuture
from ..pickling.call_rows import CallBlock, RowAnswer, has_row_form
from ..pickling.functions import Function
from ..pickling.references import Call, InputFailure
from ..protocol.messages import Options, Outcome, Payload, TaskAttempt
from .result_sinks import SingleSink

ROW_NS = 8_000_000
"""The run time that a row aims at."""

MIN_ROW_NS = 500_000
"""At the end of a map rows get shorter, but not shorter than this: below it a row costs more than its calls."""

AHEAD_NS = 40_000_000
"""The run time of the rows in flight, for each worker. More would not adapt to new run times; less would leave workers
idle for a round trip."""

MIN_ROWS = 64
"""The number of rows that may always be in flight."""

MAX_ROWS = 4096
"""The most rows of several calls in flight."""


class RowSubmitter(Protocol):
    """The session, as a feed sees it."""

    feeds: MapFeeds

    def submit_with_options(self, sink: SingleSink, function: Function, call: Call) -> int:
        """Submit a task with the options of its sink; return its id."""

    def submit_kept(self, future: KeptFuture[Any], sink: SingleSink) -> int:
        """Submit a task whose result stays on its host; return its id."""


class MapFeeds:
    """The open feeds of a session, and what they must know of the cluster."""

    def __init__(self) -> None:
        self.worker_count = 0
        """The number of connected workers, as the scheduler told last."""
        self._feeds: weakref.WeakSet[MapFeed] = weakref.WeakSet()
        """The rows in flight hold their feed. An iterator that was dropped leaves one without calls."""

    def __len__(self) -> int:
        return len(self._feeds)

    def add(self, feed: MapFeed) -> None:
        """Have the feed filled when the number of workers changes."""
        self._feeds.add(feed)

    def remove(self, feed: MapFeed) -> None:
        """Forget a feed that has no calls left."""
        self._feeds.discard(feed)

    def set_worker_count(self, count: int) -> None:
        """Take the number of connected workers."""
        if count != self.worker_count:
            self.worker_count = count
            for feed in list(self._feeds):
                feed.fill()

    def cancel_all(self) -> None:
        """Cancel the calls of all maps, but not the rows in flight."""
        for feed in list(self._feeds):
            feed.cancel()

    def cancel_children(self, parent: TaskAttempt | None) -> None:
        """Cancel the calls of the maps of one task, but not the rows in flight.

        Args:
            parent: the task; None: the maps outside of tasks.
        """
        for feed in list(self._feeds):
            if feed.parent == parent:
                feed.cancel()


class ChangeEvent(Protocol):
    """The event on which the caller of a `map` waits."""

    def set(self) -> None:
        """Set the event; the I/O thread calls this."""

    def clear(self) -> None:
        """Clear the event, before the caller looks at the blocks."""


class CallFailure(NamedTuple):
    """The failed call of a map."""

    position: int
    """Its position in the map."""
    outcome: int
    payload: Payload
    """The payload of that outcome."""
    task_id: int
    """The id of its row."""
    failed_input: InputFailure | None = None
    """The failure of the input that made the call fail; None: the call itself has failed."""


class MapFeed:
    """Sends the calls of a map, and takes their answers. Only the I/O thread calls its methods.

    Args:
        function: what is called.
        options: the options of each row, without `calls`.
        parent: the task that has called `map`; None: it was called outside of tasks.
        changed: set when `awaited` is answered, and at a failure.
        row_calls: a fixed number of calls for each row; None: by their run time.
        runs_all: whether the calls behind a failed one run too.
    """

    def __init__(
        self,
        function: Function,
        options: Options | None,
        parent: TaskAttempt | None,
        changed: ChangeEvent,
        row_calls: int | None = None,
        runs_all: bool = False,
    ) -> None:
        self.function = function
        self.parent = parent
        self.changed = changed
        self.awaited: CallBlock | None = None
        """The block whose last answer sets `changed`. The caller sets it."""
        self.answered = 0
        """The number of calls with an answer."""
        self.failure: CallFailure | None = None
        """The failed call that is first in the map."""
        self.error: BaseException | None = None
        """The client's own error that has ended the map."""
        self.ready: deque[tuple[CallBlock, int, int, Payload]] | None = None
        """If it is a deque: block, first call, number of values and bytes of each answer, as it comes."""
        self.submitted = 0
        """The number of calls that were submitted and have not come back."""
        self.wanted_submitted: int | None = None
        """The value of `submitted` that sets `changed`, once; None: none does. The caller sets it."""
        self.options = options
        self._row_calls = row_calls
        self._runs_all = runs_all
        self._by_count: dict[int, Options] = {}
        """Options by number of calls. A batch goes on while its options are the same object."""
        self._unsent: deque[tuple[CallBlock, int, int, bool]] = deque()
        """Block, first call, call after the last one, and whether these calls must go out alone."""
        self._unsent_calls = 0
        self._has_all = False
        """Whether no more blocks come."""
        self._is_ended = False
        """Whether the calls of blocks that still come are cancelled."""
        self._rows: set[_Row] = set()
        """The rows in flight: submitted, and not answered."""
        self._open_calls = 0
        self._session: RowSubmitter | None = None
        self._on_idle: list[Callable[[], None]] = []
        self._is_filling = False

    @property
    def has_failed(self) -> bool:
        """Whether a call has failed, or the client has given the map up."""
        return self.failure is not None or self.error is not None

    @property
    def _sends_calls(self) -> bool:
        """Whether further calls are sent."""
        return self.error is None and (self._runs_all or self.failure is None)

    def add(self, session: RowSubmitter, blocks: Sequence[CallBlock], is_last: bool) -> None:
        """Take more calls.

        Args:
            session: where the rows are submitted.
            blocks: the next blocks.
            is_last: whether they are the last ones.
        """
        if self._session is None:
            self._session = session
            session.feeds.add(self)
        self._has_all = is_last
        if self._is_ended and blocks:
            self._note_failure(CallFailure(blocks[0].first, Outcome.CANCELLED, b"", -1))
        elif self._sends_calls:
            for block in blocks:
                self._unsent.append((block, 0, block.count, False))
                self._unsent_calls += block.count
        self.fill()

    def fill(self) -> None:
        """Submit rows while there is room for them."""
        session = self._session
        if session is None or self._is_filling:
            return
        self._is_filling = True  # a closed session fails the row inside of the loop
        while self._unsent and self._has_room():
            self._submit_row(session)
        self._is_filling = False
        if self.wanted_submitted is not None and self.submitted >= self.wanted_submitted:
            self.wanted_submitted = None
            self.changed.set()
        if not self._unsent and not self._rows:
            if self._has_all or not self._sends_calls:
                session.feeds.remove(self)
            while self._on_idle:
                self._on_idle.pop()()

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` when no call is waiting here or in flight."""
        if self._unsent or self._rows:
            self._on_idle.append(callback)
        else:
            callback()

    def cancel(self) -> None:
        """Cancel the calls that were not submitted, and those that will come back from rows in flight."""
        for row in self._rows:
            row.is_cancelled = True
        if self._unsent:
            position = min(block.first + begin for block, begin, _, _ in self._unsent)
            self._note_failure(CallFailure(position, Outcome.CANCELLED, b"", -1))
            self._drop_unsent()
            self.fill()

    def open_ids(self) -> list[int]:
        """As `cancel`, also for calls that still come. Return the ids of the rows in flight, to cancel them too."""
        self._is_ended = True
        self.cancel()
        self._has_all = True
        self.fill()
        return sorted(row.task_id for row in self._rows if row.task_id >= 0)

    def _has_room(self) -> bool:
        rows = len(self._rows)
        workers = max(1, self._worker_count)
        if rows < max(MIN_ROWS, 2 * workers):
            return True
        if rows >= max(MAX_ROWS, 4 * workers):
            return False
        if self._unsent[0][0].is_plain or self._row_calls is not None:
            return True
        mean_ns = self.function.call_time.mean_ns
        return mean_ns * 2 > ROW_NS or 0 < self._open_calls * mean_ns < workers * AHEAD_NS

    @property
    def _worker_count(self) -> int:
        return 0 if self._session is None else self._session.feeds.worker_count

    def _submit_row(self, session: RowSubmitter) -> None:
        block, begin, end, is_single = self._unsent[0]
        count = 1 if is_single else min(self._wanted_calls(), end - begin)
        if begin + count == end:
            self._unsent.popleft()
        else:
            self._unsent[0] = (block, begin + count, end, is_single)
        self._unsent_calls -= count
        self._open_calls += count
        self.submitted += count
        row = (_Row if block.kept is None else _KeptRow)(self, block, begin, begin + count)
        self._rows.add(row)
        row.task_id = row.submit_to(session)

    def _wanted_calls(self) -> int:
        """Return how many calls the next row should have."""
        if self._row_calls is not None:
            return self._row_calls
        mean_ns = self.function.call_time.mean_ns
        if not mean_ns:
            return 1
        count = max(1, ROW_NS // mean_ns)
        if self._has_all:
            # Guided self-scheduling (Polychronopoulos and Kuck, 1987): rows get shorter, so that all workers end at
            # the same time.
            share = -(-self._unsent_calls // (2 * max(8, self._worker_count)))
            count = min(count, max(1, share, MIN_ROW_NS // mean_ns))
        return count

    def options_of(self, block: CallBlock, count: int) -> Options | None:
        """Return the options of a row."""
        if block.is_plain:
            return self.options
        options = self._by_count.get(count)
        if options is None:
            options = replace(self.options or Options(), calls=count)
            if len(self._by_count) < 1000:
                self._by_count[count] = options
        return options

    # ---------------------------------------------------------------------------------------------- answers of the rows

    def fail_input(self, row: _Row, cause: InputFailure) -> None:
        """Take the failure of a result that the single call of a row reads."""
        self._forget(row)
        self._fail(row, row.begin, cause.outcome, cause.answer, cause)
        if not self._is_filling:
            self.fill()

    def resolve(self, row: _Row, outcome: int, answer: Payload) -> None:
        """Take the answer of a row."""
        self._forget(row)
        block, begin, end = row.block, row.begin, row.end
        if block.is_plain:
            if outcome:
                self._fail(row, 0, outcome, answer)
            else:
                self._take(block, 0, 1, answer)
        elif outcome <= Outcome.RESULT_FAILED and has_row_form(answer):
            self._take_row(row, outcome, answer)
        elif outcome == Outcome.WORKER_DIED and end - begin > 1:
            self._return(row, begin, is_single=True)
        else:
            self._fail(row, begin, outcome, answer)
        if not self._is_filling:
            self.fill()

    def _take_row(self, row: _Row, outcome: int, answer: Payload) -> None:
        block, begin, end = row.block, row.begin, row.end
        try:
            read = RowAnswer(answer)
        except ValueError:
            self._fail(row, begin, Outcome.RESULT_FAILED, b"the answer of the row of calls is malformed")
            return
        count = min(read.count, end - begin)
        self.function.call_time.add(count + bool(outcome), read.run_ns)
        if count:
            self._take(block, begin, count, answer)
        if outcome:
            self._fail(row, begin + count, outcome, read.failure)
            if self._runs_all and begin + count + 1 < end:
                self._return(row, begin + count + 1, is_single=False)
        elif begin + count < end:
            self._return(row, begin + count, is_single=not count)

    def _take(self, block: CallBlock, begin: int, count: int, answer: Payload) -> None:
        self.answered += count
        block.left -= count
        if self.ready is None:
            block.answers.append((begin, count, answer))
        else:
            self.ready.append((block, begin, count, answer))
        if self.ready is not None or self.failure is not None or (self.awaited is block and not block.left):
            self.changed.set()

    def _return(self, row: _Row, begin: int, is_single: bool) -> None:
        """Take back the calls of a row that have not run, or whose worker died: those from `begin` on."""
        block, end = row.block, row.end
        if row.is_cancelled:
            self._fail(row, begin, Outcome.CANCELLED, b"")
        elif self._sends_calls or (self.failure is not None and block.first + begin < self.failure.position):
            self._unsent.appendleft((block, begin, end, is_single))
            self._unsent_calls += end - begin
            self.submitted -= end - begin

    def _fail(
        self, row: _Row, call: int, outcome: int, payload: Payload, failed_input: InputFailure | None = None
    ) -> None:
        """Note the failure of a call, by its number in the row's block. Unless all calls are to run, those behind it in
        the map are not sent."""
        self._note_failure(CallFailure(row.block.first + call, outcome, payload, row.task_id, failed_input))
        if self._runs_all:
            return
        assert self.failure is not None
        unsent = [entry for entry in self._unsent if entry[0].first + entry[1] < self.failure.position]
        self._drop_unsent()
        self._unsent.extend(unsent)
        self._unsent_calls = sum(end - begin for _, begin, end, _ in unsent)

    def _note_failure(self, failure: CallFailure) -> None:
        if self.failure is None or failure.position < self.failure.position:
            self.failure = failure
        self.changed.set()

    def abort(self, row: _Row, error: BaseException) -> None:
        """End the map with an error of the client."""
        self._forget(row)
        self.error = error
        self._drop_unsent()
        self.changed.set()
        if not self._is_filling:
            self.fill()

    def _forget(self, row: _Row) -> None:
        if row in self._rows:
            self._rows.discard(row)
            self._open_calls -= row.end - row.begin

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_calls = 0
        self._has_all = True


class _Row:
    """A row in flight: the sink of its answer (`SingleSink`)."""

    __slots__ = ("begin", "block", "end", "feed", "is_cancelled", "options", "task_id")

    def __init__(self, feed: MapFeed, block: CallBlock, begin: int, end: int) -> None:
        self.feed = feed
        self.block = block
        self.begin = begin
        self.end = end
        self.options = feed.options_of(block, end - begin)
        self.task_id = -1
        self.is_cancelled = False
        """Whether its calls do not go out again."""

    @property
    def parent(self) -> TaskAttempt | None:
        """The task that has called `map`."""
        return self.feed.parent

    def submit_to(self, session: RowSubmitter) -> int:
        """Submit the row; return its id."""
        return session.submit_with_options(self, *self.row(-1))

    def row(self, _task_id: int) -> tuple[Function, Call]:
        """Return function and payload, to submit the row again."""
        return self.feed.function, self.block.row(self.begin, self.end)

    def resolve(self, _task_id: int, outcome: int, answer: Payload) -> None:
        """Take the row's answer."""
        self.feed.resolve(self, outcome, answer)

    def fail_input(self, _task_id: int, cause: InputFailure) -> None:
        """Take the failure of a result that the call reads."""
        self.feed.fail_input(self, cause)

    def fail(self, _task_id: int, error: BaseException) -> None:
        """End the map with an error of the client."""
        self.feed.abort(self, error)

    def start(self) -> None:
        """Do nothing: no caller waits until a row begins."""

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Do nothing: the calls of a map are not profiled."""


class _KeptRow(_Row):
    """A call in flight whose result stays on its host. Its future gets each answer first, then its map."""

    __slots__ = ()

    def submit_to(self, session: RowSubmitter) -> int:
        """Submit the call; return its id."""
        return session.submit_kept(self.block.kept, self)

    def row(self, task_id: int) -> tuple[Function, Call]:
        """Return function and payload, to submit the call again."""
        row: tuple[Function, Call] = self.block.kept.row(task_id)
        return row

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Take the call's answer."""
        self.block.kept.resolve(task_id, outcome, answer)
        self.feed.resolve(self, Outcome.VALUE if outcome == Outcome.KEPT else outcome, answer)

    def fail_input(self, task_id: int, cause: InputFailure) -> None:
        """Take the failure of a result that the call reads."""
        self.block.kept.fail_input(task_id, cause)
        super().fail_input(task_id, cause)

    def fail(self, task_id: int, error: BaseException) -> None:
        """End the map with an error of the client."""
        self.block.kept.fail(task_id, error)
        super().fail(task_id, error)

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Take what the worker measured."""
        self.block.kept.set_measurements(duration, cpu_time, peak)
