"""The command that runs a module in any current folder. Runs under PyPy and CPython."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scaler_scheduler.commands.module_command import RUN_MODULE, module_command


@pytest.fixture
def current(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def run(module, *arguments):
    command = [*module_command(sys.executable, module), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_the_current_folder_replaces_no_module(current, monkeypatch):
    for name in ("types", "enum", "runpy", "shown"):
        (current / f"{name}.py").write_text("raise RuntimeError('imported')")
    elsewhere = current / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "shown.py").write_text("import sys; print(__name__, sys.argv, sys.modules['__main__'].__file__)")
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    ran = run("shown", "-m", "two words")
    file = f"{elsewhere}/shown.py"
    assert (ran.stdout, ran.stderr) == (f"__main__ {[file, '-m', 'two words']} {file}\n", "")


def test_a_module_that_is_not_there_is_one_line(current):
    ran = run("no_such_module")
    assert (ran.returncode, ran.stderr) == (1, f"{sys.executable}: No module named no_such_module\n")


def test_a_package_in_the_current_folder_is_found(current):
    (current / "package").mkdir()
    (current / "package" / "part.py").write_text("print(__name__)")
    assert run("package.part").stdout == "__main__\n"
    assert module_command("python", "other") == ["python", "-c", RUN_MODULE, "other"]


@pytest.mark.parametrize("path, is_searched", [("", False), ("/no/folder", False), (".", True), ("/no/folder:", True)])
def test_the_current_folder_on_pythonpath_stays_there(current, monkeypatch, path, is_searched):
    monkeypatch.setenv("PYTHONPATH", path)
    assert ("-m" in module_command("python", "module")) == is_searched
