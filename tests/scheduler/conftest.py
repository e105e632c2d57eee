"""Fixtures of the core's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import pytest
from tests.scheduler.core.harness import Core

from scaler_scheduler.core.limits import Limits


@pytest.fixture
def make_core() -> Iterator[Callable[..., Core]]:
    """A factory of cores with these limits. At the end of the test no unread effects may be left."""
    cores: list[Core] = []

    def make(**limits: Any) -> Core:
        cores.append(Core(Limits(**limits)))
        return cores[-1]

    yield make
    for core in cores:
        assert core.take() == []


@pytest.fixture
def core(make_core: Callable[..., Core]) -> Core:
    return make_core()
