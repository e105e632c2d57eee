"""Turns the columns of a Dispatch into the rows that a worker runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from scaler_client.protocol.messages import INPUT_IN_WORKER_FILE, INPUT_OF_ROW_BEFORE, Dispatch, Payload, TaskAttempt
from scaler_worker.objects.table import ObjectTable
from scaler_worker.task_rows import Input, Result, Row


def rows_of(
    message: Dispatch, objects: ObjectTable, handed: dict[TaskAttempt, list[Result]] | None = None
) -> Iterable[Row]:
    """The tasks of a dispatch, as rows.

    Args:
        message: the dispatch.
        objects: inputs that are files are entered here.
        handed: takes the rows whose results other rows read, each with the list that is such an input.
    """
    payloads = message.payloads
    if message.inline_sizes:
        payloads = list(payloads)  # each loses the inputs at its end
    inputs: Iterable[Sequence[Input]] = (
        _expect_inputs(message, payloads, objects) if message.input_counts else repeat(())
    )
    if handed is not None and INPUT_OF_ROW_BEFORE in message.input_sources:
        inputs = _followed(message, inputs, handed)
    plain = zip(message.clients, message.ids, message.attempts, message.functions, payloads)
    is_special = message.flags or message.depths or message.priorities or message.input_counts or message.names
    if is_special or message.bookings:
        zeros = [0] * len(message.ids)
        names, bookings = message.names or repeat(""), message.bookings or repeat("")
        more = zip(
            message.flags or zeros, message.depths or zeros, message.priorities or zeros, inputs, names, bookings
        )
        return [(*row, *special) if any(special) else row for row, special in zip(plain, more)]
    return plain


def _expect_inputs(message: Dispatch, payloads: list[Payload], objects: ObjectTable) -> list[Sequence[int | Payload]]:
    """The inputs of each row: bytes, which are cut off its payload, and ids of objects."""
    if any(message.input_sources):
        _expect_files(message, objects)
    inline_sizes = message.inline_sizes
    rows: list[Sequence[int | Payload]] = []
    begin = 0
    for row, count in enumerate(message.input_counts):
        end = begin + count
        ids = message.inputs[begin:end]
        if inline_sizes and any(sizes := inline_sizes[begin:end]):
            payloads[row], inputs = _cut(payloads[row], ids, sizes)
            rows.append(inputs)
        else:
            rows.append(ids)
        begin = end
    return rows


def _expect_files(message: Dispatch, objects: ObjectTable) -> None:
    """Enter inputs that are files now: the scheduler may have them forgotten before the task begins, and only a known
    object can be forgotten."""
    clients = chain.from_iterable(map(repeat, message.clients, message.input_counts))
    for client, object_id, source in zip(clients, message.inputs, message.input_sources):
        if 0 < source < INPUT_OF_ROW_BEFORE:
            objects.expect_file((client, object_id), source == INPUT_IN_WORKER_FILE)


def _followed(
    message: Dispatch, rows: Iterable[Sequence[Input]], handed: dict[TaskAttempt, list[Result]]
) -> Iterable[Sequence[Input]]:
    """Put an empty list in the place of each input that is the result of a row before. Its value is put there."""
    attempts: dict[tuple[int, int], int] = {}
    followed: list[Sequence[Input]] = []
    begin = 0
    for client, task_id, attempt, inputs in zip(message.clients, message.ids, message.attempts, rows):
        sources = message.input_sources[begin : begin + len(inputs)]
        begin += len(inputs)
        attempts[client, task_id] = attempt
        if INPUT_OF_ROW_BEFORE in sources:
            changed = list(inputs)
            for place, source in enumerate(sources):
                each = inputs[place]
                if source == INPUT_OF_ROW_BEFORE and isinstance(each, int):
                    changed[place] = handed.setdefault((client, each, attempts.get((client, each), 0)), [])
            inputs = changed
        followed.append(inputs)
    return followed


def with_results(inputs: Sequence[Input]) -> Sequence[int | Result] | None:
    """Return the inputs of a row that begins now. None: a row before it, whose result it reads, had no value."""
    if list not in map(type, inputs):
        return inputs  # type: ignore[return-value]
    values: list[int | Result] = []
    for each in inputs:
        if not isinstance(each, list):
            values.append(each)
        elif each:
            values.append(each[0])
        else:
            return None
    return tuple(values)


def _cut(payload: Payload, ids: Sequence[int], inline_sizes: Sequence[int]) -> tuple[Payload, Sequence[int | Payload]]:
    """Split a payload that ends with the bytes of inputs. Returns the arguments and the row's inputs."""
    end = len(payload) - sum(inline_sizes) + len(inline_sizes) - inline_sizes.count(0)
    arguments = payload[:end]
    inputs: list[int | Payload] = []
    for position, size in enumerate(inline_sizes):
        if size:
            begin, end = end, end + size - 1
            inputs.append(payload[begin:end])
        else:
            inputs.append(ids[position])
    return arguments, tuple(inputs)  # not a list: the garbage collector need not visit a tuple of bytes
