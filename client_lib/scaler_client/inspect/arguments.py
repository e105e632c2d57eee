"""The command line of `scaler_client`: a table of its subcommands, and its parser."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..commands.addresses import ADDRESS_VARIABLE, parse_connect_address
from ..commands.command_line import Arguments, resolve
from ..commands.key_files import KEYS_VARIABLE
from ..commands.options import Command, Kind, Option, OptionError, choice, quoted, seconds, suggestion, text
from ..monitor.options import MONITOR_OPTIONS
from .workers import SORT_KEYS

PROGRAM = "scaler_client"
ENVIRONMENT_PREFIX = "SCALER_CLIENT"

TIMEOUT = Option("timeout", seconds(), 5.0, "how long to wait for the scheduler to be heard", unit="seconds")
JSON_HELP = "print JSON, with identities as strings of digits; a dump is always JSON"


@dataclass(frozen=True)
class Subcommand:
    name: str
    help: str
    positionals: tuple[tuple[str, str], ...] = ()
    """Names in capitals with their help. They come before the monitor address."""
    options: tuple[Option, ...] = ()
    flags: tuple[tuple[str, str], ...] = (("json", JSON_HELP),)
    """Options without a value."""
    common_options: tuple[Option, ...] = MONITOR_OPTIONS
    """The options that name the scheduler."""
    description: str = ""
    """The first sentence of its help; empty: it shows what `help` says."""
    asks_scheduler: bool = True
    """Whether it has a time limit for the scheduler's answer."""

    @property
    def command(self) -> Command:
        """The option table of this subcommand."""
        options = (*self.common_options, *self.options)
        return Command(self.help, ENVIRONMENT_PREFIX, "", (*options, TIMEOUT) if self.asks_scheduler else options)


DOCTOR_OPTIONS = (
    Option(
        "address",
        Kind("ADDRESS", parse_connect_address, (str,)),
        None,
        "the scheduler's address, for example tcp://127.0.0.1:2345; without one, only this machine is looked at",
        positional=True,
        environment=ADDRESS_VARIABLE,
    ),
    Option(
        "keys",
        text("DIR", is_file=True),
        None,
        "the folder with server.key, client.key and client.secret, if the scheduler needs keys",
        environment=KEYS_VARIABLE,
        default_text="none",
    ),
)

SUBCOMMANDS = (
    Subcommand("status", "the scheduler on one screen: its tasks, workers, rates, memory and problems"),
    Subcommand(
        "workers",
        "the table of workers",
        options=(
            Option("sort", choice("KEY", SORT_KEYS), "name", f"the sort key: {', '.join(SORT_KEYS)}"),
            Option(
                "filter",
                text("TEXT"),
                "",
                "only workers whose name, host, state, capabilities, environment or task contain this text",
            ),
        ),
    ),
    Subcommand(
        "story",
        "the known history of one task",
        positionals=(("TASK_ID", "the task as logs, errors and scaler_top name it: ID, NAME#ID or CLIENT/ID"),),
    ),
    Subcommand(
        "why",
        "why a task waits, or where it runs",
        positionals=(("TASK_ID", "the task as logs, errors and scaler_top name it: ID, NAME#ID or CLIENT/ID"),),
    ),
    Subcommand(
        "dump",
        "all that the scheduler publishes, as JSON, for a bug report; takes some seconds",
        positionals=(("FILE", "the file to write, which must not exist yet; - is standard output"),),
        flags=(("force", "overwrite an existing file"), ("json", JSON_HELP)),
    ),
    Subcommand(
        "doctor",
        "what stops programs from running tasks, and what to do",
        options=(
            Option(
                "script",
                text("FILE", is_file=True),
                "",
                "look on the workers for the modules that this script imports; the script is not run",
            ),
        ),
        common_options=DOCTOR_OPTIONS,
        description=(
            "Checks this machine, the connection to a scheduler, its keys, and its hosts by some small tasks. Says for "
            "each whether it is all right and what to do."
        ),
    ),
    Subcommand(
        "environment",
        "the packages of this Python, as a requirements file for Client(environment=...); asks no scheduler",
        positionals=(("ACTION", "what to do: lock writes the names and exact versions"),),
        options=(
            Option("output", text("FILE", is_file=True), "-", "the file to write; - is standard output", short="-o"),
        ),
        flags=(
            ("hashes", "ask the package index for hashes, by uv or pip: hosts with --environments locked need them"),
            ("force", "overwrite an existing file"),
        ),
        common_options=(),
        asks_scheduler=False,
    ),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise OptionError instead of printing argparse's usage."""
        raise OptionError(message[len("argument ") :] if message.startswith("argument ") else message)


def argument_parser(program: str = PROGRAM, columns: int = 80) -> argparse.ArgumentParser:
    """The parser of the whole command. Its help is `columns` wide, and option values stay text."""

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, max_help_position=32, width=columns)

    about = "Shows the state that a scheduler publishes at its monitor address, and finds out what is wrong."
    status = (
        "Exit status: 0 if the scheduler answered and the doctor found no error, 1 if it did not answer or there is an "
        "error, 2 for wrong arguments."
    )
    parser = _Parser(prog=program, description=about, epilog=status, formatter_class=formatter, allow_abbrev=False)
    parser.add_argument(
        "--version", action="store_true", help="print the versions of this program, Python, ZeroMQ and the protocol"
    )
    parsers = parser.add_subparsers(dest="subcommand", metavar="COMMAND", title="commands")
    for each in SUBCOMMANDS:
        part = parsers.add_parser(
            each.name,
            help=each.help,
            description=each.description or f"Shows {each.help}.",
            formatter_class=formatter,
            allow_abbrev=False,
        )
        _add_arguments(part, each)
    return parser


def _add_arguments(parser: argparse.ArgumentParser, subcommand: Subcommand) -> None:
    for name, about in subcommand.positionals:
        parser.add_argument(name.lower(), metavar=name, help=about)
    for option in subcommand.command.options:
        about = f"{option.help} [default: {option.describe_default()}]".replace("%", "%%")
        if option.positional:
            parser.add_argument(option.key, nargs="?", metavar=option.kind.metavar, help=about)
        else:
            names = (option.short, "--" + option.name) if option.short else ("--" + option.name,)
            parser.add_argument(*names, dest=option.key, metavar=option.kind.metavar, help=about)
    for name, about in subcommand.flags:
        parser.add_argument("--" + name, action="store_true", help=about)


@dataclass(frozen=True)
class CommandLine:
    """A parsed command line. `values` has the options, positionals and flags by key."""

    subcommand: str
    """Empty if only the version is requested."""
    values: Mapping[str, Any]


def parse_command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """Parse the arguments. Raises OptionError for the first wrong one; -h ends the process as argparse does."""
    import shutil

    names = [each.name for each in SUBCOMMANDS]
    if argv and not argv[0].startswith("-") and argv[0] not in names:
        hint = suggestion(argv[0], names) or f": one of {', '.join(names)}"
        raise OptionError(f"there is no command {quoted(argv[0])}{hint}")
    parsed, unknown = argument_parser(columns=shutil.get_terminal_size().columns).parse_known_args(argv)
    if parsed.version:
        return CommandLine("", {})
    if parsed.subcommand is None:
        raise OptionError(f"no command: one of {', '.join(names)} (-h explains them)")
    subcommand = SUBCOMMANDS[names.index(parsed.subcommand)]
    if unknown:
        _reject(subcommand, unknown[0])
    command, texts = subcommand.command, vars(parsed)
    own = Arguments(False, False, None, None, False, {option.key: texts[option.key] for option in command.options})
    rest = [name.lower() for name, _ in subcommand.positionals] + [name for name, _ in subcommand.flags]
    return CommandLine(subcommand.name, {**resolve(command, own, environ), **{name: texts[name] for name in rest}})


def _reject(subcommand: Subcommand, argument: str) -> NoReturn:
    if not argument.startswith("-"):
        raise OptionError(f"unexpected argument {argument!r}")
    name = argument.split("=", 1)[0]
    known = [option.name for option in subcommand.command.options if not option.positional]
    known += [flag for flag, _ in subcommand.flags]
    raise OptionError(f"{subcommand.name}: unknown option {name}{suggestion(name, ['--' + each for each in known])}")
