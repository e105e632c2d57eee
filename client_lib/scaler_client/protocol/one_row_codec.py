"""Encodes and decodes batches of one row with a single `struct` call each.

It repeats the most frequent case of `_encode_submit` and `_encode_results` (encode.py) and of `_decode_dispatch` and
`_decode_resolved` (decode.py). benchmarks/latency.py pays for that: between other work, the four codecs take 6.8 us
instead of 26. The latency of a single task is mostly Python code with cold caches, and its four messages are written
and read twice each. So the number of steps counts, not the cost of a row.

One row with a payload in frame 0 has a fixed layout in our own messages: only the numbers, the payload and its length
vary. For anything else (different pointers, no payload, options, flags, inputs, profiles, further frames) the functions
here return None, and the general codec takes over. Both give the same result for a message that both can handle.
"""

from __future__ import annotations

from struct import Struct

from .messages import Dispatch, Resolved, Results, Submit
from .schema import DISPATCH, RESOLVED, RESULTS, SUBMIT

MAX_PAYLOAD_BYTES = 1 << 16
"""The limit in bytes. With longer payloads the cost of the general codec does not matter."""

_PADDING = [bytes(-size & 7) for size in range(8)]
_ELEMENTS = {"B": ("B7x", 2), "I": ("I4x", 4), "Q": ("Q", 5)}
"""By typecode, for a list of one element: the `struct` format of its word, and its tag in a list pointer."""


def _layout(tag: int, columns: str) -> tuple[Struct, bytes, bytes]:
    """Return the layout of a batch of one row in its frame.

    Args:
        tag: the ordinal in the union of the schema's Message.
        columns: one letter per field: B, I or Q for a column, P for the payload, - for a null pointer.

    Returns:
        The Struct of the frame up to the payload's bytes: segments - 1, words, fixed words, the upper half of the
        payload's pointer, null pointers, and one number per column. Then the fixed words and the null pointers.
    """
    count = len(columns)
    payload = columns.index("P")
    words = [1 << 32 | 1 << 48, tag, count << 48]  # the root: a data word, the tag, and a pointer, to `count` pointers
    formats: list[str] = []
    for field, letter in enumerate(columns):
        offset = count - field - 1 + len(formats)
        if letter in "-P":
            words.append(0)
        else:
            element, size_tag = _ELEMENTS[letter]
            formats.append(element)
            words.append(offset << 2 | 1 | (1 << 3 | size_tag) << 32)
    words[3 + payload] = count - payload - 1 + len(formats) << 2 | 1
    packed = Struct(f"<{len(words)}Q").pack(*words)
    fixed = packed[: 8 * (3 + payload) + 4]
    nulls = packed[len(fixed) + 4 :]
    return Struct(f"<II{len(fixed)}sI{len(nulls)}s{''.join(formats)}"), fixed, nulls


_SUBMIT, _SUBMIT_FIXED, _SUBMIT_NULLS = _layout(SUBMIT, "QII-P")
_RESULTS, _RESULTS_FIXED, _RESULTS_NULLS = _layout(RESULTS, "QQIBQI-P------")
_DISPATCH, _DISPATCH_FIXED, _DISPATCH_NULLS = _layout(DISPATCH, "QQIII-P-----------")
_RESOLVED, _RESOLVED_FIXED, _RESOLVED_NULLS = _layout(RESOLVED, "QBI-P---")


def submit(message: Submit) -> bytes | None:
    """Return frame 0 of a Submit of one row, or None if `encode` must do it."""
    payload = message.payloads[0]
    size = len(payload)
    if (
        type(payload) is not bytes
        or not 0 < size < MAX_PAYLOAD_BYTES
        or message.options is not None
        or message.input_counts
        or message.keep
        or message.inputs
        or message.keep_earlier
    ):
        return None
    head = _SUBMIT.pack(
        0,
        (_SUBMIT.size + size + 7 >> 3) - 1,
        _SUBMIT_FIXED,
        size << 3 | 2,
        _SUBMIT_NULLS,
        message.ids[0],
        message.functions[0],
        size,
    )
    return head + payload + _PADDING[size & 7]


def results(message: Results) -> bytes | None:
    """Return frame 0 of Results of one row, or None if `encode` must do it."""
    payload = message.payloads[0]
    size = len(payload)
    if (
        type(payload) is not bytes
        or not 0 < size < MAX_PAYLOAD_BYTES
        or message.cpu_times
        or message.peaks
        or message.errors
        or message.calls
    ):
        return None
    head = _RESULTS.pack(
        0,
        (_RESULTS.size + size + 7 >> 3) - 1,
        _RESULTS_FIXED,
        size << 3 | 2,
        _RESULTS_NULLS,
        message.clients[0],
        message.ids[0],
        message.attempts[0],
        message.outcomes[0],
        message.durations[0],
        size,
    )
    return head + payload + _PADDING[size & 7]


def decode(frame: bytes) -> Dispatch | Resolved | None:
    """Return the message in a single frame, or None if `decode.decode` must do it."""
    if not _RESOLVED.size < len(frame) <= MAX_PAYLOAD_BYTES:
        return None
    tag = frame[16]
    if tag == DISPATCH and len(frame) > _DISPATCH.size:
        return _dispatch(frame)
    if tag == RESOLVED:
        return _resolved(frame)
    return None


def _dispatch(frame: bytes) -> Dispatch | None:
    (
        segments, words, fixed, pointer, nulls, client, task_id, attempt, function, size
    ) = _DISPATCH.unpack_from(frame)  # fmt: skip
    begin = _DISPATCH.size
    if (
        segments
        or fixed != _DISPATCH_FIXED
        or nulls != _DISPATCH_NULLS
        or pointer != size << 3 | 2
        or words + 1 << 3 != len(frame)
        or begin + (size + 7 & ~7) != len(frame)
    ):
        return None
    payload = frame[begin : begin + size]
    return Dispatch([client], [task_id], [attempt], [function], [payload], [], [], [], [], [], [], [], [])


def _resolved(frame: bytes) -> Resolved | None:
    segments, words, fixed, pointer, nulls, task_id, outcome, size = _RESOLVED.unpack_from(frame)
    begin = _RESOLVED.size
    if (
        segments
        or fixed != _RESOLVED_FIXED
        or nulls != _RESOLVED_NULLS
        or pointer != size << 3 | 2
        or words + 1 << 3 != len(frame)
        or begin + (size + 7 & ~7) != len(frame)
    ):
        return None
    return Resolved([task_id], [outcome], [frame[begin : begin + size]], [], [], [])
