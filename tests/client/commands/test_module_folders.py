"""The module search path of a local cluster's processes, and how the program's own path is restored."""

from __future__ import annotations

import os
import sys

import pytest

from scaler_client.commands.module_folders import restore, variables


@pytest.mark.parametrize("own", [{}, {"PYTHONPATH": "/a:/b"}])
def test_the_programs_own_path_is_restored(monkeypatch: pytest.MonkeyPatch, own: dict[str, str]) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", ["", "/modules"])
    environ = {"HOME": "/home", **own, **variables()}
    assert environ["PYTHONPATH"] == f"{os.getcwd()}{os.pathsep}/modules"
    restore(environ)
    assert environ == {"HOME": "/home", **own}


def test_a_path_that_no_local_cluster_has_set_is_kept() -> None:
    environ = {"PYTHONPATH": "/a"}
    restore(environ)
    assert environ == {"PYTHONPATH": "/a"}
