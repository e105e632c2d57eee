"""The tasks that wait for objects, as chains in shared columns."""

from __future__ import annotations

import random
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from scaler_scheduler.core.state.chains import NO_ENTRY, Chains

BLOCK = 1024


def task(number: int) -> Any:
    return SimpleNamespace(id=number)


@pytest.fixture
def chains() -> Chains[Any]:
    return Chains()


def test_a_chain_has_its_tasks_in_the_order_in_which_they_came(chains: Chains[Any]) -> None:
    tasks = [task(number) for number in range(5)]
    first = NO_ENTRY
    for each in tasks:
        first = chains.add(each, first)
    assert chains.items(first) == tasks
    assert len(chains) == 5
    assert chains.pop(first) == tasks
    assert len(chains) == 0


def test_an_empty_chain_has_no_task(chains: Chains[Any]) -> None:
    assert chains.items(NO_ENTRY) == []
    assert chains.pop(NO_ENTRY) == []
    assert chains.only_item(NO_ENTRY) is None


def test_the_only_task_of_a_chain(chains: Chains[Any]) -> None:
    reader = task(1)
    first = chains.add(reader, NO_ENTRY)
    assert chains.only_item(first) is reader
    assert chains.only_item(chains.add(reader, first)) is None, "it reads the object twice"


def test_freed_entries_are_used_again(chains: Chains[Any]) -> None:
    stays = chains.add(task(0), NO_ENTRY)
    seen: set[int] = set()
    for number in range(3 * BLOCK):
        entry = chains.add(task(number), NO_ENTRY)
        seen.add(entry)
        chains.pop(entry)
    assert len(seen) == 1
    assert [each.id for each in chains.pop(stays)] == [0]


def test_chains_of_several_blocks_stay_apart(chains: Chains[Any]) -> None:
    chance = random.Random(1)
    expected: dict[int, deque[int]] = {number: deque() for number in range(50)}
    heads = dict.fromkeys(expected, NO_ENTRY)
    for number in range(20 * BLOCK):
        chain = chance.randrange(len(heads))
        if chance.random() < 0.01:
            assert [each.id for each in chains.pop(heads[chain])] == list(expected[chain])
            heads[chain] = NO_ENTRY
            expected[chain].clear()
        else:
            heads[chain] = chains.add(task(number), heads[chain])
            expected[chain].append(number)
        assert len(chains) == sum(map(len, expected.values()))
    for chain, first in heads.items():
        assert [each.id for each in chains.items(first)] == list(expected[chain])
        chains.pop(first)
    assert len(chains) == 0
