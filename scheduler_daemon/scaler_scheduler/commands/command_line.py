"""Parsing of a command line, and the values of options from command line, environment and file.

Arguments override the environment, the environment overrides the file, the file overrides the default. scaler_client
has a link to this file.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NoReturn

from .machine import open_standard_descriptors
from .options import Command, GivenValue, OptionError, parse_text, quoted, suggestion
from .toml_file import check_file, read_file

COMMON_OPTIONS = ["--config", "--check-config", "--print-config", "--version", "--help"]
"""The options of every command that are not in its table."""

VARIABLE_PREFIX = "SCALER_"
OTHER_PREFIXES = tuple(
    f"SCALER_{name}_" for name in "SCHEDULER CLUSTER CLIENT MONITOR TOP UI EXPORTER AUTOSCALER CI TEST".split()
)
"""Prefixes of the variables of single commands, and of the tests."""
CLIENT_VARIABLES = ("SCALER_SCHEDULER_PYTHON", "SCALER_KEYS")
PROVIDER_VARIABLES = tuple(
    f"SCALER_{name}" for name in "POOL WORKERS CAPABILITIES RESOURCES COMMAND NAMES NUMBER FORCE".split()
)
"""What an autoscaler sets for the commands of its provider `command`, and so for the agents that they start."""
MIN_VARIABLE_SIMILARITY = 0.75  # higher than for options, because all variables begin alike


@dataclass(frozen=True)
class Arguments:
    """A parsed command line. Values are still text."""

    help: bool
    version: bool
    config: str | None
    check_config: str | None
    print_config: bool
    texts: dict[str, Any]


def parse_arguments(command: Command, argv: Sequence[str]) -> Arguments:
    """Parse a command line. Raises OptionError for an unknown option, or for an option without its value."""
    parsed, unknown = argument_parser(command, "").parse_known_args(argv)
    for argument in unknown:
        if argument.startswith("-") and argument != "--":
            name = argument.split("=", 1)[0]
            known = ["--" + option.name for option in command.options if not option.positional]
            raise OptionError(f"unknown option {name}{suggestion(name, known + COMMON_OPTIONS)}")
    if unknown:
        raise OptionError(f"unexpected argument {quoted(unknown[-1])}")
    texts = vars(parsed)
    own = {name: texts.pop(name) for name in ("help", "version", "config", "check_config", "print_config")}
    return Arguments(texts=texts, **own)


def begin_command() -> None:
    """Prepare the process of a command. Call it first of all.

    Standard streams that the parent has closed are opened. The interpreter will end without its last garbage
    collections: they visit all that is loaded, which takes a sixth of the processor time of a short run. PyPy makes
    none.
    """
    open_standard_descriptors()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))
    if hasattr(gc, "freeze"):
        atexit.register(gc.freeze)


def run_common_option(command: Command, program: str, version: Callable[[], str], arguments: Arguments) -> int | None:
    """Handle `-h`, `--version`, `--check-config` and `--print-config`.

    Args:
        command: the table of options.
        program: the name of the program.
        version: returns the text that `--version` prints after the name.
        arguments: the command line.

    Returns:
        The exit status; None if none of these options was given.
    """
    if arguments.help:
        print(argument_parser(command, program, shutil.get_terminal_size().columns).format_help(), end="")
    elif arguments.version:
        print(f"{program} {version()}")
    elif arguments.print_config:
        from .default_file import default_file  # not at the top: most starts do not need it

        print(default_file(command, program), end="")
    elif arguments.check_config is not None:
        problems = check_file(command, arguments.check_config)
        for problem in problems:
            print(" ".join(problem.splitlines()), file=sys.stderr, flush=True)
        if problems:
            return 2
        print(f"{arguments.check_config}: OK{_overridden(command, os.environ)}")
    else:
        return None
    return 0


def _overridden(command: Command, environ: Mapping[str, str]) -> str:
    """What `--check-config` adds if variables override the file in this environment."""
    variables = [name for option in command.options if environ.get(name := command.variable(option))]
    return f"; the environment overrides it here: {', '.join(variables)}" if variables else ""


def resolve(command: Command, arguments: Arguments, environ: Mapping[str, str]) -> dict[str, Any]:
    """The value of every option by its key. Raises OptionError for the first wrong or missing option."""
    from_arguments = _read_arguments(command, arguments)
    from_environment = _read_environment(command, environ)
    path = _file_to_read(command, arguments, environ)
    found: dict[str, GivenValue] = {}
    if path is not None:
        found, problems = read_file(command, path)
        if problems:
            raise OptionError(problems[0])
    found.update(from_environment)
    found.update(from_arguments)
    for option in command.options:
        if option.required and option.key not in found:
            raise OptionError(
                f"no {option.key}: give it as an argument, in {command.variable(option)}, "
                f"or as `{option.key}` in {path or command.default_file}"
            )
    for complaint in command.check(found):
        raise OptionError(complaint)
    values = {option.key: option.default for option in command.options}
    values.update((key, one.value) for key, one in found.items())
    return values


def ignored_variables(command: Command, environ: Mapping[str, str]) -> list[str]:
    """A warning for each variable that begins like Scaler's variables but sets no option.

    An autoscaler's variables are known where all of them are set. A single SCALER_WORKERS is a mistake of the user.
    """
    known = [command.variable(option) for option in command.options] + [command.config_variable, *CLIENT_VARIABLES]
    provided = PROVIDER_VARIABLES if all(name in environ for name in PROVIDER_VARIABLES) else ()
    others = tuple(begin for begin in OTHER_PREFIXES if begin != command.environment_prefix + "_")
    return [
        f"the environment variable {name} is unknown and ignored{suggestion(name, known, MIN_VARIABLE_SIMILARITY)}"
        for name in sorted(environ)
        if name.startswith(VARIABLE_PREFIX)
        and environ[name]
        and name not in known
        and name not in provided
        and not name.startswith(others)
    ]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise an OptionError. argparse would print the usage and exit."""
        raise OptionError(message[len("argument ") :] if message.startswith("argument ") else message)


def argument_parser(command: Command, program: str, columns: int = 80) -> argparse.ArgumentParser:
    """The parser of a command line, which also writes the help in that many columns. Parsed values stay text."""

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, max_help_position=32, width=columns)

    parser = _Parser(
        prog=program,
        description=command.description,
        epilog=_epilog(command),
        add_help=False,
        allow_abbrev=False,
        formatter_class=formatter,
    )
    for option in command.options:
        help_text = f"{option.help} [default: {option.describe_default()}]".replace("%", "%%")
        if option.positional:
            parser.add_argument(option.key, nargs="?", metavar=option.kind.metavar, help=help_text)
        elif bool in option.kind.toml_types:
            switch = parser.add_mutually_exclusive_group()
            switch.add_argument("--" + option.name, dest=option.key, action="store_const", const="true", help=help_text)
            switch.add_argument("--no-" + option.name, dest=option.key, action="store_const", const="false")
        else:
            flags = [flag for flag in (option.short, "--" + option.name) if flag]
            action = "append" if option.kind.is_list else "store"
            parser.add_argument(*flags, dest=option.key, action=action, metavar=option.kind.metavar, help=help_text)
    default_file = f"TOML file to read [default: {command.default_file} if it exists]"
    parser.add_argument("--config", metavar="FILE", help=default_file)
    parser.add_argument("--check-config", metavar="FILE", help="report all errors in a TOML file, by line and key")
    printed = "print a TOML file that lists every option with its default, as a comment"
    parser.add_argument("--print-config", action="store_true", help=printed)
    parser.add_argument(
        "--version", action="store_true", help="print the versions of the program and of what it runs on"
    )
    parser.add_argument("-h", "--help", action="store_true", help="print this text")
    return parser


def _epilog(command: Command) -> str:
    example = next(option for option in command.options if not option.positional and not option.environment)
    renamed = [f"{option.key} is {option.environment}" for option in command.options if option.environment]
    others = f"; {', '.join(renamed)} in the environment" if renamed else ""
    return (
        f"Every option may also come from the environment or the file: --{example.name} is "
        f"{command.variable(example)} in the environment and {example.key} in the file{others}. "
        "Arguments override the environment, the environment overrides the file."
    )


def _read_arguments(command: Command, arguments: Arguments) -> dict[str, GivenValue]:
    found = {}
    for option in command.options:
        given = arguments.texts[option.key]
        if given is not None:
            given = ",".join(given) if option.kind.is_list else given
            found[option.key] = parse_text(option, given, option.label)
    return found


def _read_environment(command: Command, environ: Mapping[str, str]) -> dict[str, GivenValue]:
    found = {}
    for option in command.options:
        variable = command.variable(option)
        if environ.get(variable):  # an empty variable is the usual way to unset one in a unit or a container
            found[option.key] = parse_text(option, environ[variable], variable)
    return found


def _file_to_read(command: Command, arguments: Arguments, environ: Mapping[str, str]) -> str | None:
    named = arguments.config if arguments.config is not None else environ.get(command.config_variable) or None
    if named is None and os.path.exists(command.default_file):
        return command.default_file
    return named
