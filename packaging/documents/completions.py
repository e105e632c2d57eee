"""Completions of the commands' options for bash and zsh, made by shtab."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab
from commands import COMMANDS, Documented

# Skip names with characters that a shell could expand.
_READ_NAMES = """$(awk '/^[a-z]/ && $3 ~ /^[A-Za-z0-9._@+-]+$/ { print $3 }' "$names")"""
_NAMES = {
    "bash": f"""_scaler_names() {{
  local names="${{COMP_WORDS[COMP_CWORD-1]}}/authorized"
  [ -r "$names" ] && compgen -W "{_READ_NAMES}" -- "$1"
}}""",
    "zsh": f"""_scaler_names() {{
  local names="${{words[CURRENT-1]}}/authorized"
  [ -r "$names" ] && compadd -- ${{(f)"{_READ_NAMES}"}}
}}""",
}
"""Shell functions that list the names of the keys in the folder that is the previous word."""


def write_completions(folder: Path) -> None:
    """Write the completions as `bash/<command>` and `zsh/_<command>`, the file names that the shells expect."""
    for shell, prefix in (("bash", ""), ("zsh", "_")):
        (folder / shell).mkdir(parents=True, exist_ok=True)
        for documented in COMMANDS:
            for program in (documented.program, *documented.aliases):
                text = shtab.complete(completed_parser(documented, program), shell, preamble=_NAMES)
                if shell == "zsh" and documented.key_commands is not None:
                    text = _complete_behind_address(text, program)
                (folder / shell / (prefix + program)).write_text(text, encoding="utf-8")


def _complete_behind_address(text: str, program: str) -> str:
    """Complete options after an address too. shtab's zsh code completes only after subcommands."""
    before, end, after = text.partition("      esac\n")
    if not end:
        raise RuntimeError(f"shtab's zsh code for {program} has changed: adapt _complete_behind_address")
    # Without the last two entries, the subcommand and its arguments.
    options = f'"${{(@)_shtab_{program}_options[1,-3]}}"'
    return f"{before}        *) _arguments -C -s {options} ;;\n{end}{after}"


def completed_parser(documented: Documented, program: str) -> argparse.ArgumentParser:
    """The parser of a command, with the completions of the values of its options."""
    parser = documented.parser(program)
    if documented.key_commands is not None:
        _add_commands(parser, documented.key_commands())
    _complete(parser, documented)
    return parser


def _add_commands(parser: argparse.ArgumentParser, other: argparse.ArgumentParser) -> None:
    """Replace the positional argument, an address, by the other parser's subcommands. Addresses have no completion."""
    for action in parser._get_positional_actions():
        parser._remove_action(action)
    (commands,) = other._get_positional_actions()
    parser._add_action(commands)


def _complete(parser: argparse.ArgumentParser, documented: Documented) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _complete(part, documented)
            continue
        option = documented.options.get(action.dest)
        if action.metavar == "NAME_OR_KEY":
            action.complete = {"bash": "_scaler_names", "zsh": "_scaler_names"}  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.metavar in ("FILE", "PUBLICKEY") or (option is not None and option.kind.is_file):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif option is not None and option.kind.choices:
            action.choices = option.kind.choices
