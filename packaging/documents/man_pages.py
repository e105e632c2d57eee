"""Man pages: the text in man/*.1.in with the options from the tables."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from commands import COMMANDS, Documented

from scaler_client import __version__

HERE = Path(__file__).resolve().parent


def write_man_pages(folder: Path) -> None:
    """Write a page `<name>.1` for each command and each alias."""
    folder.mkdir(parents=True, exist_ok=True)
    for documented in COMMANDS:
        (folder / f"{documented.program}.1").write_text(man_page(documented), encoding="utf-8")
        for alias in documented.aliases:
            (folder / f"{alias}.1").write_text(f".so man1/{documented.program}.1\n", encoding="utf-8")


def man_page(documented: Documented) -> str:
    """The page of a command in man(7)'s macros."""
    template = (HERE / "man" / f"{documented.program}.1.in").read_text(encoding="utf-8")
    command = documented.command
    parser = documented.parser(documented.program)
    subcommands = documented.subcommands
    common = [action for action in next(iter(subcommands.values()), parser)._actions if _is_common(action, subcommands)]
    if documented.key_commands is not None:  # the subcommands have other options than the command
        common = [action for action in common if action.dest == "help"]
    values = {
        "TITLE": f'.TH {documented.program.upper()} 1 {_date()} "Scaler {__version__}" "Scaler"',
        "OPTIONS": _entries(parser._actions, common if documented.key_commands is None else ()),
        "COMMANDS": "\n".join(
            _subcommand_section(name, subcommand, common) for name, subcommand in subcommands.items()
        ),
    }
    if command is not None:
        values["VARIABLES"] = f"{_bold(command.environment_prefix)}_\\fIKEY\\fR"
        values["CONFIG_VARIABLE"] = _bold(command.config_variable)
        values["FILE"] = _italic(command.default_file)
    return re.sub("@([A-Z_]+)@", lambda found: values[found[1]], template)


def _entries(*groups: Iterable[argparse.Action]) -> str:
    """The entries of the actions, each once. Both forms of a boolean option are one entry."""
    actions = {_key(action): action for group in groups for action in group if action.help is not None}
    return "\n".join(
        _entry(action) for action in actions.values() if not isinstance(action, argparse._SubParsersAction)
    )


def _key(action: argparse.Action) -> tuple[str, str | None]:
    return action.dest, action.help


def _is_common(action: argparse.Action, subcommands: dict[str, argparse.ArgumentParser]) -> bool:
    """Whether every subcommand has this action, or all but one, whose page says what it has instead."""
    count = sum(_key(action) in map(_key, subcommand._actions) for subcommand in subcommands.values())
    return count >= len(subcommands) - 1


def _subcommand_section(name: str, parser: argparse.ArgumentParser, common: Iterable[argparse.Action]) -> str:
    """The section of a subcommand, with the options that only it has."""
    shared = set(map(_key, common))
    own = _entries(action for action in parser._actions if _key(action) not in shared)
    return f".SS {name}\n{_escaped(parser.description or '')}" + (f"\n{own}" if own else "")


def _entry(action: argparse.Action) -> str:
    names = list(action.option_strings)
    if action.const == "true":
        names.append("--no-" + names[0].removeprefix("--"))
    value = f" {_italic(str(action.metavar))}" if action.metavar else ""
    tag = ", ".join(_bold(name) + value for name in names) if names else _italic(str(action.metavar))
    text, bracket, default = str(action.help).replace("%%", "%").partition(" [default: ")
    about = f"{text[0].upper()}{text[1:]}."
    if bracket and not (action.nargs == "?" and default == "none]"):
        about += f"\nDefault: {default.removesuffix(']')}."
    return f".TP\n{tag}\n{_escaped(about)}"


def _bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_escaped(text)}\fR"


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def _date() -> str:
    """The date of the sources, so that the same sources give the same page."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        asked = ["git", "-C", str(HERE), "log", "-1", "--format=%ct"]
        epoch = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    at = datetime.datetime.fromtimestamp(int(epoch or "0"), datetime.timezone.utc)
    return at.strftime("%Y-%m-%d")
