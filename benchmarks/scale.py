"""Many workers and many clients of one scheduler: rates, a lone task, idle workers, processor time, a restart.

1,000 workers are real processes of one cluster. 10,000 are stand-ins that echo, because they do not fit on one machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import cloudpickle
import psutil
import zmq

from scaler_client import Client
from scaler_client.pickling import serializer
from scaler_client.protocol.messages import Function

from .figures import Figure, at_least, at_most, ratios
from .peers import FUNCTION_NUMBER, FakeClient, SubmitTemplate, run_together
from .processes import PATIENCE_SECONDS, allow_many_files, free_address, running, running_module, running_scheduler
from .workload import noop, occupy

OPTIONS = (
    "--client-timeout-seconds", "3600", "--worker-timeout-seconds", "3600", "--connection-rate-limit", "10000",
)  # fmt: skip
"""The fake clients send no heartbeats, and ten thousand peers come at once."""

ROWS = 128
"""Tasks in one Submit."""

LONG_FUNCTION = 2
"""The scheduler's number of the second function that it gets."""

PROCESS_WORKERS = 2500
"""Stand-ins in one process."""


@dataclass(frozen=True)
class Sizes:
    counts: Sequence[int]
    """Numbers of stand-ins for workers."""
    runs: int
    warm_up_runs: int
    """With real workers: each must load the function, and the scheduler must learn its run time."""
    batches: int
    """Submits in one run with stand-ins."""
    long_batches: int
    """The same of tasks that are sent one by one."""
    idle_seconds: float
    few: int
    many: int
    """Numbers of real workers."""
    clients: int
    real_batches: int
    """Submits in one run with real workers."""
    lone_tasks: int
    """Lone tasks in one run."""
    window: int
    """Open tasks at any time."""


FULL = Sizes(
    counts=(10, 100, 1000, 10_000),
    runs=3,
    warm_up_runs=2,
    batches=400,
    long_batches=30,
    idle_seconds=2.0,
    few=10,
    many=1000,
    clients=100,
    real_batches=250,
    lone_tasks=200,
    window=32 * 1024,
)
QUICK = Sizes(
    counts=(2, 10, 20, 40),
    runs=1,
    warm_up_runs=1,
    batches=10,
    long_batches=4,
    idle_seconds=0.5,
    few=2,
    many=6,
    clients=5,
    real_batches=20,
    lone_tasks=10,
    window=4 * ROWS * 5,
)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    allow_many_files()
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder, zmq.Context() as context:
        context.set(zmq.MAX_SOCKETS, 4096)
        return [*_with_stand_ins(context, sizes), *_with_real_workers(context, sizes, folder)]


# ----------------------------------------------------------------------------------------------------------- stand-ins


def _with_stand_ins(context: zmq.Context[zmq.Socket[bytes]], sizes: Sizes) -> list[Figure]:
    """Measure the scheduler's processor time a task with more and more workers, and then with idle ones."""
    figures = []
    address = free_address()
    template = SubmitTemplate(ROWS, serializer.dump_call((12_345,), {}))
    with ExitStack() as stack:
        scheduler = stack.enter_context(running_scheduler(address, *OPTIONS)).pid
        short = FakeClient(context, address, template)
        stack.callback(short.close)
        long = FakeClient(context, address, template, function=Function(FUNCTION_NUMBER, "long", "none", b"long"))
        stack.callback(long.close)
        present = 0
        for count in sizes.counts:
            stack.enter_context(_stand_ins(address, count - present))
            present = count
            for client, batches, name, title in (
                (short, sizes.batches, "cpu", "no-ops"),
                (long, sizes.long_batches, "cpu_one_by_one", "tasks that are sent one by one"),
            ):
                run = partial(client.run, batches, sizes.window)
                run()  # warm-up
                spent = [_processor_seconds(scheduler, run) / (batches * ROWS) * 1e6 for _ in range(sizes.runs)]
                text = f"scheduler's processor time, {title}, {count:,} workers"
                figures.append(Figure(f"scale.{name}_{count}", text, "us/task", spent))
        figures += [_flatness(figures, name, sizes) for name in ("cpu", "cpu_one_by_one")]
        shares = [
            _processor_seconds(scheduler, lambda: time.sleep(sizes.idle_seconds)) / sizes.idle_seconds
            for _ in range(2 if sizes is FULL else 1)
        ]
    text = f"scheduler's share of a core, {sizes.counts[-1]:,} workers that only send heartbeats"
    return [*figures, Figure("scale.idle", text, "", shares, at_most(0.25))]


def _flatness(figures: Sequence[Figure], name: str, sizes: Sizes) -> Figure:
    """The last number of workers beside the first."""
    runs = {figure.name: figure.runs for figure in figures}
    first, last = (f"scale.{name}_{sizes.counts[position]}" for position in (0, -1))
    title = f"ratio of the last to the first{', one by one' if name != 'cpu' else ''}"
    return Figure(f"scale.{name}_ratio", title, "x", ratios(runs[last], runs[first]))


@contextmanager
def _stand_ins(address: str, count: int) -> Iterator[None]:
    """Run so many stand-ins that echo and send heartbeats."""
    with ExitStack() as stack:
        processes = []
        while count > 0:
            part = min(count, PROCESS_WORKERS)
            count -= part
            arguments = (address, str(part), "--heartbeats", "--long-function", str(LONG_FUNCTION))
            processes.append(stack.enter_context(running_module("echo_workers", *arguments)))
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("the fake workers did not start")
        yield


def _processor_seconds(pid: int, work: Callable[[], object]) -> float:
    """The processor time that a process takes while this one does some work."""
    clock = (~pid << 3) | 2  # Linux's clock of all threads of a process
    before = time.clock_gettime(clock)
    work()
    return time.clock_gettime(clock) - before


# -------------------------------------------------------------------------------------------------------- real workers


@dataclass
class Cluster:
    """A scheduler with real workers and fake clients, and its figures."""

    address: str
    scheduler: ExitStack
    """The scheduler's process; closing it ends the process."""
    cluster: psutil.Process
    fake_clients: list[FakeClient]
    client: Client
    rates: list[float] = field(default_factory=list)
    lone_ms: list[float] = field(default_factory=list)


def _with_real_workers(context: zmq.Context[zmq.Socket[bytes]], sizes: Sizes, folder: str) -> list[Figure]:
    with ExitStack() as stack:
        many = _cluster(stack, context, sizes.many, sizes.clients)
        few = _cluster(stack, context, sizes.few, 1)
        idle = _cores_of_workers(many, sizes.idle_seconds)
        for _ in range(sizes.warm_up_runs):
            for each in (few, many):
                _rate(each, sizes)
        for _ in range(sizes.runs):
            for each in (few, many):
                each.rates.append(_rate(each, sizes))
        for _ in range(sizes.runs):
            for each in (few, many):
                each.lone_ms.append(_lone(each, sizes))
        back = _storm(many, sizes, folder)
    few_text, many_text = f"{sizes.few} workers and one client", f"{sizes.many:,} workers and {sizes.clients} clients"
    return [
        Figure("scale.rate_few", f"no-ops, {few_text}", "tasks/s", few.rates),
        Figure("scale.rate", f"no-ops, {many_text}", "tasks/s", many.rates),
        Figure("scale.rate_ratio", "ratio of the two", "x", ratios(many.rates, few.rates), at_least(0.8)),
        Figure("scale.lone_few", f"a lone task, {few_text}", "ms", few.lone_ms),
        Figure("scale.lone", f"a lone task, {many_text}", "ms", many.lone_ms),
        Figure("scale.lone_ratio", "ratio of the two", "x", ratios(many.lone_ms, few.lone_ms), at_most(2)),
        Figure("scale.idle_workers", f"cores that {sizes.many:,} idle workers take", "", [idle]),
        Figure("scale.back", f"{sizes.many:,} workers work again after a restart", "s", [back], at_most(10)),
    ]


def _cluster(stack: ExitStack, context: zmq.Context[zmq.Socket[bytes]], workers: int, clients: int) -> Cluster:
    """Run a scheduler, so many workers in one cluster, and so many fake clients of it."""
    address = free_address()
    scheduler = stack.enter_context(ExitStack())
    scheduler.enter_context(running_scheduler(address, *OPTIONS))
    command = [sys.executable, "-m", "scaler_worker", "-n", str(workers), "--logging-level", "ERROR", address]
    cluster = psutil.Process(stack.enter_context(running(command)).pid)
    function = Function(FUNCTION_NUMBER, "noop", serializer.CLOUDPICKLE_KIND, cloudpickle.dumps(noop))
    template = SubmitTemplate(ROWS, serializer.dump_call((), {}))
    fake_clients = [FakeClient(context, address, template, function=function) for _ in range(clients)]
    for each in fake_clients:
        stack.callback(each.close)
    client = stack.enter_context(Client(address, timeout_seconds=PATIENCE_SECONDS))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while fake_clients[0].worker_count() < workers:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{workers} workers did not join within {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.05)
    return Cluster(address, scheduler, cluster, fake_clients, client)


def _rate(cluster: Cluster, sizes: Sizes) -> float:
    clients = cluster.fake_clients
    batches = sizes.real_batches // len(clients)
    begin = time.perf_counter()
    run_together(clients, batches, sizes.window)
    return batches * len(clients) * ROWS / (time.perf_counter() - begin)


def _lone(cluster: Cluster, sizes: Sizes) -> float:
    """The median time of a lone task, in ms."""
    times = []
    for _ in range(sizes.lone_tasks):
        begin = time.perf_counter()
        cluster.client.submit(noop).result()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e3


def _cores_of_workers(cluster: Cluster, seconds: float) -> float:
    """The processor time that the cluster's processes take while they have nothing to do, as a number of cores."""
    processes = cluster.cluster.children(recursive=True)

    def spent() -> float:
        return sum(times.user + times.system for times in (process.cpu_times() for process in processes))

    before = spent()
    begin = time.monotonic()
    time.sleep(seconds)
    return (spent() - before) / (time.monotonic() - begin)


def _storm(cluster: Cluster, sizes: Sizes, folder: str) -> float:
    """Restart the scheduler. Return the seconds from the new one's start until every worker runs a task."""
    cluster.scheduler.close()
    gate = os.path.join(folder, "gate")
    started = os.path.join(folder, "started")
    os.mkfifo(gate)
    os.mkdir(started)
    begin = time.monotonic()
    cluster.scheduler.enter_context(running_scheduler(cluster.address, *OPTIONS))
    tasks = [cluster.client.submit(occupy, gate, started) for _ in range(sizes.many)]
    try:
        while len(os.listdir(started)) < sizes.many:
            if time.monotonic() - begin > PATIENCE_SECONDS:
                raise RuntimeError(f"only {len(os.listdir(started))} of {sizes.many} workers are back")
            time.sleep(0.02)
        seconds = time.monotonic() - begin
    finally:
        descriptor = os.open(gate, os.O_RDWR)  # it does not wait for a reader
    for task in tasks:
        task.result()
    os.close(descriptor)
    return seconds
