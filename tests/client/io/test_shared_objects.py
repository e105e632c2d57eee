"""Objects as files for a scheduler on the same host, and when their bytes are sent instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaler_client.commands import object_files
from scaler_client.commands.object_files import SHARED_BYTES, directory_of, read_frames
from scaler_client.io import shared_objects
from scaler_client.io.shared_objects import share_object
from scaler_client.protocol.messages import Object

SCHEDULER, CLIENT = 5, 6
FRAMES = [b"pickle", b"x" * SHARED_BYTES]
MESSAGE = Object(7, FRAMES, name="table")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and permissions as on Unix")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the scheduler's directory, which does not exist yet."""
    monkeypatch.setattr(object_files, "SHARED_MEMORY", str(tmp_path))
    return Path(directory_of(SCHEDULER))


def test_large_object_becomes_a_file(directory: Path) -> None:
    directory.mkdir()
    assert share_object(SCHEDULER, CLIENT, MESSAGE) == Object(7, (), name="table", file_bytes=SHARED_BYTES + 6)
    assert read_frames(str(directory), (CLIENT, 7)) == FRAMES
    share_object(SCHEDULER, CLIENT, Object(7, [b"y" * SHARED_BYTES]))
    assert read_frames(str(directory), (CLIENT, 7)) == [b"y" * SHARED_BYTES], "as it is sent again"


def test_small_object_is_sent(directory: Path) -> None:
    directory.mkdir()
    small = Object(7, [b"x" * (SHARED_BYTES - 1)])
    assert share_object(SCHEDULER, CLIENT, small) is small


def test_scheduler_elsewhere(directory: Path, tmp_path: Path) -> None:
    assert share_object(SCHEDULER, CLIENT, MESSAGE) is MESSAGE
    (tmp_path / "theirs").mkdir()
    directory.symlink_to(tmp_path / "theirs")
    assert share_object(SCHEDULER, CLIENT, MESSAGE) is MESSAGE, "a link may lead anywhere"


def test_directory_of_another_user(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert share_object(SCHEDULER, CLIENT, MESSAGE) is MESSAGE


def test_no_space(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_objects, "write_object", fail)
    assert share_object(SCHEDULER, CLIENT, MESSAGE) is MESSAGE
