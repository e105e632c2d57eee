"""Checks what the scheduler tells about the hosts: versions of Python, of Scaler and of packages, and clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ... import __version__
from ...io.host_questions import HostVersions
from ...monitor.text_layout import duration, plural
from ...pickling.package_versions import (
    PYTHON,
    distribution_of,
    installed_packages,
    local_versions,
    normalized,
    parse_installed,
)
from .report import Check, error, ok, warning

MAX_CLOCK_SECONDS = 1.0
"""Clocks may differ by this much: heartbeats and answers take time."""

MAX_LISTED = 8

_THIS_MACHINE = "this machine"

PICKLERS = ("cloudpickle",)
"""Packages whose version matters to every program."""


def check_hosts(hosts: Sequence[HostVersions] | None, wanted: Iterable[str]) -> Iterator[Check]:
    """Check what the scheduler has told about the hosts.

    Args:
        hosts: None: the scheduler has not told it.
        wanted: top-level names of the packages that the program imports.
    """
    if hosts is None:
        text = "the scheduler does not tell the versions of the hosts: it is older than this program"
        yield warning("versions", text, "upgrade the scheduler, then the clusters")
        return
    if not hosts:
        yield error("hosts", "no host agent is connected", "start workers: scaler_cluster -n NUMBER ADDRESS")
        return
    yield ok("hosts", f"{plural(len({host.host for host in hosts}), 'host')}: {listed(host.host for host in hosts)}")
    yield _python_check(hosts)
    yield _library_check(hosts)
    yield from _package_checks(hosts, {*PICKLERS, *wanted})
    yield from check_clocks(hosts)


def _python_check(hosts: Sequence[HostVersions]) -> Check:
    here = local_versions(())[PYTHON]
    own = _minor(f"python {here}")
    others = {host.host: host.language for host in hosts if _minor(host.language) != own}
    if not others:
        return ok("Python", f"{own} here and on all hosts")
    text = f"{here} here; {_by_host(others)}"
    if len(others) == len({host.host for host in hosts}):
        advice = (
            f"no worker can run tasks of this program: run it with {_minor(next(iter(others.values())))}, or start "
            f"scaler_cluster with {own} on the hosts, or use Client(environment=...)"
        )
        return error("Python", text, advice)
    return warning("Python", text, f"tasks of this program run only on hosts with {own}")


def _library_check(hosts: Sequence[HostVersions]) -> Check:
    others = {host.host: host.library or "unknown" for host in hosts if host.library != __version__}
    if not others:
        return ok("Scaler", f"{__version__} here and on all hosts")
    advice = "install one version: the scheduler first, then the clusters, then programs"
    return warning("Scaler", f"{__version__} here; {_by_host(others)}", advice)


def _package_checks(hosts: Sequence[HostVersions], wanted: Iterable[str]) -> Iterator[Check]:
    """Compare packages: those that matter one by one, the others in one line."""
    told = [host for host in hosts if host.packages]
    if not told:
        return
    here = parse_installed(installed_packages())
    distributions = {normalized(distribution_of(name) or name): name for name in wanted}
    differing: dict[str, dict[str, str]] = {}
    for host in told:
        for name in here.keys() & host.packages.keys():
            if host.packages[name] != here[name]:
                differing.setdefault(name, {})[host.host] = host.packages[name]
    for name in sorted(differing.keys() & distributions.keys()):
        advice = (
            f"values of this package may not be readable on the other side: pip install {name}=={here[name]} on the "
            "hosts, or Client(environment=...)"
        )
        yield warning("packages", f"{name}: {here[name]} here; {_by_host(differing[name])}", advice)
    others = sorted(differing.keys() - distributions.keys())
    text = f"{plural(len(here), 'package')} here"
    if others:
        verb = "has" if len(others) == 1 else "have"
        text += f"; {len(others):,} of them {verb} another version on a host: {listed(others)}"
    yield ok("packages", text)


def check_clocks(hosts: Sequence[HostVersions]) -> Iterator[Check]:
    """Compare the clocks of the hosts and of this machine with the scheduler's.

    An older scheduler does not tell its clock: then the hosts' are compared with this machine's.
    """
    scheduler = next((host.scheduler_clock_seconds for host in hosts if host.scheduler_clock_seconds), 0.0)
    whose = "the scheduler's" if scheduler else "this machine's"
    reference = scheduler or hosts[0].heard_unix_seconds
    skews = {host.host: host.clock_seconds - reference for host in hosts if host.clock_seconds}
    told = len(skews)
    if scheduler:
        skews[_THIS_MACHINE] = hosts[0].heard_unix_seconds - scheduler
    wrong = {name: skew for name, skew in skews.items() if abs(skew) > MAX_CLOCK_SECONDS}
    if wrong:
        differences = {
            name: f"{duration(abs(skew))} {'ahead' if skew > 0 else 'behind'}" for name, skew in wrong.items()
        }
        advice = (
            "set the clocks (systemctl start systemd-timesyncd): times in logs and stories of tasks do not fit together"
        )
        yield warning("clocks", f"compared with {whose}: {_by_host(differences)}", advice)
    elif skews:
        farthest = max(map(abs, skews.values()))
        and_this = " and this machine" if scheduler else ""
        yield ok("clocks", f"{plural(told, 'host')}{and_this} within {duration(farthest)} of {whose}")
    else:
        yield ok("clocks", "no host has told its clock yet")


def listed(names: Iterable[str]) -> str:
    """Names with commas between them, at most MAX_LISTED."""
    distinct = sorted(set(names))
    more = len(distinct) - MAX_LISTED
    return ", ".join(distinct[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _by_host(values: Mapping[str, str]) -> str:
    """For example "2.1 on node-1, node-2; 2.2 on node-3"."""
    groups: dict[str, list[str]] = {}
    for host, value in values.items():
        groups.setdefault(value, []).append(host)
    return "; ".join(f"{value} on {listed(names)}" for value, names in sorted(groups.items()))


def _minor(language: str) -> str:
    """For example "python 3.11"."""
    return ".".join(language.split(".")[:2])
