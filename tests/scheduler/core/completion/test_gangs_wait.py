"""Gangs that wait behind streams of small tasks on several hosts: they begin within a bounded number of task ends."""

from __future__ import annotations

from collections import deque
from itertools import count

import pytest
from tests.scheduler.core.dispatch.test_bookings import host
from tests.scheduler.core.harness import SECOND, C, Core, Row

from scaler_scheduler.core import events
from scaler_scheduler.core.placement.host_choice import PATIENCE_SECONDS

HOSTS = 4
WORKERS = 4
FIRST = 40
"""The number of small tasks that are there before the gang."""
GANG_ID = 10_000
C2 = b"client 2"


def ends_until_the_gang_begins(
    pool: events.HostResources, gang: events.Resources, small: events.Resources, length: int, *, is_own: bool
) -> int:
    """Return how many small tasks end from the gang's submit to its begin, while new ones come all the time.

    Args:
        pool: what each host has.
        gang: what each of the gang's members asks for, one for each host.
        small: what each small task asks for.
        length: how long small tasks run, in ns.
        is_own: whether they are of the gang's client.
    """
    core = Core()
    for each, incarnation in ((C, 11), (C2, 12)):
        core.client(each, incarnation)
        core.function(each, 1, b"f")
    for number in range(HOSTS):
        host(core, number, WORKERS, pool)
    other = C if is_own else C2
    numbers = count(1)
    core.submit(other, [next(numbers) for _ in range(FIRST)], resources=small)
    running: deque[tuple[bytes, Row]] = deque()
    own = 0

    def take() -> bool:
        nonlocal own
        for sent in core.take():
            if sent[0] == "dispatch":
                for row in sent[2]:
                    if row[1] >= GANG_ID:
                        own += 1
                    else:
                        running.append((sent[1], row[:3]))
        return own > 0

    take()
    core.submit(C, [GANG_ID], gang_size=HOSTS, resources=gang)
    for ends in range(100):
        if take():
            assert own == HOSTS
            return ends
        worker, row = running.popleft()
        core.wait(PATIENCE_SECONDS / 4)
        core.results(worker, [row], length)
        core.submit(other, [next(numbers)], resources=small)
    raise AssertionError("the gang was starved")


GPU = (("gpu", 1000, True),)


@pytest.mark.parametrize("is_own", [True, False], ids=["of its client", "of another client"])
@pytest.mark.parametrize("length", [SECOND, SECOND // 10_000], ids=["long", "short"])
@pytest.mark.parametrize(
    ("pool", "gang", "small"),
    [
        (GPU, (("gpu", 1000),), (("gpu", 250),)),
        (GPU, (("gpu", 1000),), ()),
        ((), (("cpus", 4000),), ()),
        ((), (("cpus", 4000),), (("cpus", 1000),)),
        ((), (("cpus", 3000),), (("cpus", 2000),)),
        (GPU, (("cpus", 4000), ("gpu", 1000)), (("gpu", 250),)),
    ],
    ids=["gpus", "gpus, plain", "all cpus, plain", "all cpus", "cpus", "gpus and cpus"],
)
def test_a_gang_of_all_hosts_begins_behind_a_stream_of_small_tasks(
    pool: events.HostResources, gang: events.Resources, small: events.Resources, length: int, is_own: bool
) -> None:
    ends = ends_until_the_gang_begins(pool, gang, small, length, is_own=is_own)
    # Before its first turn, another lane may have a turn: one task, or the short ones that wait.
    assert ends <= (2 * HOSTS * WORKERS if length == SECOND else FIRST + HOSTS * WORKERS)
