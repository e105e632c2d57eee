"""CURVE keys in a folder: one file for the public part of each key and one for the secret part.

A file has one line of 64 hex digits. Lines that begin with # are comments. scaler_client has a link to this file.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field

KEYS_VARIABLE = "SCALER_KEYS"
SERVER = "server"
CLIENT = "client"
WORKER = "worker"
MONITOR = "monitor"
ROLES = (CLIENT, WORKER, MONITOR)
"""The roles of keys. A program reads the key pair that has the name of its role."""
PUBLIC_SUFFIX = ".key"
SECRET_SUFFIX = ".secret"
KEY_BYTES = 32
MAX_FILE_BYTES = 4096
_READ_ONLY = 1  # ST_RDONLY
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class KeyFileError(ValueError):
    """A key cannot be read or used. The text is one line that names the file and says what is wrong."""


class KeyAccessError(KeyFileError):
    """This user may not read a key."""


def key_error_text(directory: str, error: KeyFileError) -> str:
    """The error text of a command. It names the variable that the folder comes from, if it does.

    The variable overrides the configuration file, and one shell may have it for a program of another role.
    """
    from_variable = os.environ.get(KEYS_VARIABLE, "")
    is_from_variable = from_variable and absolute(from_variable) == absolute(directory)
    return f"{KEYS_VARIABLE}: {error}" if is_from_variable else str(error)


@dataclass(frozen=True)
class PeerKeys:
    """The keys of a peer: the server's public key, by which the peer recognizes the scheduler, and the peer's own
    pair."""

    directory: str
    role: str
    server: bytes
    public: bytes
    secret: bytes = field(repr=False)


def absolute(directory: str | os.PathLike[str]) -> str:
    """The absolute path of a folder. An empty path, which means no keys, stays empty."""
    given = os.fspath(directory)
    return os.path.abspath(given) if given else ""


def read_peer_keys(directory: str, role: str) -> PeerKeys:
    """The keys that a program of this role connects with. Raises KeyFileError."""
    _check_role(directory, role)
    public, secret = read_pair(directory, role)
    return PeerKeys(directory, role, read_public(directory, SERVER), public, secret)


def unwanted_secrets(directory: str, role: str) -> list[str]:
    """The paths of secrets in a folder that a program of this role must not have on another machine.

    With the server's secret a host can pretend to be the scheduler. A worker's host must not have the secrets of other
    roles either, because it runs other users' tasks.
    """
    names = (SERVER, *(each for each in ROLES if each != role)) if role == WORKER else (SERVER,)
    paths = [os.path.join(directory, name + SECRET_SUFFIX) for name in names]
    return [path for path in paths if os.path.exists(path)]


def check_writers(path: str) -> None:
    """Check that only the owner can write to a folder of keys, or to a file in it.

    Another user could authorize keys, or replace the server's key and so make a program connect to another scheduler.

    Raises:
        KeyFileError: others can write to it, or it cannot be read.
    """
    try:
        status = os.stat(path)
        mode = stat.S_IMODE(status.st_mode)
        if not mode & (stat.S_IWGRP | stat.S_IWOTH):
            return
        # With the sticky bit only owners can replace files. Kubernetes mounts secrets in such folders, read-only.
        is_sticky = stat.S_ISDIR(status.st_mode) and mode & stat.S_ISVTX
        if is_sticky or os.statvfs(path).f_flag & _READ_ONLY:
            return
    except OSError as error:
        raise KeyFileError(f"cannot read {path}: {error.strerror}") from None
    what = "folder of keys" if stat.S_ISDIR(status.st_mode) else "file"
    raise KeyFileError(f"others can write to the {what} {path} (mode {mode:04o}): chmod go-w {path}")


def _check_role(directory: str, role: str) -> None:
    """Raise KeyFileError if the folder has keys, but none of this role."""
    there = [each for each in ROLES if os.path.exists(os.path.join(directory, each + SECRET_SUFFIX))]
    if there and role not in there:
        needed = f"{SERVER}{PUBLIC_SUFFIX}, {role}{PUBLIC_SUFFIX} and {role}{SECRET_SUFFIX}"
        has = " and ".join(f"a {each}'s key" for each in there)
        raise KeyFileError(f"{directory} has {has}; a {role} needs {needed}")


def read_pair(directory: str, name: str) -> tuple[bytes, bytes]:
    """A public key and its secret key. Raises KeyFileError."""
    path = os.path.join(directory, name + SECRET_SUFFIX)
    secret = _read(directory, path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise KeyFileError(f"cannot read the key {path}: {error.strerror}") from None
    if stat.S_IMODE(mode) & (stat.S_IRWXO | stat.S_IWGRP):
        raise KeyFileError(f"the key {path} is open to others (mode {stat.S_IMODE(mode):04o}): chmod 600 {path}")
    public = read_public(directory, name)
    if not _is_pair(public, secret):
        raise KeyFileError(f"{path} is not the secret of {name + PUBLIC_SUFFIX} beside it: copy both of one pair")
    return public, secret


def _is_pair(public: bytes, secret: bytes) -> bool:
    import zmq  # not at the top: -h and wrong options are answered without it
    from zmq.utils import z85

    expected: bytes = zmq.curve_public(z85.encode(secret))
    return z85.decode(expected) == public


def read_public(directory: str, name: str) -> bytes:
    """A public key. Raises KeyFileError."""
    path = os.path.join(directory, name + PUBLIC_SUFFIX)
    key = _read(directory, path)
    check_writers(path)
    return key


def _read(directory: str, path: str) -> bytes:
    if not os.path.isdir(directory):
        raise KeyFileError(f"there is no folder of keys at {directory or 'an empty path'}")
    check_writers(directory)
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES).decode("ascii", "replace")
    except PermissionError:
        raise KeyAccessError(f"cannot read the key {path}: it must belong to the user that runs this program") from None
    except FileNotFoundError:
        raise KeyFileError(_missing(directory, path)) from None
    except OSError as error:
        raise KeyFileError(f"cannot read the key {path}: {error.strerror}") from None
    lines = [line.strip() for line in content.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) != 1 or not _HEX.fullmatch(lines[0]):
        raise KeyFileError(f"{path} is not a key: it must have one line of 64 hex digits")
    return bytes.fromhex(lines[0])


def _missing(directory: str, path: str) -> str:
    name, servers = os.path.basename(path), SERVER + SECRET_SUFFIX
    if name == servers:
        return not_a_scheduler_folder(directory, name)
    text = f"cannot read the key {path}: No such file or directory"
    if name == SERVER + PUBLIC_SUFFIX and not os.path.exists(os.path.join(directory, servers)):
        return f"{text}: copy it from the scheduler's folder of keys"
    return text


def not_a_scheduler_folder(directory: str, missing: str) -> str:
    """The error text for a folder that was given as the scheduler's folder of keys but lacks a file."""
    if not os.path.isdir(directory):
        return f"there is no folder of keys at {directory or 'an empty path'}"
    return f"{directory} is not a scheduler's folder of keys: it has no {missing}"
