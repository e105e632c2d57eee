"""Small tasks that look at the workers: round trip, open files, shared memory, modules."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, wait
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from typing import Any

from ...api.client import Client
from ...environments.module_files import left_out_text, upload_path
from ...errors import ScalerError
from ...monitor.text_layout import duration, plural
from ...pickling.package_versions import MISSING, is_own_module, local_versions
from ...pickling.version_differences import UNKNOWN
from .hosts import listed
from .machine import HostFacts, check_open_files, check_shared_memory
from .report import Check, Status, error, ok, warning
from .script_imports import ScriptImports

ROUND_TRIPS = 10
MAX_PROBES = 256
"""The most tasks that look at workers: one for each worker, up to this number."""

PROBE_SECONDS = 0.02
"""How long such a task takes at least, so that one worker does not take several."""

SLOW_SECONDS = 0.1
"""A longer round trip of an empty task is worth a look."""

PRIORITY = 1000
NAME = "scaler_client doctor"


@dataclass(frozen=True)
class Probe:
    """What a task has found on its worker."""

    host: str
    facts: HostFacts
    versions: dict[str, str]
    """As `local_versions` returns them, of the modules that the script imports."""


def check_workers(
    client: Client, worker_count: int, hosts: Sequence[str], seconds: float, script: ScriptImports | None
) -> Iterator[Check]:
    """Run tasks on the workers, and check what they find.

    Args:
        client: the client that has joined.
        worker_count: the number of connected workers.
        hosts: the names of all hosts.
        seconds: how long to wait for a first task, and then for those that look at the hosts.
        script: the script whose modules are looked for; None: none.
    """
    tasks = client.options(name=NAME, priority=PRIORITY)
    first = tasks.submit(_nothing())
    try:
        failure = first.exception(seconds)
    except LateError:
        text = f"no worker has run a task within {seconds:g} s"
        yield error("task", text, "are all workers busy? `scaler_client workers` shows it; else see their Python above")
        return
    if failure is not None:
        yield _failed(failure)
        return
    yield _round_trip_check(tasks, seconds)
    probes = _run_probes(tasks, max(1, min(worker_count, MAX_PROBES)), seconds, script)
    yield from _facts_checks(probes)
    unseen = sorted(set(hosts) - probes.keys())
    if unseen:
        text = f"no worker of {listed(unseen)} was free within {seconds:g} s, so they were not looked at"
        yield warning("workers", text, "run the command again when they are less busy, or with a longer --timeout")
    if script is not None:
        yield from check_script(script, probes)


def _failed(failure: BaseException) -> Check:
    return error("task", f"a task has failed: {type(failure).__name__}: {failure}", "see the text of the error")


def _round_trip_check(tasks: Any, seconds: float) -> Check:
    times: list[float] = []
    end = time.monotonic() + seconds
    nothing = _nothing()
    while len(times) < ROUND_TRIPS and time.monotonic() < end:
        begun = time.perf_counter()
        try:
            tasks.submit(nothing).result(seconds)
        except LateError:
            break
        except (ScalerError, CancelledError) as failure:  # the scheduler or the worker is lost just now
            return _failed(failure)
        times.append(time.perf_counter() - begun)
    if not times:
        return warning(
            "task", f"no further task has ended within {seconds:g} s", "the workers are busy: try again later"
        )
    median = statistics.median(times)
    text = f"an empty task takes {duration(median)} from here and back (median of {len(times)})"
    if median > SLOW_SECONDS:
        return warning(
            "task", text, "the network is slow, the workers are busy, or the scheduler is: scaler_client status"
        )
    return ok("task", text)


def _nothing() -> Any:
    """An empty function that travels by value: workers of another version may not have this module."""

    def nothing() -> None:
        return None

    return nothing


def _run_probes(tasks: Any, count: int, seconds: float, script: ScriptImports | None) -> dict[str, Probe]:
    """Look at the workers; return one probe for each host that was reached."""
    names = () if script is None else script.names
    futures = [tasks.submit(_look(), list(names), PROBE_SECONDS) for _ in range(count)]
    done = wait(futures, seconds).done  # the others are cancelled when the client disconnects
    probes: dict[str, Probe] = {}
    for future in done:
        if not future.cancelled() and future.exception() is None:
            host, limit, shared, free, versions = future.result()
            probes.setdefault(host, Probe(host, HostFacts(limit, shared, free), versions))
    return probes


def _look() -> Any:
    """The function of a probe, which travels by value and needs no module of this version: a worker may be older."""

    def look(names: list[str], least_seconds: float) -> tuple[str, int, int, int, dict[str, str]]:
        import importlib.util
        import os
        import resource
        import socket
        import time

        begun = time.monotonic()
        limit, shared, free = resource.getrlimit(resource.RLIMIT_NOFILE)[0], -2, 0
        if limit == resource.RLIM_INFINITY:
            limit = -1
        try:
            found = os.statvfs("/dev/shm")
            shared, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        except OSError:
            pass
        try:
            from scaler_client.pickling.package_versions import local_versions

            versions = local_versions(names)
        except ImportError:
            versions = {name: "unknown" if importlib.util.find_spec(name) else "" for name in names}
        time.sleep(max(0.0, least_seconds - (time.monotonic() - begun)))
        return socket.gethostname(), limit, shared, free, versions

    return look


def _facts_checks(probes: dict[str, Probe]) -> Iterator[Check]:
    """Check limits and shared memory of the hosts: a line for each that is wrong, or one line for all."""
    for name, checks in (
        (
            "open files",
            [check_open_files(f"workers on {host}", probe.facts.open_files) for host, probe in probes.items()],
        ),
        ("shared memory", [check_shared_memory(host, probe.facts) for host, probe in probes.items()]),
    ):
        wrong = [check for check in checks if check.status != Status.OK]
        yield from wrong
        if checks and not wrong:
            yield checks[0] if len(checks) == 1 else ok(name, f"enough on {plural(len(checks), 'host')}")


def check_script(script: ScriptImports, probes: dict[str, Probe]) -> Iterator[Check]:
    """Compare the modules that a script imports: here, and on the hosts.

    Args:
        script: the script.
        probes: what was found on the hosts, by their names.
    """
    sys.path.insert(0, script.folder)  # as for the script itself
    try:
        here = local_versions(script.names)
    finally:
        sys.path.remove(script.folder)
    problems = 0
    for name in script.names:
        if is_own_module(here[name]) and script.is_uploaded(name):
            continue
        there = {} if script.has_environment and not is_own_module(here[name]) else probes
        for check in _module_checks(name, here[name], there, name in script.optional):
            problems += 1
            yield check
    if not problems:
        text = f"{plural(len(script.names), 'module')} that {os.path.basename(script.path)} imports: all are here"
        others = ", or uploaded by it" if any(map(script.is_uploaded, script.names)) else ""
        if script.has_environment:
            others += ", or packages of its environment"
        yield ok("script", text + (f" and on {plural(len(probes), 'host')}{others}" if probes else ""))


def _module_checks(name: str, version: str, probes: dict[str, Probe], is_optional: bool) -> Iterator[Check]:
    kind = warning if is_optional else error
    if version == MISSING:
        yield kind("script", f"{name} is missing here", "install it here, or put its folder into PYTHONPATH")
        return
    missing = [host for host, probe in probes.items() if probe.versions.get(name, MISSING) == MISSING]
    if missing and is_own_module(version):
        # No error: the script may give it to its tasks by one of these ways, and reading it cannot tell.
        path = upload_path(version)
        advice = (
            f"the script must have Client(modules=[{path!r}]) or "
            f"cloudpickle.register_pickle_by_value({name}), or copy the module to the hosts"
        )
        if not path:
            advice = left_out_text(version)
        yield warning("script", f"{name}, a module of your own, is not installed on {listed(missing)}", advice)
    elif missing:
        advice = f"Client(environment=...) gives the workers {name} {version}, or install it on the hosts"
        yield kind("script", f"{name} {version} is missing on {listed(missing)}", advice)
    differing = {
        host: probe.versions[name]
        for host, probe in probes.items()
        if host not in missing and probe.versions[name] not in (version, UNKNOWN) and not is_own_module(version)
    }
    if differing:
        there = ", ".join(f"{found} on {host}" for host, found in sorted(differing.items())[:4])
        advice = f"Client(environment=...), or pip install {name}=={version} on the hosts"
        yield warning("script", f"{name}: {version} here, {there}", advice)
