"""The search path for modules in the worker processes of a local cluster.

The cluster process is started with these folders in PYTHONPATH. Then it restores the program's own PYTHONPATH. Reason:
a task may start another Python, perhaps of another version, which must not get these folders.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

PATH_VARIABLE = "PYTHONPATH"
PROGRAM_VARIABLE = "SCALER_CLUSTER_PROGRAM_PYTHONPATH"
"""The program's own PYTHONPATH. A local cluster sets it for the process that it starts. Empty: there is none."""


def variables() -> dict[str, str]:
    """The environment variables by which a new Python process finds the modules of this one."""
    folders = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)  # includes the script's own folder
    return {PATH_VARIABLE: folders, PROGRAM_VARIABLE: os.environ.get(PATH_VARIABLE, "")}


def restore(environ: MutableMapping[str, str]) -> None:
    """Restore the program's own PYTHONPATH in a process that was started with these variables."""
    program = environ.pop(PROGRAM_VARIABLE, None)
    if program:
        environ[PATH_VARIABLE] = program
    elif program is not None:
        environ.pop(PATH_VARIABLE, None)
