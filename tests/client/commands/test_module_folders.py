"""The module search path of a local cluster's processes, and how the program's own path is restored."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scaler_client.commands import module_folders
from scaler_client.commands.module_folders import interpreter_variables, restore, use, variables


@pytest.mark.parametrize("own", [{}, {"PYTHONPATH": "/a:/b"}])
def test_the_programs_own_path_is_restored(monkeypatch: pytest.MonkeyPatch, own: dict[str, str]) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", ["", "/modules"])
    environ = {"HOME": "/home", **own, **interpreter_variables()}
    assert environ["PYTHONPATH"] == f"{os.getcwd()}{os.pathsep}/modules"
    restore(environ)
    assert environ == {"HOME": "/home", **own}


def test_a_path_that_no_local_cluster_has_set_is_kept() -> None:
    environ = {"PYTHONPATH": "/a"}
    restore(environ)
    assert environ == {"PYTHONPATH": "/a"}


def test_workers_alone_search_the_folders_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_folders, "_folders", [])
    monkeypatch.setattr(module_folders, "_given", set())
    monkeypatch.setattr(sys, "path", ["", "/with:colon", None, Path("/ignored"), "/shared"])  # Python ignores two
    environ = {"PYTHONPATH": "/a", **variables()}
    monkeypatch.setattr(sys, "path", ["/own", "/shared"])
    restore(environ)
    assert environ == {"PYTHONPATH": "/a"} and sys.path == ["/own", "/shared"]
    use()
    assert sys.path == [os.getcwd(), "/with:colon", "/shared", "/own"]


def test_folders_that_a_program_adds_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module_folders, "_given", set())
    monkeypatch.setattr(module_folders, "_added", {})
    monkeypatch.setattr(sys, "path", ["/first"])
    assert module_folders.late() == ()
    variables()
    sys.path[:] = ["/new", "/first", None, str(tmp_path)]  # type: ignore[list-item]
    variables()  # of a second cluster: the first one does not have them
    late = module_folders.late()
    assert late == ("/new", str(tmp_path))
    module_folders._given.clear()  # from here on, in a worker
    sys.path[:] = ["/first"]
    module_folders.add(late)
    module_folders.add(late)
    assert sys.path == ["/first", str(tmp_path)]
    assert module_folders.late() == (str(tmp_path),)  # for child tasks


def test_only_workers_of_a_local_cluster_search_late_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(module_folders, "_folders", [])
    monkeypatch.setattr(module_folders, "_added", {})
    module_folders.add_late([str(tmp_path)])
    assert str(tmp_path) not in sys.path
    monkeypatch.setattr(module_folders, "_folders", ["/program"])
    module_folders.add_late([str(tmp_path)])
    assert sys.path[-1] == str(tmp_path)
