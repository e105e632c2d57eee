"""What a task may know about itself: `current_task()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..commands.resource_amounts import CPUS, UNIT, resource_amount, units_of
from . import task_host
from .gang import Gang

ResourceValue = int | float | tuple[int, ...]


@dataclass(frozen=True)
class CurrentTask:
    """The task that the calling thread runs."""

    client: int
    """The incarnation of the client that submitted it."""
    id: int
    """Its number among the tasks of this client."""
    attempt: int
    """How often it was dispatched, with this time."""
    cpus: int | float = 1
    """How many cpus it has: `options(cpus=...)`."""
    resources: Mapping[str, ResourceValue] = field(default_factory=dict)
    """What it has of its host: the ids of a resource with identities, such as `{"gpu": (0, 2)}`; of others the amount
    in units. A task with a fraction of a unit shares the last id with others."""
    gang: Gang | None = None
    """The gang that it is a member of; None: it is a member of none."""


def current_task() -> CurrentTask | None:
    """Return the task that this thread runs; None outside of tasks, and in threads that a task has started.

    Example:
        ```python
        def train() -> tuple[int, ...]:
            return current_task().resources["gpu"]


        future = client.options(resources={"gpu": 2}).submit(train)
        ```
    """
    host = task_host.host
    task = None if host is None else host.current()
    if task is None:
        return None
    resources = booked_resources(task.booking)
    cpus = resources.pop(CPUS, 1)
    gang = None if task.gang is None else Gang(task.gang)
    return CurrentTask(*task.name, 1 if isinstance(cpus, tuple) else cpus, resources, gang)


def booked_resources(booking: str) -> dict[str, ResourceValue]:
    """Return the resources of a booking, `17 cpus=4 gpu=1.5:0+2`, by name."""
    resources: dict[str, ResourceValue] = {}
    for part in booking.split(" ")[1:]:
        name, _, rest = part.partition("=")
        amount, _, ids = rest.partition(":")
        if ids:
            resources[name] = tuple([int(each) for each in ids.split("+")])
        else:
            resources[name] = units_of(resource_amount(name, amount))
    return resources


def booked_cpus(booking: str) -> int:
    """Return how many threads a task with this booking may use; 0: it has asked for no cpus."""
    for part in booking.split(" ")[1:]:
        name, _, amount = part.partition("=")
        if name == CPUS:
            return max(1, resource_amount(name, amount) // UNIT)
    return 0
