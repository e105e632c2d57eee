"""One table of options per command. Its arguments, environment variables, TOML file and `-h` all come from that table.

Arguments go before the environment, the environment before the file, the file before the default. scaler_client has a
link to this file: neither may import the other.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Mapping, Sequence, Tuple

LONGEST_TIME_SECONDS = 1e9  # about 30 years; beyond it, sums of deadlines and poll time-outs would overflow
SIZE_HELP = (
    "bytes, K, M, G or T behind the number for units of 1024, or % for a share of what the machine or its cgroup has, "
    "whichever is less"
)
LEAST_MEMORY_BYTES = 1 << 20  # less is a forgotten suffix
MOST_MEMORY_BYTES = 1 << 50
LONGEST_CAPABILITY = 128  # characters of its name
MOST_CAPABILITY = (1 << 32) - 1  # amount
LONGEST_SHOWN = 80  # characters of a wrong value that a message repeats
LEAST_SIMILARITY = 0.6  # of a name and the one that is suggested for it; 1 is the same


class OptionError(ValueError):
    """A wrong option; the text is one line that names it and where it came from."""


@dataclass(frozen=True)
class Kind:
    """What values of an option look like."""

    metavar: str
    parse: Callable[[str], Any]
    """Text to value; raises ValueError with the complaint."""
    toml_types: Tuple[type, ...]
    is_list: bool = False
    """A comma separated list (in TOML, also an array)."""
    combine: Callable[[Tuple[Any, ...]], Any] = tuple
    """Where there may be many: their values to the option's; raises ValueError with the complaint."""
    choices: Tuple[str, ...] = ()
    """All that it may be, where that can be listed."""
    is_file: bool = False
    """A file's path, or several."""


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
    sample: str = ""
    """What the default file says where the default can't be written: the text that it is worked out from, or of a
    required option something to begin with."""

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
        if self.default in (None, "", (), {}):
            return "none"
        if isinstance(self.default, bool):
            return f"--{'' if self.default else 'no-'}{self.name}"
        default = ",".join(self.default) if self.kind.is_list else str(self.default)
        return f"{default.removesuffix('.0')} {self.unit}".rstrip()


@dataclass(frozen=True)
class GivenValue:
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
    check: Callable[[Mapping[str, GivenValue]], Iterable[str]] = lambda _found: ()
    """Rules that span several options; gives the complaints."""

    def variable(self, option: Option) -> str:
        return option.environment or f"{self.environment_prefix}_{option.key.upper()}"

    @property
    def config_variable(self) -> str:
        return f"{self.environment_prefix}_CONFIG"


def text(metavar: str = "TEXT", is_list: bool = False, is_file: bool = False) -> Kind:
    return Kind(metavar, str, (str,), is_list, is_file=is_file)


def integer(lowest: int, highest: int) -> Kind:
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
    """On the command line --name and --no-name; elsewhere true or false."""

    def parse(given: str) -> bool:
        value = _SWITCH.get(given.lower())
        if value is None:
            raise ValueError(f"{quoted(given)} is not true or false")
        return value

    return Kind("", parse, (bool,))


def seconds(*, allow_zero: bool = False) -> Kind:
    """A time above 0, or 0 as well where there may be `allow_zero`."""

    def parse(given: str) -> float:
        try:
            value = float(given)
        except ValueError:
            value = -1.0
        is_right = 0 < value <= LONGEST_TIME_SECONDS or (allow_zero and value == 0)  # False for nan as well
        if not is_right:
            least = "from 0 to" if allow_zero else "above 0 and at most"
            wanted = f"a number of seconds {least} {LONGEST_TIME_SECONDS:.0f}"
            raise ValueError(f"{quoted(given)} is not {wanted}")
        return value

    return Kind("SECONDS", parse, (int, float))


def choice(metavar: str, names: Sequence[str], fold: Callable[[str], str] = str) -> Kind:
    """One of some names; `fold` is applied first, to let case be forgiven."""

    def parse(given: str) -> str:
        value = fold(given)
        if value not in names:
            raise ValueError(f"{quoted(given)} is not one of {', '.join(names)}")
        return value

    return Kind(metavar, parse, (str,), choices=tuple(names))


def memory_size(usable: Callable[[], int]) -> Kind:
    """Bytes of memory; `usable` says how many a share such as 50% is of, 0 where that is not known."""
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

    def parse(given: str) -> int:
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT]?)(?:i?B)?|(%))", given.strip(), re.IGNORECASE)
        if found is None:
            raise ValueError(f"{quoted(given)} is not a size as in 1.5G (K, M, G or T; bytes without) or 50%")
        number, unit, share = float(found.group(1)), found.group(2), found.group(3)
        if share and not 0 < number <= 100:
            raise ValueError(f"{quoted(given)} is not a share above 0% and up to 100%")
        if share and not usable():
            raise ValueError(f"{quoted(given)}: this system does not tell its memory's size; give a size in bytes")
        size = usable() * number / 100 if share else number * units[unit.upper()]
        if not LEAST_MEMORY_BYTES <= size <= MOST_MEMORY_BYTES:
            raise ValueError(f"{quoted(given)} is not a size from 1M to {MOST_MEMORY_BYTES >> 40}T")
        return int(size)

    return Kind("SIZE", parse, (int, float, str))


def capabilities() -> Kind:
    """Names, each with an amount or for 1; the value is a dict of amounts by name."""

    def parse(given: str) -> Tuple[str, int]:
        name, separator, amount = (part.strip() for part in given.partition("="))
        is_name = 0 < len(name) <= LONGEST_CAPABILITY and name.isprintable() and not re.search(r"[\s,=]", name)
        is_amount = re.fullmatch("[0-9]{1,10}", amount or "1") and 1 <= int(amount or "1") <= MOST_CAPABILITY
        if not is_name or not is_amount or (separator and not amount):
            raise ValueError(f"{quoted(given)} is not NAME or NAME=AMOUNT, the amount from 1 to {MOST_CAPABILITY}")
        return name, int(amount or "1")

    def combine(parts: Tuple[Tuple[str, int], ...]) -> Dict[str, int]:
        names = [name for name, _ in parts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{quoted(name)} is there more than once")
        return dict(parts)

    return Kind("NAME[=AMOUNT]", parse, (str, dict), is_list=True, combine=combine)


def quoted(given: object) -> str:
    """A wrong value as a message repeats it: quoted, on one line, not too long."""
    quoted = repr(given)
    return quoted if len(quoted) <= LONGEST_SHOWN else quoted[:LONGEST_SHOWN] + "..."


EXIT_WRONG_OPTIONS, EXIT_UNAVAILABLE = 2, 1
"""Exit statuses: it can't work as it is configured; what it needs is not to be had, now."""


def fail(program: str, message: str, status: int = EXIT_WRONG_OPTIONS) -> int:
    """Print one line to standard error; returns the exit status."""
    print(f"{program}: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)
    return status


def interpreter() -> str:
    """The running interpreter and its version, as in `PyPy 7.3.11 (Python 3.9.16)`."""
    language = ".".join(map(str, sys.version_info[:3]))
    if sys.implementation.name == "cpython":
        return f"CPython {language}"
    name = {"pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {'.'.join(map(str, sys.implementation.version[:3]))} (Python {language})"


def parse_text(option: Option, given: str, source: str) -> GivenValue:
    """Read an option's text. Raises OptionError."""
    return parse_parts(option, given.split(",") if option.kind.is_list else [given], source)


def parse_parts(option: Option, given: Sequence[str], source: str) -> GivenValue:
    """Read the texts of an option, one unless there may be many. Raises OptionError."""
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


def suggestion(name: str, known: Sequence[str], similarity: float = LEAST_SIMILARITY) -> str:
    """What to add to a complaint about an unknown name."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1, similarity)
    return f" (did you mean {close[0]}?)" if close else ""
