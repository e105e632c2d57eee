"""Hints for missing packages: the command that installs them in this environment.

For an extra, the command names the libraries and not `scaler-client[extra]`. Reason: pip would look for scaler-client
in the package index, even if it was installed from another place. The scheduler and the workers are installed from the
same source as this package.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

DISTRIBUTION = "scaler-client"
FOLDERS = {"scaler-scheduler": "scheduler_daemon", "scaler-worker": "worker_lib"}
"""The folders of the other distributions in a checkout, beside the folder of this one."""
PEX_VARIABLE = "PEX"
"""The variable in which a .pex file has its own path."""


def install_hint(extra: str) -> str:
    """The command that installs an extra's libraries here. Without metadata: a text that says what to do."""
    wanted = requirements(extra)
    return _pip_install(wanted) if wanted else f"install the extra {extra} of {DISTRIBUTION}"


def packages_hint(names: Sequence[str]) -> str:
    """The command that installs these packages of Scaler here. One command installs all of them, because they depend on
    each other.

    Args:
        names: keys of FOLDERS.
    """
    from urllib.request import url2pathname  # not at the top: it imports HTTP and TLS, and few starts need it

    url, is_editable = _origin()
    path = url2pathname(urlsplit(url).path) if urlsplit(url).scheme == "file" else ""
    beside = os.path.dirname(path.rstrip(os.sep))
    if os.path.isdir(path):
        found = [os.path.join(beside, FOLDERS[name]) for name in names]
        if all(map(os.path.isdir, found)):
            return _pip_install([part for folder in found for part in (["-e", folder] if is_editable else [folder])])
    elif path:
        wheels = [sorted(glob.glob(os.path.join(beside, f"{name.replace('-', '_')}-*.whl"))) for name in names]
        if all(wheels):
            return _pip_install([several[-1] for several in wheels])
    return _pip_install(names)


def _origin() -> tuple[str, bool]:
    """The URL that pip installed this package from (empty: an index), and whether the install is editable (PEP 610)."""
    import importlib.metadata  # not at the top: the import takes some 20 ms, and few starts need it

    try:
        origin = json.loads(importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except importlib.metadata.PackageNotFoundError:
        return "", False
    return origin.get("url", ""), origin.get("dir_info", {}).get("editable", False)


def _pip_install(wanted: Sequence[str]) -> str:
    file = os.environ.get(PEX_VARIABLE)
    if file or "__compiled__" in globals():  # the second is Nuitka's mark
        one_file = file or sys.argv[0]
        others = " and ".join(wanted)
        return f"cannot add libraries to {one_file}: install {DISTRIBUTION} and {others} in a virtual environment"
    if importlib.util.find_spec("pip") is not None:
        return shlex.join([sys.executable, "-m", "pip", "install", *wanted])
    return shlex.join(["uv", "pip", "install", "--python", sys.executable, *wanted])  # uv's environments have no pip


def requirements(extra: str) -> list[str]:
    """The libraries of an extra with their least versions, as in `urwid>=2.6`; empty where no metadata is installed."""
    import importlib.metadata  # as above

    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    parts = [line.partition(";") for line in lines]
    of_extra = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return [requirement.strip() for requirement, _, marker in parts if of_extra.search(marker)]
