"""What placement answers: where a lane's next task runs, or until when it waits."""

from __future__ import annotations

from typing import NamedTuple

from scaler_scheduler.core.state.records import Worker

INFINITY = float("inf")


class Go(NamedTuple):
    """The lane's next tasks run."""

    worker: Worker
    """It is in no list of free workers any more."""
    tasks: int
    """At most so many tasks. 0: the worker has no room left, and another one may have."""


class Wait(NamedTuple):
    """The lane's next task waits."""

    until: float = INFINITY
    """When to try again, in seconds of the monotonic clock. Infinity: when something has changed."""
    is_lane: bool = True
    """Whether the lane's further tasks wait too. False: the next task of the lane may go."""
    is_hopeless: bool = False
    """Whether no host has what the lane asks for, free or not."""


LANE_WAITS = Wait()
TASK_WAITS = Wait(is_lane=False)
HOPELESS = Wait(is_hopeless=True)
