"""Options from a TOML file. Errors name the line and the key.

scaler_client has a link to this file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Callable

from .options import (
    Command,
    GivenValue,
    Kind,
    Option,
    OptionError,
    TableError,
    parse_parts,
    parse_text,
    quoted,
    suggestion,
)

MAX_SYNTAX_ERRORS = 20
MAX_TABLE_ERRORS = 100
MAX_ENTRY_LINES = 1000  # in lines


def check_file(command: Command, path: str) -> list[str]:
    """All errors in a TOML file, a line for each: `FILE:LINE: KEY: what is wrong`."""
    try:
        found, problems = read_file(command, path)
    except OptionError as error:
        return [str(error)]
    return problems + [each for each in command.check(found) if not _is_of_wrong_key(each, problems)]


def _is_of_wrong_key(complaint: str, problems: list[str]) -> bool:
    """Whether it complains that an option is missing, `no KEY: ...`, which the file gives with a wrong value."""
    key = complaint.partition(":")[0]
    return key.startswith("no ") and any(f": {key[3:]}: " in problem for problem in problems)


def read_file(command: Command, path: str) -> tuple[dict[str, GivenValue], list[str]]:
    """The options that a file sets, by key, and the errors in its syntax and single keys.

    An option with empty quotes is not set, like an empty variable in the environment, unless it `takes_empty`.

    Raises:
        OptionError: the file cannot be read.
    """
    content = _read_text(path)
    entries, problems = _entries(path, content)
    options = {option.key: option for option in command.options}
    found: dict[str, GivenValue] = {}
    for key, value in entries.items():
        line = _line_of(content, key)
        source = f"{_place(path, line)}: {key}"
        try:
            if key not in options:
                raise OptionError(f"{source}: unknown key{suggestion(key, list(options))}")
            _check_swallowed_by_table(path, content, options, key, value)
            if value != "" or options[key].takes_empty:
                found[key] = _parse_toml(options[key], value, source, _TableLines(path, content, key, line))
        except _WrongTables as error:
            problems += error.problems
        except OptionError as error:
            problems.append((line, str(error)))
    return found, [text for _, text in sorted(problems, key=lambda problem: problem[0])]


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise OptionError(f"{path} is not UTF-8 text") from None


def _entries(path: str, content: str) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """The entries of a file, and the errors in its syntax by line.

    A wrong line is skipped to find further errors. The end of a wrong entry of several lines is not known, so only the
    entries above it are read.
    """
    loads = _toml_reader()
    lines = content.split("\n")
    problems: list[tuple[int, str]] = []
    while len(problems) < MAX_SYNTAX_ERRORS:
        try:
            return loads("\n".join(lines)), problems
        except RecursionError:
            problems.append((0, f"{path}: too deeply nested"))
            break
        except ValueError as error:
            number, complaint = _syntax_problem(lines, str(error))
            entries, begin = _read_entries_above(lines[:number])
            is_last = begin != number or not lines[number - 1] or "(at line" not in str(error)
            if "(at line" not in str(error) or complaint.startswith("Unclosed"):
                number = begin
            within = f", in what begins in line {begin}" if begin != number else ""
            line = quoted(lines[number - 1].strip())
            problems.append((number, f"{_place(path, number)}: {complaint}{within}: {line}"))
            if is_last:
                return entries, problems
            lines[number - 1] = ""
    return {}, problems


def _read_entries_above(lines: list[str]) -> tuple[dict[str, Any], int]:
    """The entries above the entry of the last line, and the line where that last entry begins."""
    loads = _toml_reader()
    for length in range(len(lines) - 1, max(0, len(lines) - MAX_ENTRY_LINES), -1):
        try:
            return loads("\n".join(lines[:length])), length + 1
        except (ValueError, RecursionError):
            continue
    return {}, 1


def _toml_reader() -> Callable[[str], dict[str, Any]]:
    if sys.version_info >= (3, 11):  # not at the top: most starts read no file
        import tomllib
    else:
        import tomli as tomllib
    loads: Callable[[str], dict[str, Any]] = tomllib.loads
    return loads


def _syntax_problem(lines: list[str], complaint: str) -> tuple[int, str]:
    """The line number in an error message of the TOML reader, and the message without it."""
    where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", complaint)
    if where is None:
        return 1, complaint
    last = len("\n".join(lines).rstrip().split("\n"))
    return int(where.group(1) or last), complaint[: where.start()]


def _check_swallowed_by_table(path: str, content: str, options: dict[str, Option], key: str, value: Any) -> None:
    """Raise OptionError for an option below a [table]. TOML makes it part of the table; it must be above."""
    if not isinstance(value, dict) or re.search(rf"^[ \t]*\[[ \t]*{re.escape(key)}\b", content, re.MULTILINE) is None:
        return
    for name in value:
        if name in options:
            place = _place(path, _line_of(content, name))
            raise OptionError(f"{place}: {name}: it is below [{key}] and so part of that table; move it above")


class _TableLines:
    """Finds the lines of the entries of an option that is a table, or of its tables."""

    def __init__(self, path: str, content: str, key: str, line: int) -> None:
        self._path, self._content, self._key, self._line = path, content, key, line

    def of_name(self, name: str) -> str:
        """The source of an entry of the table."""
        below = "\n" * (self._line - 1) + "\n".join(self._content.split("\n")[max(0, self._line - 1) :])
        return f"{_place(self._path, _line_of(below, name) or self._line)}: {self._key}"

    def of_table(self, number: int, name: str = "") -> tuple[int, str]:
        """The line and the source of the table with this number, from 0, or of its entry with this name."""
        begins = list(re.finditer(rf"^[ \t]*\[\[[ \t]*{re.escape(self._key)}[ \t]*\]\]", self._content, re.MULTILINE))
        line = self._line
        if number < len(begins):
            begin = begins[number].end()
            end = begins[number + 1].start() if number + 1 < len(begins) else len(self._content)
            below = _line_of(self._content[begin:end], name) if name else 0
            line = self._content.count("\n", 0, begin) + (below or 1)
        return line, f"{_place(self._path, line)}: {self._key}"


class _WrongTables(OptionError):
    """Errors of several tables of an option, each with its line."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__(problems[0][1])
        self.problems = problems


def _parse_toml(option: Option, value: Any, source: str, lines: _TableLines) -> GivenValue:
    kind = option.kind
    if isinstance(value, dict) and dict in kind.toml_types:
        named = [
            name if amount is True and kind.has_names_alone else f"{name}={_amount_text(amount)}"
            for name, amount in value.items()
        ]
        for name, part in zip(value, named):
            parse_parts(option, [part], lines.of_name(name))  # its error names the line of the entry
        return parse_parts(option, named, source)
    parts = value if kind.is_list and isinstance(value, list) else [value]
    if kind.parse_table is not None and parts and all(isinstance(part, dict) for part in parts):
        return _parse_tables(kind, parts, source, lines)
    single = tuple(kind_of for kind_of in kind.toml_types if kind_of is not dict)
    if any(isinstance(part, bool) != (bool in single) or not isinstance(part, single) for part in parts):
        raise OptionError(f"{source}: {quoted(value)} is not {_expected_types(kind)}")
    if isinstance(value, str):
        return parse_text(option, value, source)
    return parse_parts(option, [str(part) for part in parts], source)


def _amount_text(amount: Any) -> str:
    return str(amount).lower() if isinstance(amount, bool) else str(amount)


def _parse_tables(kind: Kind, tables: list[Any], source: str, lines: _TableLines) -> GivenValue:
    """Raises _WrongTables with all errors of all tables."""
    assert kind.parse_table is not None
    parsed: list[Any] = []
    problems: list[tuple[int, str]] = []
    for number, table in enumerate(tables):
        if len(problems) >= MAX_TABLE_ERRORS:
            break
        found: Sequence[tuple[str, str]] = ()
        try:
            one = kind.parse_table(table)
            kind.combine((*parsed, one))  # it names what does not fit to the tables above
            parsed.append(one)
        except TableError as error:
            found = error.problems
        except ValueError as error:
            found = [("", str(error))]
        for key, complaint in found:
            line, place = lines.of_table(number, key)
            problems.append((line, f"{place}: {complaint}"))
    if problems:
        raise _WrongTables(problems)
    return GivenValue(kind.combine(tuple(parsed)), source)


def _expected_types(kind: Kind) -> str:
    types = set(kind.toml_types)
    names = [
        ("a number" if float in types else "a whole number", int in types),
        ("a string in quotes", str in types),
        ("true or false", bool in types),
        ("an array of such", kind.is_list),
        ("a table", dict in types or kind.parse_table is not None),
    ]
    return " or ".join(name for name, is_wanted in names if is_wanted)


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _line_of(content: str, key: str) -> int:
    """The line that sets a key; 0 if it is not found."""
    line = re.search(rf"""^[ \t]*\[*[ \t]*["']?{re.escape(key)}["']?[ \t]*[=.\]]""", content, re.MULTILINE)
    return 0 if line is None else content.count("\n", 0, line.start()) + 1
