"""Wrong and unusual batches of one row, for the tests of both one-row codecs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


def draw_flaw(draw: Any, columns: list[Any], payload_field: int, elements: dict[str, Any], payloads: Any) -> None:
    """Change at most one of the columns.

    Args:
        draw: draws from a strategy.
        columns: type and values of each column.
        payload_field: the index of the payload's column.
        elements: for each type of columns the strategy of its elements.
        payloads: the strategy of payloads.
    """
    field = draw(st.integers(0, len(columns) - 1))
    typecode, values = columns[field]
    flaw = draw(st.sampled_from(["none", "number", "length", "type", "payload"]))
    if flaw == "number":
        columns[field] = (typecode, [draw(elements[typecode])])
    elif flaw == "length":
        columns[field] = (typecode, list(values) * draw(st.sampled_from([0, 2])))
    elif flaw == "type":
        columns[field] = (draw(st.sampled_from(list(elements))), [1])
    elif flaw == "payload":
        columns[payload_field] = (columns[payload_field][0], draw(payloads))


def resized(frame: bytes, words: int) -> bytes:
    """The frame with words added or removed at its end, and a matching header."""
    changed = frame[: len(frame) + min(words, 0) * 8] + bytes(8 * max(words, 0))
    return changed[:4] + (len(changed) // 8 - 1).to_bytes(4, "little") + changed[8:]
