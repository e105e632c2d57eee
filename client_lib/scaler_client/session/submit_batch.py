"""The Submit that collects tasks until it is sent, and the functions that the scheduler must know before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ..pickling.functions import Function
from ..pickling.references import Call, CallWithInputs
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
        self.bind_call: Callable[[CallWithInputs, int], Call] = lambda call, _: call
        """Called with a call that reads objects and the id of its row, before the row is added. Returns what the row
        sends."""
        self.backlog = backlog
        self._options: Options | None = None
        # No object of its own for each row: dicts of numbers cost the garbage collector nothing.
        self._inputs: list[int] = []
        """What the rows read, one row after another."""
        self._input_counts: dict[int, int] = {}
        """The number of inputs of rows that read objects, by their place in the batch."""
        self._keep: dict[int, int] = {}
        """A value of `Keep` for rows whose results are kept, by their place in the batch."""
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
            self.outgoing.append(
                messages.Function(function.number, function.name, function.kind, function.payload, function.environment)
            )

    def add_row(self, task_id: int, function: Function, call: Call, options: Options | None) -> None:
        """Add a task of any kind. `Session.submit` repeats this inline for tasks without options and inputs."""
        if type(call) is CallWithInputs:
            call = self.bind_call(call, task_id)  # first, because it may submit lost results again
        if options is not None or function is not self.last_function:
            self.use_function(function, options)
        if isinstance(call, CallWithInputs):
            payload, inputs, place = call.data, call.input_ids(), len(self.ids)
            if inputs:
                self._input_counts[place] = len(inputs)
                self._inputs += inputs
            if call.keep:
                self._keep[place] = call.keep
        else:
            payload = call
        self.ids.append(task_id)
        self.functions.append(function.number)
        self.payloads.append(payload)

    def keep_result(self, task_id: int) -> None:
        """Have the result of a task kept, because the next row reads it."""
        ids = self.ids
        place = len(ids) - 1 if ids and ids[-1] == task_id else bisect_left(ids, task_id)
        if place == len(ids) or ids[place] != task_id:
            self._keep_earlier.append(task_id)
        else:
            self._keep.setdefault(place, Keep.BOTH)

    def pop_keep_earlier(self) -> list[int]:
        """Return and forget the earlier tasks whose results the next batch reads."""
        ids, self._keep_earlier = self._keep_earlier, []
        return ids

    def flush(self) -> None:
        """Close the batch, unless it is empty."""
        if self.ids:
            self.backlog.add(self._pop_batch(), self.outgoing)

    def flush_if_urgent(self) -> None:
        """Close the batch if its tasks go before others that wait for credit."""
        if self.ids and self.backlog.may_pass(self._options):
            self.flush()

    def clear(self) -> None:
        """Drop all unsent tasks and objects, here and in the backlog."""
        self._pop_batch()
        self.backlog.clear()

    def clear_rows(self) -> None:
        """Drop all unsent tasks, here and in the backlog. Objects are kept."""
        self._pop_batch()
        self.backlog.clear_rows()

    def _pop_batch(self) -> Submit:
        batch = Submit(self.ids, self.functions, self.payloads, self._options)
        if self._input_counts:
            batch.inputs, batch.input_counts = self._inputs, _column(self._input_counts, len(self.ids))
        if self._keep:
            batch.keep = _column(self._keep, len(self.ids))
        self.ids, self.functions, self.payloads = [], [], []
        self._inputs, self._input_counts, self._keep = [], {}, {}
        batch.keep_earlier = self.pop_keep_earlier()
        return batch


def _column(values: dict[int, int], rows: int) -> list[int]:
    """Return a value for each row; 0 for rows without one."""
    return [values.get(row, 0) for row in range(rows)]
