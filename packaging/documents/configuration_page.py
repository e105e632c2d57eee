"""The page of options, scheduler_daemon/docs/configuration.md. Its tables come from the tables of options.

`python packaging/documents/configuration_page.py` updates the part between the marks. An argument names another
file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from commands import COMMANDS

from scaler_client.commands.options import SIZE_HELP, Command, Option

PAGE = Path(__file__).resolve().parents[2] / "scheduler_daemon" / "docs" / "configuration.md"
BEGIN = "<!-- options: begin (packaging/documents/configuration_page.py writes this part) -->\n"
END = "<!-- options: end -->\n"


def with_options(page: str) -> str:
    """The text of the page with an updated generated part."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = [_table(documented.program, documented.command) for documented in COMMANDS if documented.command]
    return before + BEGIN + "\n" + "\n".join(tables) + "\n" + END + after


def _table(program: str, command: Command) -> str:
    """The section of one command."""
    lines = [
        f"## {program}",
        "",
        f"File: `{command.default_file}`, or the file that `--config` or `{command.config_variable}` names. "
        f"Variables: `{command.environment_prefix}_NAME`, such as `{command.variable(_example(command))}`.",
        "",
        "| option | default | meaning |",
        "|---|---|---|",
        *(_row(option) for option in command.options),
    ]
    return "\n".join(lines) + "\n"


def _example(command: Command) -> Option:
    """An option whose variable follows from its name."""
    return next(option for option in command.options if not option.environment and not option.positional)


def _row(option: Option) -> str:
    name = option.kind.metavar if option.positional else f"--{option.name}"
    names = f"`{name}`"
    if option.short:
        names = f"`-{option.short.removeprefix('-')}`, {names}"
    if isinstance(option.default, bool):
        names += f", `--no-{option.name}`"
    about = option.help.replace(SIZE_HELP, "[a size](#values)")
    about = f"{about[0].upper()}{about[1:]}."
    if option.positional:
        about += f" In files: `{option.key}`."
    if option.environment:
        about += f" Variable: `{option.environment}`."
    default = "must be given" if option.required else option.describe_default()
    if isinstance(option.default, bool):
        default = "yes" if option.default else "no"
    return f"| {names} | {_cell(default)} | {_cell(about)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    written = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    written.write_text(with_options(written.read_text("utf-8")), "utf-8")
