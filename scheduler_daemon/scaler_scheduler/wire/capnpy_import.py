"""Importing capnpy without its schema compiler.

The scheduler reads and writes messages with a module that was generated from the schema (`schema.py`), which needs some
of capnpy's modules. The package itself, when it is imported, brings its compiler along, and that setuptools: a third of
the scheduler's start (`make bench`, start). So the package is made here, empty; its modules are found in its folder.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec

NAME = "capnpy"


def import_capnpy() -> None:
    """Make the package, where it was not imported before.

    Raises:
        ImportError: it is not installed.
    """
    if NAME in sys.modules:
        return
    spec = find_spec(NAME)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {NAME!r}", name=NAME)
    package = module_from_spec(spec)
    package.__version__ = version(NAME)  # type: ignore[attr-defined]  # the generated module is for one version alone
    sys.modules[NAME] = package
    with redirect_stderr(io.StringIO()):  # where it is not compiled, it tells whoever starts a scheduler that it is not
        import capnpy.blob  # noqa: F401
