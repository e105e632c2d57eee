"""The round trip of one task, compared with a raw ZeroMQ chain that moves the same bytes over the same hops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median

import zmq

from scaler_client import Client
from scaler_client.pickling import serializer
from scaler_client.protocol.messages import Submit
from scaler_client.protocol.wire import encode

from .figures import Figure, at_most, percentile, ratios
from .interpreters import scheduler_python
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo, running_module
from .raw_chain import CLIENT, connect
from .workload import identity


@dataclass(frozen=True)
class Sizes:
    blocks: int
    round_trips: int
    warm_up_tasks: int
    warm_up_round_trips: int


FULL = Sizes(blocks=4, round_trips=2_000, warm_up_tasks=200_000, warm_up_round_trips=6_000)
QUICK = Sizes(blocks=2, round_trips=50, warm_up_tasks=500, warm_up_round_trips=20)

_ARGUMENT = 12_345

BAR = at_most(1.5)


@dataclass
class Contender:
    """One way to run a task, with the figures of its blocks in microseconds."""

    round_trip: Callable[[], object]
    medians: list[float] = field(default_factory=list)
    p99s: list[float] = field(default_factory=list)

    def run_block(self, round_trips: int) -> None:
        times = [time.perf_counter()]
        for _ in range(round_trips):
            self.round_trip()
            times.append(time.perf_counter())
        microseconds = [(after - before) * 1e6 for before, after in zip(times, times[1:], strict=False)]
        self.medians.append(median(microseconds))
        self.p99s.append(percentile(microseconds, 99))


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    with ExitStack() as stack:
        raw = Contender(stack.enter_context(raw_chain(_ARGUMENT)))
        many = Contender(_submitter(stack.enter_context(client_of_combo()), sizes))
        single = Contender(_submitter(stack.enter_context(client_of_combo(1)), sizes))
        tcp = Contender(_submitter(stack.enter_context(client_of_combo(1, "tcp://127.0.0.1:*")), sizes))
        contenders = raw, many, single, tcp
        for contender in contenders:
            for _ in range(sizes.warm_up_round_trips):
                contender.round_trip()
        for _ in range(sizes.blocks):
            for contender in contenders:
                contender.run_block(sizes.round_trips)
    many_title = f"one task, {WORKERS} workers"
    return [
        Figure("latency.raw_median", "raw ZeroMQ chain, there and back: median", "us", raw.medians),
        Figure("latency.raw_p99", "raw ZeroMQ chain: p99", "us", raw.p99s),
        Figure("latency.median", f"{many_title}, submit to result: median", "us", many.medians),
        Figure("latency.p99", f"{many_title}: p99", "us", many.p99s),
        Figure("latency.ratio_to_raw", "ratio of the medians", "x", ratios(many.medians, raw.medians), BAR),
        Figure("latency.p99_ratio", "ratio of the p99s", "x", ratios(many.p99s, raw.p99s), BAR),
        Figure("latency.single_median", "one task, 1 worker: median", "us", single.medians),
        Figure("latency.single_p99", "one task, 1 worker: p99", "us", single.p99s),
        Figure("latency.single_ratio", "ratio of the medians, 1 worker", "x", ratios(single.medians, raw.medians), BAR),
        Figure("latency.single_p99_ratio", "ratio of the p99s, 1 worker", "x", ratios(single.p99s, raw.p99s), BAR),
        Figure("latency.tcp_median", "one task, 1 worker, over tcp: median", "us", tcp.medians),
        Figure("latency.tcp_p99", "one task, 1 worker, over tcp: p99", "us", tcp.p99s),
        Figure("latency.tcp_ratio", "ratio of the medians, over tcp", "x", ratios(tcp.medians, raw.medians)),
        Figure("latency.tcp_p99_ratio", "ratio of the p99s, over tcp", "x", ratios(tcp.p99s, raw.p99s)),
    ]


def _submitter(client: Client, sizes: Sizes) -> Callable[[], object]:
    # The scheduler's JIT compiles after many tasks. Batches reach that number faster.
    client.map(identity, zip(range(sizes.warm_up_tasks), strict=True))
    return lambda: client.submit(identity, _ARGUMENT).result(PATIENCE_SECONDS)


@contextmanager
def raw_chain(argument: object, keys: str = "") -> Iterator[Callable[[], object]]:
    """Run a raw chain; yield a function that sends a message there and back.

    Args:
        argument: the message has as many frames and bytes as the Submit of one task with this argument.
        keys: a folder of keys; empty: the chain is not encrypted.
    """
    frames = encode(Submit([1], [1], [serializer.dump_call((argument,), {})]))
    with running_module("raw_chain", "router", *filter(None, [keys]), python=scheduler_python()) as router:
        assert router.stdout is not None
        address = router.stdout.readline().strip()
        with running_module("raw_chain", "worker", address, *filter(None, [keys])):
            dealer = connect(address, CLIENT, keys)
            try:
                _await_chain(dealer)
                yield lambda: (dealer.send_multipart(frames), dealer.recv_multipart())
            finally:
                dealer.close()


def _await_chain(dealer: zmq.Socket[bytes]) -> None:
    """Return once messages come back: the router drops those that come before the worker has joined."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        dealer.send(b"ping")
        if dealer.poll(100):
            break
        if time.monotonic() > deadline:
            raise RuntimeError("the raw ZeroMQ chain does not answer")
    while dealer.poll(200):  # and the answers to earlier pings
        dealer.recv_multipart()
