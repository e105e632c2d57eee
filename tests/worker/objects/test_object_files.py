"""Object files: written whole or not at all, mapped read-only, private to the user."""

from __future__ import annotations

import gc
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scaler_client.commands.object_files import (
    ALIGNMENT,
    MAX_REASON_LENGTH,
    bytes_in,
    link_object,
    mark_lost,
    objects_in,
    remove_all,
    remove_files,
    remove_object,
    remove_unfinished,
    write_object,
)
from scaler_worker.objects.files import ObjectLostError, read_object

NAME = (1 << 62, 7)
FILE = "4000000000000000-0000000000000007"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and permissions as on Unix")


def read(directory: Path) -> list[bytes]:
    frames = read_object(str(directory), NAME)
    assert frames is not None
    return list(map(bytes, frames))


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Make writes beyond this many bytes fail, as if no space is left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_link_outlives_the_file(tmp_path: Path) -> None:
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    write_object(str(tmp_path / "theirs"), NAME, [b"p", b"q"])
    write_object(str(tmp_path / "ours"), NAME, [b"an older one"])
    link_object(str(tmp_path / "theirs"), str(tmp_path / "ours"), NAME)
    remove_object(str(tmp_path / "theirs"), NAME)
    assert read(tmp_path / "ours") == [b"p", b"q"]
    with pytest.raises(FileNotFoundError):
        link_object(str(tmp_path / "theirs"), str(tmp_path / "ours"), NAME)
    assert read(tmp_path / "ours") == [b"p", b"q"]
    assert os.listdir(tmp_path / "ours") == [FILE]


@pytest.mark.parametrize(
    "frames",
    [[b"pickle"], [b""], [b"pickle", b"", b"x" * 63, b"y" * 64, b"z" * 65, b""], [b"a"] * 64, [b"p", b"1" * 3_000_000]],
    ids=["one", "empty", "odd sizes", "many", "large"],
)
def test_frames_come_back_aligned_and_read_only(tmp_path: Path, frames: list[bytes]) -> None:
    write_object(str(tmp_path), NAME, frames)
    mapped = read_object(str(tmp_path), NAME)
    assert mapped is not None and list(map(bytes, mapped)) == frames
    assert all(frame.readonly for frame in mapped)
    content = (tmp_path / FILE).read_bytes()
    for frame in frames:
        assert not frame or any(content.startswith(frame, begin) for begin in range(ALIGNMENT, len(content), ALIGNMENT))


def test_frames_may_be_any_kind_of_memory(tmp_path: Path) -> None:
    numbers = memoryview(bytearray(24)).cast("Q")
    numbers[1] = 258
    write_object(str(tmp_path), NAME, [b"a", memoryview(b"bc"), numbers])
    assert read(tmp_path) == [b"a", b"bc", bytes(numbers)]


def test_the_file_is_private_and_no_unfinished_file_is_left(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_object(str(tmp_path), NAME, [b"a"])
    finally:
        os.umask(before)
    assert os.listdir(tmp_path) == [FILE]
    assert stat.S_IMODE(os.stat(tmp_path / FILE).st_mode) == 0o600


def test_a_mapping_outlives_its_file(tmp_path: Path) -> None:
    write_object(str(tmp_path), NAME, [b"a" * 100_000])
    frames = read_object(str(tmp_path), NAME)
    remove_object(str(tmp_path), NAME)
    remove_object(str(tmp_path), NAME)
    assert os.listdir(tmp_path) == [] and read_object(str(tmp_path), NAME) is None
    assert frames is not None and bytes(frames[0]) == b"a" * 100_000


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no /proc here")
def test_the_last_view_frees_memory_and_descriptors(tmp_path: Path) -> None:
    def mappings() -> int:
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    write_object(str(tmp_path), NAME, [b"pickle", b"a" * 100_000])
    descriptors = len(os.listdir("/proc/self/fd"))
    many = [read_object(str(tmp_path), NAME) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) == descriptors and mappings() == 50
    frames = many.pop()
    del many
    assert frames is not None and mappings() == 1
    slice_of_it = frames.pop()[5:10]
    del frames
    assert mappings() == 1 and bytes(slice_of_it) == b"aaaaa"
    del slice_of_it
    gc.collect()
    assert mappings() == 0


def test_a_file_that_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    with no_file_above(100_000), pytest.raises(OSError, match="large"):
        write_object(str(tmp_path), NAME, [b"pickle", b"a" * 200_000])
    assert os.listdir(tmp_path) == [] and read_object(str(tmp_path), NAME) is None


def test_the_reason_stands_in_the_place_of_a_missing_file(tmp_path: Path) -> None:
    mark_lost(str(tmp_path), NAME, "No space left on device")
    with pytest.raises(ObjectLostError, match="^No space left on device$"):
        read(tmp_path)
    remove_object(str(tmp_path), NAME)
    mark_lost(str(tmp_path), NAME, "x" * 1000)
    with pytest.raises(ObjectLostError, match=f"^x{{{MAX_REASON_LENGTH}}}$"):
        read(tmp_path)


def test_a_link_to_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret" * 10)
    (tmp_path / FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(ObjectLostError, match="secret$"):
        read(tmp_path)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / f"{FILE}.{os.getpid()}.part").symlink_to(tmp_path / "secret")
    with pytest.raises(FileExistsError):
        write_object(str(tmp_path / "target"), NAME, [b"overwritten"])
    assert (tmp_path / "secret").read_bytes() == b"secret" * 10


def cut(content: bytes) -> bytes:
    return content[:-1]


def lengthened(content: bytes) -> bytes:
    return content + b"x"


def emptied(_: bytes) -> bytes:
    return b""


def of_another_kind(content: bytes) -> bytes:
    return b"x" * len(content)


def with_too_many_frames(content: bytes) -> bytes:
    return content[:8] + b"\xff" * 8 + content[16:]


def with_huge_frames(content: bytes) -> bytes:
    return content[:16] + b"\xff" * 8 + content[24:]


@pytest.mark.parametrize("damage", [cut, lengthened, emptied, of_another_kind, with_too_many_frames, with_huge_frames])
def test_a_damaged_file_is_an_error(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write_object(str(tmp_path), NAME, [b"a" * 100, b"b" * 100])
    path = tmp_path / FILE
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ObjectLostError, match="damaged"):
        read(tmp_path)


def test_a_directory_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ObjectLostError, match="damaged"):
        read(tmp_path)
    (tmp_path / FILE).rmdir()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(ObjectLostError, match="damaged"):
        read(tmp_path)


def test_an_error_of_the_system_is_in_the_text(tmp_path: Path) -> None:
    with pytest.raises(ObjectLostError, match="can't be read: File name too long"):
        read(tmp_path / ("x" * 300))


@pytest.mark.parametrize("more", [None, "notes.txt", "scaler", FILE + ".old"])
def test_a_directory_with_other_files_is_not_removed(tmp_path: Path, more: Any) -> None:
    directory = tmp_path / "objects"
    directory.mkdir()
    write_object(str(directory), NAME, [b"a"])
    mark_lost(str(directory), (1, 2), "lost")
    (directory / (FILE + ".4711.part")).write_bytes(b"half of it")
    if more is not None:
        (directory / more).write_text("of somebody else")
    remove_all(str(directory))
    remove_all(str(directory))
    assert directory.exists() == (more is not None)
    assert more is None or os.listdir(directory) == [more]


def test_only_unfinished_files_of_the_process_are_removed(tmp_path: Path) -> None:
    write_object(str(tmp_path), NAME, [b"a"])
    for pid in (471, 4711):
        (tmp_path / f"{FILE}.{pid}.part").write_bytes(b"half of it")
    remove_unfinished(str(tmp_path), 471)
    assert sorted(os.listdir(tmp_path)) == [FILE, f"{FILE}.4711.part"]
    assert objects_in(str(tmp_path)) == [NAME]
    assert bytes_in(str(tmp_path)) == len(b"half of it") + (tmp_path / FILE).stat().st_size
    remove_files(str(tmp_path))
    assert os.listdir(tmp_path) == [] and bytes_in(str(tmp_path)) == 0
    tmp_path.rmdir()
    remove_unfinished(str(tmp_path), 471)
    assert bytes_in(str(tmp_path)) == 0 and objects_in(str(tmp_path)) == []


def test_removal_works_if_another_process_removes_files_meanwhile(tmp_path: Path, monkeypatch: Any) -> None:
    replace = os.replace

    def emptied(source: str, target: str) -> None:
        remove_files(str(tmp_path))
        replace(source, target)

    monkeypatch.setattr(os, "replace", emptied)
    with pytest.raises(FileNotFoundError):
        write_object(str(tmp_path), NAME, [b"a"])
    assert os.listdir(tmp_path) == []
