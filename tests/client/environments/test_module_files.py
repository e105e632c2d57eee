"""Which files are modules, how they and packages are read, and what is no module."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.wheel_files import make_wheel

from scaler_client import ModulesError, PackagesError
from scaler_client.environments import module_files, module_upload
from scaler_client.environments.manifest import digest_of, this_platform
from scaler_client.environments.module_files import ModuleReader
from scaler_client.environments.module_upload import ModuleUpload, checked_modules
from scaler_client.packages import sources
from scaler_client.packages.sources import PackageSource, read_packages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two modules, a package with data, and much that is no module."""
    files = {
        "helpers.py": "HELP = 1",
        "script.sh": "true",
        "data.csv": "1,2",
        ".hidden.py": "",
        "pkg/__init__.py": "",
        "pkg/inner.py": "X = 1",
        "pkg/table.json": "[]",
        "pkg/.secret": "",
        "pkg/old.pyc": "",
        "pkg/sub/deep.py": "",
        "pkg/__pycache__/inner.pyc": "",
        "names/part/__init__.py": "",
        "data/rows.csv": "1",
        ".git/hook.py": "",
        ".venv/x.py": "",
        "env/pyvenv.cfg": "",
        "env/lib.py": "",
        "no-name/x.py": "",
        "no-name/my-script.py": "",
        "__pycache__/helpers.pyc": "",
        "node_modules/x.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def read(*paths: Path | str, reader: ModuleReader | None = None) -> dict[str, bytes]:
    """The contents by path in the environment."""
    files, contents = (reader or ModuleReader()).read([str(path) for path in paths])
    assert [file.path for file in files] == sorted(file.path for file in files)
    return {file.path: contents[file.digest] for file in files}


def test_a_folder_of_modules(folder: Path) -> None:
    assert sorted(read(folder)) == [
        "helpers.py", "names/part/__init__.py", "pkg/__init__.py", "pkg/inner.py", "pkg/sub/deep.py",
        "pkg/table.json",
    ]  # fmt: skip


def test_namespaces_whose_modules_are_deep(folder: Path) -> None:
    files = {
        "deep/a/b/module.py": "M = 1",
        "deep/a/b/table.json": "[]",
        "deep/a/b/sub/other.py": "",
        "deep/c/package/__init__.py": "",
        "deep/a/rows.csv": "beside a package, and no part of it",
        "deep/.git/hooks/x.py": "",
        "deep/d/.venv/lib/x.py": "",
        "deep/d/env/pyvenv.cfg": "",
        "deep/d/env/lib/x.py": "",
        "deep/d/my-tools/x.py": "",
        "deep/d/__pycache__/x.py": "",
        "deep/d/node_modules/lib/x.py": "",
        "deep/d/pictures/cat.png": "",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "deep" / "d" / "loop").symlink_to(folder / "deep")
    (folder / "deep" / "d" / "self").symlink_to("self")
    deep = [
        "deep/a/b/module.py", "deep/a/b/sub/other.py", "deep/a/b/table.json", "deep/c/package/__init__.py",
    ]  # fmt: skip
    assert [path for path in sorted(read(folder)) if path.startswith("deep/")] == deep
    assert sorted(read(folder / "deep")) == [path.removeprefix("deep/") for path in deep]
    assert module_files.is_uploaded(str(folder / "deep")) and module_files.is_uploaded(str(folder / "pkg"))
    for left_out in ("data", "env", ".git", "no-name", "missing"):
        assert not module_files.is_uploaded(str(folder / left_out)), left_out


def test_the_search_for_deep_modules_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(folder)
    package = folder / "data" / "old" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert set(read(folder)) - set(before) == {"data/old/package/__init__.py"}
    monkeypatch.setattr(module_files, "MAX_SEARCHED", 10)
    for number in range(10):
        (folder / "data" / "old" / f"picture{number}.png").touch()
    assert read(folder) == before, "it may be a folder of data"
    monkeypatch.setattr(module_files, "MAX_SEARCHED", 100)
    monkeypatch.setattr(module_files, "MAX_DEPTH", 2)
    assert read(folder) == before


def test_a_package_and_a_file(folder: Path) -> None:
    found = read(folder / "pkg", folder / "helpers.py")
    assert found["helpers.py"] == b"HELP = 1" and found["pkg/inner.py"] == b"X = 1"
    assert sorted(found) == ["helpers.py", "pkg/__init__.py", "pkg/inner.py", "pkg/sub/deep.py", "pkg/table.json"]


def test_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert read(".") == read(folder)
    monkeypatch.chdir(folder / "pkg")
    assert sorted(read(".")) == ["pkg/__init__.py", "pkg/inner.py", "pkg/sub/deep.py", "pkg/table.json"]


@pytest.mark.parametrize(
    "given, why",
    [
        ("missing", "missing: No such file or directory"),
        ("data.csv", r"data.csv is not a file of a module \(.py"),
        ("no-name/my-script.py", "my-script.py cannot be imported"),
        ("data", "data has no modules and no packages"),
        ("/dev/null", "/dev/null is neither a file nor a folder"),
    ],
)
def test_what_is_no_module(folder: Path, given: str, why: str) -> None:
    with pytest.raises(ModulesError, match=why):
        read(folder / given)


def test_a_package_whose_name_is_no_name(tmp_path: Path) -> None:
    (tmp_path / "my-package").mkdir()
    (tmp_path / "my-package" / "__init__.py").write_text("")
    with pytest.raises(ModulesError, match="'my-package' cannot be imported"):
        read(tmp_path / "my-package")


def test_two_modules_of_one_name(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "helpers.py").write_text("HELP = 2")
    with pytest.raises(ModulesError, match=f"{folder}/helpers.py and {other}/helpers.py are both the module file"):
        read(folder, other)
    assert read(folder, folder / "helpers.py") == read(folder)


def test_a_cycle_of_links(folder: Path) -> None:
    (folder / "pkg" / "loop").symlink_to(folder / "pkg")
    with pytest.raises(ModulesError, match="loop is a link to a folder around it: a cycle of links"):
        read(folder)
    (folder / "pkg" / "loop").unlink()
    (folder / "pkg" / "up").symlink_to(folder)
    with pytest.raises(ModulesError, match="a cycle of links"):
        read(folder)


def test_links_that_are_no_cycle(folder: Path, tmp_path: Path) -> None:
    (folder / "pkg" / "self").symlink_to("self")
    (folder / "pkg" / "nothing.py").symlink_to("missing")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("S = 1")
    (folder / "shared").symlink_to(tmp_path / "shared")
    found = read(folder)
    assert found["shared/__init__.py"] == b"S = 1" and "pkg/self" not in found and "pkg/nothing.py" not in found


def test_sockets_and_pipes_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pkg" / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder / "pkg")
        listener.bind("socket")
        assert not {"pkg/pipe", "pkg/socket"} & set(read(folder))


def test_too_many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_files, "MAX_FILES", 3)
    with pytest.raises(ModulesError, match="has more than 3 files of modules: give the packages and files one by one"):
        read(folder)
    monkeypatch.setattr(module_files, "MAX_ENTRIES", 10)
    with pytest.raises(ModulesError, match="more than 10 files and folders at"):
        read(folder)


def test_too_many_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_files, "MAX_BYTES", 1 << 20)
    (folder / "large.py").write_bytes(b"#" * (1 << 20))
    with pytest.raises(ModulesError, match=r"the modules have more than 1 MiB, reached at .*large.py: give the"):
        read(folder)


def test_a_file_that_cannot_be_read(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads all files")
    (folder / "helpers.py").chmod(0)
    with pytest.raises(ModulesError, match="helpers.py cannot be read: Permission denied"):
        read(folder)


class Changing:
    """`os.fstat` that shows a change of the file after each of the first reads."""

    def __init__(self, changes: int) -> None:
        self._changes = changes
        self._fstat = os.fstat

    def __call__(self, descriptor: int) -> Any:
        if self._changes:
            self._changes -= 1
            os.utime(f"/proc/self/fd/{descriptor}", ns=(1, self._changes + 1))
        return self._fstat(descriptor)


def test_a_file_that_changes_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_files.os, "fstat", Changing(2))
    assert read(folder / "helpers.py") == {"helpers.py": b"HELP = 1"}
    monkeypatch.setattr(module_files.os, "fstat", Changing(3))
    with pytest.raises(ModulesError, match="helpers.py changes while it is read: upload the modules when it is"):
        read(folder / "helpers.py")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that are opened."""
    paths: list[str] = []

    def noted(path: str, *given: Any, **options: Any) -> Any:
        paths.append(os.path.basename(path))
        return open(path, *given, **options)

    monkeypatch.setattr(module_files, "open", noted, raising=False)
    yield paths


def test_only_changed_files_are_read_again(folder: Path, opened: list[str]) -> None:
    old = time.time() - 100
    for name in ("helpers.py", "pkg/__init__.py", "pkg/inner.py", "pkg/table.json", "pkg/sub/deep.py"):
        os.utime(folder / name, (old, old))
    reader = ModuleReader()
    paths = folder / "pkg", folder / "helpers.py"
    first = read(*paths, reader=reader)
    assert len(opened) == 5
    opened.clear()
    assert read(*paths, reader=reader) == first and not opened
    (folder / "helpers.py").write_text("HELP = 2")
    assert read(*paths, reader=reader) == {**first, "helpers.py": b"HELP = 2"} and opened == ["helpers.py"]
    assert read(*paths, reader=reader) and opened == ["helpers.py"] * 2, "it is too new to trust its time stamp"


def test_native_extensions_name_the_platform(folder: Path) -> None:
    upload = ModuleUpload()
    assert upload.read([str(folder)]).platform == ""
    (folder / "fast.abi3.so").write_bytes(b"\x7fELF")
    environment = upload.read([str(folder)])
    assert environment.platform == this_platform()
    assert digest_of(b"\x7fELF") in environment.message().contents


def test_an_upload_adds_to_the_earlier_ones(folder: Path) -> None:
    upload = ModuleUpload()
    first = upload.read([str(folder / "helpers.py")])
    second = upload.read([str(folder / "pkg")])
    assert [file.path for file in first.manifest.modules] == ["helpers.py"]
    assert {"helpers.py", "pkg/inner.py"} <= {file.path for file in second.manifest.modules}
    assert upload.read([]).name == second.name
    with pytest.raises(ModulesError):
        upload.read([str(folder / "missing")])
    assert upload.read([]).name == second.name, "an upload that failed changes nothing"


@pytest.mark.parametrize("modules", [".", b".", 7, [7], [None]])
def test_modules_are_a_list_of_paths(modules: Any) -> None:
    with pytest.raises(TypeError, match="modules"):
        checked_modules(modules)


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checked_modules([".", tmp_path, Path("x.py")]) == (str(tmp_path), str(tmp_path / "x.py"))
    assert checked_modules(None) == ()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return Path(make_wheel(tmp_path, "alpha"))


def test_a_wheel_that_changes_while_it_is_read(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changes(path: str) -> PackageSource:
        source = read_packages(path)
        wheel.write_bytes(wheel.read_bytes() + b"more")
        return source

    monkeypatch.setattr(sources, "read_packages", changes)
    with pytest.raises(PackagesError, match=r"alpha-1\.0-py3-none-any\.whl changes while it is read: try again when"):
        ModuleUpload(str(wheel.parent)).read([])


def test_wheels_that_are_too_large(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_upload, "MAX_PACKAGE_BYTES", wheel.stat().st_size)
    with pytest.raises(PackagesError, match=r"the files of \S+ have 0 MiB, more than 0 MiB in all: put them"):
        ModuleUpload(str(wheel.parent)).read([])


def test_too_many_wheels(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_client.packages.wheels.MAX_FILES", 2)
    make_wheel(wheel.parent, "beta")
    with pytest.raises(PackagesError, match="has 2 wheels, more than 0: put them on an index"):
        ModuleUpload(str(wheel.parent)).read([])
