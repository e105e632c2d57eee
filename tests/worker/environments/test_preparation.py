"""The cache of contents and the folders of modules, with real files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaler_client.environments.manifest import Manifest, ModuleFile, digest_of
from scaler_worker.environments.content_cache import CacheFolderError, ContentCache, default_cache_folder
from scaler_worker.environments.preparation import ContentsMissingError, EnvironmentFolders, PreparationError

HELPERS, INNER = b"HELP = 1\n", b"X = 1\n"


def files(*named: tuple[str, bytes]) -> Manifest:
    return Manifest(
        tuple(sorted(ModuleFile(path, digest_of(content), path.endswith(".sh")) for path, content in named))
    )


MANIFEST = files(("helpers.py", HELPERS), ("pkg/__init__.py", b""), ("pkg/inner.py", INNER), ("pkg/run.sh", b"true"))
CONTENTS = [HELPERS, b"", INNER, b"true"]
NAME = digest_of(MANIFEST.to_bytes())


@pytest.fixture
def folders(tmp_path: Path) -> EnvironmentFolders:
    return EnvironmentFolders(str(tmp_path / "cache"), 1 << 20, 7)


def fill(folders: EnvironmentFolders) -> None:
    for content in CONTENTS:
        folders.contents.add(content)


def test_a_prepared_environment_is_a_folder_of_modules(folders: EnvironmentFolders) -> None:
    assert folders.contents.missing(MANIFEST.module_digests) == MANIFEST.module_digests
    fill(folders)
    assert folders.contents.missing(MANIFEST.module_digests) == []
    prepared = folders.prepare(NAME, MANIFEST.to_bytes())
    there = Path(prepared.folder)
    assert (there / "pkg" / "inner.py").read_bytes() == INNER
    assert os.access(there / "pkg" / "run.sh", os.X_OK) and not os.access(there / "helpers.py", os.X_OK)
    assert there.stat().st_mode & 0o077 == 0
    assert folders.prepare(NAME, MANIFEST.to_bytes()) is prepared
    folders.remove(NAME)
    assert not there.exists() and NAME not in folders.prepared


def test_missing_contents(folders: EnvironmentFolders) -> None:
    folders.contents.add(HELPERS)
    with pytest.raises(ContentsMissingError) as missing:
        folders.prepare(NAME, MANIFEST.to_bytes())
    assert sorted(missing.value.names) == sorted({digest_of(content) for content in CONTENTS} - {digest_of(HELPERS)})
    assert not folders.prepared


def test_a_content_that_was_changed_is_removed(folders: EnvironmentFolders, caplog: pytest.LogCaptureFixture) -> None:
    fill(folders)
    path = folders.contents.path(digest_of(INNER))
    Path(path).write_bytes(b"import os; os.system('evil')")
    with pytest.raises(ContentsMissingError) as missing:
        folders.prepare(NAME, MANIFEST.to_bytes())
    assert missing.value.names == [digest_of(INNER)] and not os.path.exists(path)
    assert "was changed: it is removed and got again" in caplog.text
    folders.contents.add(INNER)
    assert Path(folders.prepare(NAME, MANIFEST.to_bytes()).folder, "pkg", "inner.py").read_bytes() == INNER


def test_a_manifest_that_was_changed(folders: EnvironmentFolders) -> None:
    with pytest.raises(PreparationError, match="the manifest was changed on its way"):
        folders.prepare(NAME, MANIFEST.to_bytes() + b" ")


def test_a_manifest_that_leaves_its_folder(folders: EnvironmentFolders) -> None:
    data = Manifest((ModuleFile("../../evil.py", digest_of(HELPERS)),)).to_bytes()
    folders.contents.add(HELPERS)
    with pytest.raises(PreparationError, match="leaves the folder of the modules"):
        folders.prepare(digest_of(data), data)


def test_packages_are_not_installed(folders: EnvironmentFolders) -> None:
    data = Manifest((), {"lock": "x"}).to_bytes()
    with pytest.raises(PreparationError, match="packages"):
        folders.prepare(digest_of(data), data)


def test_a_full_disk(folders: EnvironmentFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folders)

    def no_room(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(os, "open", no_room)
    with pytest.raises(PreparationError, match="No space left on device"):
        folders.prepare(NAME, MANIFEST.to_bytes())
    monkeypatch.undo()
    assert folders.prepare(NAME, MANIFEST.to_bytes())


def test_the_cache_outlives_the_agent_and_its_folders_do_not(tmp_path: Path, folders: EnvironmentFolders) -> None:
    fill(folders)
    prepared = folders.prepare(NAME, MANIFEST.to_bytes())
    other = EnvironmentFolders(str(tmp_path / "cache"), 1 << 20, 8)
    assert os.path.exists(prepared.folder), "another agent that lives"
    assert other.contents.missing(MANIFEST.module_digests) == []
    folders.close()
    assert not os.path.exists(prepared.folder)
    other.close()


def test_the_folders_of_a_killed_agent_go_with_the_next_one(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    program = (
        "import os, signal\n"
        "from scaler_worker.environments.preparation import EnvironmentFolders\n"
        f"folders = EnvironmentFolders({cache!r}, 1 << 20, 9)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    left = tmp_path / "cache" / "running" / f"{9:016x}"
    assert left.exists()
    EnvironmentFolders(cache, 1 << 20, 10).close()
    assert not left.exists()


def test_the_oldest_contents_go_first(tmp_path: Path) -> None:
    cache = ContentCache(str(tmp_path / "cache"), 1000)
    names = []
    for number in range(4):
        names.append(cache.add(bytes([number]) * 300))
        then = time.time() - 100 + number
        os.utime(cache.path(names[-1]), (then, then))
    assert cache.read(names[0])  # now it is the newest
    cache.trim()
    assert cache.missing(names) == [names[1]]
    cache.trim()
    assert cache.missing(names) == [names[1]]


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_cache_that_others_may_write_to(tmp_path: Path, mode: int) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(CacheFolderError, match="others may write to it"):
        ContentCache(str(tmp_path / "cache"), 1000)


def test_a_cache_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(CacheFolderError, match="cache"):
        ContentCache(str(tmp_path / "cache"), 1000)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(CacheFolderError, match="is not a folder"):
        ContentCache(str(tmp_path / "link"), 1000)


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_cache_folder() == "/caches/scaler"
