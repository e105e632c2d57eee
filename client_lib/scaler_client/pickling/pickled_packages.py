"""The packages that a pickle names, found without unpickling it. For the texts of errors only: it is slow."""

from __future__ import annotations

import sys
from typing import Any

from ..protocol.messages import Payload

MAX_BYTES = 1 << 24
"""How much of a pickle is read."""

MAX_OPCODES = 20_000
"""How many opcodes of a pickle are read: at most some 50 ms."""

_OWN = {"__main__", "__mp_main__", "builtins", "copyreg"}
_IMPORTERS = {"subimport", "_dynamic_import"}
"""Functions of cloudpickle whose argument is the name of a module."""


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
    return name.isidentifier() and name not in _OWN and name not in sys.stdlib_module_names


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
