"""The cost of keys: tasks over tcp with and without keys, in turn within one run. Compare the ratios."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from scaler_client import Client

from .figures import Figure, ratios
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo, make_keys
from .workload import identity, noop


@dataclass(frozen=True)
class Sizes:
    blocks: int
    warm_up_tasks: int
    submits: int
    round_trips: int
    large_round_trips: int


FULL = Sizes(blocks=7, warm_up_tasks=200_000, submits=50_000, round_trips=1_000, large_round_trips=20)
QUICK = Sizes(blocks=2, warm_up_tasks=500, submits=500, round_trips=20, large_round_trips=2)
_LARGE_BYTES = 1_000_000


@dataclass
class Contender:
    client: Client
    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    larges: list[float] = field(default_factory=list)

    def run_block(self, sizes: Sizes) -> None:
        self.rates.append(self._rate(sizes.submits))
        self.medians.append(self._median(sizes.round_trips, 12_345) * 1e6)
        self.larges.append(self._median(sizes.large_round_trips, bytes(_LARGE_BYTES)) * 1e3)

    def _rate(self, tasks: int) -> float:
        begin = time.perf_counter()
        futures = [self.client.submit(noop) for _ in range(tasks)]
        for future in futures:
            future.result(PATIENCE_SECONDS)
        return tasks / (time.perf_counter() - begin)

    def _median(self, round_trips: int, argument: object) -> float:
        seconds = []
        for _ in range(round_trips):
            begin = time.perf_counter()
            self.client.submit(identity, argument).result(PATIENCE_SECONDS)
            seconds.append(time.perf_counter() - begin)
        return median(seconds)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="scaler-bench-"))
        keys = make_keys(folder)
        plain = Contender(stack.enter_context(client_of_combo()))
        keyed = Contender(stack.enter_context(client_of_combo(keys=keys)))
        for contender in (plain, keyed):
            contender.client.map(identity, zip(range(sizes.warm_up_tasks), strict=True))
        for _ in range(sizes.blocks):
            for contender in (plain, keyed):
                contender.run_block(sizes)
    return [*_figures("keys, ", "keyed", keyed), *_figures("no keys, ", "plain", plain), *_ratios(keyed, plain)]


def _figures(what: str, name: str, contender: Contender) -> list[Figure]:
    return [
        Figure(
            f"encryption.{name}_rate", f"{what}no-op tasks by submit, {WORKERS} workers", "tasks/s", contender.rates
        ),
        Figure(f"encryption.{name}_median", f"{what}one task, submit to result: median", "us", contender.medians),
        Figure(f"encryption.{name}_large", f"{what}1 MB there and back: median", "ms", contender.larges),
    ]


def _ratios(keyed: Contender, plain: Contender) -> list[Figure]:
    of: list[tuple[str, str, Callable[[Contender], list[float]]]] = [
        ("rate_ratio", "ratio of the rates by submit, with keys to without", lambda contender: contender.rates),
        ("median_ratio", "ratio of the times of one task, with keys to without", lambda contender: contender.medians),
        ("large_ratio", "ratio of the times for 1 MB, with keys to without", lambda contender: contender.larges),
    ]
    return [Figure(f"encryption.{name}", what, "x", ratios(get(keyed), get(plain))) for name, what, get in of]
