"""What a Dispatch brings: its columns as the rows that a worker runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from scaler_client.protocol.messages import FILE_OF_WORKER, Dispatch, Payload
from scaler_worker.objects.table import ObjectTable
from scaler_worker.task_rows import PlainRow, Row, SpecialRow


def rows_of(message: Dispatch, objects: ObjectTable) -> Iterable[Row]:
    """The tasks that it brings; what they read in files is noted among the objects."""
    payloads = message.payloads
    if message.inlined:
        payloads = list(payloads)  # what remains of them
    inputs = _expect_inputs(message, payloads, objects) if message.input_counts else repeat(())
    plain = zip(message.clients, message.ids, message.attempts, message.functions, payloads)
    if message.flags or message.depths or message.priorities or message.input_counts or message.names:
        zeros = [0] * len(message.ids)
        names = message.names or repeat("")
        more = zip(message.flags or zeros, message.depths or zeros, message.priorities or zeros, inputs, names)
        return map(_row, plain, more)
    return plain


def _expect_inputs(message: Dispatch, payloads: list[Payload], objects: ObjectTable) -> list[Sequence[int | Payload]]:
    """What each row reads: bytes, which are cut off its payload, and ids. Of files it is noted here that they are
    read: to be forgotten they must be known, also where that comes before the task begins."""
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
    """Arguments and inputs of a row whose payload ends with the bytes of some of these."""
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
