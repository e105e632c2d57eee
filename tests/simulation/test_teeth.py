"""The simulation must find every deliberate fault."""

from __future__ import annotations

import pytest
from tests.simulation import first_seeds
from tests.simulation.mutation import Mutation
from tests.simulation.mutations import MUTATIONS
from tests.simulation.run import run_seed

MAX_SEEDS = 300

_FIRST_SEEDS = first_seeds.read()

_tried = 0
_found: list[str] = []


@pytest.mark.timeout(600)  # for a stale seed: see first_seeds.py
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_deliberate_fault_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    global _tried
    _tried += 1
    for place, name, value in mutation.patches():
        monkeypatch.setattr(place, name, value)
    first = _FIRST_SEEDS.get(mutation.name, 0)
    if first is None:
        pytest.skip(f"no seed is known that finds: {mutation.name}")
    for seed in range(first, first + MAX_SEEDS):
        _, failure = run_seed(seed)
        if failure is not None:
            _found.append(mutation.name)
            print(f"seed {seed}: {failure.text.strip().splitlines()[-1]}")
            return
    pytest.fail(f"{MAX_SEEDS} seeds from {first} on run well in spite of this: {mutation.name}")


def test_all_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs last, and prints the number."""
    if _tried < len(MUTATIONS):
        pytest.skip("only some were tried")
    with capsys.disabled():
        print(f"\ndeliberate faults that the simulation finds: {len(_found)} of {len(MUTATIONS)}")
    unknown = [mutation for mutation in MUTATIONS if _FIRST_SEEDS.get(mutation.name, 0) is None]
    assert len(_found) == len(MUTATIONS) - len(unknown)
