"""Rows whose inputs are not all there yet. Sans-IO; the connection's lock guards it.

The scheduler queues a row here ahead of its inputs, so that it begins without another message. An input is the result
of a task that this worker holds, or `inputs` brings it. A row that is complete joins the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import HANDED_BYTES, INPUT_OF_HELD_TASK, Dispatch, Outcome, Payload, TaskAttempt
from scaler_worker.task_rows import Answer, Row, attempt_of

BY_MESSAGE = 0
"""In place of the attempt of a task of this worker: `inputs` brings its result. Attempts begin with 1."""


class _WaitingRow:
    __slots__ = ("inputs", "makers", "row")

    def __init__(self, row: Row, inputs: list[int | Payload]) -> None:
        self.row = row
        self.inputs = inputs
        """The row's own list. Values replace ids."""
        self.makers: list[TaskAttempt] = []
        """What makes its missing inputs. A maker of two inputs is named twice."""


class RowsAhead:
    """The waiting rows."""

    def __init__(self) -> None:
        self.awaited: dict[TaskAttempt, list[tuple[_WaitingRow, int]]] = {}
        """By what makes an input: waiting rows, and the places of this input. The run loop reads it without the lock.
        It names attempts, because an old attempt of a task may still run here. Its value does not count."""
        self._rows: dict[TaskAttempt, _WaitingRow] = {}

    def add_rows(
        self, rows: Iterable[Row], message: Dispatch, held: Iterable[TaskAttempt], answers: deque[Answer]
    ) -> tuple[list[Row], list[TaskAttempt]]:
        """Add the rows of a dispatch whose inputs are not all there.

        Args:
            rows: all rows of the dispatch.
            message: the dispatch.
            held: the tasks in the queue of this worker and those that have begun.
            answers: the answers that were not sent yet. The run loop may add some meanwhile.

        Returns:
            The rows that are complete; and rows to give back. The task that makes an input of these is not here: it
            has ended, and its result is on its way to the scheduler.
        """
        makers: dict[ObjectName, TaskAttempt] = {name[:2]: name for name in (*held, *self._rows)}
        complete: list[Row] = []
        given_back: list[TaskAttempt] = []
        begin = 0
        for row, count in zip(rows, message.input_counts):
            name = attempt_of(row)
            sources = message.input_sources[begin : begin + count]
            begin += count
            makers[name[:2]] = name
            if len(row) == 5 or max(sources, default=0) < INPUT_OF_HELD_TASK:
                complete.append(row)
                continue
            inputs = list(row[8])
            entry = self._rows[name] = _WaitingRow((*row[:8], inputs, row[9]), inputs)
            found: list[Answer] = []
            for place, source in enumerate(sources):
                each = inputs[place]
                if source < INPUT_OF_HELD_TASK or not isinstance(each, int):
                    continue
                maker = (name[0], each, BY_MESSAGE) if source > INPUT_OF_HELD_TASK else makers.get((name[0], each))
                if maker is not None:
                    self._wait(entry, place, maker)
                if source > INPUT_OF_HELD_TASK:
                    continue
                # The row waits before the answers are searched. The run loop adds the answer before it looks for
                # waiting rows. So one of the two threads finds what the other one has.
                for answer in answers.copy():
                    if attempt_of(answer) == maker or (maker is None and answer[:2] == (name[0], each)):
                        if maker is None:
                            maker = attempt_of(answer)
                            self._wait(entry, place, maker)
                        found.append(answer)
                if maker is None:
                    self.remove(name)
                    given_back.append(name)
                    del makers[name[:2]]
                    break
            for answer in found:
                if is_handed(answer[3], answer[5]):
                    complete += self.hand_over(attempt_of(answer), answer[5])
        return complete, given_back

    def _wait(self, entry: _WaitingRow, place: int, maker: TaskAttempt) -> None:
        entry.makers.append(maker)
        self.awaited.setdefault(maker, []).append((entry, place))

    def hand_over(self, maker: TaskAttempt, value: Payload) -> list[Row]:
        """Give an input to the rows that wait for it. Returns the rows that are complete now."""
        complete = []
        for entry, place in self.awaited.pop(maker, ()):
            entry.inputs[place] = value
            entry.makers.remove(maker)
            if not entry.makers:
                del self._rows[attempt_of(entry.row)]
                complete.append(entry.row)
        return complete

    def remove(self, name: TaskAttempt) -> bool:
        """Remove a row. Returns whether it was here."""
        removed = self._rows.pop(name, None)
        if removed is None:
            return False
        for maker in dict.fromkeys(removed.makers):
            others = [each for each in self.awaited[maker] if each[0] is not removed]
            if others:
                self.awaited[maker] = others
            else:
                del self.awaited[maker]
        return True

    def clear(self) -> None:
        """Remove all rows."""
        self.awaited.clear()  # the same dict: the run loop has it
        self._rows.clear()


def is_handed(outcome: int, payload: Payload) -> bool:
    """Whether this answer is handed to rows of this worker that wait for it. The scheduler decides by the same rule."""
    return outcome == Outcome.VALUE and len(payload) < HANDED_BYTES
