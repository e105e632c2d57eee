"""Many values of 64 KiB and more, which go between hosts: what each costs, and what of it passes the scheduler.

As a program, it is the client of one kind of work:

    python -m benchmarks.small_values ADDRESS KIND COUNT BYTES

It does the work twice. After each round it prints the seconds, and its own processor time since its start, and waits
for a line. The first round connects the hosts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import psutil

from scaler_client import Client

from .figures import Figure, at_most
from .host_work import add_one, make, number_of
from .hosts import HOSTS, Hosts, cluster
from .namespaces import Network, network, reason_against, traffic
from .processes import PATIENCE_SECONDS, ROOT

HERE, THERE = HOSTS[:2]
BYTES_BAR = 5000
"""Of the scheduler, for each value."""


@dataclass(frozen=True)
class Sizes:
    values: int
    """Of each kind of work."""
    bytes_each: Sequence[int]


FULL = Sizes(values=1000, bytes_each=(65_536, 128_000, 256_000))
QUICK = Sizes(values=20, bytes_each=(128_000,))


# ---------------------------------------------------------------------------------------------------------- the client


def _crossed(client: Client, count: int, size: int) -> list[Any]:
    """Values made on one host, each read by one task on another."""
    here, there = _on(client, HERE), client.options(capabilities=(THERE,))
    return [there.submit(number_of, here.submit(make, size, number)) for number in range(count)]


def _chain(client: Client, count: int, size: int) -> list[Any]:
    """A chain on one host."""
    here = _on(client, HERE)
    value = here.submit(make, size, 0)
    for _ in range(count - 1):
        value = here.submit(add_one, value)
    last = client.options(capabilities=(HERE,)).submit(number_of, value)
    if last.result(PATIENCE_SECONDS) != count - 1:
        raise RuntimeError(f"wrong result: {last.result()} in place of {count - 1}")
    return []


def _anywhere(client: Client, count: int, size: int) -> list[Any]:
    """Values made and read on any host."""
    kept = client.options(keep=True)
    return [client.submit(number_of, kept.submit(make, size, number)) for number in range(count)]


def _ten_readers(client: Client, count: int, size: int) -> list[Any]:
    """Values made on one host, each read by ten tasks on another."""
    here, there = _on(client, HERE), client.options(capabilities=(THERE,))
    made = [here.submit(make, size, number) for number in range(count // 10)]
    read = [there.submit(number_of, made[number // 10]) for number in range(count // 10 * 10)]
    _check(read, [number // 10 for number in range(len(read))])
    return []


def _objects(client: Client, count: int, size: int) -> list[Any]:
    """Objects of the client, each read by one task."""
    there = client.options(capabilities=(THERE,))
    return [there.submit(number_of, client.send_object(make(size, number))) for number in range(count)]


def _arguments(client: Client, count: int, size: int) -> list[Any]:
    """Arguments of calls."""
    there = client.options(capabilities=(THERE,))
    return [there.submit(number_of, make(size, number)) for number in range(count)]


def _single_arguments(client: Client, count: int, size: int) -> list[Any]:
    """Arguments of calls that are made one after the other."""
    there = client.options(capabilities=(THERE,))
    for number in range(count // 10):
        _check([there.submit(number_of, make(size, number))], [number])
    return []


KINDS: dict[str, Callable[[Client, int, int], list[Any]]] = {
    "crossed": _crossed,
    "chain": _chain,
    "anywhere": _anywhere,
    "ten_readers": _ten_readers,
    "objects": _objects,
    "arguments": _arguments,
    "single_arguments": _single_arguments,
}


def _on(client: Client, host: str) -> Client:
    return client.options(capabilities=(host,), keep=True)


def _check(futures: Iterable[Any], expected: Iterable[float]) -> None:
    values = [future.result(PATIENCE_SECONDS) for future in futures]
    if values != list(expected):
        raise RuntimeError("wrong results")


def tasks_of(kind: str, count: int) -> int:
    """How many tasks of this kind read a value."""
    return count // 10 if kind == "single_arguments" else count


def main(address: str, kind: str, count: int, size: int) -> None:
    with Client(address, timeout_seconds=PATIENCE_SECONDS) as client:
        for _ in range(2):
            begin = time.perf_counter()
            futures = KINDS[kind](client, count, size)
            _check(futures, range(len(futures)))
            seconds = time.perf_counter() - begin
            print(seconds, _seconds_of(psutil.Process()), flush=True)
            sys.stdin.readline()


# --------------------------------------------------------------------------------------------------------- the measure


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    reason = reason_against()
    if reason:
        print(f"not measured, as it needs network namespaces: {reason}; ", end="", flush=True)
        return []
    figures: list[Figure] = []
    with network([*HOSTS, "scheduler", "client"]) as links, cluster(links, 1) as hosts:
        _run_kind(hosts, links, "crossed", sizes.values, sizes.bytes_each[0])  # PyPy compiles the scheduler
        for size in sizes.bytes_each:
            for kind in KINDS:
                figures += _run_kind(hosts, links, kind, sizes.values, size)
    return figures


def _run_kind(hosts: Hosts, links: Network, kind: str, count: int, size: int) -> list[Figure]:
    """Run one kind of work; return what each task cost in the second round."""
    program = f"{sys.executable} -m benchmarks.small_values {hosts.address} {kind} {count} {size}"
    own_memory = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /dev/shm && exec {program}"]
    with (
        links.inside("client"),
        subprocess.Popen(own_memory, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client,
    ):
        assert client.stdin is not None and client.stdout is not None
        try:
            _, own = _read_round(client.stdout, kind)
            spent = {**_processor_seconds(hosts), "client": own}
            passed = traffic(hosts.scheduler.pid)
            client.stdin.write("\n")
            client.stdin.flush()
            seconds, own = _read_round(client.stdout, kind)
            after = {**_processor_seconds(hosts), "client": own}
            passed = traffic(hosts.scheduler.pid) - passed
            client.stdin.close()
            client.wait(PATIENCE_SECONDS)
        finally:
            client.kill()
    tasks = tasks_of(kind, count)
    costs = {part: (after[part] - spent[part]) * 1e6 / tasks for part in spent}
    name = f"small_values.{kind}.{size}"
    text = f"{size:,} bytes, {kind.replace('_', ' ')}"
    return [
        Figure(f"{name}.ms", f"{text}: elapsed", "ms", [seconds * 1e3 / tasks]),
        Figure(f"{name}.scheduler", "scheduler's processor time", "us", [costs["scheduler"]]),
        Figure(f"{name}.all", "processor time of all processes", "us", [sum(costs.values())]),
        Figure(f"{name}.bytes", "scheduler's bytes", "B", [passed / tasks], at_most(BYTES_BAR)),
    ]


def _read_round(stdout: IO[str], kind: str) -> tuple[float, float]:
    """Read what the client says of a round: seconds, and its own processor time since its start."""
    line = stdout.readline()
    if not line:
        raise RuntimeError(f"the client of {kind} has ended")
    seconds, own = line.split()
    return float(seconds), float(own)


def _processor_seconds(hosts: Hosts) -> dict[str, float]:
    """The processor time of the scheduler, of all agents, and of all their workers."""
    spent = {"scheduler": _seconds_of(psutil.Process(hosts.scheduler.pid)), "agents": 0.0, "workers": 0.0}
    for host in HOSTS:
        agent, *others = hosts.processes(host)
        spent["agents"] += _seconds_of(agent)
        spent["workers"] += sum(map(_seconds_of, others))
    return spent


def _seconds_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
