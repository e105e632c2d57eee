"""The rate of the scheduler alone, between a fake client and fake workers that echo, under PyPy and CPython."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psutil
import zmq

from scaler_client.pickling import serializer
from scaler_client.protocol.messages import Options

from .figures import Figure, at_least, at_most, ratios
from .interpreters import Interpreter, scheduler_pythons
from .peers import FakeClient, SubmitTemplate
from .processes import WORKERS, free_address, running_module, running_scheduler

ROWS = 1024
"""Tasks in one Submit, as in those of `map`."""

WINDOW = 32 * ROWS
"""Open tasks at any time: more than the workers hold, so that the scheduler is never idle."""

LEASES = ("--client-timeout-seconds", "3600", "--worker-timeout-seconds", "3600")
"""The fake peers send no heartbeats."""


@dataclass(frozen=True)
class Sizes:
    runs: int
    batches: dict[str, int]
    """Submits in one run, by implementation. A run takes one or two seconds under each."""
    warm_up_batches: dict[str, int]


FULL = Sizes(5, {"PyPy": 1000, "CPython": 500}, {"PyPy": 1000, "CPython": 50})
QUICK = Sizes(2, {"PyPy": 100, "CPython": 40}, {"PyPy": 100, "CPython": 10})


@dataclass
class Subject:
    """A scheduler under one interpreter, with the figures of its runs."""

    interpreter: Interpreter
    process: psutil.Process
    client: FakeClient
    booking_client: FakeClient
    """Each of its tasks asks for a GPU; there is one for each worker."""
    rates: list[float] = field(default_factory=list)
    booking_cpu_microseconds: list[float] = field(default_factory=list)
    cpu_microseconds: list[float] = field(default_factory=list)
    busy_percent: list[float] = field(default_factory=list)

    def run(self, batches: int) -> None:
        cpu_before, loop_before = self._cpu_seconds()
        begin = time.perf_counter()
        self.client.run(batches, WINDOW)
        seconds = time.perf_counter() - begin
        cpu, loop = self._cpu_seconds()
        tasks = batches * ROWS
        self.rates.append(tasks / seconds)
        self.cpu_microseconds.append((cpu - cpu_before) / tasks * 1e6)
        self.busy_percent.append(100 * (loop - loop_before) / seconds)
        self.booking_client.run(batches, WINDOW)
        self.booking_cpu_microseconds.append((self._cpu_seconds()[0] - cpu) / tasks * 1e6)

    def _cpu_seconds(self) -> tuple[float, float]:
        """Return the processor seconds of the whole process, and of the loop's thread."""
        times = self.process.cpu_times()
        [loop] = [each for each in self.process.threads() if each.id == self.process.pid]
        return times.user + times.system, loop.user_time + loop.system_time

    def figures(self) -> list[Figure]:
        name = self.interpreter.implementation
        prefix = f"scheduler.{name.lower()}"
        bar = at_least(500_000) if name == "PyPy" else None
        title = f"the scheduler alone between echoing peers, {self.interpreter}"
        return [
            Figure(f"{prefix}_rate", title, "tasks/s", self.rates, bar),
            Figure(f"{prefix}_cpu", f"processor time, I/O thread included, {name}", "us/task", self.cpu_microseconds),
            Figure(f"{prefix}_busy", f"share of the time that its loop ran, {name}", "%", self.busy_percent),
            Figure(
                f"{prefix}_booking",
                f"processor time of tasks that ask for a GPU each, to that of plain ones, {name}",
                "x",
                ratios(self.booking_cpu_microseconds, self.cpu_microseconds),
                at_most(1.25) if name == "PyPy" else None,
            ),
        ]


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    with ExitStack() as stack:
        subjects = [stack.enter_context(_subject(interpreter)) for interpreter in scheduler_pythons()]
        for subject in subjects:
            for client in (subject.client, subject.booking_client):
                client.run(sizes.warm_up_batches[subject.interpreter.implementation], WINDOW)
        for _ in range(sizes.runs):
            for subject in subjects:
                subject.run(sizes.batches[subject.interpreter.implementation])
    figures = [figure for subject in subjects for figure in subject.figures()]
    if len(subjects) == 2:
        names = " to ".join(subject.interpreter.implementation for subject in subjects)
        rates = ratios(subjects[0].rates, subjects[1].rates)
        figures.append(Figure("scheduler.ratio", f"ratio of {names}", "x", rates))
    return figures


@contextmanager
def _subject(interpreter: Interpreter) -> Iterator[Subject]:
    address = free_address()
    with running_scheduler(address, *LEASES, python=interpreter.path) as scheduler:
        with echoing_peers(address, gpus=WORKERS) as client, zmq.Context() as context:
            payload = serializer.dump_call((12_345,), {})
            template = SubmitTemplate(ROWS, payload, Options(resources=(("gpu", 1000),)))
            booking_client = FakeClient(context, address, template)
            try:
                yield Subject(interpreter, psutil.Process(scheduler.pid), client, booking_client)
            finally:
                booking_client.close()


@contextmanager
def echoing_peers(address: str, count: int = WORKERS, keys: str = "", gpus: int = 0) -> Iterator[FakeClient]:
    """Run fake workers of the scheduler at this address; yield a fake client.

    `keys` is a folder of keys; empty means none. `gpus` is what the host of the workers has.
    """
    template = SubmitTemplate(ROWS, serializer.dump_call((12_345,), {}))
    with (
        running_module("echo_workers", address, str(count), keys, "--gpus", str(gpus)) as workers,
        zmq.Context() as context,
    ):
        assert workers.stdout is not None
        if workers.stdout.readline() != "ready\n":
            raise RuntimeError("the fake workers did not start")
        client = FakeClient(context, address, template, keys)
        try:
            yield client
        finally:
            client.close()
