"""How the libraries of a missing extra are installed, as the errors say it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from typing import Any, NoReturn

import pytest

from scaler_client import extras
from scaler_client.extras import install_hint, requirements


@pytest.fixture(autouse=True)
def metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["pyzmq>=25", 'urwid>=2.6; extra == "top"', "a>=1 ; extra == 'ui'", 'b[c]>=2; extra == "ui"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    monkeypatch.delenv(extras.PEX_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "executable", "/a folder/bin/python")


def test_with_pip() -> None:
    assert requirements("ui") == ["a>=1", "b[c]>=2"]
    assert install_hint("top") == "'/a folder/bin/python' -m pip install 'urwid>=2.6'"


def test_without_pip_as_uv_makes_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    assert install_hint("ui") == "uv pip install --python '/a folder/bin/python' 'a>=1' 'b[c]>=2'"


def test_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extras.PEX_VARIABLE, "/x/scaler_top.pex")
    begin = "/x/scaler_top.pex can't be given libraries: install scaler-client and urwid>=2.6 in a virtual environment"
    assert install_hint("top") == begin


def test_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> NoReturn:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", refuse)
    assert install_hint("top") == "install the extra top of scaler-client"


def test_every_extra_has_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    told: Any = importlib.metadata.metadata(extras.DISTRIBUTION).get_all("Provides-Extra")
    assert {"dask", "exporter", "graphblas", "joblib", "msgpack", "progress", "top", "ui"} <= set(told)
    assert all(requirements(extra) for extra in told)
