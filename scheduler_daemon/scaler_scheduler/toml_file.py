"""Options from a TOML file, with complaints that name key and line.

This file exists twice, byte for byte, in scaler_scheduler and in scaler_client.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, List, Tuple

from .options import Command, Found, Kind, Option, OptionError, parse_parts, parse_text, shown, suggestion


def check_file(command: Command, path: str) -> List[str]:
    """Everything that is wrong with a TOML file, a line for each."""
    try:
        found, problems = read_file(command, path)
        if not problems and command.check:
            command.check(found)
    except OptionError as error:
        return [str(error)]
    return problems


def _load_toml(content: str) -> Dict[str, Any]:
    if sys.version_info >= (3, 11):  # here and not above: most starts read no file
        import tomllib
    else:
        import tomli as tomllib
    try:
        entries: Dict[str, Any] = tomllib.loads(content)
    except RecursionError:
        raise ValueError("too deeply nested") from None
    return entries


def read_file(command: Command, path: str) -> Tuple[Dict[str, Found], List[str]]:
    """What a file sets, and what is wrong with single keys of it. Raises OptionError where it can't be read at all."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            content = file.read()
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise OptionError(f"{path} is not UTF-8 text") from None
    try:
        entries = _load_toml(content)
    except ValueError as error:
        raise OptionError(_syntax_problem(path, content, str(error))) from None
    options = {option.key: option for option in command.options}
    found: Dict[str, Found] = {}
    problems = []
    for key, value in entries.items():
        source = f"{path}{_line_of(content, key)}: {key}"
        try:
            if key not in options:
                raise OptionError(f"{source}: unknown key{suggestion(key, list(options))}")
            found[key] = _parse_toml(options[key], value, source)
        except OptionError as error:
            problems.append(str(error))
    return found, problems


def _parse_toml(option: Option, value: Any, source: str) -> Found:
    kind = option.kind
    if isinstance(value, dict) and dict in kind.toml_types:
        named = [name if amount is True else f"{name}={amount}" for name, amount in value.items()]
        return parse_parts(option, named, source)
    parts = value if kind.many and isinstance(value, list) else [value]
    single = tuple(kind_of for kind_of in kind.toml_types if kind_of is not dict)
    if any(isinstance(part, bool) != (bool in single) or not isinstance(part, single) for part in parts):
        raise OptionError(f"{source}: {shown(value)} is not {_wanted(kind)}")
    if isinstance(value, str):
        return parse_text(option, value, source)
    return parse_parts(option, [str(part) for part in parts], source)


def _wanted(kind: Kind) -> str:
    types = set(kind.toml_types)
    names = [
        ("a number" if float in types else "a whole number", int in types),
        ("a string in quotes", str in types),
        ("true or false", bool in types),
        ("an array of such", kind.many),
        ("a table", dict in types),
    ]
    return " or ".join(name for name, is_wanted in names if is_wanted)


def _syntax_problem(path: str, content: str, complaint: str) -> str:
    where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", complaint)
    if where is None:
        return f"{path}: {complaint}"
    lines = content.split("\n")
    number = int(where.group(1)) if where.group(1) else len(content.rstrip().split("\n"))
    return f"{path} line {number}: {complaint[: where.start()]}: {shown(lines[number - 1].strip())}"


def _line_of(content: str, key: str) -> str:
    line = re.search(rf"""^[ \t]*\[*[ \t]*["']?{re.escape(key)}["']?[ \t]*[=.\]]""", content, re.MULTILINE)
    return "" if line is None else f" line {content.count(chr(10), 0, line.start()) + 1}"
