"""Columns that several messages have: task names, payloads, inputs, texts. Checks that they are consistent."""

from array import array
from typing import Any

from scaler_scheduler.core import events
from scaler_scheduler.core.lines import LINE_LIMIT, TRACEBACK_BYTES, printable_line
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, expanded, read_bytes, read_column
from scaler_scheduler.wire.errors import WireError

INPUTS_LIMIT = 1 << 20
"""The most objects that a row reads."""

MAX_PAYLOAD_BYTES = 1 << 28
"""Bytes of a batch's `payload` column. The scheduler joins several, and they must fit in a list of 2^29 elements."""


def check_frames(frames: list[bytes], count: int) -> None:
    """Raise WireError unless `count` payload frames follow frame 0."""
    if len(frames) != 1 + count:
        raise WireError(f"{len(frames) - 1} payload frames, but {count} are announced")


def check_ids(ids: "array[int]") -> None:
    """Raise WireError unless there are ids and they ascend."""
    if not ids:
        raise WireError("a batch without rows")
    previous = -1
    for task_id in ids:
        if task_id <= previous:
            raise WireError("ids do not ascend")
        previous = task_id


def task_columns(tasks: Any) -> tuple["array[int]", "array[int]", "array[int]"]:
    """Clients, ids and attempts of tasks, all at full length."""
    ids = read_column(tasks.ids, UINT64, "ids")
    clients = expanded(read_column(tasks.clients, UINT64, "clients"), len(ids), "clients")
    attempts = expanded(read_column(tasks.attempts, UINT32, "attempts"), len(ids), "attempts")
    return clients, ids, attempts


def payload_columns(batch: Any, rows: int, frames: list[bytes]) -> tuple["array[int]", bytes, dict[int, bytes]]:
    """Sizes, joined payload, and large payloads by row."""
    sizes = expanded(read_column(batch.sizes, UINT32, "sizes"), rows, "sizes")
    large_rows = read_column(batch.large, UINT32, "large")
    check_frames(frames, len(large_rows))
    joined = read_bytes(batch, "payload")
    if len(joined) > MAX_PAYLOAD_BYTES:
        raise WireError(f"payload of {len(joined)} bytes in one frame, more than {MAX_PAYLOAD_BYTES}")
    announced = sum(sizes)
    if announced != len(joined):
        raise WireError(f"payload of {len(joined)} bytes, but {announced} are announced")
    large: dict[int, bytes] = {}
    previous = -1
    for position, row in enumerate(large_rows):
        if row >= rows:
            raise WireError(f"large names row {row}, of {rows} rows that are numbered from 0")
        if row <= previous:
            raise WireError(f"large does not ascend: row {row} comes after row {previous}")
        if sizes[row]:
            raise WireError(f"row {row} is in large and has size {sizes[row]}: its size must be 0")
        large[row] = frames[1 + position]
        previous = row
    return sizes, joined, large


def input_columns(submit: Any, rows: int) -> tuple["array[int]", "array[int]", "array[int]"]:
    """Inputs, the number of inputs of each row, and whether its result is kept. Empty columns: no row has inputs."""
    inputs = read_column(submit.inputs, UINT64, "inputs")
    counts = read_column(submit.input_counts, UINT32, "inputCounts")
    keep = read_column(submit.keep, UINT8, "keep")
    if inputs or counts:
        counts = expanded(counts, rows, "inputCounts")
        if max(counts) > INPUTS_LIMIT:
            raise WireError(f"a row with {max(counts)} inputs, more than {INPUTS_LIMIT}")
        announced = sum(counts)
        if announced != len(inputs):
            raise WireError(f"{len(inputs)} inputs, but {announced} are announced")
    if keep:
        keep = expanded(keep, rows, "keep")
        if max(keep) > events.KEEP_BOTH:
            raise WireError(f"keep is {max(keep)}, not 0 to {events.KEEP_BOTH}")
    return inputs, counts, keep


def read_lines(text: bytes, sizes: "array[int]") -> list[str]:
    """The line of each row, for people: without control characters, of at most LINE_LIMIT characters."""
    _check_length(text, sizes, "lines")
    lines: list[str] = []
    begin = 0
    for size in sizes:
        lines.append(printable_line(text[begin : begin + min(size, 4 * LINE_LIMIT)]) if size else "")
        begin += size
    return lines


def read_tracebacks(text: bytes, sizes: "array[int]") -> list[bytes]:
    """The traceback of each row. A long traceback is cut to its end."""
    _check_length(text, sizes, "tracebacks")
    tracebacks: list[bytes] = []
    end = 0
    for size in sizes:
        end += size
        tracebacks.append(text[end - min(size, TRACEBACK_BYTES) : end])
    return tracebacks


def _check_length(text: bytes, sizes: "array[int]", what: str) -> None:
    if sum(sizes) != len(text):
        raise WireError(f"{what} of {len(text)} bytes, but {sum(sizes)} are announced")
