"""Whatever arrives, the client's library reads a message or raises WireError, soon, in little memory. CPython only."""

from __future__ import annotations

import sys
import time

import pytest

pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from tests.wire.hostile import BY_HAND, mutations, truncated
from tests.wire.test_hostile_scheduler import MOST_KILOBYTES, MOST_SECONDS, peak_kilobytes
from tests.wire.vectors import ALL, is_for_peers

from scaler_client import wire


def is_refused(frames: list[bytes]) -> bool:
    begun = time.monotonic()
    try:
        wire.decode(frames)
    except wire.WireError as error:
        assert 0 < len(str(error)) < 500
        assert "\n" not in str(error)
        return True
    finally:
        assert time.monotonic() - begun < MOST_SECONDS
    return False


@pytest.mark.parametrize("vector", [v for v in ALL if is_for_peers(v)], ids=lambda v: v.name)
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
