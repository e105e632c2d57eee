"""The command by which an interpreter runs a module, whatever is in the current folder."""

from __future__ import annotations

import os

RUN_MODULE = (
    "import sys; sys.path = [each for each in sys.path if each]; "
    "import runpy; runpy._run_module_as_main(sys.argv.pop(1))"
)
"""Does what `-m` does, but without the current folder on the path: `-c` adds it as an empty text. The option `-P` would
do the same, but PyPy and CPython 3.10 do not have it."""


def module_command(python: str, module: str) -> list[str]:
    """Return the command that runs a module, to which its arguments can be appended.

    `-m` puts the current folder first on the path. A `types.py` there would replace Python's, and the interpreter would
    end at its start. So the command does not search this folder. Exception: the folder has the package of the module,
    or PYTHONPATH names the folder. Then the command is `python -m`.

    Args:
        python: the path of the interpreter.
        module: the name of a module or package.
    """
    if os.path.isdir(module.partition(".")[0]) or _is_on_python_path():
        return [python, "-m", module]
    return [python, "-c", RUN_MODULE, module]


def _is_on_python_path() -> bool:
    """Whether PYTHONPATH names the current folder. An empty part of it does, too."""
    path = os.environ.get("PYTHONPATH")
    folders = [folder or os.curdir for folder in path.split(os.pathsep)] if path else []
    return any(os.path.exists(folder) and os.path.samefile(folder, os.curdir) for folder in folders)
