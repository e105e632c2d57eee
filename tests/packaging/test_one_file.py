"""The one-file scheduler's stub: its target folder, its checks, its messages.

The real file is tried by `make package`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.packaging.fake_file import MISFIT, NAME, Outcome, Starter, make_file


def folders(cache: Path) -> list[str]:
    """All entries of a cache, including hidden ones."""
    return sorted(entry.name for entry in cache.iterdir())


def test_program_gets_arguments_and_environment(starter: Starter, tmp_path: Path) -> None:
    outcome = Outcome(starter.start("echo", "two words", "", CACHE_DIRECTORY=tmp_path), "input")
    assert outcome.output.endswith("argument echo\nargument two words\nargument \ninput")
    assert outcome.said["pid"] == str(outcome.process)  # in the same process: signals and systemd find it
    assert (outcome.status, outcome.errors) == (7, "")


def test_target_folder(starter: Starter, tmp_path: Path) -> None:
    home = tmp_path / "home"
    places = {
        "CACHE_DIRECTORY": (tmp_path / "service", tmp_path / "service"),
        "XDG_CACHE_HOME": (tmp_path / "xdg", tmp_path / "xdg" / "scaler"),
        "HOME": (home, home / ".cache" / "scaler"),
    }
    variables = {name: value for name, (value, _) in places.items()}
    for name, (_, expected) in places.items():
        assert starter.run(**variables).folder.parent == expected
        del variables[name]
    own = starter.temporary / f"scaler-{os.getuid()}"
    assert starter.run(XDG_CACHE_HOME="relative", HOME="").folder.parent == own
    assert own.stat().st_mode & 0o777 == 0o700


def test_second_start_does_not_unpack(starter: Starter, tmp_path: Path) -> None:
    first = starter.run(CACHE_DIRECTORY=tmp_path)
    inode = first.folder.stat().st_ino
    assert starter.run(CACHE_DIRECTORY=tmp_path).folder.stat().st_ino == inode
    assert first.folder.stat().st_mode & 0o777 == 0o700


def test_concurrent_starts_share_one_folder(starter: Starter, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    processes = [starter.start(CACHE_DIRECTORY=cache) for _ in range(6)]
    outcomes = [Outcome(process) for process in processes]
    assert [(outcome.status, outcome.errors) for outcome in outcomes] == [(7, "")] * 6
    assert folders(cache) == [outcomes[0].folder.name]


def cut_short(file: Path) -> None:
    os.truncate(file, 10)


def overwritten(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.parametrize("damage", [Path.unlink, cut_short, overwritten, lambda file: file.chmod(0o600)])
def test_damaged_cache_is_unpacked_again(damage: object, starter: Starter, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = starter.run(CACHE_DIRECTORY=cache).folder
    damage(folder / "app" / "padding")  # type: ignore[operator]
    outcome = starter.run(CACHE_DIRECTORY=cache)
    assert outcome.errors == f"{NAME}: {folder} is damaged: it is unpacked again\n"
    assert (outcome.status, outcome.folder) == (7, folder)
    assert folders(cache) == [folder.name]
    assert starter.run(CACHE_DIRECTORY=cache).errors == ""


def test_cache_that_others_can_write_to_is_not_used(starter: Starter, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    outcome = starter.run(CACHE_DIRECTORY=cache, HOME=tmp_path)
    reason = "it belongs to another user, or others may write to it"
    assert outcome.errors == f"{NAME}: can't be unpacked to {cache}: {reason}\n"
    assert outcome.folder.parent == tmp_path / ".cache" / "scaler"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_cache_of_another_user_is_not_used(starter: Starter, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = starter.run(CACHE_DIRECTORY=cache).folder
    os.chown(folder, 65534, 65534)
    outcome = starter.run(CACHE_DIRECTORY=cache, HOME=tmp_path)
    assert outcome.errors == f"{NAME}: can't be unpacked to {cache}: {folder.name} in it belongs to another user\n"
    assert outcome.folder.parent == tmp_path / ".cache" / "scaler"
    os.chown(cache, 65534, 65534)
    assert f"can't be unpacked to {cache}: it belongs" in starter.run(CACHE_DIRECTORY=cache, HOME=tmp_path).errors


def test_folder_that_cannot_be_made(starter: Starter, tmp_path: Path) -> None:
    outcome = starter.run(CACHE_DIRECTORY="/dev/null/cache", HOME=tmp_path)
    assert outcome.errors == f"{NAME}: can't be unpacked to /dev/null/cache: Not a directory\n"
    assert outcome.status == 7


def test_no_usable_folder(starter: Starter) -> None:
    outcome = starter.run(XDG_CACHE_HOME="/dev/null", TMPDIR="/dev/null")
    lines = outcome.errors.splitlines()
    assert (len(lines), outcome.status, outcome.output) == (3, 73, "")
    assert lines[2].startswith(f"{NAME}: there is no place to unpack to")


MOUNT = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*MOUNT, "mount -t tmpfs tmpfs /mnt"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("noexec", "programs can't be run from there (mounted noexec?)"),
        ("size=1m", "No space left on device"),
        ("ro", "Read-only file system"),
    ],
)
def test_unusable_mounts(options: str, reason: str, tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("no mounts of one's own on this machine")
    starter = Starter(make_file(tmp_path, padding=3 << 20), tmp_path / "temporary")
    cache = tmp_path / "cache"
    cache.mkdir()
    mount = f'mount -t tmpfs -o {options},mode=700 tmpfs {cache} && exec "$0" "$@"'
    outcome = starter.run(before=(*MOUNT, mount), CACHE_DIRECTORY=cache, HOME=tmp_path)
    assert outcome.errors == f"{NAME}: can't be unpacked to {cache}: {reason}\n"
    assert outcome.folder.parent == tmp_path / ".cache" / "scaler"


@pytest.mark.parametrize("can_run", [True, False], ids=["runs", "cannot run"])
def test_start_without_proc(can_run: bool, tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("no mounts of one's own on this machine")
    file = make_file(tmp_path) if can_run else make_file(tmp_path, "#!/bin/sh\necho 'no cache size' >&2\nexit 1\n")
    mount = 'mount -t tmpfs tmpfs /proc && exec "$0" "$@"'
    outcome = Starter(file, tmp_path / "temporary").run(before=(*MOUNT, mount), HOME=tmp_path)
    what = "/proc is not mounted here: mount it (mount -t proc proc /proc)"
    if can_run:
        without = "without it the scheduler does not see a container's memory limit"
        assert (outcome.errors, outcome.status) == (f"{NAME}: {what}; {without}\n", 7)
    else:
        assert (outcome.errors, outcome.status) == (f"{NAME}: PyPy can't be run here. {what}\n", 71)


def test_truncated_file_is_reported(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(file.read_bytes()[:-10])
    copy.chmod(0o755)
    outcome = Starter(copy, tmp_path / "temporary").run(HOME=tmp_path)
    assert (outcome.errors, outcome.status) == (f"{NAME}: {copy} is damaged: copy it again\n", 66)
    assert folders(tmp_path / ".cache" / "scaler") == []


def test_machine_with_an_old_glibc(tmp_path: Path) -> None:
    outcome = Starter(make_file(tmp_path, MISFIT), tmp_path / "temporary").run(HOME=tmp_path)
    assert outcome.errors.startswith(f"{NAME}: needs an x86-64 Linux with glibc 2.36 or newer; here is ")
    assert (outcome.errors.count("\n"), outcome.status) == (1, 71)
    assert folders(tmp_path / ".cache" / "scaler") == []


def test_unused_other_versions_are_removed(starter: Starter, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    there = {}
    for version, days in (("1.2.4", 29), ("1.2.5", 31)):
        there[days] = (
            Starter(make_file(tmp_path, version=version), tmp_path / version).run(CACHE_DIRECTORY=cache).folder
        )
        make_old(there[days] / ".used", days)
    abandoned = cache / ".unpack-aaaaaa"
    abandoned.mkdir()
    make_old(abandoned, 2)
    newest = starter.run(CACHE_DIRECTORY=cache).folder
    assert folders(cache) == sorted([there[29].name, newest.name])


def make_old(path: Path, days: int) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_same_tree_gives_the_same_file(file: Path, tmp_path: Path) -> None:
    tree = file.parent / "tree-1.2.3"
    shutil.copytree(tree, tmp_path / "tree-1.2.3")
    again = tmp_path / "again"
    variables = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "NURSERY": "32M", "GROWTH": "1.4", "GLIBC": "2.36"}
    pack = Path(__file__).resolve().parents[2] / "packaging" / "one_file" / "pack.sh"
    arguments = [str(pack), str(tmp_path / "tree-1.2.3"), NAME, "1.2.3", str(again)]
    subprocess.run(arguments, check=True, env=variables, timeout=60)
    assert again.read_bytes() == file.read_bytes()
