"""Large files in shared memory: their bytes, their pages, and systems without huge pages or without room."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scaler_client.commands import mapped_files
from scaler_client.commands.mapped_files import (
    HUGE_PAGE_BYTES,
    LEAST_HUGE_PAGES,
    PIECE_PAGES,
    map_file,
    write_frames_to_memory,
)
from scaler_client.commands.object_files import SHARED_MEMORY, frame_places, path_of, write_object

pytestmark = pytest.mark.skipif(
    not os.path.isdir(SHARED_MEMORY) or not 0 < HUGE_PAGE_BYTES <= 2 << 20, reason="no /dev/shm, or no small huge pages"
)

NAME = (7, 1)
PAGE = HUGE_PAGE_BYTES
LEAST = LEAST_HUGE_PAGES * PAGE
PIECE = PIECE_PAGES * PAGE
HEAD = 64
"""The bytes before the first of up to six frames."""

NOISE = random.Random(1).randbytes(1 << 20)


@pytest.fixture
def directory() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="scaler-test-", dir=SHARED_MEMORY) as path:
        yield path


def noise(size: int) -> bytes:
    return (NOISE * (size // len(NOISE) + 1))[:size]


def write(directory: str, frames: list[bytes]) -> None:
    write_object(directory, NAME, frames, write_frames_to_memory)


def read(directory: str) -> list[memoryview]:
    with open(path_of(directory, NAME), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapped = map_file(file.fileno(), size)
    return [mapped[begin : begin + length] for begin, length in frame_places(mapped, size)]


def mappings(directory: str) -> list[str]:
    """The parts of /proc/self/smaps about files of the directory."""
    found: list[str] = []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            found.append("")
        found[-1] += line + "\n"
    return [each for each in found if directory in each]


def huge_kilobytes(directory: str) -> int:
    """How much of the mapped files is in huge pages."""
    lines = [line.split() for each in mappings(directory) for line in each.splitlines()]
    return sum(int(line[1]) for line in lines if line[0] in ("ShmemPmdMapped:", "FilePmdMapped:"))


def failing(advice: int, number: int) -> Callable[[int, int, int], int]:
    """madvise that refuses one kind of advice."""
    advise = mapped_files._advise
    return lambda address, size, wanted: number if wanted == advice else advise(address, size, wanted)


@pytest.mark.parametrize(
    "sizes",
    [
        [LEAST - HEAD - 1],
        [LEAST - HEAD],
        [LEAST + 1],
        [3 * PIECE - HEAD, 1],
        [10, 3 * PIECE + 4097, 0, 100],
        [PIECE - HEAD, PIECE, 0],
        [2 * PIECE - HEAD - 1, 0],
        [100_000] * 64 + [LEAST],
    ],
)
def test_frames_come_back(directory: str, sizes: list[int]) -> None:
    frames = [noise(size) for size in sizes]
    write(directory, frames)
    found = read(directory)
    assert [bytes(frame) for frame in found] == frames and all(frame.readonly for frame in found)
    assert os.listdir(directory) == [os.path.basename(path_of(directory, NAME))]


def test_a_large_file_is_mapped_in_huge_pages(directory: str) -> None:
    write(directory, [noise(3 * LEAST)])
    assert mappings(directory) == []
    frames = read(directory)
    assert bytes(frames[0][::4096]) == noise(3 * LEAST)[::4096]
    if not huge_kilobytes(directory):
        pytest.skip("this system makes no huge pages")
    assert huge_kilobytes(directory) == 3 * LEAST >> 10
    assert os.stat(path_of(directory, NAME)).st_blocks * 512 < 3 * LEAST + PAGE
    part = frames.pop()[5:10]
    assert len(mappings(directory)) == 1
    del part
    assert mappings(directory) == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOMEM, errno.EAGAIN])
def test_without_huge_pages(directory: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "_advise", failing(mapped_files._COLLAPSE, number))
    frames = [b"pickle", noise(2 * LEAST + 1)]
    write(directory, frames)
    found = read(directory)
    assert list(map(bytes, found)) == frames and not huge_kilobytes(directory)


def test_no_room(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "_advise", failing(mapped_files._POPULATE_WRITE, errno.EFAULT))
    with pytest.raises(OSError) as caught:
        write(directory, [noise(2 * LEAST)])
    assert caught.value.errno == errno.ENOSPC and os.listdir(directory) == []
    del caught
    assert mappings(directory) == []
