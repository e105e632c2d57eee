"""The Submit that grows while tasks come one by one, and the functions that the scheduler has to be told of before."""

from __future__ import annotations

from ..pickling.functions import Function
from ..pickling.references import ReadingCall
from ..protocol import messages
from ..protocol.messages import Options, Payload, Submit
from .backlog import Backlog


class SubmitBatch:
    """Rows that ask for the same.

    Args:
        backlog: where it goes when it is closed.
    """

    def __init__(self, backlog: Backlog) -> None:
        # By column. Who adds a plain task, which is of the last row's function, appends to these.
        self.ids: list[int] = []
        self.functions: list[int] = []
        self.payloads: list[Payload] = []
        self.outgoing: list[messages.Message] = []
        """What is to be sent, in this order; functions are announced when a row first names them."""
        self.last_function: Function | None = None
        """Of the last row, where that asked for nothing: what a plain task is compared with, and nothing else."""
        self._backlog = backlog
        self._options: Options | None = None
        self._reading: dict[int, ReadingCall] = {}
        """Those of the rows, by their places, that read objects or whose results are kept."""
        self._joins = 0

    def restart(self, credit: int) -> None:
        """A scheduler has accepted the client, which may know nothing."""
        self._joins += 1
        self.clear()
        self._backlog.restart(credit)
        self.last_function = None

    def use_function(self, function: Function, options: Options | None) -> None:
        """The next rows are of this function, which the scheduler is told of, and ask for this."""
        if options is not self._options and options != self._options:
            self.flush()
        self._options = options
        self.last_function = function if options is None else None
        if function.sent_in_join != self._joins:
            function.sent_in_join = self._joins
            self.outgoing.append(messages.Function(function.number, function.name, function.kind, function.payload))

    def add_row(self, task_id: int, function: Function, payload: Payload, options: Options | None) -> None:
        """A task of any kind."""
        self.use_function(function, options)
        if type(payload) is ReadingCall:
            self._reading[len(self.ids)] = payload
        self.ids.append(task_id)
        self.functions.append(function.number)
        self.payloads.append(payload)

    def add_chunk(self, first: int, function: Function, payloads: list[Payload], options: Options | None) -> None:
        """Tasks of one function that have a batch of their own."""
        self.flush()
        self.use_function(function, options)
        batch = Submit(range(first, first + len(payloads)), [function.number], payloads, options)
        reading = {row: call for row, call in enumerate(payloads) if type(call) is ReadingCall}
        self._close(batch, reading)

    def flush(self) -> None:
        """Close the batch."""
        if self.ids:
            self._close(*self._take())

    def clear(self) -> None:
        """Nothing of what is not sent yet shall be."""
        self._take()
        self._backlog.clear()

    def clear_rows(self) -> None:
        """The same of tasks alone."""
        self._take()
        self._backlog.clear_rows()

    def _take(self) -> tuple[Submit, dict[int, ReadingCall]]:
        batch, reading = Submit(self.ids, self.functions, self.payloads, self._options), self._reading
        self.ids, self.functions, self.payloads, self._reading = [], [], [], {}
        return batch, reading

    def _close(self, batch: Submit, reading: dict[int, ReadingCall]) -> None:
        if reading:
            counts, keep = [0] * len(batch.ids), [0] * len(batch.ids)
            inputs: list[int] = []
            for row, call in reading.items():
                ids = call.input_ids()
                inputs += ids
                counts[row] = len(ids)
                keep[row] = call.keep
            batch.inputs, batch.input_counts, batch.keep = inputs, counts, keep if any(keep) else ()
        self._backlog.add(batch, self.outgoing)
