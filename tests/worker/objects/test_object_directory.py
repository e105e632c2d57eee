"""The directory of a host's object files: how it is made, locked and removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scaler_client.commands.object_directory import ObjectDirectory, make_directory
from scaler_client.commands.object_files import write_object
from scaler_worker.objects.host_storage import HostStorage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no locks on directories")
NAME = "scaler-000000000000004d"
OWNER = """
import sys
from scaler_client.commands.object_directory import make_directory
from scaler_client.commands.object_files import write_object
from scaler_worker.objects.host_storage import HostStorage
directory = make_directory(int(sys.argv[2]), [sys.argv[1]])
write_object(directory.path, (1, 2), [b"frame"])
print(directory.path, flush=True)
sys.stdin.read()
"""


@contextmanager
def made_by_a_process(place: Path, agent: int) -> Iterator[subprocess.Popen[str]]:
    """A process that has made its directory, with an object in it."""
    command = [sys.executable, "-c", OWNER, str(place), str(agent)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline().strip() == str(place / f"scaler-{agent:016x}")
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_directory_is_private_to_its_user(tmp_path: Path) -> None:
    directory = make_directory(77, [str(tmp_path)])
    assert directory.path == str(tmp_path / NAME)
    assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o700
    write_object(directory.path, (1, 2), [b"frame"])
    directory.remove()
    directory.remove()
    assert os.listdir(tmp_path) == []


def test_the_second_place_is_used_if_the_first_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "good").mkdir()
    taken = tmp_path / "taken" / NAME
    taken.mkdir(parents=True)
    (taken / "of somebody else").write_text("")
    places = [str(tmp_path / name) for name in ("missing", "file", "taken", "good")]
    directory = make_directory(77, places)
    assert directory.path == str(tmp_path / "good" / NAME)
    directory.remove()
    assert os.listdir(taken) == ["of somebody else"]


def test_no_usable_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file"):
        make_directory(77, [str(tmp_path / "missing"), str(tmp_path / "file")])
    with pytest.raises(FileNotFoundError):
        make_directory(77, [])


def test_a_killed_agents_directory_is_removed_at_the_next_start(tmp_path: Path) -> None:
    with made_by_a_process(tmp_path, 5) as process:
        process.kill()
        process.wait()
        assert len(os.listdir(tmp_path)) == 1
        directory = make_directory(77, [str(tmp_path)])
        assert os.listdir(tmp_path) == [NAME]
        directory.remove()


def test_a_living_agents_directory_is_kept(tmp_path: Path) -> None:
    with made_by_a_process(tmp_path, 5):
        directory = make_directory(77, [str(tmp_path)])
        assert sorted(os.listdir(tmp_path)) == ["scaler-0000000000000005", NAME]
        assert os.listdir(tmp_path / "scaler-0000000000000005")
        directory.remove()


def test_other_files_with_similar_names_are_kept(tmp_path: Path) -> None:
    (tmp_path / "scaler-5").mkdir()
    (tmp_path / "scaler-000000000000000g").mkdir()
    (tmp_path / "scaler-0000000000000006").write_text("a file")
    (tmp_path / "scaler-0000000000000007").symlink_to(tmp_path / "scaler-5")
    (tmp_path / "scaler-0000000000000008").mkdir()
    (tmp_path / "scaler-0000000000000008" / "notes").write_text("not an object")
    before = sorted(os.listdir(tmp_path))
    make_directory(77, [str(tmp_path)]).remove()
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_holds_the_lock_until_it_releases_it(tmp_path: Path) -> None:
    """The fork server keeps the lock after the agent's end. Workers release it."""
    directory = ObjectDirectory(str(tmp_path / NAME))
    (from_child, tell), (from_test, order) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(from_test, 1)
            directory.release_lock()
            os.write(tell, b"left")
            os.read(from_test, 1)
        finally:
            os._exit(0)
    directory.release_lock()
    make_directory(5, [str(tmp_path)]).remove()
    assert os.listdir(tmp_path) == [NAME]
    os.write(order, b".")
    os.read(from_child, 4)
    make_directory(5, [str(tmp_path)]).remove()
    assert os.listdir(tmp_path) == []
    os.write(order, b".")
    os.waitpid(child, 0)
    for end in (from_child, tell, from_test, order):
        os.close(end)


def test_a_directory_removed_before_its_lock_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = os.mkdir

    def mkdir(path: str, mode: int) -> None:
        made.append(path)
        make(path, mode)
        if len(made) == 1:
            os.rmdir(path)  # as another agent does at its start

    monkeypatch.setattr(os, "mkdir", mkdir)
    directory = ObjectDirectory(str(tmp_path / NAME))
    assert made == [directory.path] * 2 and os.path.isdir(directory.path)
    directory.remove()


def test_the_directory_on_disk_is_removed_with_the_one_in_memory(tmp_path: Path) -> None:
    for place in ("memory", "disk"):
        (tmp_path / place).mkdir()
    directory = make_directory(77, [str(tmp_path / "memory")])
    directory.on_disk = make_directory(77, [str(tmp_path / "disk")])
    storage = HostStorage(directory.path)
    storage.create(1, 1 << 20, directory.on_disk.path)
    storage.write((1, 2), [b"frame"])
    assert os.listdir(directory.on_disk.path)
    directory.remove()
    assert os.listdir(tmp_path / "memory") == os.listdir(tmp_path / "disk") == []


def test_a_killed_agents_directory_on_disk_is_removed_at_the_next_start(tmp_path: Path) -> None:
    with made_by_a_process(tmp_path, 5) as process:
        process.kill()
        process.wait()
        left = tmp_path / f"scaler-{5:016x}" / f"{1:016x}-{2:016x}.4711.3.100"
        left.write_bytes(b"spilled")
        make_directory(77, [str(tmp_path)]).remove()
        assert os.listdir(tmp_path) == []
