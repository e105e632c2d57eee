"""Large data: 1 MB there and back beside the raw ZeroMQ chain, an array of 1 GB that all workers of a host read, and
arrays as results."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy

from scaler_client import Client

from .figures import Figure, at_least, at_most, ratios
from .latency import raw_chain
from .processes import PATIENCE_SECONDS, client_of_combo, make_keys
from .workload import identity, read_pages, total

ARGUMENT_BYTES = 1_000_000
READERS = 8
RESULT_BYTES = (100_000, 400_000, 1_000_000, 8_000_000, 80_000_000)


@dataclass(frozen=True)
class Sizes:
    blocks: int
    round_trips: int
    array_runs: int
    array_bytes: int


FULL = Sizes(blocks=7, round_trips=20, array_runs=3, array_bytes=1_000_000_000)
QUICK = Sizes(blocks=2, round_trips=2, array_runs=1, array_bytes=10_000_000)

CHAIN_BAR = at_most(1.5)
KEYS_BAR = at_most(1.3)
MEMCPY_BAR = at_least(0.5)

TCP = "tcp://127.0.0.1:*"


@dataclass
class Contender:
    """One way to send 1 MB there and back, with the median of each block in milliseconds."""

    round_trip: Callable[[], object]
    medians: list[float] = field(default_factory=list)

    def run_block(self, round_trips: int) -> float:
        milliseconds = []
        for _ in range(round_trips):
            begin = time.perf_counter()
            self.round_trip()
            milliseconds.append((time.perf_counter() - begin) * 1e3)
        return median(milliseconds)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    return [*_round_trips(sizes), *_array(sizes), *_results(sizes)]


def _round_trips(sizes: Sizes) -> list[Figure]:
    argument = bytes(ARGUMENT_BYTES)
    with ExitStack() as stack:
        keys = make_keys(stack.enter_context(tempfile.TemporaryDirectory(prefix="scaler-bench-")))
        raw = Contender(stack.enter_context(raw_chain(argument)))
        raw_curve = Contender(stack.enter_context(raw_chain(argument, keys)))
        local = Contender(_submitter(stack.enter_context(client_of_combo(1)), argument))
        tcp = Contender(_submitter(stack.enter_context(client_of_combo(1, TCP)), argument))
        keyed = Contender(_submitter(stack.enter_context(client_of_combo(1, TCP, keys)), argument))
        contenders = raw, raw_curve, local, tcp, keyed
        for contender in contenders:
            contender.run_block(sizes.round_trips)
        for _ in range(sizes.blocks):
            for contender in contenders:
                contender.medians.append(contender.run_block(sizes.round_trips))
    curve_ratios = ratios(raw_curve.medians, raw.medians)
    keys_ratios = ratios(keyed.medians, tcp.medians)
    keyed_ratios = ratios(keyed.medians, raw_curve.medians)
    of_curve = [
        100 * (chain_keyed - chain) / (task_keyed - task)
        for chain, chain_keyed, task, task_keyed in zip(
            raw.medians, raw_curve.medians, tcp.medians, keyed.medians, strict=True
        )
    ]
    return [
        Figure("data.raw", "raw ZeroMQ chain, 1 MB there and back: median", "ms", raw.medians),
        Figure("data.raw_curve", "raw ZeroMQ chain with CURVE, 1 MB there and back: median", "ms", raw_curve.medians),
        Figure("data.task", "one task, 1 MB argument, returned: median", "ms", local.medians),
        Figure("data.tcp", "the same over tcp: median", "ms", tcp.medians),
        Figure("data.keyed", "the same over tcp with keys: median", "ms", keyed.medians),
        Figure("data.ratio", "ratio of one task to the chain", "x", ratios(local.medians, raw.medians), CHAIN_BAR),
        Figure("data.tcp_ratio", "ratio over tcp to the chain", "x", ratios(tcp.medians, raw.medians), CHAIN_BAR),
        Figure("data.keys_ratio", "ratio over tcp, with keys to without", "x", keys_ratios, KEYS_BAR),
        Figure("data.keyed_ratio", "ratio with keys to the chain with CURVE", "x", keyed_ratios, CHAIN_BAR),
        Figure("data.curve_ratio", "ratio of the chains, with CURVE to without", "x", curve_ratios),
        Figure("data.curve_share", "what CURVE adds to the chain, of what keys add to the task", "%", of_curve),
    ]  # fmt: skip


def _submitter(client: Client, argument: bytes) -> Callable[[], object]:
    def round_trip() -> None:
        if len(client.submit(identity, argument).result(PATIENCE_SECONDS)) != len(argument):
            raise RuntimeError("the argument did not come back whole")

    return round_trip


def _results(sizes: Sizes) -> list[Figure]:
    """Arrays that a worker makes and the program reads, one after the other."""
    figures = []
    with client_of_combo(1) as client:
        for size in RESULT_BYTES:
            found = Contender(partial(_sum_of_result, client, size))
            local = Contender(partial(_sum, size))
            for contender in (found, local):
                contender.run_block(sizes.round_trips)
            for _ in range(sizes.blocks):
                for contender in (found, local):
                    contender.medians.append(contender.run_block(sizes.round_trips))
            name = f"{size / 1e6:g}"
            figures += [
                Figure(f"data.result_{name}", f"a result of {name} MB, which the program sums", "ms", found.medians),
                Figure(f"data.local_{name}", "the same without a task", "ms", local.medians),
            ]
    return figures


def _sum_of_result(client: Client, size: int) -> int:
    return int(client.submit(numpy.ones, size, numpy.uint8).result(PATIENCE_SECONDS).sum())


def _sum(size: int) -> int:
    return int(numpy.ones(size, numpy.uint8).sum())


def _array(sizes: Sizes) -> list[Figure]:
    array = numpy.ones(sizes.array_bytes, numpy.uint8)
    gigabytes = sizes.array_bytes / 1e9
    copies, fresh, sent, summed = [], [], [], []
    with client_of_combo(READERS) as client:
        _read_once(client, numpy.ones(1, numpy.uint8))  # the workers import NumPy
        for _ in range(sizes.array_runs):
            fresh.append(gigabytes / _seconds(array.copy))
            target = array.copy()
            copies.append(gigabytes / _seconds(partial(numpy.copyto, target, array)))
            del target
            begin = time.perf_counter()
            reference = client.send_object(array)
            _read_once(client, reference)
            sent.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            _wait([client.submit(total, reference) for _ in range(READERS)])
            summed.append(time.perf_counter() - begin)
            del reference
    rates = [READERS * gigabytes / seconds for seconds in sent]
    once_ratios = ratios([gigabytes / seconds for seconds in sent], fresh)
    what = f"a 1 GB array to {READERS} workers of a host"
    return [
        Figure("data.memcpy", "memcpy of 1 GB", "GB/s", copies),
        Figure("data.fresh", "memcpy of 1 GB into fresh memory", "GB/s", fresh),
        Figure("data.array", f"{what}, each reads a byte of each page", "s", sent),
        Figure("data.array_sum", f"then {READERS} tasks each sum the array", "s", summed),
        Figure("data.array_rate", "bytes that the workers got", "GB/s", rates),
        Figure("data.array_ratio", "ratio of this rate to memcpy", "x", ratios(rates, copies), MEMCPY_BAR),
        Figure("data.array_once", "ratio of 1 GB in it to memcpy into fresh memory", "x", once_ratios, MEMCPY_BAR),
    ]  # fmt: skip


def _read_once(client: Client, reference: Any) -> None:
    """Let each worker read the array in a task, all at the same time."""
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
        _wait([client.submit(read_pages, reference, folder, READERS) for _ in range(READERS)])


def _wait(futures: list[Any]) -> None:
    for future in futures:
        future.result(PATIENCE_SECONDS)


def _seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin
