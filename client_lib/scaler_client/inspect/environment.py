"""`scaler_client environment lock`: writes the packages of this Python to a file for `Client(environment=...)`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ..commands.options import OptionError, quoted
from ..packages.installed import installed_packages, lock_text, with_hashes
from .dump import check_file

ACTIONS = ("lock",)
NO_WHEEL = (
    "has no wheel for this Python and platform on the index, so hosts cannot install the file: build its wheel "
    "(pip wheel), or take it out of the file"
)
"""What a warning says about a package. A file with hashes for all packages is locked: hosts install wheels only."""


def check_action(action: str) -> None:
    """Check the word behind `environment`. Raises OptionError."""
    if action not in ACTIONS:
        raise OptionError(f"environment: {quoted(action)} is not one of {', '.join(ACTIONS)}")


def write_lock(path: str, is_forced: bool, has_hashes: bool, environ: Mapping[str, str]) -> None:
    """Write the packages of this Python; warnings go to standard error.

    Args:
        path: the file; `-` is standard output.
        is_forced: overwrite an existing file.
        has_hashes: ask the package index for hashes.

    Raises:
        OptionError: the file cannot be written.
        PackagesError: the hashes cannot be had.
    """
    check_file(path, is_forced)
    installed = installed_packages()
    for warning in installed.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if has_hashes:
        installed = with_hashes(installed, environ)
        for name in installed.without_wheel:
            print(f"warning: {name} {NO_WHEEL}", file=sys.stderr)
    text = lock_text(installed)
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        with open(path, "w" if is_forced else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from None
    number = len(installed.requirements)
    print(f"{os.path.basename(path)}: {number} package{'' if number == 1 else 's'}", file=sys.stderr)
