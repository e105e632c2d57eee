"""What to say where the libraries of an extra are missing: a command that installs them in this environment.

It names the libraries, and not `scaler-client[extra]`: that would look for scaler-client in the package index, wherever
this one was installed from (a folder, a wheel, another index).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys

DISTRIBUTION = "scaler-client"
PEX_VARIABLE = "PEX"
"""Set by a .pex file to its own path."""


def install_hint(extra: str) -> str:
    """A command that installs an extra's libraries here, or what to do where none can."""
    wanted = requirements(extra)
    if not wanted:
        return f"install the extra {extra} of {DISTRIBUTION}"
    file = os.environ.get(PEX_VARIABLE)
    if file or "__compiled__" in globals():  # the second is Nuitka's mark
        one_file = file or sys.argv[0]
        libraries = " and ".join(wanted)
        return f"{one_file} can't be given libraries: install {DISTRIBUTION} and {libraries} in a virtual environment"
    if importlib.util.find_spec("pip") is not None:
        return shlex.join([sys.executable, "-m", "pip", "install", *wanted])
    return shlex.join(["uv", "pip", "install", "--python", sys.executable, *wanted])  # uv's environments have no pip


def requirements(extra: str) -> list[str]:
    """The libraries of an extra with their least versions, as in `urwid>=2.6`; empty where no metadata is installed."""
    import importlib.metadata  # not at the top: it takes some 20 ms, and few starts need it

    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    parts = [line.partition(";") for line in lines]
    of_extra = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return [requirement.strip() for requirement, _, marker in parts if of_extra.search(marker)]
