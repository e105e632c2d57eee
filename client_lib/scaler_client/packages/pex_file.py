"""PEX files: what their PEX-INFO says."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile

from ..errors import PackagesError
from .package_set import is_file_name
from .python_versions import allows, this_python

MAX_INFO_BYTES = 4 << 20


def is_pex(path: str) -> bool:
    """Whether a file is a zip file with a PEX-INFO."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.getinfo("PEX-INFO")
    except (OSError, KeyError, zipfile.BadZipFile):
        return False
    return True


def check_pex(path: str) -> None:
    """Check that a host could run a PEX file with this Python.

    Raises:
        PackagesError: it is damaged, or made for other versions of Python.
    """
    if not is_file_name(os.path.basename(path)):
        raise PackagesError(f"{path}: give the file a name of letters, digits, dots, dashes and underscores")
    try:
        with zipfile.ZipFile(path) as archive, archive.open("PEX-INFO") as file:
            info = json.loads(file.read(MAX_INFO_BYTES))
        constraints = [str(each) for each in info.get("interpreter_constraints", [])]
    except (OSError, KeyError, ValueError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise PackagesError(f"{path} is not a PEX file: {error}") from None
    if constraints and not any(_allows(each) for each in constraints):
        wanted = " or ".join(constraints)
        raise PackagesError(f"{path} is for {wanted}: this is Python {this_python()}, and tasks run in the same")


def _allows(constraint: str) -> bool:
    found = re.fullmatch(r"([A-Za-z]*)(?:\[[^]]*\])?(.*)", constraint.strip())
    if found is None or found[1].lower() not in ("", "cpython"):
        return False
    return allows(found[2], sys.version_info[:3])
