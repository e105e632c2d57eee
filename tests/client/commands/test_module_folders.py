"""What a local cluster's processes are told of where modules are, and what is left of it."""

from __future__ import annotations

import os
import sys

import pytest

from scaler_client.commands.module_folders import restore, variables


@pytest.mark.parametrize("own", [{}, {"PYTHONPATH": "/a:/b"}])
def test_what_the_program_has_is_put_back(monkeypatch: pytest.MonkeyPatch, own: dict[str, str]) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", ["", "/modules"])
    environ = {"HOME": "/home", **own, **variables()}
    assert environ["PYTHONPATH"] == f"{os.getcwd()}{os.pathsep}/modules"
    restore(environ)
    assert environ == {"HOME": "/home", **own}


def test_a_process_that_was_not_told_keeps_its_own() -> None:
    environ = {"PYTHONPATH": "/a"}
    restore(environ)
    assert environ == {"PYTHONPATH": "/a"}
