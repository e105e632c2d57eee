"""Packages that a pickle names, the versions of two processes, and what an error says about them."""

from __future__ import annotations

import json
import pickle
import platform
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from scaler_client import __version__
from scaler_client.environments import module_files
from scaler_client.errors import ArgumentLoadError, FunctionLoadError, ResultPickleError
from scaler_client.pickling import package_versions, serializer, version_differences
from scaler_client.pickling.functions import Function
from scaler_client.pickling.load_failures import split_versions, with_versions
from scaler_client.pickling.package_versions import (
    MAX_OPCODES,
    MISSING,
    first_text,
    installed_packages,
    local_versions,
    packages_in,
    parse_installed,
)
from scaler_client.pickling.version_differences import missing_module_hint, result_differences, worker_differences
from scaler_client.protocol.messages import Outcome

PYTHON = platform.python_version()


class Attributes:
    """Pickled as what it was made of."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return self.parts


def make_module(folder: Path, name: str, source: str = "", version: str = "") -> None:
    """Make a module in this folder; with a version, as if a distribution of the same name had installed it."""
    (folder / f"{name}.py").write_text(source)
    if version:
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{name}.py,,\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules, in which the test runs."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    package_versions._distributions.cache_clear()
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


@pytest.fixture(autouse=True)
def forget_distributions() -> Any:
    yield
    package_versions._distributions.cache_clear()


# ---------------------------------------------------------------------------------------------------------- the pickles


@pytest.mark.parametrize("protocol", range(6))
def test_globals_of_every_protocol(protocol: int) -> None:
    value = [zmq_error(), {"a": (pytest.approx, json.JSONDecodeError)}, zmq_error()]
    assert packages_in(pickle.dumps(value, protocol)) == ["_pytest", "zmq"]


def zmq_error() -> Any:
    import zmq

    return zmq.ZMQError


def test_modules_that_a_function_by_value_uses() -> None:
    import zmq

    def ask() -> Any:
        return zmq.Context

    assert packages_in(cloudpickle.dumps(ask)) == ["cloudpickle", "zmq"]


def test_values_of_the_standard_library_and_of_main_name_no_package() -> None:
    main = pickle.dumps(Attributes(getattr, (1, "x")), 0).replace(b"c__builtin__\ngetattr", b"c__main__\nThing")
    assert packages_in(main) == packages_in(pickle.dumps([1, {"a": {2}}, Path()])) == []


def test_bytes_that_are_no_pickle() -> None:
    whole = pickle.dumps(zmq_error())
    assert packages_in(b"") == packages_in(b"\xff garbage") == packages_in(b"\x93") == []
    assert packages_in(whole[:-1]) == packages_in(memoryview(whole)) == ["zmq"]
    assert packages_in(b"cos/../x\nthing\n.") == [], "no name of a module"


def test_a_long_pickle_is_not_read_to_its_end() -> None:
    numbers = [*range(MAX_OPCODES), zmq_error()]
    assert packages_in(pickle.dumps(numbers)) == [] and packages_in(pickle.dumps(numbers[-1:])) == ["zmq"]


def test_a_text_in_a_pickle() -> None:
    data = pickle.dumps((1, "Trace", "Traceback: one", "Traceback: two"))
    assert (
        first_text(data, "Traceback") == "Traceback: one" and first_text(data, "other") == first_text(b"\xff", "") == ""
    )


# --------------------------------------------------------------------------------------------------------- the versions


def test_versions_of_this_process(folder: Path) -> None:
    make_module(folder, "own_module")
    make_module(folder, "installed_module", version="2.5")
    (folder / "own_package").mkdir()
    (folder / "own_package" / "__init__.py").touch()
    names = ["own_module", "installed_module", "own_package", "no_such_module"]
    assert local_versions(names) == {
        "Python": PYTHON,
        "scaler_client": __version__,
        "own_module": str(folder / "own_module.py"),
        "own_package": str(folder / "own_package"),
        "installed_module": "2.5",
        "no_such_module": MISSING,
    }


def test_installed_packages_are_those_of_the_first_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder / "other"
    other.mkdir()
    make_module(folder, "Some_Module", version="2.5")
    make_module(other, "some.module", version="1.0")
    make_module(other, "another", version="3.0rc1")
    monkeypatch.setattr(sys, "path", [str(folder), str(other), str(folder / "missing")])
    assert installed_packages() == "another 3.0rc1\nsome-module 2.5\n"
    assert parse_installed(installed_packages()) == {"another": "3.0rc1", "some-module": "2.5"}
    monkeypatch.setattr(package_versions, "INSTALLED_LIMIT", 20)
    assert installed_packages() == "another 3.0rc1\n", "whole lines"
    assert parse_installed("\nno version\nx\n1 2 3\n") == {"no": "version"}


def test_this_interpreters_packages_are_installed() -> None:
    assert {"pyzmq", "cloudpickle", "pytest"} <= parse_installed(installed_packages()).keys()


def test_versions_travel_in_the_text() -> None:
    versions = {"numpy": "1.0", "odd\n": ""}
    assert split_versions(with_versions("f failed\nso it is", versions)) == ("f failed\nso it is", versions)
    for text in ("", "f failed", "f\nversions there: {", "f\nversions there: [1]"):
        assert split_versions(text) == (text, {})


# ------------------------------------------------------------------------------------------------------------ the texts


def test_a_function_whose_module_of_the_users_own_is_missing(folder: Path) -> None:
    make_module(folder, "curves", "def fit(): pass\n")
    there = {"Python": PYTHON, "scaler_client": __version__, "curves": MISSING}
    failure = with_versions("function f can't be unpickled there: No module named 'curves'", there)
    payload = serializer.dump_exception(ModuleNotFoundError("curves"), "Traceback", "", failure)
    _, error = Function(1, "f", b"").read_answer(Outcome.FUNCTION_FAILED, payload)
    assert isinstance(error, FunctionLoadError) and isinstance(error.__cause__, ModuleNotFoundError)
    path = folder / "curves.py"
    assert str(error).splitlines() == [
        "function f can't be unpickled there: No module named 'curves'",
        f"what differs  here{' ' * (len(str(path)) - 4)}  there",
        f"curves        {path}  missing",
        "to mend it: curves is a module of your own: Client(modules=['curves.py']) gives it to the workers, or "
        "cloudpickle.register_pickle_by_value(curves) sends it with each function",
    ]


def test_a_missing_package_without_init_py(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "spline" / "b" / "c").mkdir(parents=True)
    (folder / "spline" / "b" / "c" / "deep.py").touch()
    hint = missing_module_hint("spline.b")
    assert hint.startswith("to mend it: spline is a module of your own: Client(modules=['.']) gives it to the workers")
    assert [file.path for file in module_files.ModuleReader().read(["."])[0]] == ["spline/b/c/deep.py"]
    monkeypatch.setattr(module_files, "MAX_SEARCHED", 1)
    hint = missing_module_hint("spline.b")
    text = f"an upload leaves out {folder}/spline: put an __init__.py into it, or copy the module to the hosts"
    assert hint == f"to mend it: spline is a module of your own: {text}"


def test_arguments_of_another_version(folder: Path) -> None:
    make_module(folder, "curves", version="2.1")
    there = {"Python": "3.1.4", "scaler_client": "0.0.1", "curves": "1.9", "zmq": local_versions(["zmq"])["zmq"]}
    payload = serializer.dump_exception(AttributeError("fit"), "Traceback", "", with_versions("no fit", there))
    _, error = Function(1, "f", b"").read_answer(Outcome.EXCEPTION, payload)
    assert isinstance(error, ArgumentLoadError) and isinstance(error.__cause__, AttributeError)
    lines = str(error).splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["Python", PYTHON, "3.1.4"],
        ["scaler_client", __version__, "0.0.1"],
        ["curves", "2.1", "1.9"],
    ]
    minor = PYTHON.rpartition(".")[0]
    assert lines[5:] == [
        "to mend it: name these packages in Client(environment=...), or, without an environment, install them on the "
        "hosts: pip install curves==2.1",
        "to mend it: both sides need the same minor version of Python: run this program with 3.1, or give the workers "
        f"Python {minor}: Client(environment=...)",
    ]


def test_equal_versions_are_said_too() -> None:
    assert worker_differences(local_versions(["zmq"])) == (
        f"\nno version differs: both sides have Python {PYTHON}, scaler_client {__version__}, "
        f"zmq {local_versions(['zmq'])['zmq']}"
    )
    assert worker_differences({}) == "", "an older worker tells none"


def test_a_result_of_a_package_that_is_missing_here() -> None:
    here = {"Python": "3.11.7", "scaler_client": "1.0", "pandas": MISSING}
    old, new = {**here, "pandas": "1.5"}, {**here, "pandas": "2.2"}
    hosts = [("a", new), ("b", new), ("c", old), *((name, new) for name in "defg")]
    assert result_differences(here, hosts).splitlines()[1:] == [
        "what differs  here     a, b, d and 3 more  c",
        "pandas        missing  2.2                 1.5",
        "to mend it: install here what the hosts have: pip install pandas==1.5; or give the workers your versions: "
        "Client(environment=...)",
    ]


def test_many_groups_of_hosts_are_cut() -> None:
    here = {"pandas": "1"}
    hosts = [(f"host-{number}", {"pandas": f"2.{number}"}) for number in range(9)]
    lines = result_differences(here, [*hosts, ("host-9", {"pandas": "2.8"})]).splitlines()
    assert lines[1].split() == ["what", "differs", "here", "host-8,", "host-9", "host-0", "host-1", "host-2"]


def test_a_result_without_an_answer_about_the_hosts() -> None:
    def read(hosts: list[tuple[str, dict[str, str]]]) -> list[str]:
        asked: list[list[str]] = []
        function = Function(1, "f", b"", host_versions=lambda names: asked.append(list(names)) or hosts)  # type: ignore[func-returns-value]
        _, error = function.read_answer(Outcome.VALUE, b"cno_such_module\nThing\n.")
        assert isinstance(error, ResultPickleError) and isinstance(error.__cause__, ModuleNotFoundError)
        assert asked == [["Python", "scaler_client", "no_such_module"]]
        return str(error).splitlines()

    assert read([])[1:] == [
        "what differs    here",
        "no_such_module  missing",
        "the versions on the hosts are not known: scaler_client doctor ADDRESS asks for them",
        "to mend it: make no_such_module importable here, or return plain data from the task",
    ]
    same = {"Python": PYTHON, "scaler_client": __version__}
    assert read([("node-7", {**same, "no_such_module": "1.0"})])[2].split() == ["no_such_module", "missing", "1.0"]
    assert read([("node-7", same)])[2].split() == ["no_such_module", "missing", "unknown"]


def test_an_exception_that_cannot_be_unpickled_keeps_its_traceback() -> None:
    text = "Traceback (most recent call last):\n  in fit\nno_such_module.Broken: too steep\n"
    payload = pickle.dumps((ValueError("x"), text), 2).replace(b"cexceptions\nValueError", b"cno_such_module\nBroken")
    _, error = Function(1, "f", b"").read_answer(Outcome.EXCEPTION, payload)
    assert isinstance(error, ResultPickleError) and isinstance(error.__cause__, ModuleNotFoundError)
    assert str(error.__cause__.__cause__) == f'\n"""\n{text}"""'


def test_a_task_that_imports_a_missing_module_itself(folder: Path) -> None:
    make_module(folder, "curves", version="2.1")
    make_module(folder, "helpers")

    def notes(name: str) -> list[str]:
        failed = ModuleNotFoundError(f"No module named {name!r}", name=name)
        payload = serializer.dump_exception(failed, "Traceback", "raised by task f#1 on worker w")
        _, error = Function(1, "f", b"").read_answer(Outcome.EXCEPTION, payload)
        assert isinstance(error, ModuleNotFoundError), "it stays the task's own exception"
        return "\n".join(error.__notes__).splitlines()

    assert "pip install curves==2.1" in notes("curves.inner")[1] and "['helpers.py']" in notes("helpers")[1]
    for name in ("no_such_module", "json.nothing", ""):
        assert len(notes(name)) == 1 and missing_module_hint(name) == ""


def test_many_differences_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_differences, "MAX_ROWS", 2)
    text = result_differences({"Python": "3.1", **{f"package_{at}": MISSING for at in range(9)}}, [])
    assert text.count("missing") == 2


def test_garbage_of_a_worker_is_one_printable_text() -> None:
    assert "\x1b" not in worker_differences({"Python": "\x1b[31m", "scaler_client": "1"})


def test_limits_exist() -> None:
    assert package_versions.MAX_BYTES >= 1 << 20
