"""The search path for modules in the worker processes of a local cluster.

A local cluster passes the folders of its program in a variable. Only workers put them on their paths: a file such as
`resource.py` beside a program must not replace a module that the cluster or the scheduler imports.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import MutableMapping

PATH_VARIABLE = "PYTHONPATH"
PROGRAM_VARIABLE = "SCALER_CLUSTER_PROGRAM_PYTHONPATH"
"""The program's own PYTHONPATH, for an interpreter whose PYTHONPATH was extended. Empty: there is none."""
FOLDERS_VARIABLE = "SCALER_CLUSTER_PROGRAM_FOLDERS"
"""The folders of the program, as JSON, because the name of a folder may contain a colon."""

_folders: list[str] = []
"""The folders of the program whose local cluster has started this process."""


def variables() -> dict[str, str]:
    """The environment variables by which the workers of a local cluster find the modules of this program."""
    return {FOLDERS_VARIABLE: json.dumps([os.path.abspath(folder) for folder in sys.path])}  # with the script's folder


def interpreter_variables() -> dict[str, str]:
    """The environment variables by which an interpreter that a cluster starts finds the modules of this process."""
    path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
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
