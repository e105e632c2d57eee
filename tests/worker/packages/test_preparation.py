"""Environments are made by the real uv and pip, from wheels that the tests make: no network is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.waiting import wait_until
from tests.wheel_files import make_wheel
from tests.worker.packages.environment_requests import (
    INSTALLERS,
    OTHER_PYTHON,
    make_sdist,
    output_of,
    own_index,
    prepared,
    request_of,
    requirements,
    without_uv,
)

from scaler_client.packages.package_set import hash_of_file
from scaler_client.packages.sources import read_packages
from scaler_worker.packages import installer, preparation
from scaler_worker.packages.interpreters import find_interpreter
from scaler_worker.packages.preparation import CannotPrepareError

pytestmark = pytest.mark.main_environment


@pytest.fixture(params=INSTALLERS)
def installer_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "pip":
        monkeypatch.setattr(installer, "find_uv", without_uv)
    return str(request.param)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


def test_a_folder_of_wheels_becomes_an_environment(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    make_wheel(wheels, "first", requires=["second>=2"])
    make_wheel(wheels, "second", "2.5")
    request = request_of(read_packages(wheels), tmp_path)
    with prepared(request) as packages:
        assert packages.installer == installer_name and packages.build_seconds > 0
        assert output_of(packages, "import first, second; print(first.VERSION, second.VERSION)") == "1.0 2.5"
        version = ".".join(map(str, sys.version_info[:3]))
        assert packages.python == version
    with prepared(request) as packages:
        assert packages.build_seconds == 0  # from the cache
        assert output_of(packages, "import first; print(first.VERSION)") == "1.0"


def test_the_environments_own_packages_win_and_the_agents_are_not_seen(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "psutil", "99.0")
    with prepared(request_of(read_packages(wheels), tmp_path)) as packages:
        assert output_of(packages, "import psutil; print(psutil.VERSION)") == "99.0"
        assert "/required/" in output_of(packages, "import zmq, scaler_worker.worker; print(zmq.__file__)")
        assert importlib.util.find_spec("pytest") is not None
        find = "import importlib.util as u; print(*filter(u.find_spec, ('pytest', 'pip', 'cloudpickle')))"
        assert output_of(packages, find) == "cloudpickle"
        child = "import subprocess; subprocess.run([sys.executable, '-c', 'import psutil; print(psutil.VERSION)'])"
        assert output_of(packages, child) == "99.0"  # what a task starts has the same packages


def test_the_worker_has_the_agents_version_of_our_packages(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "scaler_client", "0.0.1")  # a program's lock may name it
    with prepared(request_of(read_packages(wheels), tmp_path)) as packages:
        assert "/own/" in output_of(packages, "import scaler_client.errors; print(scaler_client.errors.__file__)")


def test_missing_packages_are_said_with_the_installers_lines(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    make_wheel(wheels, "first", requires=["absent>=2"])
    request = request_of(read_packages(wheels), tmp_path)
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert f"{installer_name} failed (exit code 1):\n" in str(error.value)
    assert "absent" in str(error.value)
    assert not (tmp_path / "cache" / "venv").exists()


def test_a_wheel_for_another_platform_is_said(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    make_wheel(wheels, "first", tag="py3-none-win32")
    with pytest.raises(CannotPrepareError) as error, prepared(request_of(read_packages(wheels), tmp_path)):
        pass
    assert f"{installer_name} failed" in str(error.value) and "first" in str(error.value)


def test_a_wheel_with_a_file_outside_of_its_folder(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    wheel = make_wheel(wheels, "first")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("../" * 30 + str(tmp_path / "escaped.py").lstrip("/"), "")
        archive.writestr("../../../../escaped.py", "")
    before = sorted(tmp_path.glob("*"))
    with suppress(CannotPrepareError), prepared(request_of(read_packages(wheels), tmp_path)) as packages:
        output_of(packages, "import first")  # an installer may leave such files out
    assert not list(tmp_path.rglob("escaped.py"))
    assert set(tmp_path.glob("*")) - set(before) <= {tmp_path / "cache", tmp_path / "contents"}


def test_a_damaged_content_is_found(tmp_path: Path, wheels: Path) -> None:
    wheel = make_wheel(wheels, "first")
    request = request_of(read_packages(wheels), tmp_path)
    content = Path(request.files[hash_of_file(wheel)[0]])
    content.write_bytes(content.read_bytes()[:-1] + b"x")
    with (
        pytest.raises(CannotPrepareError, match=r"first-1\.0-py3-none-any\.whl of the environment is damaged"),
        prepared(request),
    ):
        pass


def test_contents_that_did_not_arrive_are_named(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    request = replace(request_of(read_packages(wheels), tmp_path), files={})
    with (
        pytest.raises(CannotPrepareError, match=r"requirements\.txt of the environment did not arrive"),
        prepared(request),
    ):
        pass


def test_locked_hosts_refuse_what_is_not_locked(tmp_path: Path) -> None:
    request = request_of(requirements(tmp_path, "tiny>=1\n"), tmp_path)
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert "takes locked packages alone (--environments), and tiny>=1 has no exact version: " in str(error.value)
    assert not (tmp_path / "cache").exists()


def test_hosts_for_modules_take_no_packages(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    with pytest.raises(
        CannotPrepareError, match=r"takes no packages \(modules is set\): scaler_cluster --environments"
    ):
        with prepared(request_of(read_packages(wheels), tmp_path, allowed="modules")):
            pass


def test_a_host_without_installers(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(wheels, "first")
    monkeypatch.setattr(installer, "find_uv", without_uv)
    monkeypatch.setattr(installer.importlib.util, "find_spec", lambda name: None)
    request = request_of(read_packages(wheels), tmp_path)
    with pytest.raises(CannotPrepareError, match="this host has neither uv nor pip: install one of them"):
        with prepared(request):
            pass


def test_other_hosts_take_packages_from_the_agents_index(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    make_wheel(wheels, "tiny", "1.0")
    make_wheel(wheels, "tiny", "3.0")
    (tmp_path / "limits.txt").write_text("tiny<2")
    source = requirements(tmp_path, "tiny>=1\n-c limits.txt\n")
    request = request_of(source, tmp_path, allowed="any", environ=own_index(wheels))
    with prepared(request) as packages:
        assert output_of(packages, "import tiny; print(tiny.VERSION)") == "1.0"


def test_a_package_with_another_hash_is_refused(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    make_wheel(wheels, "tiny")
    source = requirements(tmp_path, f"tiny==1.0 --hash=sha256:{'0' * 64}\n")
    request = request_of(source, tmp_path, environ=own_index(wheels))
    with pytest.raises(CannotPrepareError, match=r"(?is)failed.*(hash)"), prepared(request):
        pass


def test_locked_packages_run_no_code_when_they_are_installed(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    marker = tmp_path / "marker"
    sdist = make_sdist(wheels, "evil", f"open({str(marker)!r}, 'w').close(); raise SystemExit('evil backend')")
    sha256 = hash_of_file(str(sdist))[0]
    source = requirements(tmp_path, f"evil==1.0 --hash=sha256:{sha256}\n")
    assert source.unlocked == ""
    for allowed in ("locked", "any"):  # packages that are locked are treated as such everywhere
        request = request_of(source, tmp_path, allowed=allowed, environ=own_index(wheels))
        with pytest.raises(CannotPrepareError), prepared(request):
            pass
        assert not marker.exists()
    request = request_of(requirements(tmp_path, "evil==1.0\n"), tmp_path, allowed="any", environ=own_index(wheels))
    with pytest.raises(CannotPrepareError, match="evil backend"), prepared(request):
        pass
    assert marker.exists()  # the sdist does run code where that is allowed


def test_a_build_that_takes_too_long_ends_with_its_processes(
    tmp_path: Path, wheels: Path, installer_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    # Time begins to pass when the package is being built: on a busy machine this may take some seconds.
    begun = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: begun + (1e6 if pid_file.exists() and pid_file.read_text() else 0.0))
    monkeypatch.setattr(installer, "time", clock)
    make_sdist(wheels, "slow", code)
    source = requirements(tmp_path, "slow==1.0\n")
    request = request_of(source, tmp_path, allowed="any", environ=own_index(wheels))
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert "was ended: it took more than 60 seconds (--environment-build-seconds)" in str(error.value)
    # It was killed, but only the kernel knows when it has ended: the agent is not its parent.
    wait_until(lambda: not is_running(int(pid_file.read_text())))


def test_a_build_that_fills_the_disk_is_ended(tmp_path: Path, wheels: Path, installer_name: str) -> None:
    code = "import os; [open(os.environ['TMPDIR'] + f'/{n}', 'wb').write(bytes(1 << 20)) for n in range(10_000)]"
    make_sdist(wheels, "large", code)
    source = requirements(tmp_path, "large==1.0\n")
    request = request_of(source, tmp_path, allowed="any", environ=own_index(wheels), limit_bytes=50 << 20)
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert "finds no room in the cache of 50 MiB (--environment-cache-limit)" in str(error.value)
    used = sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert used < 10 << 20


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("damage", ["changed", "changed and set back", "added", "removed"])
def test_a_cache_that_was_tampered_with_is_not_used(tmp_path: Path, wheels: Path, damage: str) -> None:
    make_wheel(wheels, "first", source="SECRET = 1\n")
    request = request_of(read_packages(wheels), tmp_path)
    with prepared(request) as packages:
        module = Path(output_of(packages, "import first; print(first.__file__)"))
    before = module.stat()
    if damage == "added":
        (module.parent / "sitecustomize.py").write_text("raise SystemExit('tampered')")
    elif damage == "removed":
        module.unlink()
    else:
        module.write_text(module.read_text().replace("SECRET = 1", "SECRET = 2"))
    if damage == "changed and set back":
        os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    with prepared(request) as packages:
        assert packages.build_seconds > 0  # made again
        assert output_of(packages, "import first; print(first.SECRET)") == "1"


def test_files_that_were_only_touched_are_read_again_and_kept(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    request = request_of(read_packages(wheels), tmp_path)
    with prepared(request) as packages:
        module = Path(output_of(packages, "import first; print(first.__file__)"))
    stamp = module.stat()
    os.utime(module)
    os.utime(module, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    compiled = module.parent / "__pycache__" / "first.cpython-399.pyc"
    compiled.write_bytes(b"not covered by the seal")
    with prepared(request) as packages:
        assert packages.build_seconds == 0
        assert not compiled.exists()


def test_a_changed_cache_that_others_use_is_not_touched(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    request = request_of(read_packages(wheels), tmp_path)
    with prepared(request) as packages:
        module = Path(output_of(packages, "import first; print(first.__file__)"))
        module.write_text("changed")
        with pytest.raises(CannotPrepareError, match="uses one whose files were changed"):
            with prepared(replace(request, seconds=0.3)):
                pass
        assert module.read_text() == "changed"


def test_least_recently_used_environments_make_room(tmp_path: Path, wheels: Path) -> None:
    requests = []
    for number in range(3):
        folder = wheels / str(number)
        folder.mkdir()
        make_wheel(folder, f"part{number}", source=f"DATA = {'x' * (4 << 20)!r}\n")
        requests.append(request_of(read_packages(folder), tmp_path))
    with prepared(requests[0]) as first:
        with prepared(requests[1]):
            pass
        with prepared(requests[2]):
            pass
        limit = sum(int(path.read_text()) for path in (tmp_path / "cache").glob("*.size")) - (1 << 20)
        last = wheels / "last"
        last.mkdir()
        make_wheel(last, "last")
        with prepared(request_of(read_packages(last), tmp_path, limit_bytes=limit)):
            pass
        assert Path(first.command[0]).exists()  # the oldest one, but in use
    built = []
    for request in (requests[0], requests[2], requests[1]):
        with prepared(request) as packages:
            built.append(packages.build_seconds > 0)
    assert built == [False, False, True]


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    request = request_of(read_packages(wheels), tmp_path)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(CannotPrepareError, match="others can write into the cache of environments .*: chmod go-w"):
        with prepared(request):
            pass


def test_a_python_that_is_not_here_is_named_with_those_that_are(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    source = read_packages(wheels)
    request = request_of(replace(source, packages=replace(source.packages, python="3.99")), tmp_path)
    here = f"3.{sys.version_info[1]}"
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert str(error.value).startswith(
        "the environment needs Python 3.99, which this host does not have (CPythons here: 3."
    )
    assert f" {here}" in str(error.value)


needs_other_python = pytest.mark.skipif(
    find_interpreter(OTHER_PYTHON, os.environ) is None, reason="there is no second CPython"
)


@needs_other_python
def test_another_version_of_python(
    tmp_path: Path, wheels: Path, installer_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(wheels, "first")
    source = read_packages(wheels)
    index = tmp_path / "index"
    index.mkdir()
    make_wheel(index, "zmq")  # stands for what scaler_worker requires
    monkeypatch.setattr(preparation, "requirements", lambda: ["zmq==1.0"])
    source = replace(source, packages=replace(source.packages, python=OTHER_PYTHON))
    request = request_of(source, tmp_path, environ=own_index(index))
    code = "import first, zmq, scaler_worker.task_rows; print('%d.%d' % sys.version_info[:2], zmq.VERSION)"
    for _ in range(2):
        with prepared(request) as packages:
            assert packages.python.startswith(OTHER_PYTHON + ".") and len(packages.locks) == 2
            assert output_of(packages, code) == f"{OTHER_PYTHON} 1.0"
    assert packages.build_seconds == 0


@needs_other_python
def test_another_version_of_python_without_an_index(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "first")
    source = read_packages(wheels)
    source = replace(source, packages=replace(source.packages, python=OTHER_PYTHON))
    request = request_of(source, tmp_path, environ=own_index(wheels))
    with pytest.raises(CannotPrepareError) as error, prepared(request):
        pass
    assert "what scaler_worker requires could not be installed for Python " + OTHER_PYTHON in str(error.value)
    assert "failed (exit code 1):\n" in str(error.value)


@pytest.fixture(scope="module")
def pex_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEX file with the package `first`, made by the real pex."""
    if importlib.util.find_spec("pex") is None:
        pytest.skip("pex is not installed")
    folder = tmp_path_factory.mktemp("pex")
    make_wheel(folder, "first")
    options = ["--no-index", "-f", str(folder), "--pex-root", str(folder / "root"), "--no-compile"]
    subprocess.run([sys.executable, "-m", "pex", "first", "-o", str(folder / "app.pex"), *options], check=True)
    return folder / "app.pex"


def test_a_pex_file_is_unpacked_once_and_run(tmp_path: Path, pex_file: Path) -> None:
    request = request_of(read_packages(pex_file), tmp_path)
    with prepared(request) as packages:
        assert packages.installer == "pex"
        code = "import first, scaler_worker.worker.process, importlib.util as u; print(first.VERSION, "
        assert output_of(packages, code + "u.find_spec('pytest'))") == "1.0 None"
    with prepared(request) as packages:
        assert packages.build_seconds == 0
        command = packages.arguments("scaler_worker.packages.launch", [])
        assert subprocess.run(command, env=packages.process_variables(os.environ)).returncode == 0


def test_a_pex_file_for_another_platform_is_said(tmp_path: Path, pex_file: Path) -> None:
    with zipfile.ZipFile(pex_file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    old, new = "first-1.0-py3-none-any.whl", "first-1.0-cp399-cp399-win_amd64.whl"
    information = json.loads(contents["PEX-INFO"])
    information["distributions"] = {
        name.replace(old, new): value for name, value in information["distributions"].items()
    }
    contents["PEX-INFO"] = json.dumps(information).encode()
    path = tmp_path / "app.pex"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name.replace(old, new), content)
    with pytest.raises(CannotPrepareError, match=r"(?s)the PEX file failed.*first"):
        with prepared(request_of(read_packages(path), tmp_path)):
            pass
