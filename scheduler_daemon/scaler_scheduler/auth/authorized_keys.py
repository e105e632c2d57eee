"""The list of authorized keys: the file `authorized` in the folder of keys.

A line has a role, a public key, a name, and for clients what they get of the workers, for example
`client 3f...e1 ada share=3 max-running=100 max-waiting=1000000`.

The file is always replaced as a whole, so a reader sees either the old list or the new one.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Callable

from ..commands.key_files import (
    CLIENT,
    KEY_BYTES,
    PUBLIC_SUFFIX,
    ROLES,
    SERVER,
    KeyFileError,
    check_writers,
    not_a_scheduler_folder,
    read_public,
)
from ..commands.options import quoted

FILE_NAME = "authorized"
MAX_NAME_LENGTH = 64  # characters
LEAST_SHARE, MOST_SHARE = 0.001, 1000.0
_HEADER = (
    "# Authorized keys: role, public key, name. Change with scaler_scheduler authorize and revoke, apply by SIGHUP.\n"
)


@dataclass(frozen=True)
class AuthorizedKey:
    """One line of the list: a key that may connect, its role and its name."""

    role: str
    """One of key_files.ROLES."""
    key: str
    """The public key, 64 hex digits in lower case."""
    name: str
    share: float = 1.0
    """Of a client: with twice the share of others, it gets twice their time of the workers."""
    max_running: int = 0
    """Of a client: the most tasks of it that workers have at once; 0: no limit."""
    max_waiting: int = 0
    """Of a client: the most tasks that the scheduler takes from it; 0: no limit."""

    @property
    def options(self) -> str:
        """What differs from other keys, as in the list."""
        given = {"share": f"{self.share:g}", "max-running": self.max_running, "max-waiting": self.max_waiting}
        return " ".join(f"{name}={value}" for name, value in given.items() if str(value) != _OPTIONS[name][1])

    def with_options(self, texts: Mapping[str, str]) -> AuthorizedKey:
        """The key with these options, by name.

        Raises:
            ValueError: an option does not exist, has a wrong value, or is for clients.
        """
        changes: dict[str, float] = {}
        for name, text in texts.items():
            if name not in _OPTIONS:
                raise ValueError(f"there is no option {quoted(name)}: {', '.join(_OPTIONS)}")
            if self.role != CLIENT:
                raise ValueError(f"{name} is for keys of clients, and this is the key of a {self.role}")
            changes[name.replace("-", "_")] = _OPTIONS[name][0](name, text)
        return replace(self, **changes)  # type: ignore[arg-type]  # floats for `share`, else integers

    @property
    def user(self) -> str:
        """The user id that ZAP gives to connections with this key."""
        return f"{self.role}:{self.key}"


def _share(name: str, text: str) -> float:
    try:
        value = float(text) if text.isascii() and "_" not in text else 0.0
    except ValueError:
        value = 0.0
    if not LEAST_SHARE <= value <= MOST_SHARE:
        raise ValueError(f"{name} {quoted(text)} is not a number from {LEAST_SHARE:g} to {MOST_SHARE:g}")
    return value


def _count(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text) or not int(text):
        raise ValueError(f"{name} {quoted(text)} is not a whole number of tasks from 1 to 999,999,999,999,999")
    return int(text)


_OPTIONS: dict[str, tuple[Callable[[str, str], float], str]] = {
    "share": (_share, "1"),
    "max-running": (_count, "0"),
    "max-waiting": (_count, "0"),
}
"""What reads each option, and the value of keys without it."""


def read(directory: str) -> dict[str, AuthorizedKey]:
    """The authorized keys by public key. Raises KeyFileError that names the first wrong line."""
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            check_writers(directory)
            check_writers(path)
            lines = file.read().splitlines()
    except FileNotFoundError:
        raise KeyFileError(not_a_scheduler_folder(directory, FILE_NAME)) from None
    except OSError as error:
        raise KeyFileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"{path} is not UTF-8 text") from None
    entries: dict[str, AuthorizedKey] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 3 or words[0] not in ROLES or not re.fullmatch("[0-9a-f]{64}", words[1]):
            raise KeyFileError(f"{path}:{number}: expected a role ({', '.join(ROLES)}), 64 hex digits and a name")
        if words[1] in entries:
            raise KeyFileError(f"{path}:{number}: the key {words[1]} is listed more than once")
        options = dict(word.partition("=")[::2] for word in words[3:])
        try:
            if len(options) < len(words) - 3:
                raise ValueError(f"an option is there more than once: {quoted(' '.join(words[3:]))}")
            entries[words[1]] = AuthorizedKey(words[0], words[1], words[2]).with_options(options)
        except ValueError as error:
            raise KeyFileError(f"{path}:{number}: {error}") from None
    return entries


def add(directory: str, entry: AuthorizedKey) -> None:
    """Add a key to the list, or change the options of a key that is listed with this role and name.

    Raises:
        KeyFileError: its key or name is listed otherwise, or with the same options.
    """

    def change(entries: dict[str, AuthorizedKey]) -> None:
        for other in entries.values():
            is_same = (other.role, other.key, other.name) == (entry.role, entry.key, entry.name)
            if is_same and other != entry:
                continue
            if other.key == entry.key or other.name == entry.name:
                what = "key" if other.key == entry.key else "name"
                raise KeyFileError(f"this {what} is authorized already, as {other.role} {other.name}: revoke it first")
        entries[entry.key] = entry

    _update(directory, change)


def remove(directory: str, name_or_key: str) -> list[AuthorizedKey]:
    """Remove keys from the list by name or key, and return them. Raises KeyFileError if no key matches."""
    gone: list[AuthorizedKey] = []

    def change(entries: dict[str, AuthorizedKey]) -> None:
        gone.extend(entry for entry in entries.values() if name_or_key in (entry.name, entry.key))
        if not gone:
            raise KeyFileError(f"no key with the name or value {quoted(name_or_key)} is authorized in {directory}")
        for entry in gone:
            del entries[entry.key]

    _update(directory, change)
    return gone


def create(directory: str, entries: list[AuthorizedKey]) -> None:
    """Make the list, which must not exist yet. Raises KeyFileError."""
    write_new(os.path.join(directory, FILE_NAME), _text(entries))


def write_new(path: str, text: str) -> None:
    """Make a file that only its owner can read. Raises KeyFileError; then no part of the file is left."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except BaseException:
            os.unlink(path)
            raise
    except OSError as error:
        raise KeyFileError(f"cannot make {path}: {error.strerror}") from None


def checked_name(given: str) -> str:
    """Return a name for the list unchanged. Raises KeyFileError if the name is not allowed."""
    if not 0 < len(given) <= MAX_NAME_LENGTH or not given.isprintable() or given.split() != [given] or given[0] == "#":
        raise KeyFileError(
            f"{quoted(given)} is not a name of 1 to {MAX_NAME_LENGTH} printable characters without blanks"
        )
    return given


def checked_key(given: str, decode_z85: Callable[[str], bytes]) -> str:
    """The 64 hex digits of a public key.

    Args:
        given: 64 hex digits, the 40 characters that ZeroMQ writes, or the path of a file.
        decode_z85: converts ZeroMQ's characters to bytes.

    Raises:
        KeyFileError: `given` is none of these.
    """
    key: bytes | None = None
    if re.fullmatch("[0-9a-fA-F]{64}", given):
        key = bytes.fromhex(given)
    elif given.endswith(PUBLIC_SUFFIX):
        key = read_public(os.path.dirname(given) or ".", os.path.basename(given)[: -len(PUBLIC_SUFFIX)])
    elif len(given) == 40:
        try:
            key = decode_z85(given)
        except (ValueError, KeyError, UnicodeError):
            pass
    if key is None or len(key) != KEY_BYTES:
        raise KeyFileError(
            f"{quoted(given)} is not a public key: expected 64 hex digits, ZeroMQ's 40 characters, or a file *.key"
        )
    return key.hex()


def check_role(given: str, role: str) -> None:
    """Raise KeyFileError if a key is given as a file that has the name of another role.

    Programs read the key file of their role, so they would never use this key.
    """
    name = os.path.basename(given)
    for other in (SERVER, *ROLES):
        if name == other + PUBLIC_SUFFIX and other != role:
            whose = "the scheduler's own" if other == SERVER else f"a {other}'s"
            wanted = f"{role}{PUBLIC_SUFFIX} of `scaler_scheduler keygen DIR --as {role}`"
            raise KeyFileError(f"{given!r} is {whose} key: a {role} connects with {wanted}")


def _update(directory: str, change: Callable[[dict[str, AuthorizedKey]], None]) -> None:
    with _locked(directory):
        entries = read(directory)
        change(entries)
        _replace(directory, _text(list(entries.values())))


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Hold a lock, so that only one process at a time changes the list."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise KeyFileError(f"cannot open {directory}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(directory: str, text: str) -> None:
    path = os.path.join(directory, FILE_NAME)
    try:
        import tempfile  # not at the top: the daemon only reads

        before = os.stat(path)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{FILE_NAME}-", dir=directory)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(descriptor, before.st_mode & 0o7777)
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(
                        descriptor, before.st_uid, before.st_gid
                    )  # so that the scheduler can read what root wrote
                os.fsync(descriptor)
            os.rename(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise KeyFileError(f"cannot write {path}: {error.strerror}") from None


def _text(entries: list[AuthorizedKey]) -> str:
    return _HEADER + "".join(
        " ".join(filter(None, (entry.role, entry.key, entry.name, entry.options))) + "\n" for entry in entries
    )
