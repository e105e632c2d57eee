"""`scaler_scheduler keygen`, `authorize`, `revoke` and `list`: what is done to a folder of keys."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, NoReturn, Sequence

from ..commands.key_files import PUBLIC_SUFFIX, ROLES, SECRET_SUFFIX, SERVER, KeyFileError
from ..commands.options import quoted, suggestion
from ..config.config import PROGRAM, fail
from . import authorized_keys
from .authorized_keys import AuthorizedKey

_KEY_USERS = {
    "client": "programs with a Client: Client(address, keys=FOLDER), or SCALER_KEYS=FOLDER",
    "worker": "compute hosts: scaler_cluster --keys FOLDER ADDRESS",
    "monitor": "who watches: scaler_top and the other monitor programs --keys FOLDER",
}

_ONE_ROLE = f"{', '.join(ROLES[:-1])} or {ROLES[-1]}"
_SCHEDULERS = "the scheduler's folder of keys"


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Instead of argparse's page of usage."""
        raise _UsageError(f"{self.prog.split()[-1]}: {message}")


def is_key_command(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0] in _COMMANDS


def mistyped_command(arguments: Sequence[str]) -> str:
    """Of what stands where one of these commands was meant, probably; empty for everything else."""
    if not arguments or arguments[0].startswith("-") or "://" in arguments[0]:
        return ""
    hint = suggestion(arguments[0], list(_COMMANDS))
    return f"there is no command {quoted(arguments[0])}{hint}" if hint else ""


def run(arguments: Sequence[str]) -> int:
    """Do it; returns the exit status."""
    try:
        parsed = argument_parser().parse_args(arguments)
        _COMMANDS[arguments[0]](parsed)
    except (_UsageError, KeyFileError) as error:
        return fail(str(error))
    return 0


def argument_parser() -> argparse.ArgumentParser:
    """What takes these commands apart and writes their help."""
    parser = _Parser(prog=PROGRAM, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    about = "Makes a folder of keys: the server's pair and one for each role. What is there is never overwritten."
    keygen = _add(commands, "keygen", "make keys in a new folder", about, "where to make them")
    only = "make one pair for somebody else alone, and no server's: its *.key is what authorize takes"
    keygen.add_argument("--as", dest="role", metavar="ROLE", choices=ROLES, help=f"{only}; ROLE is {_ONE_ROLE}")
    about = "Lets one more key in; a scheduler that runs takes it in at SIGHUP."
    authorize = _add(commands, "authorize", "let one more key in", about, _SCHEDULERS)
    key = "64 hex digits, ZeroMQ's 40 characters, or a file *.key"
    authorize.add_argument("key", metavar="PUBLICKEY", help=key)
    role = f"what it may be: {_ONE_ROLE}"
    authorize.add_argument("--as", dest="role", metavar="ROLE", choices=ROLES, required=True, help=role)
    authorize.add_argument("--name", metavar="NAME", required=True, help="whose it is, for logs and for revoke")
    about = "Lets a key in no more; a scheduler that runs cuts it off at SIGHUP."
    revoke = _add(commands, "revoke", "let a key in no more", about, _SCHEDULERS)
    revoke.add_argument("who", metavar="NAME_OR_KEY", help="as authorize was told, or the public key")
    _add(commands, "list", "say who may connect", "Says who may connect: role, key, name.", _SCHEDULERS)
    return parser


def _add(commands: Any, name: str, brief: str, about: str, folder: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=brief, description=about, allow_abbrev=False)
    parser.add_argument("directory", metavar="DIR", help=folder)
    return parser


def _keygen(parsed: argparse.Namespace) -> None:
    names = [parsed.role] if parsed.role else [SERVER, *ROLES]
    directory: str = parsed.directory
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise KeyFileError(f"cannot make {directory}: {error.strerror}") from None
    files = [name + suffix for name in names for suffix in (PUBLIC_SUFFIX, SECRET_SUFFIX)]
    files += [] if parsed.role else [authorized_keys.FILE_NAME]
    for name in files:
        if os.path.lexists(os.path.join(directory, name)):
            raise KeyFileError(f"{os.path.join(directory, name)} is there already: keys are never overwritten")
    with ExitStack() as undo:  # a folder with some of its files could neither be used nor be completed
        public = {name: _make_pair(directory, name, undo) for name in names}
        if not parsed.role:
            authorized_keys.create(directory, [AuthorizedKey(role, public[role], role) for role in ROLES])
        undo.pop_all()
    if parsed.role:
        print(f"Let it in: scaler_scheduler authorize DIR {public[parsed.role]} --as {parsed.role} --name NAME")
        copy = f"{SERVER}{PUBLIC_SUFFIX} of the scheduler's folder to {directory}"
        print(f"Copy {copy}: whoever connects knows the scheduler by it")
        return
    print(f"The scheduler: scaler_scheduler --keys {directory} ADDRESS; {SERVER}{SECRET_SUFFIX} stays here")
    for role in ROLES:
        copied = " ".join((SERVER + PUBLIC_SUFFIX, role + PUBLIC_SUFFIX, role + SECRET_SUFFIX))
        print(f"Copy {copied} to {_KEY_USERS[role]}")


def _make_pair(directory: str, name: str, undo: ExitStack) -> str:
    """The public key, in hex. `undo` removes the files."""
    from ..net.zap import new_key_pair

    public, secret = new_key_pair()
    for suffix, text in (
        (SECRET_SUFFIX, f"# The secret key of {name}: for nobody else.\n{secret.hex()}\n"),
        (PUBLIC_SUFFIX, f"# The public key of {name}.\n{public.hex()}\n"),
    ):
        path = os.path.join(directory, name + suffix)
        authorized_keys.write_new(path, text)
        undo.callback(os.unlink, path)
    return public.hex()


def _authorize(parsed: argparse.Namespace) -> None:
    from ..net.zap import decode_z85

    name = authorized_keys.checked_name(parsed.name)
    authorized_keys.check_role(parsed.key, parsed.role)
    key = authorized_keys.checked_key(parsed.key, decode_z85)
    authorized_keys.add(parsed.directory, AuthorizedKey(parsed.role, key, name))
    print(f"{name} may connect as {parsed.role} ({key}); a scheduler that runs takes it in at SIGHUP")


def _revoke(parsed: argparse.Namespace) -> None:
    for entry in authorized_keys.remove(parsed.directory, parsed.who):
        print(
            f"{entry.name} may connect no more ({entry.role} {entry.key}); a scheduler that runs cuts it off at SIGHUP"
        )


def _list(parsed: argparse.Namespace) -> None:
    entries: List[AuthorizedKey] = list(authorized_keys.read(parsed.directory).values())
    for entry in entries:
        print(f"{entry.role:7} {entry.key} {entry.name}")
    if not entries:
        print("nobody may connect", file=sys.stderr)


_COMMANDS: Dict[str, Callable[[argparse.Namespace], None]] = {
    "keygen": _keygen,
    "authorize": _authorize,
    "revoke": _revoke,
    "list": _list,
}
