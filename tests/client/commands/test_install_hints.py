"""How the libraries of a missing extra are installed, as the errors say it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from scaler_client.commands import install_hints
from scaler_client.commands.install_hints import install_hint, packages_hint, requirements

BOTH = ["scaler-worker", "scaler-scheduler"]


@pytest.fixture(autouse=True)
def metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["pyzmq>=25", 'urwid>=2.6; extra == "top"', "a>=1 ; extra == 'ui'", 'b[c]>=2; extra == "ui"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    monkeypatch.delenv(install_hints.PEX_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "executable", "/a folder/bin/python")


def test_with_pip() -> None:
    assert requirements("ui") == ["a>=1", "b[c]>=2"]
    assert install_hint("top") == "'/a folder/bin/python' -m pip install 'urwid>=2.6'"


def test_without_pip_as_uv_makes_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    assert install_hint("ui") == "uv pip install --python '/a folder/bin/python' 'a>=1' 'b[c]>=2'"


def test_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(install_hints.PEX_VARIABLE, "/x/scaler_top.pex")
    begin = "cannot add libraries to /x/scaler_top.pex: install scaler-client and urwid>=2.6 in a virtual environment"
    assert install_hint("top") == begin


def test_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> NoReturn:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", refuse)
    assert install_hint("top") == "install the extra top of scaler-client"


# ----------------------------------------------------------------------------------------------- the packages of Scaler


class Origin:
    """Stands in for the metadata of the installed package."""

    def __init__(self, told: Any) -> None:
        self.read_text = {"direct_url.json": None if told is None else json.dumps(told)}.get


@pytest.mark.parametrize(("editable", "flags"), [(True, ["-e"]), (False, [])])
def test_from_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, editable: bool, flags: list[str]) -> None:
    for name in ("client_lib", "worker_lib", "scheduler_daemon"):
        (tmp_path / name).mkdir()
    told = {"url": (tmp_path / "client_lib").as_uri(), "dir_info": {"editable": editable}}
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Origin(told))
    folders = [*flags, str(tmp_path / "worker_lib"), *flags, str(tmp_path / "scheduler_daemon")]
    assert shlex.split(packages_hint(BOTH))[1:] == ["-m", "pip", "install", *folders]


def test_from_wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("client", "worker", "scheduler"):
        (tmp_path / f"scaler_{name}-0.1.0-py3-none-any.whl").touch()
    told = {"url": (tmp_path / "scaler_client-0.1.0-py3-none-any.whl").as_uri(), "archive_info": {}}
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Origin(told))
    assert packages_hint(BOTH).endswith(
        f"install {tmp_path}/scaler_worker-0.1.0-py3-none-any.whl {tmp_path}/scaler_scheduler-0.1.0-py3-none-any.whl"
    )


@pytest.mark.parametrize("told", [None, {"url": "file:///nowhere/client_lib", "dir_info": {}}, {"url": "https://x/y"}])
def test_from_elsewhere(monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Origin(told))
    assert packages_hint(BOTH) == "'/a folder/bin/python' -m pip install scaler-worker scaler-scheduler"


# ---------------------------------------------------------------------------------------------------------- our own


def test_every_extra_has_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    told: Any = importlib.metadata.metadata(install_hints.DISTRIBUTION).get_all("Provides-Extra")
    assert {"dask", "exporter", "graphblas", "joblib", "msgpack", "progress", "top", "ui"} <= set(told)
    assert all(requirements(extra) for extra in told)
