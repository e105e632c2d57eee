"""One table of options per command. Its arguments, environment variables, TOML file and `-h` all come from that table.

Arguments override the environment, the environment overrides the file, the file overrides the default. scaler_client
has a link to this file: neither distribution may import the other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

MAX_TIME_SECONDS = 1e9  # about 30 years; with more, sums of deadlines and poll time-outs would overflow
SIZE_HELP = (
    "in bytes, or with the suffix K, M, G or T in units of 1024, or with % as a share of the machine's memory or its "
    "cgroup's limit, whichever is less"
)
MIN_MEMORY_BYTES = 1 << 20  # a smaller value is a forgotten suffix
MAX_MEMORY_BYTES = 1 << 50
MAX_CAPABILITY_NAME_LENGTH = 128  # characters of the name of a capability
MAX_CAPABILITIES = 64  # of a worker or a task
MAX_CAPABILITY_AMOUNT = (1 << 32) - 1  # amount of a capability
MAX_QUOTED_LENGTH = 80  # characters of a wrong value that a message repeats
MIN_SIMILARITY = 0.6  # of a wrong name and a suggested one; 1 is equality


class OptionError(ValueError):
    """A wrong option. The text is one line that names the option and its source."""


class TableError(ValueError):
    """Errors of a table. The text is the first one.

    Args:
        problems: for each error the key in the table, and what is wrong in one line. There is at least one.
    """

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(problems[0][1])
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Kind:
    """The type of an option's values."""

    metavar: str
    parse: Callable[[str], Any]
    """Converts text to a value. Raises ValueError; its text says what is wrong."""
    toml_types: tuple[type, ...]
    is_list: bool = False
    """Whether the value is a comma separated list (in TOML also an array)."""
    combine: Callable[[tuple[Any, ...]], Any] = tuple
    """For a list: converts the tuple of its values to the option's value. Raises ValueError like `parse`."""
    choices: tuple[str, ...] = ()
    """All values, if they can be listed."""
    is_file: bool = False
    """Whether the value is the path of a file, or a list of paths."""
    parse_table: Callable[[Mapping[str, Any]], Any] | None = None
    """For a list: converts one of the tables that a TOML file may have in place of texts. Raises ValueError."""
    has_names_alone: bool = False
    """For a list that TOML may write as a table of amounts: whether `name = true` is a name without an amount."""


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    name: str
    """The name on the command line, without dashes."""
    kind: Kind
    default: Any
    help: str
    unit: str = ""
    short: str = ""
    positional: bool = False
    required: bool = False
    environment: str = ""
    """The environment variable, if it does not follow from the name of the option."""
    default_text: str = ""
    """The default in words, for `-h`, if the default is computed at the start."""
    sample: str = ""
    """The value in the default file, if the default cannot be written there. It is the text that the default is
    computed from, or an example for a required option."""
    takes_empty: bool = False
    """Whether empty quotes in a file are a value. For the other options they set nothing."""

    @property
    def key(self) -> str:
        """The name in a TOML file, and of the field in the configuration."""
        return self.name.replace("-", "_")

    @property
    def label(self) -> str:
        """The option in error messages: `--name`, or the name of a positional argument."""
        return self.name if self.positional else "--" + self.name

    def describe_default(self) -> str:
        """The default with its unit, for `-h`."""
        if self.default_text:
            return self.default_text
        if self.default in (None, "", (), {}):
            return "none"
        if isinstance(self.default, bool):
            return f"--{'' if self.default else 'no-'}{self.name}"
        default = ",".join(self.default) if self.kind.is_list else str(self.default)
        return f"{default.removesuffix('.0')} {self.unit}".rstrip()


@dataclass(frozen=True)
class GivenValue:
    """A value and its source: an argument, a variable, or a line of a file."""

    value: Any
    source: str


@dataclass(frozen=True)
class Command:
    """A command with its table of options."""

    description: str
    environment_prefix: str
    default_file: str
    """The file that is read if it exists and no other file is named."""
    options: tuple[Option, ...]
    check: Callable[[Mapping[str, GivenValue]], Iterable[str]] = lambda _found: ()
    """Checks rules that span several options. Returns a line for each that is broken."""

    def variable(self, option: Option) -> str:
        """The environment variable of an option."""
        return option.environment or f"{self.environment_prefix}_{option.key.upper()}"

    @property
    def config_variable(self) -> str:
        """The environment variable that names the TOML file."""
        return f"{self.environment_prefix}_CONFIG"


def text(metavar: str = "TEXT", is_list: bool = False, is_file: bool = False) -> Kind:
    """Any text, or a list of texts."""
    return Kind(metavar, str, (str,), is_list, is_file=is_file)


def integer(lowest: int, highest: int) -> Kind:
    """A whole number from `lowest` to `highest`."""

    def parse(given: str) -> int:
        try:
            value = int(given)
        except ValueError:
            value = lowest - 1
        if not lowest <= value <= highest:
            raise ValueError(f"{quoted(given)} is not a whole number from {lowest} to {highest}")
        return value

    return Kind("N", parse, (int,))


_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def boolean() -> Kind:
    """True or false: --name and --no-name on the command line, true or false elsewhere."""

    def parse(given: str) -> bool:
        value = _SWITCH.get(given.lower())
        if value is None:
            raise ValueError(f"{quoted(given)} is not true or false")
        return value

    return Kind("", parse, (bool,))


def seconds(*, allow_zero: bool = False) -> Kind:
    """A time above 0 seconds. With `allow_zero` also 0."""

    def parse(given: str) -> float:
        try:
            value = float(given)
        except ValueError:
            value = -1.0
        is_right = 0 < value <= MAX_TIME_SECONDS or (allow_zero and value == 0)  # False for nan
        if not is_right:
            least = "from 0 to" if allow_zero else "above 0 and at most"
            wanted = f"a number of seconds {least} {MAX_TIME_SECONDS:.0f}"
            raise ValueError(f"{quoted(given)} is not {wanted}")
        return value

    return Kind("SECONDS", parse, (int, float))


def choice(metavar: str, names: Sequence[str], fold: Callable[[str], str] = str) -> Kind:
    """One of some names. `fold` is applied to the text first, for example to ignore case."""

    def parse(given: str) -> str:
        value = fold(given)
        if value not in names:
            raise ValueError(f"{quoted(given)} is not one of {', '.join(names)}")
        return value

    return Kind(metavar, parse, (str,), choices=tuple(names))


def memory_size(usable: Callable[[], int] | None) -> Kind:
    """Bytes of memory or of a disk.

    Args:
        usable: returns the total that a share such as 50% refers to, or 0 if it is not known; None: no share is taken.
    """
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

    def parse(given: str) -> int:
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT]?)(?:i?B)?|(%))", given.strip(), re.IGNORECASE)
        if found is None or (found.group(3) and usable is None):
            or_share = "" if usable is None else " or 50%"
            raise ValueError(f"{quoted(given)} is not a size as in 1.5G (K, M, G or T; bytes without){or_share}")
        number, unit, share = float(found.group(1)), found.group(2), found.group(3)
        if share and not 0 < number <= 100:
            raise ValueError(f"{quoted(given)} is not a share above 0% and up to 100%")
        total = usable() if share and usable is not None else 0
        if share and not total:
            raise ValueError(f"{quoted(given)}: this system does not tell its memory's size; give a size in bytes")
        size = total * number / 100 if share else number * units[unit.upper()]
        if not MIN_MEMORY_BYTES <= size <= MAX_MEMORY_BYTES:
            raise ValueError(f"{quoted(given)} is not a size from 1M to {MAX_MEMORY_BYTES >> 40}T")
        return int(size)

    return Kind("SIZE", parse, (int, float, str))


def capabilities() -> Kind:
    """A list of names, each with an amount or without (1). The value is a dict of amounts by name."""

    def parse(given: str) -> tuple[str, int]:
        name, separator, amount = (part.strip() for part in given.partition("="))
        is_name = 0 < len(name) <= MAX_CAPABILITY_NAME_LENGTH and name.isprintable() and not re.search(r"[\s,=]", name)
        is_amount = re.fullmatch("[0-9]{1,10}", amount or "1") and 1 <= int(amount or "1") <= MAX_CAPABILITY_AMOUNT
        if not is_name or not is_amount or (separator and not amount):
            raise ValueError(
                f"{quoted(given)} is not NAME or NAME=AMOUNT, the amount from 1 to {MAX_CAPABILITY_AMOUNT}"
            )
        return name, int(amount or "1")

    def combine(parts: tuple[tuple[str, int], ...]) -> dict[str, int]:
        names = [name for name, _ in parts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{quoted(name)} is there more than once")
        if len(names) > MAX_CAPABILITIES:
            raise ValueError(f"{len(names)} capabilities are given, but at most {MAX_CAPABILITIES} are allowed")
        return dict(parts)

    return Kind("NAME[=AMOUNT]", parse, (str, dict), is_list=True, combine=combine, has_names_alone=True)


def quoted(given: object) -> str:
    """A wrong value for an error message: quoted, on one line, at most MAX_QUOTED_LENGTH characters."""
    quoted = repr(given)
    return quoted if len(quoted) <= MAX_QUOTED_LENGTH else quoted[:MAX_QUOTED_LENGTH] + "..."


EXIT_WRONG_OPTIONS, EXIT_UNAVAILABLE = 2, 1
"""Exit statuses: the options are wrong; something that the command needs is not available now."""


def fail(program: str, message: str, status: int = EXIT_WRONG_OPTIONS) -> int:
    """Print `program: message` on one line to standard error. Returns the exit status."""
    print(f"{program}: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)
    return status


def interpreter() -> str:
    """The running interpreter and its version, for example `PyPy 7.3.11 (Python 3.9.16)`."""
    language = ".".join(map(str, sys.version_info[:3]))
    if sys.implementation.name == "cpython":
        return f"CPython {language}"
    name = {"pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {'.'.join(map(str, sys.implementation.version[:3]))} (Python {language})"


def parse_text(option: Option, given: str, source: str) -> GivenValue:
    """Parse an option's text. Raises OptionError that names `source`."""
    return parse_parts(option, given.split(",") if option.kind.is_list else [given], source)


def parse_parts(option: Option, given: Sequence[str], source: str) -> GivenValue:
    """Parse the texts of an option: one, or several for a list. Raises OptionError that names `source`."""
    kind = option.kind
    try:
        if not kind.is_list:
            return GivenValue(kind.parse(given[0]), source)
        parts = tuple(kind.parse(part.strip()) for part in given if part.strip())
        if not parts:
            raise ValueError("names nothing")
        return GivenValue(kind.combine(parts), source)
    except ValueError as error:
        raise OptionError(f"{source}: {error}") from None


def suggestion(name: str, known: Sequence[str], similarity: float = MIN_SIMILARITY) -> str:
    """The text ` (did you mean NAME?)` for an unknown name, or an empty text if no known name is similar."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1, similarity)
    return f" (did you mean {close[0]}?)" if close else ""
