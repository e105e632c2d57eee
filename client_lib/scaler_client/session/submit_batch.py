"""The Submit that collects tasks until it is sent, and the functions that the scheduler must know before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from ..pickling.functions import Function
from ..pickling.references import CallWithInputs, Reference, call_with_inputs
from ..protocol import messages
from ..protocol.messages import Keep, Options, Payload, Submit
from .backlog import Backlog


class SubmitBatch:
    """Rows with the same options, and the messages that are ready to be sent.

    Args:
        backlog: takes the batch when it is closed.
    """

    def __init__(self, backlog: Backlog) -> None:
        # Three columns of equal length. `Session.submit` appends to them directly.
        self.ids: list[int] = []
        self.functions: list[int] = []
        self.payloads: list[Payload] = []
        self.outgoing: list[messages.Message] = []
        """Messages to send, in this order. A function goes out before the first row that calls it."""
        self.last_function: Function | None = None
        """The last row's function if that row had no options; else None. Only `Session.submit` reads it."""
        self.bind_inputs: Callable[[Iterable[Reference | int], int], None] = _ignore
        """Called with the inputs and the id of a row before the row is added."""
        self.backlog = backlog
        self._options: Options | None = None
        self._calls_with_inputs: dict[int, CallWithInputs] = {}
        """Rows that read objects or whose results are kept, by their place in the batch."""
        self._keep_earlier: list[int] = []
        """Tasks of earlier batches whose results rows of this batch read."""
        self._joins = 0

    def restart(self, credit: int) -> None:
        """Reset after a join, because the scheduler may know no function.

        Args:
            credit: the bytes that the scheduler allows, see `Backlog`.
        """
        self._joins += 1
        self.clear()
        self.backlog.restart(credit)
        self.last_function = None

    def use_function(self, function: Function, options: Options | None) -> None:
        """Set function and options of the next rows; close the batch first if the options differ.

        The first use after a join sends the function.
        """
        if options is not self._options and options != self._options:
            self.flush()
        self._options = options
        self.last_function = function if options is None else None
        if function.sent_in_join != self._joins:
            function.sent_in_join = self._joins
            self.outgoing.append(messages.Function(function.number, function.name, function.kind, function.payload))

    def add_row(self, task_id: int, function: Function, payload: Payload, options: Options | None) -> None:
        """Add a task of any kind. `Session.submit` repeats this inline for tasks without options and inputs."""
        if type(payload) is CallWithInputs:
            self.bind_inputs(payload.inputs, task_id)  # first, because it may submit lost results again
        self.use_function(function, options)
        if type(payload) is CallWithInputs:
            self._calls_with_inputs[len(self.ids)] = payload
        self.ids.append(task_id)
        self.functions.append(function.number)
        self.payloads.append(payload)

    def keep_result(self, task_id: int) -> None:
        """Have the result of a task kept, because the next row reads it."""
        ids = self.ids
        place = bisect_left(ids, task_id)
        if place == len(ids) or ids[place] != task_id:
            self._keep_earlier.append(task_id)
            return
        # The payload itself stays as it is: after a join the result may have no reader any more.
        payload = self.payloads[place]
        inputs, keep = (payload.inputs, payload.keep) if type(payload) is CallWithInputs else ((), 0)
        self._calls_with_inputs[place] = call_with_inputs(payload, inputs, keep or Keep.BOTH)

    def pop_keep_earlier(self) -> list[int]:
        """Return and forget the earlier tasks whose results the next batch reads."""
        ids, self._keep_earlier = self._keep_earlier, []
        return ids

    def flush(self) -> None:
        """Close the batch, unless it is empty."""
        if self.ids:
            self._close(*self._pop_batch())

    def clear(self) -> None:
        """Drop all unsent tasks and objects, here and in the backlog."""
        self._pop_batch()
        self.backlog.clear()

    def clear_rows(self) -> None:
        """Drop all unsent tasks, here and in the backlog. Objects are kept."""
        self._pop_batch()
        self.backlog.clear_rows()

    def _pop_batch(self) -> tuple[Submit, dict[int, CallWithInputs]]:
        batch, calls = Submit(self.ids, self.functions, self.payloads, self._options), self._calls_with_inputs
        self.ids, self.functions, self.payloads, self._calls_with_inputs = [], [], [], {}
        batch.keep_earlier = self.pop_keep_earlier()
        return batch, calls

    def _close(self, batch: Submit, calls: dict[int, CallWithInputs]) -> None:
        if calls:
            counts, keep = [0] * len(batch.ids), [0] * len(batch.ids)
            inputs: list[int] = []
            for row, call in calls.items():
                ids = call.input_ids()
                inputs += ids
                counts[row] = len(ids)
                keep[row] = call.keep
            batch.inputs, batch.input_counts, batch.keep = inputs, counts, keep if any(keep) else ()
        self.backlog.add(batch, self.outgoing)


def _ignore(*_: object) -> None: ...
