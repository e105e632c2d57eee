"""The search path for modules in the worker processes of a local cluster.

A local cluster passes the folders of its program in a variable. Only workers put them on their paths: a file such as
`resource.py` beside a program must not replace a module that the cluster or the scheduler imports.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, MutableMapping

PATH_VARIABLE = "PYTHONPATH"
PROGRAM_VARIABLE = "SCALER_CLUSTER_PROGRAM_PYTHONPATH"
"""The program's own PYTHONPATH, for an interpreter whose PYTHONPATH was extended. Empty: there is none."""
FOLDERS_VARIABLE = "SCALER_CLUSTER_PROGRAM_FOLDERS"
"""The folders of the program, as JSON, because the name of a folder may contain a colon."""

_folders: list[str] = []
"""The folders of the program whose local cluster has started this process."""
_given: set[str] = set()
"""The folders that this process has passed to its first local cluster."""
_added: dict[str, None] = {}
"""The folders that a program has added later, in a worker."""


def variables() -> dict[str, str]:
    """The environment variables by which the workers of a local cluster find the modules of this program."""
    folders = _absolute_path()  # with the script's folder
    _given.update(() if _given else folders)
    return {FOLDERS_VARIABLE: json.dumps(folders)}


def late() -> tuple[str, ...]:
    """Return the folders and archives that the program has added to `sys.path` since it started a local cluster."""
    return tuple([folder for folder in _absolute_path() if folder not in _given]) if _given else tuple(_added)


def add(folders: Iterable[str]) -> None:
    """Search modules in these folders and archives, too, if they are here."""
    for folder in folders:
        if folder not in sys.path and os.path.exists(folder):
            sys.path.append(folder)
            _added[folder] = None


def add_late(folders: Iterable[str]) -> None:
    """Call `add` in a worker of a local cluster. Other workers never search the folders of a program."""
    if _folders:
        add(folders)


def search_path() -> list[str]:
    """Return `sys.path` without entries that are no strings. Imports ignore those, but importlib.metadata fails."""
    return [folder for folder in sys.path if isinstance(folder, str)]


def _absolute_path() -> list[str]:
    return list(map(os.path.abspath, search_path()))


def interpreter_variables() -> dict[str, str]:
    """The environment variables by which an interpreter that a cluster starts finds the modules of this process."""
    path = os.pathsep.join(_absolute_path())
    program = {FOLDERS_VARIABLE: json.dumps(_folders)} if _folders else {}
    return {PATH_VARIABLE: path, PROGRAM_VARIABLE: os.environ.get(PATH_VARIABLE, ""), **program}


def restore(environ: MutableMapping[str, str]) -> None:
    """Take these variables out of the environment of a process that was started with them."""
    program = environ.pop(PROGRAM_VARIABLE, None)
    if program:
        environ[PATH_VARIABLE] = program
    elif program is not None:
        environ.pop(PATH_VARIABLE, None)
    folders = environ.pop(FOLDERS_VARIABLE, None)
    if folders:
        _folders[:] = json.loads(folders)


def use() -> None:
    """Search modules in the program's folders, as the program does. Workers call this before their first task."""
    sys.path[:] = [*_folders, *(folder for folder in sys.path if folder not in _folders)]
