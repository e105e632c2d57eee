"""No module of the scheduler imports or calls anything that turns bytes into code.

test_no_pickle.py tests it while it serves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
    "wire/capnpy_import.py": {"importlib"},  # makes a package without its compiler
}


def forbidden_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
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
def test_module_turns_no_bytes_into_code(path: Path) -> None:
    allowed = EXCEPTIONS.get(path.relative_to(PACKAGE).as_posix(), set())
    assert set(forbidden_in(path.read_text("utf-8"))) <= allowed


@pytest.mark.parametrize(
    "source, found",
    [
        ("import pickle", "pickle"),
        ("def f():\n    from marshal import loads", "marshal"),
        ("eval('1')", "eval"),
        ("socket.recv_pyobj()", "recv_pyobj"),
    ],
)
def test_forbidden_code_is_found(source: str, found: str) -> None:
    assert list(forbidden_in(source)) == [found]
