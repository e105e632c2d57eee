"""How `map` packs its calls into blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from scaler_client.api.map_run import CallPacker, MapPlan
from scaler_client.pickling.call_rows import MAX_BLOCK_BYTES, CallBlock
from scaler_client.pickling.functions import Function
from scaler_client.pickling.serializer import call_dumper


def packed(iterable: Iterable[Any]) -> list[CallBlock]:
    function = Function(1, "f", b"")
    function.call_time.add(1, 1000)
    packer = CallPacker(None, MapPlan(function, call_dumper(None), iterable, None, None))
    blocks = []
    while more := packer.next_blocks():
        blocks += more
    assert [block.first for block in blocks] == [sum(block.count for block in blocks[:at]) for at in range(len(blocks))]
    return blocks


@pytest.mark.parametrize("kind", [zip, lambda *columns: list(zip(*columns, strict=True))])
def test_large_calls_are_rows_of_their_own(kind: Any) -> None:
    sizes = [1] * 20 + [MAX_BLOCK_BYTES + 1] * 8 + [1] * 3
    blocks = packed(kind("x" * size for size in sizes))
    assert sum(block.count for block in blocks) == len(sizes)
    assert [block.is_plain for block in blocks][-11:] == [True] * 11


def test_the_items_of_a_zip_may_change_their_type() -> None:
    blocks = packed(zip([1] * 5000 + [[]] * 5000))  # type: ignore[list-item]
    assert sum(block.count for block in blocks) == 10_000 and not any(block.is_plain for block in blocks)
