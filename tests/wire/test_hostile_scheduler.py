"""Whatever arrives, the scheduler reads a message or raises WireError, soon and in little memory. PyPy and CPython."""

from __future__ import annotations

import resource
import time
from typing import List

import pytest
from tests.wire.hostile import BY_HAND, mutations, truncated
from tests.wire.vectors import ALL, is_for_scheduler

from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.errors import WireError

MOST_SECONDS = 5.0
"""For one message; far above what any takes on a busy machine, far below what half a billion of anything takes."""

MOST_KILOBYTES = 200 << 10


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def is_refused(frames: List[bytes]) -> bool:
    begun = time.monotonic()
    try:
        decode(b"route", frames)
    except WireError as error:
        assert 0 < len(str(error)) < 200
        assert "\n" not in str(error)
        return True
    finally:
        assert time.monotonic() - begun < MOST_SECONDS
    return False


@pytest.mark.parametrize("vector", [v for v in ALL if is_for_scheduler(v)], ids=lambda v: v.name)
def test_truncated(vector):
    for frames in truncated(vector):
        assert is_refused(frames), f"accepted when cut to {[len(frame) for frame in frames]} bytes"


@pytest.mark.parametrize("seed", range(3))
def test_mutated(seed):
    before = peak_kilobytes()
    refused = total = 0
    for made_of, frames in mutations(seed):
        total += 1
        try:
            refused += is_refused(frames)
        except Exception as error:
            raise AssertionError(f"{made_of}: {[frame.hex() for frame in frames]}") from error
    assert total // 2 < refused < total
    assert peak_kilobytes() - before < MOST_KILOBYTES


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    before = peak_kilobytes()
    assert is_refused(BY_HAND[name])
    assert peak_kilobytes() - before < MOST_KILOBYTES
