"""The default configuration file of a command: every option with its default, from the command's table of options.

scaler_client has a link to this file.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

from .options import Command, Option

COLUMNS = 100


def default_file(command: Command, program: str) -> str:
    """The text of a TOML file with every option, its help and its default.

    A line that sets an option is a comment (`#` without a space). Required options are set to an example.
    """
    paragraphs = [_introduction(command, program), *(_entry(command, option) for option in command.options)]
    return "\n\n".join(paragraphs) + "\n"


def _introduction(command: Command, program: str) -> str:
    return "\n#\n".join(
        _commented(text)
        for text in (
            f"The configuration of {program}. It is read at the start, from {command.default_file} or the file that "
            f"--config or {command.config_variable} names.",
            "This file lists every option with its default. To set an option, remove the # before its line. Options "
            "that must be given have an example: change it. Empty quotes leave an option at its default, unless its "
            "text says what empty means. Arguments override the environment, the environment overrides this file.",
            f"{program} --check-config FILE reports all errors in a file, {program} --print-config prints this file.",
        )
    )


def _entry(command: Command, option: Option) -> str:
    default = "It must be given" if option.required else f"Default: {_default_in_words(option)}"
    about = f"{option.help[0].upper()}{option.help[1:]}. {default}. In the environment: {command.variable(option)}."
    mark = "" if option.required else "#"
    return f"{_commented(about)}\n{mark}{option.key} = {_toml(option.sample or option.default)}"


def _default_in_words(option: Option) -> str:
    return _toml(option.default) if isinstance(option.default, bool) else option.describe_default()


def _commented(text: str) -> str:
    return textwrap.fill(text, COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _toml(value: Any) -> str:
    if value is None or value == () or value == {}:
        return '""'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)  # JSON and TOML write strings, numbers and booleans alike
