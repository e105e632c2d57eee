"""The simulation's command: one seed with all its events, or many seeds with their figures.

python -m tests.simulation.run --seed 7
python -m tests.simulation.run --seeds 1000 [--first 0] [--processes 2]
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from .trace import SimulationError
from .world import World

CHUNK = 20
"""The number of seeds that a process gets at once."""

SHOWN_FAILURES = 30


@dataclass
class Failure:
    seed: int
    text: str
    events: list[str]

    def __str__(self) -> str:
        events = "\n".join(self.events)
        return f"{events}\n\nseed {self.seed} fails: {self.text}\nreplay: make simulate SEED={self.seed}"


def run_seed(seed: int) -> tuple[Counter[str], Failure | None]:
    """Run one seed. Returns its figures, and the failure if there was one."""
    world = World(seed)
    failure = None
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the sessions log what the simulation does to them
    try:
        world.run()
    except SimulationError as error:
        failure = Failure(seed, str(error), world.trace.lines())
    except Exception:
        failure = Failure(seed, traceback.format_exc(), world.trace.lines())
    finally:
        logging.disable(logged)
    figures = world.trace.figures
    figures["seeds"] += 1
    figures["simulated seconds"] += int(world.clock.now - 1000)
    return figures, failure


def run_seeds(seeds: range) -> tuple[Counter[str], list[Failure]]:
    figures: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        gc.disable()  # a run makes many cycles, which are freed together afterwards
        added, failure = run_seed(seed)
        gc.enable()
        figures.update(added)
        if failure is not None:
            failures.append(failure)
    return figures, failures


def _run_all(first: int, count: int, processes: int) -> Iterator[tuple[Counter[str], list[Failure]]]:
    chunks = [range(at, min(at + CHUNK, first + count)) for at in range(first, first + count, CHUNK)]
    if processes == 1:
        yield from map(run_seeds, chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(run_seeds, chunks)


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate the scheduler, its clients and workers.")
    parser.add_argument("--seed", type=int, help="run this seed alone and show its last events")
    parser.add_argument("--seeds", type=int, default=200, help="how many to run (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default %(default)s)")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--all", action="store_true", help="with --seed: show all events")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _show(arguments.seed, arguments.all)
    begun = time.monotonic()
    figures: Counter[str] = Counter()
    failures: list[Failure] = []
    for added, failed in _run_all(arguments.first, arguments.seeds, arguments.processes):
        figures.update(added)
        failures += failed
        for failure in failed[: max(0, SHOWN_FAILURES - len(failures) + len(failed))]:
            print(f"seed {failure.seed} fails: {failure.text.strip().splitlines()[-1][:300]}", flush=True)
    seconds = time.monotonic() - begun
    for name in sorted(figures):
        print(f"{name:40} {figures[name]:12,}")
    print(f"{'wall time':40} {seconds:12,.1f} s, {seconds / arguments.seeds * 1000:.0f} ms a seed")
    if failures:
        print(f"\nthe first of {len(failures)} failures:\n{failures[0]}")
    return 1 if failures else 0


def _show(seed: int, shows_all: bool) -> int:
    world = World(seed, keeps_all=shows_all)
    world.scheduler.checks_messages = True
    try:
        world.run()
    except SimulationError as error:
        print(Failure(seed, str(error), world.trace.lines()))
        return 1
    except BaseException:
        print(*world.trace.lines(), sep="\n")
        raise
    print(*world.trace.lines(), sep="\n")
    print(f"seed {seed}: nothing wrong in {world.clock.steps} steps, {len(world.oracle.futures)} tasks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
