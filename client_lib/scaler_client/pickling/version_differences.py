"""What differs between the client and the workers, and how to mend it: the last lines of an unpickling error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..commands.logs import on_one_line
from ..protocol.utf8_text import escaped
from .package_versions import (
    MISSING,
    OWN,
    PYTHON,
    distribution_of,
    is_own_module,
    is_package_name,
    local_versions,
)

UNKNOWN = "unknown"
"""The version of a package of which a host has told nothing."""

MAX_ROWS = 30
MAX_HOSTS_NAMED = 3
MAX_GROUPS = 4
"""The most groups of hosts with equal versions, one a column."""

Versions = Mapping[str, str]


def worker_differences(there: Versions) -> str:
    """Return the lines for a function or arguments that a worker could not unpickle.

    Args:
        there: the versions on this worker; empty: they are not known.

    Returns:
        A table and what to do, each line after a line break; empty if nothing is known.
    """
    if not there:
        return ""
    here = local_versions(name for name in there if name not in (PYTHON, OWN))
    lines = _table(here, [("there", there)])
    lines += _worker_advice(here, there)
    return _joined(lines)


def missing_module_hint(name: str) -> str:
    """Return what to do when a task did not find a module that is there in this process; empty if it is not.

    Args:
        name: the module's name.
    """
    top = name.partition(".")[0]
    version = local_versions([top])[top] if is_package_name(top) else MISSING
    return "\n".join(_worker_advice({top: version}, {top: MISSING})) if version != MISSING else ""


def result_differences(here: Versions, hosts: Sequence[tuple[str, Versions]]) -> str:
    """Return the lines for a result that this process could not unpickle.

    Args:
        here: the versions in this process.
        hosts: the names of hosts and the versions of their agents' interpreters; empty: no host has told them.

    Returns:
        A table and what to do, each line after a line break.
    """
    lines = _table(here, _grouped(hosts))
    if not hosts:
        lines.append("the versions on the hosts are not known: scaler_client doctor ADDRESS asks for them")
    lines += _client_advice(here, hosts)
    return _joined(lines)


def _table(here: Versions, others: Sequence[tuple[str, Versions]]) -> list[str]:
    rows = [[name, here[name], *(there.get(name, UNKNOWN) for _, there in others)] for name in here]
    differing = [row for row in rows if row[1] == MISSING or any(cell not in (row[1], UNKNOWN) for cell in row[2:])]
    if not differing:
        same = ", ".join(f"{name} {version}" for name, version in here.items() if not is_own_module(version))
        return [f"no version differs: both sides have {same}"] if others else []
    cells = [["what differs", "here", *(title for title, _ in others)]]
    cells += [[row[0], *(version or "missing" for version in row[1:])] for row in differing[:MAX_ROWS]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]


def _grouped(hosts: Iterable[tuple[str, Versions]]) -> list[tuple[str, Versions]]:
    """Group hosts with equal versions, the largest groups first, with a title for each."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, versions in hosts:
        groups.setdefault(tuple(versions.items()), []).append(name)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:MAX_GROUPS]
    return [(_host_names(names), dict(versions)) for versions, names in largest]


def _host_names(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - MAX_HOSTS_NAMED
    return ", ".join(distinct[:MAX_HOSTS_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _worker_advice(here: Versions, there: Versions) -> list[str]:
    from ..environments.module_files import left_out_text, upload_path  # not at the top: only errors need it

    lines, wanted = [], []
    for name, version in here.items():
        found = there.get(name, UNKNOWN)
        if name in (PYTHON, OWN) or version == found:
            if version == MISSING:
                lines.append(
                    f"to mend it: {name} is missing on both sides: install it on both, or name its file or folder: "
                    "Client(modules=[...])"
                )
            continue
        if is_own_module(version):
            path = upload_path(_path_of_module(version))
            if is_own_module(found):
                start = f"to mend it: if the {name} of the worker is not the one that this client has uploaded"
            else:
                start = f"to mend it: {name} is a module of your own"
            lines.append(
                f"{start}: Client(modules=[{_shortest(path)!r}]) gives it to the workers, or "
                f"cloudpickle.register_pickle_by_value({name}) sends it with each function"
                if path
                else f"{start}: {left_out_text(version)}"
            )
        elif version == MISSING:
            lines.append(f"to mend it: {name} is missing here, and the worker has another one")
        else:
            wanted.append(_requirement(name, version))
    if wanted:
        lines.append(
            "to mend it: name these packages in Client(environment=...), or, without an environment, install them on "
            "the hosts: "
            f"pip install {' '.join(wanted)}"
        )
    return lines + _python_advice(here, [there])


def _client_advice(here: Versions, hosts: Sequence[tuple[str, Versions]]) -> list[str]:
    lines, wanted = [], []
    for name, version in here.items():
        found = sorted({there.get(name, UNKNOWN) for _, there in hosts} - {UNKNOWN, MISSING, version})
        if name in (PYTHON, OWN):
            continue
        if found:
            wanted.append(_requirement(name, found[0]))
        elif version == MISSING:
            lines.append(f"to mend it: make {name} importable here, or return plain data from the task")
    if wanted:
        lines.append(
            f"to mend it: install here what the hosts have: pip install {' '.join(wanted)}; or give the workers your "
            "versions: Client(environment=...)"
        )
    return lines + _python_advice(here, [there for _, there in hosts])


def _python_advice(here: Versions, others: Iterable[Versions]) -> list[str]:
    lines = []
    own = here.get(PYTHON, "")
    minors = {_minor(there.get(PYTHON, own)) for there in others} - {_minor(own)}
    if minors:
        lines.append(
            f"to mend it: both sides need the same minor version of Python: run this program with {min(minors)}, or "
            f"give the workers Python {_minor(own)}: Client(environment=...)"
        )
    return lines


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _requirement(name: str, version: str) -> str:
    distribution = distribution_of(name) or name
    return f"{distribution}=={version}" if version[:1].isdigit() else distribution


def _path_of_module(version: str) -> str:
    """Return the file or folder of a module of the user's own."""
    folder, last = os.path.split(version)
    return folder if last == "__init__.py" else version


def _shortest(path: str) -> str:
    """Return a path as short as it can be written."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"\n{on_one_line(escaped(line))}" for line in lines)
