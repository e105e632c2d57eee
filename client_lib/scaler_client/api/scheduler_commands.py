"""Finds the commands that can start a scheduler on this machine, and checks the packages of a local cluster."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from ..commands.install_hints import install_hint, packages_hint
from ..commands.module_command import module_command

SCHEDULER = "scaler_scheduler"
"""The package of the scheduler, and its command."""
SCHEDULER_PYTHON_VARIABLE = "SCALER_SCHEDULER_PYTHON"
UI_LIBRARIES = ("aiohttp", "prometheus_client")


def installed_schedulers(python: str | None) -> Iterator[list[str]]:
    """Return the commands that can start the scheduler, the preferred one first; at least one.

    Raises:
        ModuleNotFoundError: scaler-scheduler or scaler-worker is not installed; the text names all missing packages.
    """
    commands = _scheduler_commands(python)
    first = next(commands, None)
    missing = [] if importlib.util.find_spec("scaler_worker") is not None else ["scaler-worker"]
    if first is None:
        missing.append("scaler-scheduler")
    if first is None or missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ModuleNotFoundError(
            f"a local cluster needs {' and '.join(missing)}, which {verb} not installed in {sys.prefix}: "
            f"{packages_hint(missing)}"
        )
    return itertools.chain([first], commands)


def _scheduler_commands(python: str | None) -> Iterator[list[str]]:
    """Yield commands that can start the scheduler, the preferred one first. Each is searched for when it is needed."""
    if python:
        yield module_command(python, SCHEDULER)
        return
    named = os.environ.get(SCHEDULER_PYTHON_VARIABLE)
    if named:
        yield module_command(named, SCHEDULER)
    pypy = _find_pypy()
    if pypy:
        yield module_command(pypy, SCHEDULER)
    found = shutil.which(SCHEDULER)
    if found:
        yield [found]
    if importlib.util.find_spec(SCHEDULER) is not None:
        yield module_command(sys.executable, SCHEDULER)


def _find_pypy() -> str | None:
    """Return a PyPy with the scheduler: in the environment beside this one (`.venv-pypy`), or on the path."""
    beside = os.path.join(sys.prefix.rstrip(os.sep) + "-pypy", "bin", "python")
    for python in (beside, shutil.which("pypy3")):
        if python is not None and os.path.exists(python):
            ask = [python, "-c", f"import {SCHEDULER}"]
            asked = subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True)
            if asked.returncode == 0:
                return python
    return None


def check_ui_libraries() -> None:
    for library in UI_LIBRARIES:
        if importlib.util.find_spec(library) is None:
            raise ModuleNotFoundError(f"ui=True needs {library}, which is not installed: {install_hint('ui')}")
