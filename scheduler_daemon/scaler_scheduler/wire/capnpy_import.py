"""Importing capnpy without its schema compiler.

The scheduler reads and writes messages with `schema.py`, which is generated from the schema and needs some of capnpy's
modules. An import of the capnpy package also imports its compiler, which imports setuptools. That takes a third of the
scheduler's start (`make bench`, start). So this module makes an empty package; its modules are found in capnpy's
folder.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stderr
from importlib.util import find_spec, module_from_spec

NAME = "capnpy"
_METADATA = re.compile(rf"{NAME}-(.+?)(-py[0-9.]+)?\.(dist|egg)-info")


def import_capnpy() -> None:
    """Make the package, unless it was imported before.

    Raises:
        ImportError: it is not installed.
    """
    if NAME in sys.modules:
        return
    spec = find_spec(NAME)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {NAME!r}", name=NAME)
    package = module_from_spec(spec)
    folder = os.path.dirname(os.path.dirname(spec.origin or ""))
    package.__version__ = _version_in(folder)  # type: ignore[attr-defined]  # the generated module is for one version only
    sys.modules[NAME] = package
    with redirect_stderr(io.StringIO()):  # capnpy prints a warning if it is not compiled, which does not help here
        import capnpy.blob  # noqa: F401


def _version_in(folder: str) -> str:
    """The version of capnpy, by the name of the folder with its metadata."""
    try:
        found = [match for name in os.listdir(folder) if (match := _METADATA.fullmatch(name))]
    except OSError:  # for example an archive
        found = []
    if len(found) == 1:
        return found[0][1]
    from importlib.metadata import version  # not at the top: the import takes PyPy 30 ms

    return version(NAME)
