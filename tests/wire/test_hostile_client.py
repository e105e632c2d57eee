"""For any bytes the client library decodes a message or raises WireError, in little time and memory. CPython only."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from tests.wire.hostile import (
    BY_HAND,
    assert_mutations_are_refused,
    assert_refused_in_little_memory,
    is_refused_by,
    truncated,
)
from tests.wire.vectors import ALL, is_for_peers

from scaler_client.protocol import wire


def is_refused(frames: list[bytes]) -> bool:
    return is_refused_by(wire.decode, wire.WireError, frames, 500)


@pytest.mark.parametrize("vector", [v for v in ALL if is_for_peers(v)], ids=lambda v: v.name)
def test_truncated(vector):
    for frames in truncated(vector):
        assert is_refused(frames), f"accepted when cut to {[len(frame) for frame in frames]} bytes"


@pytest.mark.parametrize("seed", range(3))
def test_mutated(seed):
    assert_mutations_are_refused(seed, is_refused)


@pytest.mark.parametrize("name", BY_HAND)
def test_handmade_message(name):
    assert_refused_in_little_memory(BY_HAND[name], is_refused)
