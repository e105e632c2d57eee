"""Four hosts on one machine, in network namespaces of their own, with links of 1 Gbit/s.

What passes between hosts and through the scheduler, how fast, how much memory it takes, and what the death of a host
costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from scaler_client import Client

from .figures import Figure, at_least, at_most, ratios
from .host_memory import Watch, directory_of, private_bytes, value_bytes
from .host_work import add_one, hold_array, make, number_of, numbers_of
from .namespaces import LINK_BITS, Network, network, reason_against, traffic
from .processes import PATIENCE_SECONDS, running, running_scheduler

HOSTS = ("host0", "host1", "host2", "host3")
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Sizes:
    runs: int
    value: int
    """Bytes of the value that goes from host to host."""
    pieces: int
    """How many values each host makes that all other hosts read."""
    piece: int
    shared: int
    """Bytes of the value that two workers of a host read."""
    links: int
    link: int
    """Bytes of each value of the chain."""
    limit: int
    """Bytes of values in memory, when the working set is four times as large."""


FULL = Sizes(
    runs=3,
    value=256 * MEGABYTE,
    pieces=13,
    piece=64 * MEGABYTE,
    shared=1000 * MEGABYTE,
    links=200,
    link=50 * MEGABYTE,
    limit=256 * MEGABYTE,
)
QUICK = Sizes(
    runs=1,
    value=8 * MEGABYTE,
    pieces=1,
    piece=MEGABYTE,
    shared=8 * MEGABYTE,
    links=20,
    link=MEGABYTE,
    limit=8 * MEGABYTE,
)


def measure(is_quick: bool) -> list[Figure]:
    reason = reason_against()
    if reason:
        print(f"not measured, as it needs network namespaces: {reason}; ", end="", flush=True)
        return []
    sizes = QUICK if is_quick else FULL
    with network([*HOSTS, "scheduler", "client"]) as links:
        figures = []
        with cluster(links, workers=2) as hosts:
            figures += _one_and_three(hosts, sizes)
            figures += _traffic(hosts, sizes)
            figures += _shared(hosts, sizes)
            figures += _chain(hosts, sizes)
        with cluster(links, 2, "--object-memory", str(sizes.limit), "--spill-limit", "8G") as hosts:
            figures += _working_set(hosts, sizes)
    return figures


class Hosts:
    """A scheduler, a client, and a host agent on each host."""

    def __init__(self, links: Network, stack: ExitStack, workers: int, options: Sequence[str]) -> None:
        self._links = links
        self._stack = stack
        self._address = f"tcp://{links.address('scheduler')}:5000"
        self._command = [sys.executable, "-m", "scaler_worker", "-n", str(workers), self._address, *options]
        self.agents: dict[str, subprocess.Popen[str]] = {}
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="scaler-bench-"))
        scheduler = ("--insecure", "--monitor-address", f"ipc://{folder}/monitor", "--logging-level", "ERROR")
        with links.inside("scheduler"):
            self.scheduler = stack.enter_context(running_scheduler(self._address, *scheduler))
        for host in HOSTS:
            self.start(host)
        with links.inside("client"):
            self.client = stack.enter_context(Client(self._address, timeout_seconds=PATIENCE_SECONDS))
        wait([self.on(host).submit(abs, 1) for host in HOSTS])

    def start(self, host: str) -> None:
        """Start an agent on a host. Its workers have the host's name as a capability."""
        with self._links.inside(host):
            command = [*self._command, "--capabilities", host]
            self.agents[host] = self._stack.enter_context(running(command))

    def on(self, host: str) -> Client:
        """A view whose tasks run on this host, and leave their results there."""
        return self.client.options(capabilities=[host], keep=True)

    def processes(self, host: str) -> list[psutil.Process]:
        """The agent, the fork server and the workers of a host."""
        agent = psutil.Process(self.agents[host].pid)
        return [agent, *agent.children(recursive=True)]


@contextmanager
def cluster(links: Network, workers: int, *options: str) -> Iterator[Hosts]:
    with ExitStack() as stack:
        yield Hosts(links, stack, workers, options)


def wait(futures: Sequence[Any]) -> None:
    """Wait until tasks have ended. What they have returned may stay on their hosts."""
    for future in futures:
        error = future.exception(PATIENCE_SECONDS)
        if error is not None:
            raise error


def check(futures: Sequence[Any], expected: Sequence[float]) -> None:
    values = [future.result(PATIENCE_SECONDS) for future in futures]
    if values != list(expected):
        raise RuntimeError(f"wrong results: {values} in place of {expected}")


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------------- between hosts


def _one_and_three(hosts: Hosts, sizes: Sizes) -> list[Figure]:
    """One value to another host, and one to three others, in turn."""
    one: list[float] = []
    three: list[float] = []
    for run in range(-1, sizes.runs):
        for readers, seconds in ((HOSTS[1:2], one), (HOSTS[1:], three)):
            value = hosts.on(HOSTS[0]).submit(make, sizes.value, run)
            wait([value])
            begin = time.perf_counter()
            read = [hosts.on(host).submit(number_of, value) for host in readers]
            wait(read)
            if run >= 0:  # the first run connects the hosts
                seconds.append(time.perf_counter() - begin)
            check(read, [run] * len(read))
    megabytes = sizes.value / MEGABYTE
    shares = [sizes.value * 8 / LINK_BITS / seconds for seconds in one]
    return [
        Figure("hosts.one", f"a value of {megabytes:.0f} MB from host to host", "s", one),
        Figure("hosts.one_share", "share of the link", "", shares, at_least(0.7)),
        Figure("hosts.three", "the same to three hosts", "s", three),
        Figure("hosts.three_ratio", "ratio to one host", "x", ratios(three, one), at_most(1.5)),
    ]


def _traffic(hosts: Hosts, sizes: Sizes) -> list[Figure]:
    """Each host makes values, and all others read them. Count the bytes of the scheduler meanwhile."""
    agents = [hosts.agents[host].pid for host in HOSTS]
    scheduler = hosts.scheduler.pid
    before, between = traffic(scheduler), sum(map(traffic, agents))
    begin = time.perf_counter()
    for number in range(sizes.pieces):
        values = [hosts.on(host).submit(make, sizes.piece, number + place) for place, host in enumerate(HOSTS)]
        read = [hosts.on(host).submit(numbers_of, *values) for host in HOSTS]
        check(read, [4 * number + 6] * len(HOSTS))
    seconds = time.perf_counter() - begin
    passed = sizes.pieces * sizes.piece * len(HOSTS) * (len(HOSTS) - 1)
    if sum(map(traffic, agents)) - between < passed:
        raise RuntimeError("the values did not go from host to host")
    spent = (traffic(scheduler) - before) / MEGABYTE
    text = f"scheduler's bytes while {passed / 1e9:.3g} GB pass between hosts"
    return [
        Figure("hosts.scheduler_bytes", text, "MB", [spent], at_most(10)),
        Figure("hosts.rate", "bytes that the four hosts got", "MB/s", [passed / MEGABYTE / seconds]),
    ]


# --------------------------------------------------------------------------------------------------------- on one host


def _shared(hosts: Hosts, sizes: Sizes) -> list[Figure]:
    """Two workers of a host read one array at the same time. Compare the growth of the host's memory with its size."""
    client = hosts.on(HOSTS[0])
    processes = hosts.processes(HOSTS[0])
    directory = directory_of(processes[0].pid)
    until(lambda: not value_bytes(directory, processes), "the values before are freed")
    before = private_bytes(processes)
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
        gate = Path(folder, "gate")
        gate.touch()
        started = Path(folder, "started")
        started.mkdir()
        value = client.submit(make, sizes.shared, 5)
        readers = [client.submit(hold_array, value, str(started), str(gate)) for _ in range(2)]
        until(lambda: len(os.listdir(started)) == 2, "two workers read an array")
        growth = value_bytes(directory, processes) + private_bytes(processes) - before
        gate.unlink()
        check(readers, [5.0, 5.0])
    text = f"growth of a host's memory by an array of {sizes.shared / MEGABYTE:.0f} MB that two workers read"
    return [Figure("hosts.shared", text, "x its size", [growth / sizes.shared], at_most(1.1))]


def _chain(hosts: Hosts, sizes: Sizes) -> list[Figure]:
    """Each task reads the array of the one before, and returns one as large."""
    client = hosts.on(HOSTS[0])
    begin = time.perf_counter()
    value = client.submit(make, sizes.link, 0)
    for _ in range(sizes.links):
        value = client.submit(add_one, value)
    check([client.submit(number_of, value)], [sizes.links])
    milliseconds = (time.perf_counter() - begin) / sizes.links * 1e3
    text = f"a chain of {sizes.links:,} tasks on a host, each {sizes.link / MEGABYTE:.0f} MB"
    return [Figure("hosts.chain", text, "ms/task", [milliseconds], at_most(20))]


def _working_set(hosts: Hosts, sizes: Sizes) -> list[Figure]:
    """Values of four times the limit on one host: each task reads two of them, and the last one all."""
    client = hosts.on(HOSTS[0])
    processes = hosts.processes(HOSTS[0])
    count = 32
    with Watch(processes) as watch:
        begin = time.perf_counter()
        values = [client.submit(make, 4 * sizes.limit // count // 8 * 8, number) for number in range(count)]
        pairs = [client.submit(numbers_of, values[number], values[number - 7]) for number in range(count)]
        last = client.submit(numbers_of, *values)
        check([*pairs, last], [*(number + (number - 7) % count for number in range(count)), sum(range(count))])
        seconds = time.perf_counter() - begin
    if hosts.processes(HOSTS[0]) != processes:
        raise RuntimeError("workers were killed")
    text = f"values of four times --object-memory, {sizes.limit / MEGABYTE:.0f} MB"
    resident = "the largest memory that they take, relative to the limit"
    return [
        Figure("hosts.working_set", f"make and read {text}", "s", [seconds]),
        Figure("hosts.resident", resident, "x", [watch.peak_bytes / sizes.limit], at_most(1.2)),
    ]
