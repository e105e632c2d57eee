"""The settings of one pool: what its hosts have, and how its provider makes them.

On the command line and in the environment a pool is a text, `name=big provider=slurm workers=8 most=20`; in the file
it is a table with the same names.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scaler_client.autoscale import Pool
from scaler_client.commands.module_command import module_command
from scaler_client.commands.options import TableError, capabilities, quoted, suggestion
from scaler_client.commands.resource_amounts import units_of

from ..config import MAX_WORKERS, combine_resources, parse_resource

PROVIDERS = ("local", "ssh", "slurm", "kubernetes", "command")
MAX_HOSTS = 100_000
MAX_NUMBER = 1e9
DEFAULT_BOOT_SECONDS = {"local": 10.0, "ssh": 20.0, "slurm": 120.0, "kubernetes": 120.0, "command": 180.0}


@dataclass(frozen=True)
class PoolSettings:
    """A pool and the settings of its provider."""

    pool: Pool
    provider: str
    """One of PROVIDERS."""
    program: tuple[str, ...] = ("scaler_cluster",)
    """The command that runs a host agent, as the hosts find it, in parts."""
    arguments: tuple[str, ...] = ()
    """Further arguments of this command."""
    keys: str = ""
    """The folder of keys on the hosts; empty: the folder of the autoscaler."""
    hosts: tuple[str, ...] = ()
    """ssh: the names of the hosts, as ssh knows them."""
    options: tuple[str, ...] = ()
    """ssh, slurm: further options of `ssh` or `sbatch`."""
    start: str = ""
    """command: the shell command that starts hosts. Likewise `stop` and `list`."""
    stop: str = ""
    list: str = ""
    image: str = ""
    """kubernetes: the container's image, if there is no `template`."""
    template: str = ""
    """kubernetes: a file with a Pod, in YAML or JSON; its first container is the host agent."""
    namespace: str = ""
    """kubernetes: empty takes that of the configuration, else `default`."""


def parse_pool(text: str) -> PoolSettings:
    """Read a pool from a text of NAME=VALUE, separated by blanks. Lists are separated by `+`.

    Raises:
        ValueError: the text says what is wrong.
    """
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{quoted(text)}: {str(error).lower()}") from None
    table: dict[str, Any] = {}
    for part in parts:
        name, separator, value = part.partition("=")
        if not separator:
            raise ValueError(
                f"{quoted(part)} is not NAME=VALUE; a pool is for example 'name=here provider=local most=2'"
            )
        if name in table:
            raise ValueError(f"{name} is given more than once")
        table[name] = value.split("+") if name in _LISTS else value
    return parse_pool_table(table)


def parse_pool_table(table: Mapping[str, Any]) -> PoolSettings:
    """Read a pool from a table. Numbers may be texts.

    Raises:
        ValueError: the text says what is wrong, and begins with the name of the pool. A TableError has all errors.
    """
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a pool has no name: give it one of lower-case letters, digits and dashes")
    values: dict[str, Any] = {}
    problems = list(_problems(table, values))
    if not problems:
        try:
            return _make(name, table["provider"], values)
        except ValueError as error:
            problems = [(str(error).partition(" ")[0], str(error))]
    raise TableError([(key, f"pool {quoted(name)}: {problem}") for key, problem in problems])


def _problems(table: Mapping[str, Any], values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Read the settings of a pool into `values`. Yields all errors: the setting, and what is wrong."""
    known = ["name", "provider", *_PARSERS]
    for key in table:
        if key not in known:
            yield key, f"unknown setting {key}{suggestion(key, known)}"
    provider = table.get("provider")
    is_known = isinstance(provider, str) and provider in PROVIDERS
    if not is_known:
        yield "provider", f"provider {quoted(provider)} is not one of {', '.join(PROVIDERS)}"
    for key, parse in _PARSERS.items():
        if key in table:
            try:
                values[key] = parse(table[key])
            except ValueError as error:
                yield key, f"{key} {error}"
    for key, providers in _OF_PROVIDERS.items():
        if is_known and key in values and provider not in providers:
            yield key, f"{key} is for the provider {' or '.join(providers)}"
    for argument in values.get("arguments", ()):
        option = argument.partition("=")[0]
        if option in _OWN_ARGUMENTS:
            yield (
                "arguments",
                f"arguments has {option}, which the autoscaler gives itself{_OWN_ARGUMENTS[option]}",
            )
    if is_known:
        yield from _missing(str(provider), table)


def _missing(provider: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields what a pool of this provider lacks: the setting, and what is wrong."""
    if provider == "ssh" and not table.get("hosts"):
        yield "hosts", "hosts is missing: the names of the hosts, as ssh knows them"
    if provider == "command":
        for key in ("start", "stop", "list"):
            if not table.get(key):
                yield key, f"{key} is missing: the provider command needs start, stop and list"
    if provider == "kubernetes" and bool(table.get("image")) == bool(table.get("template")):
        yield "image", "either image or template must be given: what does a pod run?"
    if provider != "ssh" and "most" not in table:
        yield "most", "most is missing: how many hosts may it have at once?"


def _make(name: str, provider: str, values: dict[str, Any]) -> PoolSettings:
    """Raises ValueError: two settings do not fit together."""
    if provider == "ssh":
        values["most"] = min(values.get("most", len(values["hosts"])), len(values["hosts"]))
    if provider == "local":
        values.setdefault("program", tuple(module_command(sys.executable, "scaler_worker")))
    values.setdefault("boot_seconds", DEFAULT_BOOT_SECONDS[provider])
    pool = Pool(name, **{key: values.pop(key) for key in list(values) if key in _OF_POOL})
    return PoolSettings(pool, provider, **values)


def _number(lowest: float, highest: float, whole: bool = False) -> Callable[[Any], float]:
    def parse(given: Any) -> float:
        value = float("nan")
        if isinstance(given, (int, float, str)) and not isinstance(given, bool):
            try:
                value = int(given) if whole and not isinstance(given, float) else float(given)
            except ValueError:
                pass
        if not lowest <= value <= highest or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{quoted(given)} is not {kind} from {lowest:g} to {highest:g}")
        return int(value) if whole else value

    return parse


def _text(given: Any) -> str:
    if not isinstance(given, str) or "\0" in given:
        raise ValueError(f"{quoted(given)} is not a text")
    return given


def _texts(given: Any) -> tuple[str, ...]:
    parts = shlex.split(given) if isinstance(given, str) else given
    if not isinstance(parts, list) or not all(isinstance(part, str) and part and "\0" not in part for part in parts):
        raise ValueError(f"{quoted(given)} is not a list of texts")
    return tuple(parts)


def _hosts(given: Any) -> tuple[str, ...]:
    hosts = _texts(given)
    for host in hosts:
        if host.startswith("-") or not host.isprintable() or " " in host:
            raise ValueError(f"{quoted(host)} is not the name of a host")
        if hosts.count(host) > 1:
            raise ValueError(f"{quoted(host)} is there more than once")
    return hosts


def _capabilities(given: Any) -> dict[str, int]:
    kind = capabilities()
    if isinstance(given, dict):
        given = [name if amount is True else f"{name}={amount}" for name, amount in given.items()]
    elif isinstance(given, list):
        given = [str(part).replace(":", "=") for part in given]
    elif isinstance(given, str):
        given = given.split(",")
    else:
        raise ValueError(f"{quoted(given)} is not a table or a list of names")
    found: dict[str, int] = kind.combine(tuple(kind.parse(part) for part in given if part))
    return found


def _resources(given: Any) -> dict[str, int | float]:
    if isinstance(given, dict):
        given = [f"{name}={amount}" for name, amount in given.items()]
    elif isinstance(given, list):
        given = [str(part).replace(":", "=") for part in given]
    elif isinstance(given, str):
        given = given.split(",")
    else:
        raise ValueError(f"{quoted(given)} is not a table or a list of NAME=AMOUNT")
    amounts = combine_resources(tuple(parse_resource(part) for part in given if part))
    return {name: units_of(thousandths) for name, thousandths in amounts.items()}


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "workers": _number(1, MAX_WORKERS, whole=True),
    "capabilities": _capabilities,
    "resources": _resources,
    "cost": _number(0, MAX_NUMBER),
    "least": _number(0, MAX_HOSTS, whole=True),
    "most": _number(0, MAX_HOSTS, whole=True),
    "boot_seconds": _number(0.001, MAX_NUMBER),
    "time_limit_seconds": _number(0, MAX_NUMBER),
    "retire_seconds": _number(0.001, MAX_NUMBER),
    "program": _texts,
    "arguments": _texts,
    "keys": _text,
    "hosts": _hosts,
    "options": _texts,
    "start": _text,
    "stop": _text,
    "list": _text,
    "image": _text,
    "template": _text,
    "namespace": _text,
}
_LISTS = ("capabilities", "resources", "hosts", "arguments", "options")
_OF_POOL = (
    "workers",
    "capabilities",
    "resources",
    "cost",
    "least",
    "most",
    "boot_seconds",
    "time_limit_seconds",
    "retire_seconds",
)
_OWN_ARGUMENTS = {
    "--agent-name": "",
    "--worker-names": ": the names of workers begin with the name of their host",
    "-n": ": set workers",
    "--num-of-workers": ": set workers",
    "--capabilities": ": set capabilities",
    "--resources": ": set resources",
    "--keys": ": set keys",
}
_OF_PROVIDERS = {
    "hosts": ("ssh",),
    "options": ("ssh", "slurm"),
    "start": ("command",),
    "stop": ("command",),
    "list": ("command",),
    "image": ("kubernetes",),
    "template": ("kubernetes",),
    "namespace": ("kubernetes",),
}
