"""The seal of a finished environment: the hashes of its files, checked before each use.

Reading all files takes a second for each GB, so a file whose size, times and inode are as they were is not read again:
nobody can set a file's time of change (ctime) back. All others are read, and their hashes compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

SEAL = "seal.json"
_CHUNK_BYTES = 1 << 20
_IGNORED = (".lck", ".lock")
"""Lock files that PEX makes while it runs."""


class BrokenSealError(Exception):
    """A file is not as it was when the environment was made. The text names the first one."""


def write_seal(folder: str, facts: dict[str, Any]) -> None:
    """Hash all files of a folder. The seal is written last: an environment without it is not finished.

    Args:
        folder: of the environment.
        facts: further values of the seal: plain JSON.
    """
    files = {path: [*_stamp(os.path.join(folder, path)), _hash(os.path.join(folder, path))] for path in _files(folder)}
    temporary = os.path.join(folder, SEAL + ".new")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"facts": facts, "files": files}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, os.path.join(folder, SEAL))


def read_seal(folder: str) -> dict[str, Any] | None:
    """The facts of a finished environment, after a check of all its files. None: it is not finished.

    Files that Python has compiled since then are removed: they are not covered by the seal.

    Raises:
        BrokenSealError: a file was changed, added or removed.
    """
    try:
        with open(os.path.join(folder, SEAL), encoding="utf-8") as file:
            seal = json.load(file)
        facts, files = seal["facts"], seal["files"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenSealError(f"{SEAL}: {error}") from None
    found = set()
    for path in _files(folder):
        full = os.path.join(folder, path)
        if path not in files:
            if os.path.basename(os.path.dirname(path)) == "__pycache__":
                with suppress(OSError):
                    os.unlink(full)
                continue
            raise BrokenSealError(f"{path} was added")
        found.add(path)
        if files[path][:-1] != _stamp(full) and files[path][-1] != _hash(full):
            raise BrokenSealError(f"{path} was changed")
    missing = next((path for path in files if path not in found), None)
    if missing is not None:
        raise BrokenSealError(f"{missing} was removed")
    if not isinstance(facts, dict):
        raise BrokenSealError(SEAL)
    return facts


def _files(folder: str) -> Iterator[str]:
    """The paths of all files and links under a folder, relative to it."""
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        with os.scandir(os.path.join(folder, inner)) as entries:
            for entry in entries:
                path = os.path.join(inner, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif path not in (SEAL, SEAL + ".new") and not entry.name.endswith(_IGNORED):
                    yield path


def _stamp(path: str) -> list[int]:
    status = os.lstat(path)
    return [status.st_size, status.st_mode, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _hash(path: str) -> str:
    if os.path.islink(path):
        return "link " + os.readlink(path)
    try:
        hashed = hashlib.sha256()
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                hashed.update(chunk)
        return hashed.hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"
