"""The user's function that each worker calls before its first task."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest

from scaler_worker.fork_server.preload import PreloadError, error_summary, preload


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The calls into a module `prepared`, which has functions that work and functions that fail."""
    seen: list[str] = []

    class Model:
        @staticmethod
        def load() -> None:
            seen.append("Model.load")

    def give_up() -> None:
        sys.exit(3)

    module = types.ModuleType("prepared")
    module.__dict__.update(load=lambda: seen.append("load"), Model=Model, fail=lambda: [].pop(), give_up=give_up)
    monkeypatch.setitem(sys.modules, "prepared", module)
    yield seen


def test_the_named_function_is_called(calls: list[str]) -> None:
    preload("prepared:load")
    preload("prepared:Model.load")
    assert calls == ["load", "Model.load"]


@pytest.mark.parametrize(
    "name, complaint",
    [
        ("prepared:fail", "IndexError: pop from empty list ("),
        ("prepared:give_up", "sys.exit(3)"),
        ("prepared:load_all", "AttributeError: module 'prepared' has no attribute 'load_all'"),
        ("unprepared:load", "ModuleNotFoundError: No module named 'unprepared'"),
    ],
)
def test_a_failed_preload_is_one_line(calls: list[str], name: str, complaint: str) -> None:
    with pytest.raises(PreloadError) as caught:
        preload(name)
    line = error_summary(caught.value)
    assert line.startswith(f"--preload {name}: {complaint}")
    assert "scaler_worker/fork_server/preload.py" not in line  # the place is in the user's code, if possible
