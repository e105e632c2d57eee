"""Who holds which task, as far as the scheduler has to know."""

from __future__ import annotations

TaskId = tuple[int, int]
"""Client and id."""


class HeldTask:
    """A task at a worker."""

    def __init__(self, route: bytes, attempt: int) -> None:
        self.route = route
        self.attempt = attempt


class HeldTasks:
    def __init__(self) -> None:
        self._held: dict[TaskId, HeldTask] = {}
        self._by_route: dict[bytes, dict[TaskId, None]] = {}

    def __contains__(self, name: TaskId) -> bool:
        return name in self._held

    @property
    def routes(self) -> list[bytes]:
        """Of workers that hold or held something."""
        return list(self._by_route)

    def holder(self, name: TaskId) -> bytes | None:
        held = self._held.get(name)
        return None if held is None else held.route

    def is_holder(self, route: bytes, name: TaskId, attempt: int) -> bool:
        held = self._held.get(name)
        return held is not None and held.route == route and held.attempt == attempt

    def hold(self, name: TaskId, route: bytes, attempt: int) -> None:
        self.drop(name)
        self._held[name] = HeldTask(route, attempt)
        self._by_route.setdefault(route, {})[name] = None

    def drop(self, name: TaskId) -> bool:
        """Nobody holds it any more; whether anybody did."""
        held = self._held.pop(name, None)
        if held is None:
            return False
        del self._by_route[held.route][name]
        return True

    def remove_all(self, route: bytes) -> list[TaskId]:
        """What this worker held, which is gone."""
        names = list(self._by_route.pop(route, ()))
        for name in names:
            del self._held[name]
        return names
