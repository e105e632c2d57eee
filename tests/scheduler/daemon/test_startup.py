"""What the scheduler does before its loop starts."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from scaler_scheduler.commands.module_command import module_command
from scaler_scheduler.daemon import pypy
from scaler_scheduler.daemon.pypy import (
    JIT_PARAMETERS,
    compile_early,
    compile_nothing,
    restart_with_collector_parameters,
)


def test_the_interpreter_takes_the_parameters_of_the_jit() -> None:
    compile_nothing()
    compile_early()
    if sys.implementation.name == "pypy":
        import pypyjit

        pypyjit.set_param("default")


def test_only_pypy_has_a_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    module = ModuleType("pypyjit")
    module.set_param = given.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pypyjit", module)
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="cpython"))
    compile_nothing()
    compile_early()
    assert given == []
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    compile_nothing()
    assert given == ["off"]
    compile_early()
    assert given == ["off", "default", JIT_PARAMETERS]


@pytest.mark.parametrize("given, used", [({}, "1.4"), ({"PYPY_GC_MAJOR_COLLECT": "2"}, "2")])
def test_pypy_gets_the_parameters_of_its_collector(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], used: str
) -> None:
    environment = dict(given)
    commands: list[list[str]] = []
    system = SimpleNamespace(environ=environment, execv=lambda _path, command: commands.append(command))
    monkeypatch.setattr(pypy, "os", system)
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    restart_with_collector_parameters(["--address", "ipc:///tmp/address"])
    assert commands == [[*module_command(sys.executable, "scaler_scheduler"), "--address", "ipc:///tmp/address"]]
    assert environment == {"PYPY_GC_NURSERY": "32M", "PYPY_GC_MAJOR_COLLECT": used}
    restart_with_collector_parameters([])
    assert len(commands) == 1, "it is executed once"
