"""Arrays and data frames as objects: their buffers are sent without a copy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from scaler_client.io.objects import dump_object
from scaler_client.pickling.object_frames import OUT_OF_BAND_BYTES

LARGE = OUT_OF_BAND_BYTES


def load(frames: Any) -> Any:
    """Load an object as a worker does."""
    first, *others = frames
    return pickle.loads(first, buffers=[memoryview(frame).toreadonly() for frame in others])


@pytest.mark.parametrize(
    ("array", "buffers"),
    [
        (np.arange(LARGE, dtype=np.uint8), 1),
        (np.arange(LARGE, dtype=np.float64).reshape(64, -1).T, 1),
        (np.arange(LARGE - 1, dtype=np.uint8), 0),
        (np.arange(4 * LARGE, dtype=np.uint8)[::2], 1),
        (np.arange(LARGE, dtype=np.float64).reshape(64, -1)[:, :-5], 1),
        (np.arange(LARGE, dtype=np.float64)[::-1], 1),
    ],
)
def test_arrays(array: Any, buffers: int) -> None:
    frames = dump_object(array, None)
    assert len(frames) == 1 + buffers
    loaded = load(frames)
    assert np.array_equal(loaded, array) and not loaded.flags.writeable


def test_arrays_of_objects() -> None:
    array = np.array([1, "two", None] * LARGE, dtype=object)[::2]
    assert load(dump_object(array, None)).tolist() == array.tolist()


def test_arrays_are_not_copied() -> None:
    array = np.zeros(LARGE, dtype=np.uint8)
    frames = dump_object({"deep": [array]}, None)
    array[5] = 7
    assert load(frames)["deep"][0][5] == 7
    assert np.shares_memory(load(frames)["deep"][0], array)


def test_data_frames() -> None:
    frame = pd.DataFrame({"x": np.arange(LARGE), "y": np.arange(LARGE) / 3, "s": ["text"] * LARGE})
    frames = dump_object(frame, None)
    assert sum(map(len, frames[1:])) >= 16 * LARGE > len(frames[0])
    pd.testing.assert_frame_equal(load(frames), frame)


@pytest.mark.parametrize(
    "value", [pa.array(np.arange(LARGE)), pa.table({"x": np.arange(LARGE), "y": np.arange(LARGE) / 3})]
)
def test_arrow(value: Any) -> None:
    frames = dump_object(value, None)
    assert len(frames[0]) < 10_000 and load(frames) == value
