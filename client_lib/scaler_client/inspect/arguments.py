"""What stands behind `scaler_client` on the command line: a table of its subcommands."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..commands.command_line import Arguments, resolve
from ..commands.options import Command, Option, OptionError, choice, quoted, seconds, suggestion, text
from ..monitor.options import MONITOR_OPTIONS
from .workers import SORT_KEYS

PROGRAM = "scaler_client"
ENVIRONMENT_PREFIX = "SCALER_CLIENT"

TIMEOUT = Option(
    "timeout", seconds(), 5.0, "how long to wait until something is heard of the scheduler", unit="seconds"
)
JSON_HELP = "print JSON, identities in it as strings of digits; a dump is JSON anyway"


@dataclass(frozen=True)
class Subcommand:
    name: str
    help: str
    positionals: tuple[tuple[str, str], ...] = ()
    """Their names in capitals, and what they are; they come before the monitor address."""
    options: tuple[Option, ...] = ()
    flags: tuple[tuple[str, str], ...] = (("json", JSON_HELP),)
    """Options without a value."""

    @property
    def command(self) -> Command:
        """The table of its options."""
        return Command(self.help, ENVIRONMENT_PREFIX, "", (*MONITOR_OPTIONS, *self.options, TIMEOUT))


SUBCOMMANDS = (
    Subcommand("status", "the scheduler on one screen: its tasks, workers, rates, memory, and what looks wrong"),
    Subcommand(
        "workers",
        "the table of workers",
        options=(
            Option("sort", choice("KEY", SORT_KEYS), "name", f"by what to sort: {', '.join(SORT_KEYS)}"),
            Option(
                "filter", text("TEXT"), "", "only workers with this in their name, host, state, capabilities or task"
            ),
        ),
    ),
    Subcommand(
        "story",
        "each thing that is known to have happened to a task",
        positionals=(("TASK_ID", "as logs, errors and scaler_top name it: ID, NAME#ID or CLIENT/ID"),),
    ),
    Subcommand(
        "dump",
        "all that the scheduler publishes, as JSON, for a report of a bug; takes some seconds",
        positionals=(("FILE", "the file to write, which must not be there yet; - is standard output"),),
        flags=(("force", "write over a file that is there"), ("json", JSON_HELP)),
    ),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Instead of argparse's page of usage."""
        raise OptionError(message[len("argument ") :] if message.startswith("argument ") else message)


def argument_parser(program: str = PROGRAM, columns: int = 80) -> argparse.ArgumentParser:
    """Of the whole command, its help so many columns wide; values stay text."""

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, max_help_position=32, width=columns)

    about = "Asks a scheduler what goes on, by what that publishes on its monitor address."
    status = "Exit status: 0 when there was an answer, 1 when there was none, 2 for wrong arguments."
    parser = _Parser(prog=program, description=about, epilog=status, formatter_class=formatter, allow_abbrev=False)
    parser.add_argument(
        "--version", action="store_true", help="print the versions: its own and those of what it runs on"
    )
    parsers = parser.add_subparsers(dest="subcommand", metavar="COMMAND", title="commands")
    for each in SUBCOMMANDS:
        part = parsers.add_parser(
            each.name, help=each.help, description=f"Shows {each.help}.", formatter_class=formatter, allow_abbrev=False
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
            parser.add_argument("--" + option.name, dest=option.key, metavar=option.kind.metavar, help=about)
    for name, about in subcommand.flags:
        parser.add_argument("--" + name, action="store_true", help=about)


@dataclass(frozen=True)
class CommandLine:
    """A command line taken apart. `values` has the options, positionals and flags by key."""

    subcommand: str
    """Empty: only the version is asked for."""
    values: Mapping[str, Any]


def parse_command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """Raises OptionError naming what is wrong; help ends the process as argparse does."""
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
