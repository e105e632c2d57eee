"""Search for each deliberate fault the shortest run that finds it, and write its seed into first_seeds.json.

python -m tests.simulation.first_seeds [WORDS OF A NAME] [--stale]

test_teeth.py begins with these seeds. A fault without an entry begins with seed 0. A fault whose entry is null has no
known seed: test_teeth.py skips it and prints its name, until a search with --stale finds one. A change of the product
changes the runs. A seed that no longer finds its fault is stale: test_teeth.py then tries the seeds behind it, which
takes long.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest.mock import patch

from .mutation import Mutation
from .mutations import MUTATIONS
from .run import run_seed

FILE = Path(__file__).with_name("first_seeds.json")

SEEDS = 600

BLOCK = 10_000
"""The seeds of one kind of load, such as those with gangs, are in blocks of at least so many."""


def read() -> dict[str, int | None]:
    """Return the first seed of each fault, by the fault's name; None: no seed is known that finds it."""
    seeds: dict[str, int | None] = json.loads(FILE.read_text())
    return seeds


@cache
def _by_length(first: int, count: int) -> list[int]:
    """Return so many seeds, those with the shortest runs first. A seed that fails by itself says nothing of a fault."""
    runs = ((seed, *run_seed(seed)) for seed in range(first, first + count))
    return [seed for _, seed in sorted((figures["steps"], seed) for seed, figures, failure in runs if failure is None)]


def _finds(mutation: Mutation, seed: int) -> bool:
    with ExitStack() as patched:
        for place, name, value in mutation.patches():
            patched.enter_context(patch.object(place, name, value))
        return run_seed(seed)[1] is not None


def _is_found(mutation: Mutation, seed: int | None) -> bool:
    return seed is not None and _finds(mutation, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Search short runs of the simulation that find the deliberate faults.")
    parser.add_argument("words", nargs="?", default="", help="only faults whose names contain these words")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds to try (default %(default)s)")
    parser.add_argument("--stale", action="store_true", help="only faults that their seed does not find any more")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    names = {mutation.name for mutation in MUTATIONS}
    found = {name: seed for name, seed in read().items() if name in names}
    searched = [mutation for mutation in MUTATIONS if arguments.words in mutation.name]
    if arguments.stale:
        searched = [mutation for mutation in searched if not _is_found(mutation, found.get(mutation.name, 0))]
    is_complete = True
    for mutation in searched:
        first = (found.get(mutation.name, 0) or 0) // BLOCK * BLOCK
        seed = next((seed for seed in _by_length(first, arguments.seeds) if _finds(mutation, seed)), None)
        if seed is None:
            is_complete = False
            print(f"none of {arguments.seeds} seeds finds: {mutation.name}", flush=True)
            continue
        print(f"seed {seed:4} finds: {mutation.name}", flush=True)
        found[mutation.name] = seed
        FILE.write_text(json.dumps(found, indent=4, sort_keys=True) + "\n")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
