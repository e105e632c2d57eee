"""What the scheduler does before its loop starts."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from scaler_scheduler.daemon.startup import JIT_PARAMETERS, compile_early


def test_the_interpreter_takes_the_parameters_of_the_jit() -> None:
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
    compile_early()
    assert given == []
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    compile_early()
    assert given == [JIT_PARAMETERS]
