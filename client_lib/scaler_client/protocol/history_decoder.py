"""Decodes the batches that monitors receive: the history of tasks, and the nodes of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from .columns import BatchReader, WireError, expand_column
from .messages import Message, Payload
from .snapshot_decoder import split_texts
from .snapshots import Graphs, History


def decode_history(batch: BatchReader, _: Sequence[Payload]) -> Message:
    """Decode a History."""
    ids = batch.numbers(5, "Q")
    rows = len(ids)
    errors, functions, tracebacks, reasons = (batch.numbers(field, "I") for field in (13, 14, 15, 16))
    names, lines, of_functions, of_tracebacks, of_reasons = _look_up_texts(
        batch.data(11),
        batch.numbers(12, "I"),
        expand_column(batch.numbers(8, "I"), rows, "names"),
        expand_column(errors, rows, "errors") if errors else [],
        expand_column(functions, rows, "functions") if functions else [],
        expand_column(tracebacks, rows, "tracebacks") if tracebacks else [],
        expand_column(reasons, rows, "waitReasons") if reasons else [],
    )
    return History(
        sum(batch.numbers(0, "Q")[:1]),
        sum(batch.numbers(1, "Q")[:1]),
        expand_column(batch.numbers(2, "B"), rows, "kinds"),
        expand_column(batch.numbers(3, "Q"), rows, "times"),
        expand_column(batch.numbers(4, "Q"), rows, "clients"),
        ids,
        expand_column(batch.numbers(6, "I"), rows, "attempts"),
        expand_column(batch.numbers(7, "Q"), rows, "workers"),
        names,
        expand_column(batch.numbers(9, "B"), rows, "outcomes"),
        expand_column(batch.numbers(10, "Q"), rows, "durations"),
        lines or [""] * rows,
        of_functions or names,
        of_tracebacks or [""] * rows,
        of_reasons or [""] * rows,
    )


def decode_graphs(batch: BatchReader, _: Sequence[Payload]) -> Message:
    """Decode a Graphs."""
    ids = batch.numbers(3, "Q")
    rows = len(ids)
    inputs, counts = batch.numbers(6, "Q"), batch.numbers(7, "I")
    counts = expand_column(counts, rows, "inputCounts") if counts else [0] * rows
    if sum(counts) != len(inputs):
        raise WireError(f"{len(inputs)} inputs, but {sum(counts)} are announced")
    ends = accumulate(counts)
    graphs, keys, submitted = batch.numbers(10, "Q"), batch.numbers(11, "I"), batch.numbers(12, "Q")
    names, of_graphs = _look_up_texts(
        batch.data(8),
        batch.numbers(9, "I"),
        expand_column(batch.numbers(4, "I"), rows, "names"),
        expand_column(keys, rows, "keys") if keys else [],
    )
    return Graphs(
        sum(batch.numbers(0, "Q")[:1]),
        sum(batch.numbers(1, "Q")[:1]),
        expand_column(batch.numbers(2, "Q"), rows, "clients"),
        ids,
        names,
        expand_column(batch.numbers(5, "B"), rows, "states"),
        [inputs[end - count : end] for end, count in zip(ends, counts)],
        expand_column(graphs, rows, "graphs") if graphs else [0] * rows,
        of_graphs or [""] * rows,
        expand_column(submitted, rows, "submitMilliseconds") if submitted else [0] * rows,
    )


def _look_up_texts(text: bytes, sizes: Sequence[int], *columns: Sequence[int]) -> list[list[str]]:
    """Return the columns with texts in place of their numbers.

    Args:
        text: all texts, concatenated.
        sizes: the bytes of each text.
        columns: numbers of texts.
    """
    try:
        texts = split_texts(text, sizes)
        return [[texts[number] for number in column] for column in columns]
    except (ValueError, IndexError) as error:
        raise WireError(f"malformed message: {error}") from None
