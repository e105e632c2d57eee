"""Four hosts on one machine, in network namespaces of their own, with links of 1 Gbit/s.

What passes between hosts and through the scheduler, how fast, how much memory it takes, and what the death of a host
costs.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import psutil

from scaler_client import Client
from scaler_client.errors import ScalerError

from .figures import Figure, at_least, at_most, ratios
from .host_memory import Watch, directory_of, private_bytes, value_bytes
from .host_work import add_one, hold_array, make, number_of, numbers_of
from .namespaces import LINK_BITS, Network, network, reason_against, traffic
from .processes import PATIENCE_SECONDS, ROOT, running, running_scheduler

HOSTS = ("host0", "host1", "host2", "host3")
MEGABYTE = 1_000_000
LEASE_SECONDS = 4
"""After this silence the scheduler gives up a host."""
DASK = ROOT / ".venv-peers" / "dask" / "bin" / "python"
"""The environment of dask.distributed (packaging/setup.sh peers)."""


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
    frames: int
    """Bytes of the frames that dask merges."""
    small_frames: int
    """The same when a host is killed."""
    has_peer: bool
    """Whether dask.distributed runs the same."""
    kinds: int
    """In how many kinds of work a host is killed, beside the merge."""


FULL = Sizes(
    runs=2,
    value=256 * MEGABYTE,
    pieces=3,
    piece=64 * MEGABYTE,
    shared=1000 * MEGABYTE,
    links=40,
    link=50 * MEGABYTE,
    limit=64 * MEGABYTE,
    frames=200 * MEGABYTE,
    small_frames=50 * MEGABYTE,
    has_peer=True,
    kinds=5,
)
LARGE = replace(FULL, runs=1, pieces=14, links=1000, frames=2000 * MEGABYTE)
"""More than 10 GB pass between hosts, chains are long and frames large: this takes a minute more."""
QUICK = Sizes(
    runs=1,
    value=8 * MEGABYTE,
    pieces=1,
    piece=MEGABYTE,
    shared=8 * MEGABYTE,
    links=20,
    link=MEGABYTE,
    limit=8 * MEGABYTE,
    frames=8 * MEGABYTE,
    small_frames=8 * MEGABYTE,
    has_peer=False,
    kinds=1,
)


def measure(is_quick: bool) -> list[Figure]:
    return _measure(QUICK if is_quick else FULL)


def measure_large(is_quick: bool) -> list[Figure]:
    return _measure(QUICK if is_quick else LARGE)


def _measure(sizes: Sizes) -> list[Figure]:
    reason = reason_against()
    if reason:
        print(f"not measured, as it needs network namespaces: {reason}; ", end="", flush=True)
        return []
    # A client logs each task that waits for a host that has not started yet.
    logging.getLogger("scaler_client").setLevel(logging.ERROR)
    with network([*HOSTS, "scheduler", "client"]) as links:
        figures = []
        with cluster(links, 2) as hosts:
            figures += _one_and_three(hosts, sizes)
            figures += _traffic(hosts, sizes)
            figures += _from_client(hosts, links, sizes)
            figures += _shared(hosts, sizes)
            figures += _chain(hosts, sizes)
        with cluster(links, 2, sizes.limit) as hosts:
            figures += _working_set(hosts, sizes)
            times = _killed(hosts, sizes, *KINDS[: sizes.kinds])
        with cluster(links, 1) as hosts:
            figures += _merge(hosts, links, sizes)
            times += _killed(hosts, sizes, _kill_merge)
        text = f"kinds of work, of {sizes.kinds + 1}, that a killed host does not disturb"
        figures.append(Figure("hosts.killed", text, "", [float(len(times))], at_least(sizes.kinds + 1)))
        text = f"each of them; the host is given up after {LEASE_SECONDS} s"
        figures.append(Figure("hosts.killed_seconds", text, "s", times or [0.0]))
    return figures


class Hosts:
    """A scheduler, a client, and a host agent on each host."""

    def __init__(self, links: Network, stack: ExitStack, workers: int, limit: int) -> None:
        self._links = links
        self._stack = stack
        self.address = f"tcp://{links.address('scheduler')}:5000"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="scaler-bench-"))
        self._command = [sys.executable, "-m", "scaler_worker", "-n", str(workers), self.address]
        self._command += ["--heartbeat-interval-seconds", "1", "--logging-level", "ERROR"]
        if limit:
            self._command += ["--object-memory", str(limit), "--spill-limit", "8G", "--spill-directory", folder]
        self.agents: dict[str, subprocess.Popen[str]] = {}
        monitor = ("--monitor-address", f"ipc://{folder}/monitor")
        lease = ("--worker-timeout-seconds", str(LEASE_SECONDS))
        with links.inside("scheduler"):
            self.scheduler = stack.enter_context(
                running_scheduler(self.address, "--insecure", "--logging-level", "ERROR", *monitor, *lease)
            )
        for host in HOSTS:
            self.start(host)
        with links.inside("client"):
            self.client = stack.enter_context(Client(self.address, timeout_seconds=PATIENCE_SECONDS))
        wait([self.on(host).submit(abs, 1) for host in HOSTS])

    def start(self, host: str) -> None:
        """Start an agent on a host. Its workers have the host's name as a capability."""
        with self._links.inside(host):
            command = [*self._command, "--capabilities", host]
            self.agents[host] = self._stack.enter_context(running(command))

    def kill(self, host: str) -> None:
        """Cut a host from the network, and kill all its processes."""
        processes = self.processes(host)
        self._links.cut(host)
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # it ends with the agent
                process.kill()
        self.agents[host].wait()

    def restart(self, host: str) -> None:
        """Start a host that was killed again, and wait until its workers are there."""
        self._links.join(host)
        self.start(host)
        wait([self.on(host).submit(abs, 1)])

    def on(self, *hosts: str) -> Client:
        """A view whose results stay on their hosts. If a host is given, its tasks run there."""
        return self.client.options(capabilities=hosts, keep=True)

    def processes(self, host: str) -> list[psutil.Process]:
        """The agent, the fork server and the workers of a host."""
        agent = psutil.Process(self.agents[host].pid)
        return [agent, *agent.children(recursive=True)]

    def fullest(self) -> str:
        """The host with most bytes of values."""
        return max(HOSTS, key=lambda host: value_bytes(directory_of(self.agents[host].pid), ()))


@contextmanager
def cluster(links: Network, workers: int, limit: int = 0) -> Iterator[Hosts]:
    """Run a scheduler, a client and four agents.

    Args:
        links: connects the hosts.
        workers: of each agent.
        limit: bytes of values in the memory of each host; 0: the default.
    """
    with ExitStack() as stack:
        yield Hosts(links, stack, workers, limit)


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
            size = sizes.value if run >= 0 else MEGABYTE  # the first run connects the hosts
            value = hosts.on(HOSTS[0]).submit(make, size, run)
            wait([value])
            begin = time.perf_counter()
            read = [hosts.on(host).submit(number_of, value) for host in readers]
            wait(read)
            if run >= 0:
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


def _from_client(hosts: Hosts, links: Network, sizes: Sizes) -> list[Figure]:
    """A client with a /dev/shm of its own sends a value to a host, as an object and as an argument. Count the bytes of
    the scheduler meanwhile."""
    megabytes = sizes.value / MEGABYTE
    many = f"{sizes.runs * megabytes:.0f} MB"
    figures = []
    for kind, name, what in (("object", "client", "a value"), ("argument", "argument", "an argument")):
        seconds, spent = _run_client(hosts, links, sizes, kind)
        shares = [sizes.value * 8 / LINK_BITS / each for each in seconds]
        text = f"scheduler's bytes while {many} go from a client to hosts" + (" as arguments" * (kind == "argument"))
        figures += [
            Figure(f"hosts.{name}", f"{what} of {megabytes:.0f} MB from a client to a host", "s", seconds),
            Figure(f"hosts.{name}_share", "share of the link", "", shares),
            Figure(f"hosts.{name}_bytes", text, "MB", [spent], at_most(10)),
        ]
    return figures


def _run_client(hosts: Hosts, links: Network, sizes: Sizes, kind: str) -> tuple[list[float], float]:
    """Return the seconds of each run of the client, and the megabytes of the scheduler in all."""
    program = f"{sys.executable} -m benchmarks.remote_client {hosts.address} {kind} {sizes.value} {sizes.runs}"
    own_memory = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /dev/shm && exec {program}"]
    before = traffic(hosts.scheduler.pid)
    with links.inside("client"):
        done = subprocess.run(own_memory, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    seconds = list(map(float, done.stdout.split()))
    spent = (traffic(hosts.scheduler.pid) - before) / MEGABYTE
    return seconds, spent


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
    alone = _chain_alone(sizes)
    text = f"a chain of {sizes.links:,} tasks on a host, each {sizes.link / MEGABYTE:.0f} MB"
    return [
        Figure("hosts.chain", text, "ms/task", [milliseconds], at_most(20)),
        Figure("hosts.chain_alone", "the same arrays and files in one process, without tasks", "ms", [alone]),
        Figure("hosts.chain_ratio", "ratio of the two", "x", [milliseconds / alone]),
    ]


def _chain_alone(sizes: Sizes) -> float:
    """The milliseconds of a step by hand: map a file, add one, write a new file, and remove the old one."""
    count = max(2, min(8, sizes.links // 5))
    with tempfile.TemporaryDirectory(prefix="scaler-bench-", dir="/dev/shm") as folder:
        make(sizes.link, 0).tofile(Path(folder, "0"))
        begin = time.perf_counter()
        for number in range(count):
            array = numpy.memmap(Path(folder, str(number)), mode="r")
            add_one(array.view(float)).tofile(Path(folder, str(number + 1)))
            Path(folder, str(number)).unlink()
            del array
        return (time.perf_counter() - begin) / count * 1e3


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


# ---------------------------------------------------------------------------------------------------------------- dask


def _merge(hosts: Hosts, links: Network, sizes: Sizes) -> list[Figure]:
    """dask merges two frames by our `dask_get`, in turn with dask.distributed on the same hosts."""
    from .dask_merge import merge  # only here: few measures need dask

    ours: list[float] = []
    theirs: list[float] = []
    has_peer = sizes.has_peer and _has_distributed()
    with ExitStack() as stack:
        if has_peer:
            peer = _distributed(stack, links)
        for run in range(-1, sizes.runs):
            size = sizes.frames if run >= 0 else sizes.small_frames  # in the first run workers import dask
            seconds = [merge(size, hosts.client.dask_get)]
            if has_peer:
                assert peer.stdin is not None and peer.stdout is not None
                peer.stdin.write(f"{size}\n")
                peer.stdin.flush()
                seconds.append(float(peer.stdout.readline()))
            if run >= 0:
                ours.append(seconds[0])
                theirs += seconds[1:]
    text = f"dask merges frames of {sizes.frames / MEGABYTE:.0f} MB on four hosts"
    if not has_peer:
        return [Figure("hosts.merge", f"{text} (no dask.distributed with pandas in .venv-peers/dask)", "s", ours)]
    return [
        Figure("hosts.merge", text, "s", ours),
        Figure("hosts.merge_distributed", "the same by dask.distributed", "s", theirs),
        Figure("hosts.merge_ratio", "ratio of the two", "x", ratios(ours, theirs), at_most(1)),
    ]


def _has_distributed() -> bool:
    imports = [str(DASK), "-c", "import distributed, pandas, pyarrow"]
    return DASK.exists() and subprocess.run(imports, capture_output=True).returncode == 0


def _distributed(stack: ExitStack, links: Network) -> subprocess.Popen[str]:
    """Run dask.distributed with a worker on each host, and `dask_merge` as its client; return that."""
    address = links.address("scheduler")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="scaler-bench-"))
    python = ["env", "DASK_LOGGING__DISTRIBUTED=error", str(DASK), "-m"]
    scheduler = ["distributed.cli.dask_scheduler", "--host", address, "--port", "8786", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", f"tcp://{address}:8786", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    worker += ["--local-directory", folder]
    client = ["benchmarks.dask_merge", f"tcp://{address}:8786"]
    with links.inside("scheduler"):
        stack.enter_context(running([*python, *scheduler]))
    for host in HOSTS:
        with links.inside(host):
            stack.enter_context(running([*python, *worker]))
    with links.inside("client"):
        return stack.enter_context(running([*python, *client], stdout=subprocess.PIPE, stdin=subprocess.PIPE))


# ----------------------------------------------------------------------------------------------------- hosts that die


def _killed(hosts: Hosts, sizes: Sizes, *kinds: Callable[[Hosts, Sizes], str]) -> list[float]:
    """Kill a host in the middle of some kinds of work. Return the seconds of those that end with the right results."""
    times = []
    for kind in kinds:
        begin = time.perf_counter()
        try:
            killed = kind(hosts, sizes)
        except (RuntimeError, TimeoutError, ScalerError) as error:
            print(f"{kind.__name__}: {type(error).__name__}: {error}; ", end="", flush=True)
            break
        times.append(time.perf_counter() - begin)
        hosts.restart(killed)
    return times


def _kill_source(hosts: Hosts, sizes: Sizes) -> str:
    """Kill the host that sends a value to three others."""
    size = sizes.limit // 2
    value = hosts.on().submit(make, size, 3)
    wait([value])
    source = hosts.fullest()
    others = [host for host in HOSTS if host != source]
    before = traffic(hosts.agents[source].pid)
    readers = [hosts.on(host).submit(number_of, value) for host in others]
    until(lambda: traffic(hosts.agents[source].pid) > before + size // 4, "a value is on its way")
    hosts.kill(source)
    check(readers, [3.0] * 3)
    return source


def _kill_in_exchange(hosts: Hosts, sizes: Sizes) -> str:
    """Kill a host while all of them exchange values."""
    client = hosts.on()
    values = [client.submit(make, sizes.limit // 8, number) for number in range(16)]
    readers = [client.submit(numbers_of, *(values[(5 * each + step) % 16] for step in range(4))) for each in range(16)]
    wait(readers[:1])
    hosts.kill(HOSTS[1])
    check(readers, [sum((5 * each + step) % 16 for step in range(4)) for each in range(16)])
    return HOSTS[1]


def _kill_readers(hosts: Hosts, sizes: Sizes) -> str:
    """Kill the host on which two workers read one array."""
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
        gate = Path(folder, "gate")
        gate.touch()
        started = Path(folder, "started")
        started.mkdir()
        value = hosts.on().submit(make, sizes.limit // 2, 5)
        readers = [hosts.on().submit(hold_array, value, str(started), str(gate)) for _ in range(2)]
        until(lambda: len(os.listdir(started)) == 2, "two workers read an array")
        reader = int(os.listdir(started)[0])
        host = next(host for host in HOSTS if reader in [process.pid for process in hosts.processes(host)])
        hosts.kill(host)
        gate.unlink()
        check(readers, [5.0, 5.0])
    return host


def _kill_chain(hosts: Hosts, sizes: Sizes) -> str:
    """Kill the host that has the newest value of a chain."""
    values = [hosts.on().submit(make, sizes.limit // 4, 0)]
    for _ in range(40):
        values.append(hosts.on().submit(add_one, values[-1]))
    middle = values[20]
    last = hosts.on().submit(number_of, values[-1])
    values.clear()
    wait([middle])
    host = hosts.fullest()
    hosts.kill(host)
    check([last], [40.0])
    return host


def _kill_working_set(hosts: Hosts, sizes: Sizes) -> str:
    """Kill a host whose values are four times its memory."""
    client = hosts.on()
    values = [client.submit(make, sizes.limit // 4, number) for number in range(64)]
    pairs = [client.submit(numbers_of, values[number], values[number - 7]) for number in range(64)]
    wait(pairs[:16])
    host = hosts.fullest()
    hosts.kill(host)
    check(pairs, [float(number + (number - 7) % 64) for number in range(64)])
    return host


def _kill_merge(hosts: Hosts, sizes: Sizes) -> str:
    """Kill a host in the middle of a merge."""
    from .dask_merge import merge

    before = traffic(hosts.agents[HOSTS[2]].pid)
    with ThreadPoolExecutor(1) as threads:
        merging = threads.submit(merge, sizes.small_frames, hosts.client.dask_get)
        until(lambda: traffic(hosts.agents[HOSTS[2]].pid) > before + sizes.small_frames // 8, "values are exchanged")
        hosts.kill(HOSTS[2])
        merging.result(PATIENCE_SECONDS)
    return HOSTS[2]


KINDS = (_kill_source, _kill_in_exchange, _kill_readers, _kill_chain, _kill_working_set)
"""The kinds of work in which a host is killed; one more is the merge."""
