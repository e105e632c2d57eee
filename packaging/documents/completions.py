"""What bash and zsh need to complete the commands' options, by shtab."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab
from commands import COMMANDS, Documented


def write_completions(folder: Path) -> None:
    """`bash/<command>` and `zsh/_<command>`: the names by which the shells find them in their folders."""
    for shell, prefix in (("bash", ""), ("zsh", "_")):
        (folder / shell).mkdir(parents=True, exist_ok=True)
        for documented in COMMANDS:
            for program in (documented.program, *documented.aliases):
                text = shtab.complete(completed_parser(documented, program), shell)
                (folder / shell / (prefix + program)).write_text(text, encoding="utf-8")


def completed_parser(documented: Documented, program: str) -> argparse.ArgumentParser:
    """The command's parser, with what may stand behind its options."""
    parser = documented.parser(program)
    _complete(parser, documented)
    return parser


def _complete(parser: argparse.ArgumentParser, documented: Documented) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _complete(part, documented)
            continue
        option = documented.options.get(action.dest)
        is_file = option.kind.is_file if option is not None else action.metavar == "FILE"
        if is_file:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif option is not None and option.kind.choices:
            action.choices = option.kind.choices
