"""Which worker holds which task, as far as the scheduler's messages show."""

from __future__ import annotations

from collections.abc import Container, Iterator

from scaler_scheduler.core import events

TaskId = tuple[int, int]
"""Client and id."""


Booking = tuple[int, events.Claim]
"""The incarnation of the host agent, and what a task has of its host's resources."""


class HeldTask:
    """A task on a worker."""

    def __init__(self, route: bytes, attempt: int, booking: Booking | None) -> None:
        self.route = route
        self.attempt = attempt
        self.booking = booking


class HeldTasks:
    def __init__(self) -> None:
        self._held: dict[TaskId, HeldTask] = {}
        self._by_route: dict[bytes, dict[TaskId, None]] = {}

    def __iter__(self) -> Iterator[TaskId]:
        return iter(self._held)

    def __contains__(self, name: TaskId) -> bool:
        return name in self._held

    @property
    def routes(self) -> list[bytes]:
        """Routes of workers that hold or held a task."""
        return list(self._by_route)

    def holder(self, name: TaskId) -> bytes | None:
        held = self._held.get(name)
        return None if held is None else held.route

    def attempt(self, name: TaskId) -> int:
        return self._held[name].attempt

    def is_holder(self, route: bytes, name: TaskId, attempt: int) -> bool:
        held = self._held.get(name)
        return held is not None and held.route == route and held.attempt == attempt

    def bookings(self, agent: int) -> dict[tuple[bytes, int], events.Claim]:
        """What tasks have of a host's resources, by the worker's route and the number of the booking."""
        found: dict[tuple[bytes, int], events.Claim] = {}
        for held in self._held.values():
            if held.booking is not None and held.booking[0] == agent:
                found[held.route, held.booking[1][0]] = held.booking[1]
        return found

    def up_to(self, route: bytes, begun: Container[TaskId]) -> list[TaskId]:
        """The tasks of a worker up to the last one of these: it begins them in the order in which it got them."""
        names = list(self._by_route.get(route, ()))
        while names and names[-1] not in begun:
            names.pop()
        return names

    def release(self, name: TaskId) -> None:
        """Note that a task has released its resources."""
        if name in self._held:
            self._held[name].booking = None

    def hold(self, name: TaskId, route: bytes, attempt: int, booking: Booking | None = None) -> None:
        self.drop(name)
        self._held[name] = HeldTask(route, attempt, booking)
        self._by_route.setdefault(route, {})[name] = None

    def drop(self, name: TaskId) -> bool:
        """Note that no worker holds the task any more. Returns whether one did."""
        held = self._held.pop(name, None)
        if held is None:
            return False
        del self._by_route[held.route][name]
        return True

    def remove_all(self, route: bytes) -> list[TaskId]:
        """Remove and return the tasks that a lost worker held."""
        names = list(self._by_route.pop(route, ()))
        for name in names:
            del self._held[name]
        return names
