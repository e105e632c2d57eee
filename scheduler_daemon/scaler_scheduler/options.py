"""One table of options per command. Its arguments, environment variables, TOML file and `-h` all come from that table.

Arguments go before the environment, the environment before the file, the file before the default. This file exists
twice, byte for byte, in scaler_scheduler and in scaler_client: neither may import the other.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

LONGEST_TIME_SECONDS = 1e9  # about 30 years; beyond it, sums of deadlines and poll time-outs would overflow
LONGEST_SHOWN = 80  # characters of a wrong value that a message repeats


class OptionError(ValueError):
    """A wrong option; the text is one line that names it and where it came from."""


@dataclass(frozen=True)
class Kind:
    """What values of an option look like."""

    metavar: str
    parse: Callable[[str], Any]
    """Text to value; raises ValueError with the complaint."""
    toml_types: Tuple[type, ...]
    many: bool = False
    """A comma separated list (in TOML, also an array); the value is a tuple."""


@dataclass(frozen=True)
class Option:
    name: str
    """As on the command line, without the dashes."""
    kind: Kind
    default: Any
    help: str
    unit: str = ""
    short: str = ""
    positional: bool = False
    required: bool = False
    environment: str = ""
    """A variable's name that does not follow from the option's."""
    default_text: str = ""
    """What `-h` says where the default is worked out at start."""

    @property
    def key(self) -> str:
        """The name in a TOML file, and of the field in the configuration."""
        return self.name.replace("-", "_")

    @property
    def label(self) -> str:
        return self.name if self.positional else "--" + self.name

    def describe_default(self) -> str:
        """The default with its unit, for `-h`."""
        if self.default_text:
            return self.default_text
        if self.default in (None, "", ()):
            return "none"
        default = ",".join(self.default) if self.kind.many else str(self.default)
        return f"{default.removesuffix('.0')} {self.unit}".rstrip()


@dataclass(frozen=True)
class Found:
    """A value and who gave it: an argument, a variable, or a line of a file."""

    value: Any
    source: str


@dataclass(frozen=True)
class Command:
    description: str
    environment_prefix: str
    default_file: str
    """Read when it exists and no other is named."""
    options: Tuple[Option, ...]
    check: Optional[Callable[[Mapping[str, Found]], None]] = None
    """Rules that span several options; raises OptionError."""

    def variable(self, option: Option) -> str:
        return option.environment or f"{self.environment_prefix}_{option.key.upper()}"

    @property
    def config_variable(self) -> str:
        return f"{self.environment_prefix}_CONFIG"


def text(metavar: str = "TEXT", many: bool = False) -> Kind:
    return Kind(metavar, str, (str,), many)


def whole(lowest: int, highest: int) -> Kind:
    def parse(given: str) -> int:
        try:
            value = int(given)
        except ValueError:
            value = lowest - 1
        if not lowest <= value <= highest:
            raise ValueError(f"{shown(given)} is not a whole number from {lowest} to {highest}")
        return value

    return Kind("N", parse, (int,))


def seconds() -> Kind:
    def parse(given: str) -> float:
        try:
            value = float(given)
        except ValueError:
            value = 0.0
        if not 0 < value <= LONGEST_TIME_SECONDS:  # False for nan as well
            wanted = f"a number of seconds above 0 and at most {LONGEST_TIME_SECONDS:.0f}"
            raise ValueError(f"{shown(given)} is not {wanted}")
        return value

    return Kind("SECONDS", parse, (int, float))


def choice(metavar: str, names: Sequence[str], fold: Callable[[str], str] = str) -> Kind:
    """One of some names; `fold` is applied first, to let case be forgiven."""

    def parse(given: str) -> str:
        value = fold(given)
        if value not in names:
            raise ValueError(f"{shown(given)} is not one of {', '.join(names)}")
        return value

    return Kind(metavar, parse, (str,))


def shown(given: object) -> str:
    """A wrong value as a message repeats it: quoted, on one line, not too long."""
    quoted = repr(given)
    return quoted if len(quoted) <= LONGEST_SHOWN else quoted[:LONGEST_SHOWN] + "..."


def fail(program: str, message: str) -> int:
    """Print one line to standard error; returns the exit status 2."""
    print(f"{program}: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)
    return 2


def interpreter() -> str:
    """The running interpreter and its version, as in `PyPy 7.3.11 (Python 3.9.16)`."""
    language = ".".join(map(str, sys.version_info[:3]))
    if sys.implementation.name == "cpython":
        return f"CPython {language}"
    name = {"pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {'.'.join(map(str, sys.implementation.version[:3]))} (Python {language})"


def parse_text(option: Option, given: str, source: str) -> Found:
    """Read an option's text. Raises OptionError."""
    kind = option.kind
    try:
        if not kind.many:
            return Found(kind.parse(given), source)
        parts = tuple(kind.parse(part.strip()) for part in given.split(",") if part.strip())
        if not parts:
            raise ValueError("names nothing")
        return Found(parts, source)
    except ValueError as error:
        raise OptionError(f"{source}: {error}") from None


def suggestion(name: str, known: Sequence[str]) -> str:
    """What to add to a complaint about an unknown name."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
