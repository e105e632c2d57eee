"""For any bytes the scheduler decodes a message or raises WireError, in little time and memory. PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.wire.hostile import (
    BY_HAND,
    assert_mutations_are_refused,
    assert_refused_in_little_memory,
    is_refused_by,
    truncated,
)
from tests.wire.vectors import ALL, is_for_scheduler

from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.errors import WireError


def is_refused(frames: list[bytes]) -> bool:
    return is_refused_by(lambda frames: decode(b"route", frames), WireError, frames, 200)


@pytest.mark.parametrize("vector", [v for v in ALL if is_for_scheduler(v)], ids=lambda v: v.name)
def test_truncated(vector):
    for frames in truncated(vector):
        assert is_refused(frames), f"accepted when cut to {[len(frame) for frame in frames]} bytes"


@pytest.mark.parametrize("seed", range(3))
def test_mutated(seed):
    assert_mutations_are_refused(seed, is_refused)


@pytest.mark.parametrize("name", BY_HAND)
def test_handmade_message(name):
    assert_refused_in_little_memory(BY_HAND[name], is_refused)
