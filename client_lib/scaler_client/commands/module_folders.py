"""How a local cluster's worker processes find the modules that the program finds.

PYTHONPATH names the folders where the cluster process starts, and nowhere else: that process puts the program's own
PYTHONPATH back, so that a task that starts another Python, perhaps of another version, does not hand the folders to it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

PATH_VARIABLE = "PYTHONPATH"
PROGRAM_VARIABLE = "SCALER_CLUSTER_PROGRAM_PYTHONPATH"
"""PYTHONPATH as the program has it; empty: it has none. Only from a local cluster to the process that it starts."""


def variables() -> dict[str, str]:
    """The environment variables by which a new Python process finds the modules of this one."""
    folders = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)  # the script's own folder among them
    return {PATH_VARIABLE: folders, PROGRAM_VARIABLE: os.environ.get(PATH_VARIABLE, "")}


def put_back(environ: MutableMapping[str, str]) -> None:
    """In a process that was started with these variables: leave what the program itself has. Else do nothing."""
    program = environ.pop(PROGRAM_VARIABLE, None)
    if program:
        environ[PATH_VARIABLE] = program
    elif program is not None:
        environ.pop(PATH_VARIABLE, None)
