"""The time for which tasks wait for a processor does not count as their run time, if they are short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler_worker.worker.processor_wait import (
    CALM_RUNS,
    LEAST_NS,
    LONG_NS,
    SCHEDSTAT,
    ProcessorWait,
    without_waits,
)

MILLISECOND = 1_000_000


@pytest.mark.parametrize(
    "durations, waited, expected",
    [
        ([1000, 4_001_000, 1000], 4_000_000, [1000, 1000, 1000]),
        ([1000, 4_001_000, 3_001_000], 7_000_000, [1000, 1000, 1000]),
        ([5_000_000], 4_000_000, [1_000_000]),
        ([10, 20], 1_000_000, [0, 0]),
        ([10, 50, 40], 30, [10, 30, 30]),
        ([1000, LONG_NS + 5_000_000], 4_000_000, [1000, LONG_NS + 5_000_000]),
        ([1000, LONG_NS + 5_000_000], 6_000_000, [1000, LONG_NS - 1_000_000]),
    ],
)
def test_the_longest_tasks_have_waited(durations: list[int], waited: int, expected: list[int]) -> None:
    assert without_waits(durations, waited) == expected


@given(st.lists(st.integers(0, LONG_NS - 1), min_size=1), st.integers(1, 10 * LONG_NS))
def test_short_run_times_lose_the_wait_and_nothing_else(durations: list[int], waited: int) -> None:
    found = without_waits(durations, waited)
    assert all(0 <= new <= old for new, old in zip(found, durations, strict=True))
    lost = sum(durations) - sum(found)
    assert min(waited, sum(durations)) - len(durations) <= lost <= waited + len(durations)


class Clock:
    """A file in the form of /proc/thread-self/schedstat, and what measures it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.waited = 5_000_000_000
        self.write(0)
        self.wait = ProcessorWait(str(path))

    def write(self, more_ns: int) -> None:
        self.waited += more_ns
        self._path.write_text(f"123 {self.waited} 7\n", "ascii")

    def run(self, elapsed_ns: int, waited_ns: int = 0) -> int:
        self.wait.begin()
        self.write(waited_ns)
        return self.wait.end(elapsed_ns)


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    clock = Clock(tmp_path / "schedstat")
    yield clock
    clock.wait.close()


def test_a_wait_within_a_run_is_found(clock: Clock) -> None:
    assert clock.run(5 * MILLISECOND, 4 * MILLISECOND) == 4 * MILLISECOND
    clock.write(7 * MILLISECOND)  # between two runs
    assert clock.run(MILLISECOND) == 0
    assert clock.run(LEAST_NS // 2, LEAST_NS // 2) == 0


def test_a_calm_worker_reads_little_until_a_run_takes_long(clock: Clock) -> None:
    for _ in range(CALM_RUNS + 1):
        assert clock.run(1000) == 0
    assert clock.run(5 * MILLISECOND, 4 * MILLISECOND) == 0, "when the run began, the file was not read"
    assert clock.run(5 * MILLISECOND, 4 * MILLISECOND) == 4 * MILLISECOND


def test_without_the_file_nothing_waits() -> None:
    wait = ProcessorWait("/nowhere/schedstat")
    wait.begin()
    assert wait.end(10 * MILLISECOND) == 0
    wait.close()


@pytest.mark.skipif(not Path(SCHEDSTAT).exists(), reason="this kernel does not tell waits")
def test_the_kernels_file_is_read() -> None:
    wait = ProcessorWait()
    wait.begin()
    assert wait.end(LEAST_NS) >= 0
    wait.close()
