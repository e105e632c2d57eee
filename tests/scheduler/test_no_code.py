"""Nothing in the scheduler can make code of bytes: no module of it imports or calls what does. See test_no_pickle.py
for the same while it serves."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, List

import pytest

import scaler_scheduler

PACKAGE = Path(scaler_scheduler.__file__ or "").parent
MAKES_CODE = {
    "_pickle", "cloudpickle", "code", "codeop", "dbm", "dill", "importlib", "joblib", "marshal", "multiprocessing",
    "pickle", "pty", "runpy", "shelve", "subprocess", "xmlrpc", "zipimport",
}  # fmt: skip
CALLS = {"__import__", "compile", "eval", "exec"}
PYZMQ_UNPICKLES = {"recv_pyobj", "recv_serialized", "recv_json"}

EXCEPTIONS = {
    "wire/capnpy_import.py": {"importlib"},  # names a module of its own; see there
}


def wrong_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        names: List[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [(node.module or "").partition(".")[0]]
        yield from (name for name in names if name in MAKES_CODE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node.func.id
        if isinstance(node, ast.Attribute) and node.attr in PYZMQ_UNPICKLES:
            yield node.attr


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_makes_no_code_of_bytes(path: Path) -> None:
    allowed = EXCEPTIONS.get(path.relative_to(PACKAGE).as_posix(), set())
    assert set(wrong_in(path.read_text("utf-8"))) <= allowed


@pytest.mark.parametrize(
    "source, found",
    [
        ("import pickle", "pickle"),
        ("def f():\n    from marshal import loads", "marshal"),
        ("eval('1')", "eval"),
        ("socket.recv_pyobj()", "recv_pyobj"),
    ],
)
def test_what_does_is_found(source: str, found: str) -> None:
    assert list(wrong_in(source)) == [found]
