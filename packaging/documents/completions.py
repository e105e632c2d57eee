"""What bash and zsh need to complete the commands' options, by shtab."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab
from commands import COMMANDS, Documented

# Of names nothing is taken that a shell could expand.
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
"""Functions that say who is listed in the folder of keys that stands before."""


def write_completions(folder: Path) -> None:
    """`bash/<command>` and `zsh/_<command>`: the names by which the shells find them in their folders."""
    for shell, prefix in (("bash", ""), ("zsh", "_")):
        (folder / shell).mkdir(parents=True, exist_ok=True)
        for documented in COMMANDS:
            for program in (documented.program, *documented.aliases):
                text = shtab.complete(completed_parser(documented, program), shell, preamble=_NAMES)
                if shell == "zsh" and documented.key_commands is not None:
                    text = _complete_behind_address(text, program)
                (folder / shell / (prefix + program)).write_text(text, encoding="utf-8")


def _complete_behind_address(text: str, program: str) -> str:
    """shtab's zsh offers nothing behind a first argument that is none of the subcommands."""
    before, end, after = text.partition("      esac\n")
    if not end:
        raise RuntimeError(f"shtab writes something else for {program} in zsh than it did")
    # Without the last two, which are the subcommand and what follows.
    options = f'"${{(@)_shtab_{program}_options[1,-3]}}"'
    return f"{before}        *) _arguments -C -s {options} ;;\n{end}{after}"


def completed_parser(documented: Documented, program: str) -> argparse.ArgumentParser:
    """The command's parser, with what may stand behind its options."""
    parser = documented.parser(program)
    if documented.key_commands is not None:
        _add_commands(parser, documented.key_commands())
    _complete(parser, documented)
    return parser


def _add_commands(parser: argparse.ArgumentParser, other: argparse.ArgumentParser) -> None:
    """The other's subcommands in the place of the parser's own argument, an address, which nobody can complete."""
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
