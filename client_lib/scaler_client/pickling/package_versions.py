"""The packages that a pickle names, and the versions of packages in this process's interpreter."""

from __future__ import annotations

import functools
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..commands.module_folders import search_path
from ..protocol.messages import Payload

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PYTHON = "Python"
OWN = "scaler_client"

INSTALLED_LIMIT = 1 << 15
"""The most characters of `installed_packages`."""

MISSING = ""
"""The version of a package that is not there."""

_NO_VERSION = "no version"
_INFO_FOLDER = re.compile(r"(?P<name>[A-Za-z0-9._]+)-(?P<version>[^-]+)(-py[0-9.]+)?\.(dist|egg)-info")


def installed_packages() -> str:
    """Return the packages that this interpreter has installed: a line `name version` for each, sorted.

    It reads the names of folders only, which takes about a millisecond: agents call it at their start.
    """
    found: dict[str, str] = {}
    for folder in search_path():
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            match = _INFO_FOLDER.fullmatch(name)
            if match is not None:  # the first folder of sys.path is the one that counts
                found.setdefault(normalized(match["name"]), match["version"])
    lines = [f"{name} {version}\n" for name, version in sorted(found.items())]
    text = "".join(lines)
    return text if len(text) <= INSTALLED_LIMIT else text[: text.rindex("\n", 0, INSTALLED_LIMIT) + 1]


def parse_installed(text: str) -> dict[str, str]:
    """Return the versions in a text of `installed_packages` by normalized name. Lines that are no such line are left
    out."""
    parts = [line.split(" ") for line in text.splitlines()]
    return {part[0]: part[1] for part in parts if len(part) == 2}


def normalized(name: str) -> str:
    """Return the name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def local_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages in this process, and those of Python and of this library.

    Args:
        names: top-level names of packages and modules.

    Returns:
        For each the version; for a module without one the path of its file; MISSING if it can't be imported.
    """
    versions = {PYTHON: platform.python_version(), OWN: __version__}
    for name in sorted(set(names)):
        versions.setdefault(name, _version(name))
    return versions


def distribution_of(name: str) -> str:
    """Return the name of the distribution that has installed a top-level module here; empty: none has."""
    names = _distributions().get(name, [])
    return names[0] if names else ""


def _version(name: str) -> str:
    import importlib.metadata  # not at the top: the import takes some 20 ms, and only errors need it

    distribution = distribution_of(name)
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # ValueError: a module that was made at run time has no spec
        return _NO_VERSION if name in sys.modules else MISSING
    if spec is None:
        return MISSING
    if distribution:
        for found in importlib.metadata.distributions(name=distribution, path=search_path()):
            return found.version
    folders = list(spec.submodule_search_locations or ())
    return folders[0] if folders else spec.origin or _NO_VERSION


@functools.lru_cache(maxsize=1)
def _distributions() -> Mapping[str, list[str]]:
    """The distributions by top-level module. It reads a file of each distribution: some tenths of a second."""
    # Not by `packages_distributions`: that of Python 3.10 misses distributions without `top_level.txt`.
    import importlib.metadata

    found: dict[str, list[str]] = {}
    for distribution in importlib.metadata.distributions(path=search_path()):
        try:
            name, tops = distribution.metadata["Name"], _top_level_names(distribution)
        except Exception:  # broken metadata of any package
            continue
        for top in tops:
            found.setdefault(top, []).append(name)
    return found


def _top_level_names(distribution: Distribution) -> set[str]:
    """The modules and packages that a distribution has installed."""
    listed = distribution.read_text("top_level.txt")
    if listed:
        return set(listed.split())
    tops = set()
    for file in distribution.files or ():
        first, *rest = file.parts
        if rest or first.endswith((".py", ".so", ".pyd")):
            tops.add(first.partition(".")[0])
    return {top for top in tops if top.isidentifier() and top != "__pycache__"}


def is_own_module(version: str) -> bool:
    """Whether a text of `local_versions` is the path of a module that no distribution has installed."""
    return os.sep in version


# -------------------------------------------------------------------------------------------------- what a pickle names

MAX_BYTES = 1 << 24
"""How much of a pickle is read."""

MAX_OPCODES = 20_000
"""How many opcodes of a pickle are read: at most some 50 ms."""

_NO_PACKAGES = {"__main__", "__mp_main__", "builtins", "copyreg"}
_IMPORTERS = {"subimport", "_dynamic_import"}
"""Functions of cloudpickle whose argument is the name of a module."""


# The functions below find the names without unpickling. They are slow: only texts of errors need them.


def packages_in(payload: Payload) -> list[str]:
    """Return the packages and modules that unpickling imports: their top-level names, without the standard library.

    Args:
        payload: a pickle, complete or not. Bytes that are no pickle give the names before the first wrong byte.
    """
    names: set[str] = set()
    try:
        _collect(bytes(payload[:MAX_BYTES]), names)
    except Exception:  # pickletools raises errors of many kinds
        pass
    return sorted(name for name in names if is_package_name(name))


def first_text(payload: Payload, beginning: str) -> str:
    """Return the first string of a pickle that begins like this; empty if there is none."""
    import pickletools  # not at the top: the import takes some ms, and only errors need it

    try:
        for count, (_, argument, _) in enumerate(pickletools.genops(bytes(payload[:MAX_BYTES]))):
            if isinstance(argument, str) and argument.startswith(beginning):
                return argument
            if count == MAX_OPCODES:
                break
    except Exception:
        pass
    return ""


def is_package_name(name: str) -> bool:
    """Whether a top-level name is of a package or module outside of the standard library."""
    return name.isidentifier() and name not in _NO_PACKAGES and name not in sys.stdlib_module_names


def _collect(data: bytes, names: set[str]) -> None:
    import pickletools  # as above

    texts: list[str] = []  # the strings that were pushed so far; a global's module and name are its last two
    memo: dict[int, str] = {}
    top: str | None = None  # the string on top of the stack; None: it is no string
    is_module_next = False
    argument: Any
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count == MAX_OPCODES:
            return
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = top or ""
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = top or ""
        elif name in ("GLOBAL", "INST"):
            is_module_next = _note_global(names, *argument.split(" ", 1))
            top = None
        elif name == "STACK_GLOBAL":
            is_module_next = _note_global(names, *texts[-2:])
            top = None
        else:
            top = argument if isinstance(argument, str) and "UNICODE" in name else None
            if name in ("GET", "BINGET", "LONG_BINGET"):
                top = memo.get(argument) or None
            if top is not None:
                texts.append(top)
                if is_module_next:
                    names.add(top.partition(".")[0])
                    is_module_next = False


def _note_global(names: set[str], module: str, attribute: str) -> bool:
    """Note the module of a global. Returns whether the next string names a module, too."""
    names.add(module.partition(".")[0])
    return attribute in _IMPORTERS and module.startswith("cloudpickle")
