"""Requirements files (pip's format): read, checked, and written again in one canonical form.

Everything that refers to this machine is resolved here: included files, variables, and wheels that are named by path.
What a host could not install is refused, with the way that works. The host parses the text again by `parse_canonical`,
so that no line reaches its installer that is not understood.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from ..errors import PackagesError

MAX_INCLUDES = 20
"""Depth of `-r` and `-c` in included files."""
MAX_LINES = 100_000
MAX_FILE_BYTES = 16 << 20

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"(?P<name>{_NAME})\s*(?P<extras>\[[A-Za-z0-9._,\s-]*\])?\s*(?P<rest>.*)", re.DOTALL)
_VERSION = r"[A-Za-z0-9.!+_*-]+"
_SPECIFIER = re.compile(rf"(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION}(?:\s*,\s*(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION})*")
_PINNED = re.compile(r"={2,3}\s*[A-Za-z0-9.!+_-]+")
_HASH = re.compile(r"sha(?:256:[0-9a-f]{64}|384:[0-9a-f]{96}|512:[0-9a-f]{128})")
_COMMENT = re.compile(r"(^|\s)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_COMMIT = re.compile(r"@[0-9a-f]{40}(?:#|$)")
_VCS = ("git+", "hg+", "svn+", "bzr+")

_SHORT = {
    "-r": "--requirement",
    "-c": "--constraint",
    "-e": "--editable",
    "-i": "--index-url",
    "--pypi-url": "--index-url",
    "-f": "--find-links",
}
_URL_OPTIONS = ("--index-url", "--extra-index-url", "--find-links")
_TEXT_OPTIONS = ("--trusted-host", "--only-binary", "--no-binary")
_FLAGS = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")

MODULES_HINT = "send the folder with Client(modules=[...]), or build a wheel of it (pip wheel --no-deps) and name that"


@dataclass(frozen=True)
class Requirement:
    """One requirement."""

    name: str
    """Empty if only a wheel is named."""
    extras: str = ""
    """`[a,b]`, or empty."""
    specifier: str = ""
    """`==1.0`, `>=1,<2`, or empty."""
    url: str = ""
    """Where the package is: `https://...`, `git+https://...`, or the file of the wheel. Empty: an index knows it."""
    wheel: str = ""
    """The name of a wheel that comes with the environment, or its path while a file of this machine is read."""
    marker: str = ""
    hashes: tuple[str, ...] = ()
    """`sha256:...`, sorted."""

    def line(self) -> str:
        """The requirement in the canonical form."""
        if self.wheel:
            text = f"./{self.wheel}{self.extras}"
        elif self.url:
            text = f"{self.name}{self.extras} @ {self.url}"
        else:
            text = f"{self.name}{self.extras}{self.specifier}"
        marker = f" ; {self.marker}" if self.marker else ""
        return text + marker + "".join(f" --hash={each}" for each in self.hashes)

    @property
    def unlocked(self) -> str:
        """Why an installer could take different code for this requirement, or run code; empty: it cannot."""
        what = self.line().split(" --hash", 1)[0]
        if self.wheel:
            return ""
        if self.url.startswith(_VCS):
            return f"{what} is built from source"
        if self.url and not urlsplit(self.url).path.endswith(".whl"):
            return f"{what} is not a wheel"
        if not self.url and not _PINNED.fullmatch(self.specifier):
            return f"{what} has no exact version"
        return "" if self.hashes else f"{what} has no hash"


@dataclass
class RequirementsText:
    """The content of requirements files, with all that they include."""

    requirements: list[Requirement] = field(default_factory=list)
    constraints: list[Requirement] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    """Allowed options: `--no-index`, `--extra-index-url https://...`."""

    @property
    def unlocked(self) -> str:
        """Why this text is not locked; empty: each requirement has an exact version and a hash, or is a wheel that
        comes with the environment.
        """
        for option in self.options:
            if option.startswith("--no-binary") and option != "--no-binary :none:":
                return f"{option} builds packages from source"
        return next((why for each in self.requirements if (why := each.unlocked)), "")

    def canonical(self) -> str:
        """The requirements and options as text, always the same for the same content."""
        lines = [*dict.fromkeys(self.options), *sorted({each.line() for each in self.requirements})]
        return "".join(line + "\n" for line in lines)

    def canonical_constraints(self) -> str:
        """The constraints as text; empty if there are none."""
        return "".join(line + "\n" for line in sorted({each.line() for each in self.constraints}))


def read_requirements(path: str, environ: Mapping[str, str], folder: str = "") -> RequirementsText:
    """Read a requirements file with all that it includes.

    Args:
        path: the file.
        environ: for variables `${NAME}` in it.
        folder: what the paths in it are relative to; empty: the folder of each file.

    Raises:
        PackagesError: a line cannot be used on a host. The text names the file and the line.
    """
    found = RequirementsText()
    _Reader(environ, found, folder).read(path, (), is_constraint=False)
    return found


def parse_canonical(text: str, wheels: Sequence[str], source: str) -> RequirementsText:
    """Parse text that `RequirementsText.canonical` has made, on the host, where it comes from outside.

    Args:
        text: the content of `requirements.txt` or `constraints.txt` of an environment.
        wheels: the names of the wheels that come with the environment.
        source: the name for errors.

    Raises:
        PackagesError: a line is not of this form, or names a file that does not come with the environment.
    """
    found = RequirementsText()
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{source}, line {number}"
        if not line.isprintable() or "$" in line or "\\" in line or " #" in line:
            raise PackagesError(f"{where}: {_shown(line)} is not a requirement")
        if line.startswith("-"):
            option = _option(_words(line, where), where)
            if option is None:
                raise PackagesError(f"{where}: the option {_shown(line)} is not allowed here")
            found.options.append(option)
            continue
        requirement = parse_requirement(line, where, wheel_of=lambda name: name.removeprefix("./"))
        if (requirement.wheel or not requirement.name) and requirement.wheel not in wheels:
            raise PackagesError(f"{where}: {_shown(requirement.wheel)} does not come with the environment")
        found.requirements.append(requirement)
    return found


class _Reader:
    """Reads files and what they include."""

    def __init__(self, environ: Mapping[str, str], found: RequirementsText, folder: str) -> None:
        self._environ = environ
        self._folder = folder
        self._found = found
        self._lines = 0

    def read(self, path: str, parents: tuple[str, ...], is_constraint: bool) -> None:
        real = os.path.realpath(path)
        if real in parents or len(parents) > MAX_INCLUDES:
            raise PackagesError(f"{path}: requirements files include one another without end")
        for number, line in _logical_lines(read_text(path)):
            self._lines += 1
            if self._lines > MAX_LINES:
                raise PackagesError(f"{path}: more than {MAX_LINES} lines")
            self._take(self._expand(line, f"{path}, line {number}"), path, number, (*parents, real), is_constraint)

    def _take(self, line: str, path: str, number: int, parents: tuple[str, ...], is_constraint: bool) -> None:
        where, folder = f"{path}, line {number}", self._folder or os.path.dirname(path)
        if line.startswith("-"):
            words = _words(line, where)
            included = words[1] if len(words) == 2 else ""
            if words[0] in ("--requirement", "--constraint") and included:
                if _is_url(included):
                    raise PackagesError(f"{where}: download {included} and name the file")
                self.read(os.path.join(folder, included), parents, is_constraint or words[0] == "--constraint")
                return
            if words[0] == "--editable":
                raise PackagesError(f"{where}: {_shown(line)} is a folder of this machine: {MODULES_HINT}")
            option = _option(words, where)
            if option is None:
                raise PackagesError(f"{where}: the option {_shown(words[0])} is not supported in an environment")
            self._found.options.append(option)
            return
        requirement = parse_requirement(line, where, lambda given: _local_wheel(given, folder, where))
        (self._found.constraints if is_constraint else self._found.requirements).append(requirement)

    def _expand(self, line: str, where: str) -> str:
        def value(found: re.Match[str]) -> str:
            name = found.group(1)
            if name not in self._environ:
                raise PackagesError(f"{where}: the variable {name} is not set")
            return self._environ[name]

        return _VARIABLE.sub(value, line)


def read_text(path: str) -> str:
    """Read a text file of this machine.

    Raises:
        PackagesError: it cannot be read, is too large, or is not text.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PackagesError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > MAX_FILE_BYTES:
        raise PackagesError(f"{path} has more than {MAX_FILE_BYTES >> 20} MiB: this is not a list of packages")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PackagesError(f"{path} is not UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise PackagesError(f"{path} is not text: it has a zero byte")
    return text


def parse_requirement(line: str, where: str, wheel_of: Callable[[str], str]) -> Requirement:
    """Parse one requirement.

    Args:
        line: without comment and line breaks.
        where: file and line, for errors.
        wheel_of: returns the wheel that a path or file URL names. May raise PackagesError.

    Raises:
        PackagesError: the line is not a requirement, or one that no host could install.
    """
    text, *given = re.split(r"\s+--(?=hash\b)", " " + line.strip())
    if " --" in text:
        raise PackagesError(f"{where}: only --hash is supported behind a requirement, not {_shown(line.strip())}")
    text, marker = _split_marker(text.strip())
    hashes = tuple(sorted({_hash(each, where) for each in given}))
    if _names_file(text):
        path, extras = _split_extras(text)
        return Requirement("", extras=extras, wheel=wheel_of(path), marker=marker, hashes=hashes)
    if _is_url(text):
        name, is_named, _ = text.partition("#egg=")[2].partition("&")[0], "#egg=" in text, ""
        if not is_named and urlsplit(text).path.endswith(".whl"):
            name = unquote(os.path.basename(urlsplit(text).path)).partition("-")[0]
        if not re.fullmatch(_NAME, name):
            raise PackagesError(f"{where}: write the package's name before its address: NAME @ {_shown(text)}")
        return Requirement(name, url=_checked_url(text, where), marker=marker, hashes=hashes)
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise PackagesError(f"{where}: {_shown(text)} is not a requirement as in name==1.0")
    name, extras, rest = found["name"], re.sub(r"\s", "", found["extras"] or ""), found["rest"].strip()
    if rest.startswith("@"):
        target = rest[1:].strip()
        if _names_file(target):
            return Requirement("", extras=extras, wheel=wheel_of(target), marker=marker, hashes=hashes)
        return Requirement(name, extras, url=_checked_url(target, where), marker=marker, hashes=hashes)
    specifier = rest[1:-1].strip() if rest.startswith("(") and rest.endswith(")") else rest
    if specifier and not _SPECIFIER.fullmatch(specifier):
        raise PackagesError(f"{where}: {_shown(text)} is not a requirement as in name==1.0")
    return Requirement(name, extras, re.sub(r"\s", "", specifier), marker=marker, hashes=hashes)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers: without comments, joined where a line ends with a backslash."""
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            joined += line[:-1] + " "
            continue
        joined = _COMMENT.sub("", joined + line).strip()
        if joined:
            yield first, joined
        joined, first = "", 0
    if joined := _COMMENT.sub("", joined).strip():
        yield first, joined


def _words(line: str, where: str) -> list[str]:
    """An option and its value."""
    try:
        words = shlex.split(line)
    except ValueError:
        raise PackagesError(f"{where}: a quotation mark is not closed") from None
    option, is_joined, value = words[0].partition("=")
    if is_joined:
        words = [option, value, *words[1:]]
    elif re.fullmatch(r"-[rceif][^-].*", words[0]):
        words = [words[0][:2], words[0][2:], *words[1:]]
    return [_SHORT.get(words[0], words[0]), *words[1:]]


def _option(words: Sequence[str], where: str) -> str | None:
    """An allowed option in the canonical form; None if it is not allowed."""
    name, values = words[0], words[1:]
    if name in _FLAGS and not values:
        return name
    if len(values) != 1 or re.search(r"\s", values[0]):
        return None
    if name in _URL_OPTIONS:
        if not values[0].startswith(("https://", "http://")):
            text = f"{_shown(values[0])} is a place of this machine; name a folder of wheels itself as environment"
            raise PackagesError(f"{where}: {text}")
        return f"{name} {values[0]}"
    return f"{name} {values[0]}" if name in _TEXT_OPTIONS and not values[0].startswith("-") else None


def _split_marker(text: str) -> tuple[str, str]:
    # In an address a semicolon is legal, so that a blank must stand before it.
    found = re.search(r"\s;|;\s" if "://" in text else r";", text)
    if found is None:
        return text, ""
    return text[: found.start()].strip(), " ".join(text[found.end() :].split())


def _split_extras(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.+\.whl)(\[[A-Za-z0-9._,\s-]*\])", text)
    return (found[1], re.sub(r"\s", "", found[2])) if found else (text, "")


def _hash(given: str, where: str) -> str:
    value = re.sub(r"^hash\s*[=\s]\s*", "", given.strip()).lower()
    if not _HASH.fullmatch(value):
        raise PackagesError(f"{where}: {_shown(value)} is not a hash as in sha256:<64 hexadecimal digits>")
    return value


def _is_url(text: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def _names_file(text: str) -> bool:
    path = _split_extras(text)[0]
    is_path = path.startswith((".", "/", "~", "file:")) or "/" in path.split("@", 1)[0] or path.endswith(".whl")
    return is_path and (path.startswith("file:") or not _is_url(path)) and " @ " not in path


def _checked_url(url: str, where: str) -> str:
    if url.startswith(_VCS):
        if not url.startswith("git+") or not _COMMIT.search(url):
            text = "name a commit, as in git+https://host/project@<40 digits>: a branch or tag may change"
            raise PackagesError(f"{where}: {_shown(url)}: {text}")
    elif not url.startswith(("https://", "http://")):
        raise PackagesError(f"{where}: {_shown(url)} is not an address that a host can reach (https://...)")
    if re.search(r"\s", url):
        raise PackagesError(f"{where}: {_shown(url)} is not an address: it has a blank")
    return url


def _local_wheel(given: str, folder: str, where: str) -> str:
    path = unquote(urlsplit(given).path) if given.startswith("file:") else os.path.expanduser(given)
    path = os.path.normpath(os.path.join(folder, path))
    if os.path.isdir(path):
        raise PackagesError(f"{where}: {_shown(given)} is a folder of this machine: {MODULES_HINT}")
    if not path.endswith(".whl"):
        raise PackagesError(f"{where}: {_shown(given)} is not a wheel: build one (pip wheel --no-deps) and name that")
    if not os.path.isfile(path):
        raise PackagesError(f"{where}: there is no file {path}")
    return path


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
