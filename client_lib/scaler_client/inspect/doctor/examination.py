"""Makes all checks in their order, and goes as far as it can."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from ...api.client import Client
from ...commands.addresses import ADDRESS_VARIABLE, Address, AddressError, parse_connect_address
from ...commands.key_files import KEYS_VARIABLE
from ...monitor.monitor_address import MONITOR_VARIABLE, find_monitor_address
from ...monitor.problems import problems
from ...monitor.reader import Presence
from ...monitor.socket import MonitorAccessError, MonitorSocket
from .hosts import check_hosts
from .joining import check_joining, check_keys
from .machine import can_be_client, check_machine
from .probes import check_script, check_workers
from .reachability import Endpoint, check_reachable
from .report import Check, Status, error, ok, warning
from .script_imports import ScriptImports

SNAPSHOT_SECONDS = 2.5
"""The scheduler publishes once a second."""

NOT_PUBLISHED_HERE = (
    f"not read: this scheduler publishes nothing on this machine; {MONITOR_VARIABLE} may name its monitor address"
)
"""What the check `problems` says without a monitor address of the scheduler."""


@dataclass(frozen=True)
class Settings:
    """What to examine."""

    address: Address | None
    """The scheduler's address; None: only this machine is examined."""
    keys: str | None
    """The folder of keys; None: none was given. Empty: no keys."""
    seconds: float
    """How long to wait for each answer."""
    script: ScriptImports | None = None


def examine(settings: Settings) -> Iterator[Check]:
    """Make the checks, one after the other.

    Args:
        settings: what to examine.

    Returns:
        The checks, each as soon as it is made.
    """
    log = logging.getLogger("scaler_client")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)  # what it would log is in the checks
    try:
        with ExitStack() as stack:
            yield from _examine(settings, stack)
    finally:
        log.setLevel(before)


def _examine(settings: Settings, stack: ExitStack) -> Iterator[Check]:
    yield from check_machine()
    address = settings.address
    directory = os.environ.get(KEYS_VARIABLE, "") if settings.keys is None else settings.keys
    found = Endpoint()
    client: Client | None = None
    if address is None:
        advice = f"give it as an argument or in {ADDRESS_VARIABLE}, for example tcp://127.0.0.1:2345"
        yield check_keys(directory, None, found)
        yield warning("address", "no scheduler's address was given: only this machine was looked at", advice)
    else:
        yield from check_reachable(address, settings.seconds, found)
        keys = check_keys(directory, address, found)
        yield keys
        if found.may_be_scheduler and keys.status != Status.ERROR and can_be_client():
            joined: list[Client] = []
            yield from check_joining(address, directory, settings.seconds, stack, joined)
            client = joined[0] if joined else None
    if client is not None:
        yield from _check_cluster(client, settings)
        assert address is not None
        yield from check_published(address, client._connection.scheduler, directory)
    elif settings.script is not None:
        yield from check_script(settings.script, {})


def _check_cluster(client: Client, settings: Settings) -> Iterator[Check]:
    connection = client._connection
    hosts = connection.io_thread.hosts.get(settings.seconds)
    if hosts is None and not connection.has_joined:
        why = connection.io_thread.loss or "it has ended, or it does not know this client any more"
        yield error(
            "scheduler", f"the connection was lost: {why}", "run the command again; the scheduler's log says more"
        )
        return
    wanted = () if settings.script is None else settings.script.names
    yield from check_hosts(hosts, wanted)
    count = connection.worker_count
    if not count:
        if hosts:
            yield error(
                "workers", "no worker is connected", "look at the log of scaler_cluster: its workers end at once"
            )
        if settings.script is not None:
            yield from check_script(settings.script, {})
        return
    names = sorted({host.host for host in hosts or ()})
    yield from check_workers(client, count, names, settings.seconds, settings.script)


def check_published(address: Address, scheduler: int, keys: str) -> Iterator[Check]:
    """Check what the scheduler publishes: the problems that it knows. If this can't be read, the check says why.

    Args:
        address: the scheduler's own address.
        scheduler: the incarnation of the scheduler that answers there. A scheduler at `tcp://*:PORT` publishes this
            address, not the one that clients use.
        keys: the folder of keys; empty: none.
    """
    given = os.environ.get(MONITOR_VARIABLE, "")
    not_here = ok("problems", NOT_PUBLISHED_HERE)
    advice = f"correct {MONITOR_VARIABLE}: the first lines of the scheduler's log have the monitor address"
    try:
        monitor_address = parse_connect_address(given) if given else find_monitor_address(address, has_service=True)
        if not given and not os.path.exists(monitor_address.path):
            yield not_here
            return
        monitor = MonitorSocket(monitor_address, keys=keys if monitor_address.transport == "tcp" else "")
    except AddressError as wrong:
        yield warning("problems", f"not read: {MONITOR_VARIABLE}: {wrong}", advice) if given else not_here
        return
    except MonitorAccessError as failure:
        yield warning("problems", f"not read: {failure}", "run scaler_client status as a user who may read it")
        return
    with monitor:
        deadline = time.monotonic() + SNAPSHOT_SECONDS
        while monitor.reader.presence is Presence.UNKNOWN and time.monotonic() < deadline:
            monitor.wait(deadline - time.monotonic())
        view = monitor.reader.view
        why = monitor.connection_problem()
    if view is None:
        text = f"not read: {monitor_address} has sent nothing within {SNAPSHOT_SECONDS:g} s"
        yield warning("problems", f"{text}: {why}" if why else text, advice)
    elif view.snapshot.incarnation != scheduler:
        text = f"not read: another scheduler publishes at {monitor_address}"
        yield warning("problems", text, advice) if given else not_here
    else:
        found = problems(view)
        for problem in found:
            yield warning("problems", problem, "scaler_client status shows more")
        if not found:
            yield ok("problems", "the scheduler knows none")
