"""The gang as its members see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scaler_client.nested.gang import Gang
from scaler_client.pickling import serializer


class Member:
    """A member whose partner gives this value in each call."""

    rank = 0
    hosts = ("node-1", "node-2")

    def __init__(self, partner: bytes) -> None:
        self._partner = partner

    def exchange(self, value: bytes, timeout: float | None) -> Sequence[bytes]:
        return [value, self._partner]


@pytest.mark.parametrize("value", [None, b"", 7])
def test_values_by_rank(value: Any) -> None:
    assert Gang(Member(serializer.dumps(value))).all_gather(1) == [1, value]


def test_members_that_make_different_calls() -> None:
    Gang(Member(b"")).barrier()
    with pytest.raises(RuntimeError, match=r"member 0 of the gang has called all_gather\(\), and member 1 barrier\(\)"):
        Gang(Member(b"")).all_gather(1)
    with pytest.raises(RuntimeError, match=r"member 0 of the gang has called barrier\(\), and member 1 all_gather\(\)"):
        Gang(Member(serializer.dumps(1))).barrier()
