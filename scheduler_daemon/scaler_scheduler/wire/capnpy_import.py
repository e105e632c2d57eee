"""Importing capnpy without its schema compiler.

The scheduler reads and writes messages with `schema.py`, which is generated from the schema and needs some of capnpy's
modules. An import of the capnpy package also imports its compiler, which imports setuptools. That takes a third of the
scheduler's start (`make bench`, start). So this module makes an empty package; its modules are found in capnpy's
folder.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec

NAME = "capnpy"


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
    package.__version__ = version(NAME)  # type: ignore[attr-defined]  # the generated module is for one version only
    sys.modules[NAME] = package
    with redirect_stderr(io.StringIO()):  # capnpy prints a warning if it is not compiled, which does not help here
        import capnpy.blob  # noqa: F401
