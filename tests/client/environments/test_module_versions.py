"""The versions of modules in the pickles of functions: which modules count, and when they are read again."""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scaler_client.commands import module_folders
from scaler_client.environments import module_versions
from scaler_client.environments.module_versions import ProgramModules, take_versions
from scaler_client.pickling import serializer
from scaler_client.pickling.functions import FunctionTable

TOP = """
import json
import versioned_leaf as leaf

def call(value=1):
    return value, leaf.WORD
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module_folders, "_given", set())  # as if this process had started no local cluster
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "versioned_leaf.py").write_text("WORD = 'a'\n")
    (tmp_path / "versioned_top.py").write_text(TOP)
    yield tmp_path
    for name in ("versioned_leaf", "versioned_top"):
        sys.modules.pop(name, None)
        module_versions._taken.pop(name, None)
        module_versions._newest.pop(name, None)
    module_versions.program._reloaded.clear()
    module_versions.program._prefixes.clear()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def version(path: Path, *imports: str) -> tuple[str, str, str, tuple[str, ...]]:
    return path.stem, digest(path), str(path), imports


LEAF = "versioned_leaf"
"""What `versioned_top` imports."""


def test_own_modules_come_behind_those_that_they_import(folder: Path) -> None:
    top = importlib.import_module("versioned_top")
    leaf_version = version(folder / "versioned_leaf.py")
    versions = leaf_version, version(folder / "versioned_top.py", LEAF)
    program = ProgramModules()
    names = ["versioned_top", "json", "pytest", "__main__", "missing", "scaler_client"]
    assert program.versions(names) == (versions, ())
    assert program.versions(["versioned_leaf"]) == ((leaf_version,), ())
    pickled = serializer.dump_function(top.call, "call")
    assert pickled[2:-1].count(b"take_versions") == 1
    assert pickle.loads(pickled) is top.call
    plain = pickle.dumps(len, 5)
    assert program.with_versions(plain, ["builtins"]) is plain


def test_a_reload_is_noticed_and_a_mere_edit_is_not(folder: Path) -> None:
    top = importlib.import_module("versioned_top")
    table = FunctionTable(lambda number: None)
    first = table.get(top.call)
    (folder / "versioned_leaf.py").write_text("WORD = 'longer'\n")
    assert table.get(top.call) is first
    importlib.reload(sys.modules["versioned_leaf"])
    second = table.get(top.call)
    assert second is not first and table.get(top.call) is second
    assert digest(folder / "versioned_leaf.py").encode() in second.payload
    assert b"versioned_leaf" in table.get(len).payload  # an argument may be of this module


def test_a_module_is_noticed_before_any_function_of_it_was_sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ProgramModules()
    monkeypatch.setattr(module_versions, "program", program)
    importlib.import_module("versioned_leaf")
    program.watch(FunctionTable(lambda number: None))
    with pytest.raises(ImportError):
        importlib.import_module("versioned_missing")
    importlib.reload(sys.modules["colorsys"] if "colorsys" in sys.modules else importlib.import_module("colorsys"))
    importlib.import_module("versioned_top")
    assert program.versions([]) == ((), ()) and not program.compares_arguments
    del sys.modules["versioned_top"]
    importlib.import_module("versioned_top")
    importlib.reload(sys.modules["versioned_leaf"])
    leaf, top = version(folder / "versioned_leaf.py"), version(folder / "versioned_top.py", LEAF)
    assert program.versions([]) == ((), (leaf, top)) and program.compares_arguments
    assert program.versions(["versioned_leaf"]) == ((leaf,), (top,))


def test_imports_in_the_body_of_a_function_are_named(folder: Path) -> None:
    importlib.import_module("versioned_leaf")

    def word() -> Any:
        def inner() -> Any:
            import versioned_leaf

            return versioned_leaf.WORD

        return inner()

    assert digest(folder / "versioned_leaf.py").encode() in serializer.dump_function(word, "word")


def test_a_function_loads_if_a_module_that_it_does_not_name_is_another_version(folder: Path) -> None:
    top: Any = importlib.import_module("versioned_top")
    leaf: Any = sys.modules["versioned_leaf"]
    take_versions((), (version(folder / "versioned_leaf.py"),))
    other = "versioned_leaf", "0" * 64, "", ()
    take_versions((version(folder / "versioned_top.py", LEAF),), (other,))
    assert top.call() == (1, "a")
    with pytest.raises(ImportError, match="'versioned_leaf' of the program is another version"):
        take_versions((other,))
    (folder / "versioned_leaf.py").write_text("raise OSError\n")
    broken = version(folder / "versioned_leaf.py")
    take_versions((), (broken,))
    with pytest.raises(OSError):
        take_versions((broken,))
    (folder / "versioned_leaf.py").write_text("WORD = 'mended'\n")
    take_versions((), (version(folder / "versioned_leaf.py"),))
    assert leaf.WORD == "mended"


def test_what_was_imported_in_another_version_is_loaded_again(folder: Path) -> None:
    top: Any = importlib.import_module("versioned_top")
    old = top.call
    paths = {name: folder / f"{name}.py" for name in ("versioned_leaf", "versioned_top")}
    take_versions((version(paths["versioned_leaf"]), version(paths["versioned_top"], LEAF)))
    paths["versioned_leaf"].write_text("WORD = 'second'\n")
    os.utime(paths["versioned_leaf"], (1, 1))
    versions = version(paths["versioned_leaf"]), version(paths["versioned_top"], LEAF)
    take_versions(versions)
    assert top.call() == (1, "second") and top.call is not old
    loaded = top.call
    take_versions(versions)
    assert top.call is loaded
    with pytest.raises(ImportError, match=r"'versioned_top' of the program is another version than .*versioned_top.py"):
        take_versions((("versioned_top", "0" * 64, "", ()),))
    take_versions((("json", "0" * 64, "", ()), ("a module that is missing", "0" * 64, "", ())))


NAMES = "from versioned_leaf import WORD\n\ndef call():\n    return WORD\n"
"""A module that has names of another module, which a reload of that one does not change."""


def test_a_module_is_loaded_again_after_those_that_it_imports_in_any_order_of_calls(folder: Path) -> None:
    (folder / "versioned_top.py").write_text(NAMES)
    top: Any = importlib.import_module("versioned_top")
    leaf_path, top_path = folder / "versioned_leaf.py", folder / "versioned_top.py"
    take_versions((version(leaf_path), version(top_path, LEAF)))
    leaf_path.write_text("WORD = 'second'\n")
    take_versions((version(leaf_path),))  # for another function, which does not need the module above
    assert top.call() == "a"
    take_versions((version(leaf_path), version(top_path, LEAF)))
    assert top.call() == "second"
    loaded = top.call
    for versions in [(version(leaf_path),), (version(leaf_path), version(top_path, LEAF))] * 2:
        take_versions(versions)
    assert top.call is loaded, "each change loads it once"


def test_a_module_that_nobody_has_named_before_is_loaded_again_too(folder: Path) -> None:
    (folder / "versioned_top.py").write_text(NAMES)
    os.utime(folder / "versioned_top.py", (1, 1))
    top: Any = importlib.import_module("versioned_top")
    leaf_path = folder / "versioned_leaf.py"
    take_versions((version(leaf_path),))
    leaf_path.write_text("WORD = 'second'\n")
    take_versions((version(leaf_path),))
    take_versions((version(leaf_path), version(folder / "versioned_top.py", LEAF)))
    assert top.call() == "second"


def test_modules_that_import_each_other_are_loaded_once_for_each_change(folder: Path) -> None:
    leaf_path, top_path = folder / "versioned_leaf.py", folder / "versioned_top.py"
    leaf_path.write_text("import versioned_top\nWORD = 'a'\n")
    importlib.import_module("versioned_leaf")
    leaf, top = "versioned_leaf", "versioned_top"
    take_versions((version(leaf_path, top), version(top_path, leaf)))
    leaf_path.write_text("import versioned_top\nWORD = 'second'\n")
    orders = (version(leaf_path, top), version(top_path, leaf)), (version(top_path, leaf), version(leaf_path, top))
    for versions in orders * 2:
        take_versions(versions)
    calls = sys.modules[top].call, module_versions._newest[leaf]
    for versions in orders * 2:
        take_versions(versions)
    assert (sys.modules[top].call, module_versions._newest[leaf]) == calls
    assert sys.modules[top].call() == (1, "second")
