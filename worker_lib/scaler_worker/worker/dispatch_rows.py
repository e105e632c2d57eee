"""Turns the columns of a Dispatch into the rows that a worker runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from scaler_client.protocol.messages import FILE_OF_WORKER, Dispatch, Payload
from scaler_worker.objects.table import ObjectTable
from scaler_worker.task_rows import PlainRow, Row, SpecialRow


def rows_of(message: Dispatch, objects: ObjectTable) -> Iterable[Row]:
    """The tasks of a dispatch, as rows. Inputs that are files are entered in `objects`."""
    payloads = message.payloads
    if message.inlined:
        payloads = list(payloads)  # each loses the inputs at its end
    inputs = _expect_inputs(message, payloads, objects) if message.input_counts else repeat(())
    plain = zip(message.clients, message.ids, message.attempts, message.functions, payloads)
    if message.flags or message.depths or message.priorities or message.input_counts or message.names:
        zeros = [0] * len(message.ids)
        names = message.names or repeat("")
        more = zip(message.flags or zeros, message.depths or zeros, message.priorities or zeros, inputs, names)
        return map(_row, plain, more)
    return plain


def _expect_inputs(message: Dispatch, payloads: list[Payload], objects: ObjectTable) -> list[Sequence[int | Payload]]:
    """The inputs of each row: bytes, which are cut off its payload, and ids of objects.

    Files are entered in `objects` now: the scheduler may have them forgotten before the task begins, and only a known
    object can be forgotten.
    """
    rows: list[Sequence[int | Payload]] = []
    begin = 0
    for row, (client, count) in enumerate(zip(message.clients, message.input_counts)):
        end = begin + count
        ids = message.inputs[begin:end]
        inputs: Sequence[int | Payload] = ids
        for object_id, shared in zip(ids, message.shared[begin:end]):
            if shared:
                objects.expect_file((client, object_id), shared == FILE_OF_WORKER)
        if message.inlined and count:
            payloads[row], inputs = _cut(payloads[row], ids, message.inlined[begin:end])
        rows.append(inputs)
        begin = end
    return rows


def _row(plain: PlainRow, special: tuple[int, int, int, Sequence[int | Payload], str]) -> Row:
    if not any(special):
        return plain
    row: SpecialRow = (*plain, *special)
    return row


def _cut(payload: Payload, ids: Sequence[int], inlined: Sequence[int]) -> tuple[Payload, Sequence[int | Payload]]:
    """Split a payload that ends with the bytes of inputs. Returns the arguments and the row's inputs."""
    end = len(payload) - sum(inlined) + len(inlined) - inlined.count(0)
    arguments = payload[:end]
    inputs: list[int | Payload] = []
    for object_id, size in zip(ids, inlined):
        if size:
            begin, end = end, end + size - 1
            inputs.append(payload[begin:end])
        else:
            inputs.append(object_id)
    return arguments, inputs
