"""Versions of Python: which one this is, and whether a lock file or PEX file allows it."""

from __future__ import annotations

import re
import sys

_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([0-9]+(?:\.[0-9]+)*)(\.\*)?")


def this_python() -> str:
    """The minor version of this interpreter, for example `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def allows(specifiers: str, version: tuple[int, ...]) -> bool:
    """Whether specifiers as in `>=3.10,<3.13` allow a version of Python.

    A clause that cannot be understood allows every version: the installer on the host decides.
    """
    return all(_allows(clause.strip(), version) for clause in specifiers.split(",") if clause.strip())


def _allows(clause: str, version: tuple[int, ...]) -> bool:
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        return True
    operator, wanted = found[1], tuple(int(part) for part in found[2].split("."))
    size = max(len(wanted), len(version))
    left, right = version + (0,) * (size - len(version)), wanted + (0,) * (size - len(wanted))
    if operator in ("==", "===", "!="):
        is_same = version[: len(wanted)] == wanted if found[3] else left == right
        return is_same != (operator == "!=")
    if operator == "~=":
        return left >= right and version[: len(wanted) - 1] == wanted[:-1]
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
