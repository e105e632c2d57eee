"""The subcommands `keygen`, `authorize`, `revoke` and `list` of scaler_scheduler, which manage a folder of keys."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Callable, NoReturn

from ..commands.key_files import PUBLIC_SUFFIX, ROLES, SECRET_SUFFIX, SERVER, KeyFileError
from ..commands.options import quoted, suggestion
from ..config.config import PROGRAM, fail
from . import authorized_keys
from .authorized_keys import AuthorizedKey

_KEY_USERS = {
    "client": "programs with a Client: Client(address, keys=FOLDER), or SCALER_KEYS=FOLDER",
    "worker": "compute hosts: scaler_cluster --keys FOLDER ADDRESS",
    "monitor": "monitor hosts: scaler_top and the other monitor programs --keys FOLDER",
}

_ONE_ROLE = f"{', '.join(ROLES[:-1])} or {ROLES[-1]}"
_OPTIONS = ("--as", "--name", "--share", "--max-running", "--max-waiting")
_SCHEDULERS = "the scheduler's folder of keys"


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise an error. argparse would print the usage and exit."""
        raise _UsageError(f"{self.prog.split()[-1]}: {message}")


def is_key_command(arguments: Sequence[str]) -> bool:
    """Whether the first argument is one of the subcommands."""
    return bool(arguments) and arguments[0] in _COMMANDS


def mistyped_command(arguments: Sequence[str]) -> str:
    """The error for a first argument that is probably a misspelled subcommand; else an empty text."""
    if not arguments or arguments[0].startswith("-") or "://" in arguments[0]:
        return ""
    hint = suggestion(arguments[0], list(_COMMANDS))
    return f"there is no command {quoted(arguments[0])}{hint}" if hint else ""


def run(arguments: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status."""
    try:
        parser = argument_parser()
        parsed, unknown = parser.parse_known_args(arguments)
        if unknown:
            raise _UsageError(_unknown_argument(arguments[0], unknown[0]))
        _COMMANDS[arguments[0]](parsed)
    except (_UsageError, KeyFileError) as error:
        return fail(str(error))
    return 0


def _unknown_argument(command: str, given: str) -> str:
    """Return the error for an argument that the command does not have."""
    if not given.startswith("-"):
        return f"{command}: unexpected argument {quoted(given)}"
    name = given.partition("=")[0]
    return f"{command}: unknown option {name}{suggestion(name, _OPTIONS)}"


def argument_parser() -> argparse.ArgumentParser:
    """The parser of the subcommands, which also writes their help."""
    parser = _Parser(prog=PROGRAM, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    about = "Makes a folder of keys: the server's key pair and one for each role. Existing files are never overwritten."
    keygen = _add(commands, "keygen", "make keys in a new folder", about, "the folder to make")
    only = "make only the key pair of one role, for another user or host; authorize takes its *.key"
    keygen.add_argument("--as", dest="role", metavar="ROLE", choices=ROLES, help=f"{only}; ROLE is {_ONE_ROLE}")
    about = "Authorizes one more key. A running scheduler accepts it after SIGHUP."
    authorize = _add(commands, "authorize", "authorize one more key", about, _SCHEDULERS)
    key = "64 hex digits, ZeroMQ's 40 characters, or a file *.key"
    authorize.add_argument("key", metavar="PUBLICKEY", help=key)
    role = f"the role of the key: {_ONE_ROLE}"
    authorize.add_argument("--as", dest="role", metavar="ROLE", choices=ROLES, required=True, help=role)
    authorize.add_argument("--name", metavar="NAME", required=True, help="the name of the key, for logs and for revoke")
    share = "of a client: its share of the workers' time, relative to others' (default: 1)"
    authorize.add_argument("--share", metavar="NUMBER", help=share)
    running = "of a client: the most tasks of it that workers have at once (default: no limit)"
    authorize.add_argument("--max-running", metavar="TASKS", help=running)
    waiting = (
        "of a client: the most tasks that the scheduler takes from it; the client keeps the others (default: no limit)"
    )
    authorize.add_argument("--max-waiting", metavar="TASKS", help=waiting)
    about = "Removes a key from the list. A running scheduler cuts its connections after SIGHUP."
    revoke = _add(commands, "revoke", "remove a key from the list", about, _SCHEDULERS)
    revoke.add_argument("who", metavar="NAME_OR_KEY", help="the name that authorize was given, or the public key")
    _add(commands, "list", "list the authorized keys", "Lists the authorized keys: role, key, name.", _SCHEDULERS)
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
            raise KeyFileError(f"{os.path.join(directory, name)} exists already: keys are never overwritten")
    with ExitStack() as undo:  # remove all files: an incomplete folder is useless
        public = {name: _make_pair(directory, name, undo) for name in names}
        if not parsed.role:
            authorized_keys.create(directory, [AuthorizedKey(role, public[role], role) for role in ROLES])
        undo.pop_all()
    if parsed.role:
        print(f"Authorize it: scaler_scheduler authorize DIR {public[parsed.role]} --as {parsed.role} --name NAME")
        copy = f"{SERVER}{PUBLIC_SUFFIX} of the scheduler's folder to {directory}"
        print(f"Copy {copy}: peers recognize the scheduler by it")
        return
    print(f"The scheduler: scaler_scheduler --keys {directory} ADDRESS; {SERVER}{SECRET_SUFFIX} stays here")
    for role in ROLES:
        copied = " ".join((SERVER + PUBLIC_SUFFIX, role + PUBLIC_SUFFIX, role + SECRET_SUFFIX))
        print(f"Copy {copied} to {_KEY_USERS[role]}")


def _make_pair(directory: str, name: str, undo: ExitStack) -> str:
    """Make a key pair. Returns the public key in hex. `undo` removes the files."""
    from ..net.zap import new_key_pair

    public, secret = new_key_pair()
    for suffix, text in (
        (SECRET_SUFFIX, f"# The secret key of {name}: keep it private.\n{secret.hex()}\n"),
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
    given = {"share": parsed.share, "max-running": parsed.max_running, "max-waiting": parsed.max_waiting}
    try:
        entry = AuthorizedKey(parsed.role, key, name).with_options({k: v for k, v in given.items() if v is not None})
    except ValueError as error:
        raise KeyFileError(str(error)) from None
    authorized_keys.add(parsed.directory, entry)
    print(f"{name} may connect as {parsed.role} ({key}); a running scheduler accepts the key after SIGHUP")


def _revoke(parsed: argparse.Namespace) -> None:
    for entry in authorized_keys.remove(parsed.directory, parsed.who):
        print(
            f"{entry.name} is revoked ({entry.role} {entry.key}); a running scheduler cuts its connections after SIGHUP"
        )


def _list(parsed: argparse.Namespace) -> None:
    entries: list[AuthorizedKey] = list(authorized_keys.read(parsed.directory).values())
    for entry in entries:
        print(f"{entry.role:7} {entry.key} {entry.name} {entry.options}".rstrip())
    if not entries:
        print("no key is authorized", file=sys.stderr)


_COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "keygen": _keygen,
    "authorize": _authorize,
    "revoke": _revoke,
    "list": _list,
}
