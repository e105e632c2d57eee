"""`scaler_client environment lock`: what this interpreter has, as a file for Client(environment=...)."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest
from tests.wheel_files import make_source_archive, make_wheel

from scaler_client.errors import PackagesError
from scaler_client.inspect import environment
from scaler_client.inspect.cli import main
from scaler_client.packages import installed
from scaler_client.packages.installed import Installed, installed_packages, lock_text, with_hashes
from scaler_client.packages.package_set import hash_of_file
from scaler_client.packages.requirements import Requirement
from scaler_client.packages.sources import read_packages

SHA256 = "c" * 64


def distribution(folder: Path, name: str, version: str, origin: object = None) -> importlib.metadata.Distribution:
    """An installed package."""
    path = folder / f"{name}-{version}.dist-info"
    path.mkdir()
    (path / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if origin is not None:
        (path / "direct_url.json").write_text(json.dumps(origin))
    return importlib.metadata.PathDistribution(path)


def test_names_versions_and_origins(tmp_path: Path) -> None:
    commit = "1" * 40
    found = installed_packages(
        [
            distribution(tmp_path, "Zeta", "1.0"),
            distribution(tmp_path, "alpha", "2.0+local"),
            distribution(tmp_path, "zeta", "0.5"),  # behind the first on the search path
            distribution(tmp_path, "pip", "23"),
            distribution(tmp_path, "scaler_client", "1"),
            distribution(
                tmp_path, "vcs", "1", {"url": "https://x.org/v", "vcs_info": {"vcs": "git", "commit_id": commit}}
            ),
            distribution(
                tmp_path,
                "direct",
                "1",
                {"url": "https://x.org/direct-1-py3-none-any.whl", "archive_info": {"hashes": {"sha256": SHA256}}},
            ),
        ]
    )
    assert [each.line() for each in found.requirements] == [
        "alpha==2.0+local",
        f"direct @ https://x.org/direct-1-py3-none-any.whl --hash=sha256:{SHA256}",
        f"vcs @ git+https://x.org/v@{commit}",
        "Zeta==1.0",
    ]
    assert found.warnings == ()


def test_editable_installs_are_left_out_with_a_warning(tmp_path: Path) -> None:
    found = installed_packages(
        [distribution(tmp_path, "mine", "1", {"url": "file:///home/me/mine", "dir_info": {"editable": True}})]
    )
    assert found.requirements == ()
    (warning,) = found.warnings
    assert warning.startswith("mine is left out: it is an editable install of /home/me/mine: ")
    assert "Client(modules=[...])" in warning


def test_the_text_names_python_and_can_be_read_again(tmp_path: Path) -> None:
    requirements = (Requirement("a", specifier="==1", hashes=(f"sha256:{SHA256}",)), Requirement("b", specifier="==2"))
    text = lock_text(Installed(requirements, ("mine is left out",)))
    assert "with CPython 3." in text.splitlines()[0]
    assert "# Hosts need --environments any: b==2 has no hash." in text
    assert "# Left out: mine is left out" in text
    (tmp_path / "lock.txt").write_text(text)
    assert read_packages(tmp_path / "lock.txt").unlocked == "b==2 has no hash"


def test_the_command_writes_this_interpreters_packages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lock.txt"
    assert main(["environment", "lock", "-o", str(path)]) == 0
    assert f"cloudpickle=={importlib.metadata.version('cloudpickle')}\n" in path.read_text()
    assert read_packages(path).packages.kind == "requirements"
    assert main(["environment", "lock", "-o", str(path)]) == 2
    assert "exists already: --force overwrites it" in capsys.readouterr().err
    assert main(["environment", "lock", "-o", str(path), "--force"]) == 0
    assert main(["environment", "unlock"]) == 2
    assert "'unlock' is not one of lock" in capsys.readouterr().err
    assert main(["environment", "lock"]) == 0
    assert "cloudpickle==" in capsys.readouterr().out


def make_unbuildable(folder: Path, name: str) -> str:
    """Make a source archive that tells its metadata and can't be built. Returns its path."""
    backend = f"""
def prepare_metadata_for_build_wheel(folder, settings=None):
    import os
    os.mkdir(os.path.join(folder, "{name}-1.0.dist-info"))
    with open(os.path.join(folder, "{name}-1.0.dist-info", "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
    return "{name}-1.0.dist-info"

def build_wheel(folder, settings=None, metadata=None):
    raise NotImplementedError
"""
    return make_source_archive(folder, name, backend)


def make_index(folder: Path, **files: str) -> dict[str, str]:
    """Make an index with a file of each package. Returns the variables with which uv and pip ask no other index."""
    for name, path in files.items():
        (folder / "simple" / name).mkdir(parents=True)
        link = f'<a href="file://{path}#sha256={hash_of_file(path)[0]}">{os.path.basename(path)}</a>'
        (folder / "simple" / name / "index.html").write_text(link)
    index = f"file://{folder}/simple"
    environ = {**os.environ, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
    return environ | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "UV_CACHE_DIR": str(folder / "uv")}


@pytest.fixture(params=["uv", "pip"])
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tool that asks the index."""
    if request.param == "pip":
        monkeypatch.setattr(installed, "find_uv", lambda _: "")
    elif not installed.find_uv(os.environ):
        pytest.skip("there is no uv")
    return str(request.param)


@pytest.mark.main_environment
@pytest.mark.usefixtures("tool")
def test_packages_without_a_wheel_are_named(tmp_path: Path) -> None:
    files = {name: make_wheel(tmp_path, name) for name in ("tiny", "small")}
    files |= {name: make_unbuildable(tmp_path, name) for name in ("sourced", "unbuilt")}
    environ = make_index(tmp_path, **files)
    requirements = tuple(Requirement(name, specifier="==1.0") for name in sorted(files))
    found = with_hashes(Installed(requirements, ()), environ)
    assert found.without_wheel == ("sourced", "unbuilt")
    assert all(each.hashes for each in found.requirements)
    assert "# Hosts cannot install these, without a wheel: sourced, unbuilt." in lock_text(found)
    from_git = Requirement("vcs", url=f"git+https://x.org/v@{'1' * 40}", hashes=(f"sha256:{SHA256}",))
    assert with_hashes(Installed((*requirements, from_git), ()), environ).without_wheel == ()


@pytest.mark.main_environment
@pytest.mark.usefixtures("tool")
def test_a_wheel_of_another_platform_is_none(tmp_path: Path) -> None:
    archive = make_unbuildable(tmp_path, "elsewhere")
    wheel = make_wheel(tmp_path, "elsewhere", tag="py3-none-win_arm64")
    environ = make_index(tmp_path, elsewhere=archive)
    page = tmp_path / "simple" / "elsewhere" / "index.html"
    sha256 = hash_of_file(wheel)[0]
    page.write_text(page.read_text() + f'<a href="file://{wheel}#sha256={sha256}">{os.path.basename(wheel)}</a>')
    found = with_hashes(Installed((Requirement("elsewhere", specifier="==1.0"),), ()), environ)
    assert found.without_wheel == ("elsewhere",)


def test_the_command_warns_of_packages_without_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Installed((Requirement("sourced", specifier="==1.0", hashes=(f"sha256:{SHA256}",)),), (), ("sourced",))
    monkeypatch.setattr(environment, "with_hashes", lambda *_: found)
    assert main(["environment", "lock", "--hashes", "-o", str(tmp_path / "lock.txt")]) == 0
    assert "warning: sourced has no wheel for this Python and platform on the index" in capsys.readouterr().err


@pytest.mark.main_environment
@pytest.mark.usefixtures("tool")
def test_hashes_come_from_the_index(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "tiny")
    sha256 = hash_of_file(wheel)[0]
    environ = make_index(tmp_path, tiny=wheel)
    found = with_hashes(Installed((Requirement("tiny", specifier="==1.0"),), ()), environ)
    assert found.without_wheel == ()
    (locked,) = found.requirements
    assert locked.line() == f"tiny==1.0 --hash=sha256:{sha256}"
    with pytest.raises(PackagesError, match="--hashes: .*absent"):
        with_hashes(Installed((Requirement("absent", specifier="==1.0"),), ()), environ)
