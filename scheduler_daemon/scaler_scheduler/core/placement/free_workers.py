"""Free workers, in the order in which they became free. A worker is found without a look at each of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator

from scaler_scheduler.core.events import Capabilities
from scaler_scheduler.core.state.records import Worker, WorkerProfile

Need = tuple[Capabilities, str]
"""What tasks need of their worker: capabilities, and the kind of their function."""


class FreeWorkers:
    """An ordered set of workers, grouped by profile and by host agent.

    A search looks at one worker of each profile. Workers of one host differ seldom, so there are few profiles.
    """

    def __init__(self) -> None:
        self._by_profile: dict[WorkerProfile, OrderedDict[Worker, int]] = {}
        """The workers of each profile with the number that tells their order. No group is empty."""
        self._by_agent: dict[int, OrderedDict[Worker, None]] = {}
        self._count = 0
        self._added = 0
        self._moved = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Worker]:
        """Iterate over the workers by profile."""
        return (worker for group in self._by_profile.values() for worker in group)

    def __contains__(self, worker: Worker) -> bool:
        return worker in self._by_profile.get(worker.profile, ())

    def add(self, worker: Worker) -> None:
        """Add a worker as the newest one. It must not be in the set."""
        group = self._by_profile.get(worker.profile)
        if group is None:
            group = self._by_profile[worker.profile] = OrderedDict()
        self._added += 1
        group[worker] = self._added
        neighbours = self._by_agent.get(worker.agent)
        if neighbours is None:
            neighbours = self._by_agent[worker.agent] = OrderedDict()
        neighbours[worker] = None
        self._count += 1

    def make_oldest(self, worker: Worker) -> None:
        """Let a worker be as if it had been added first, if it is in the set."""
        group = self._by_profile.get(worker.profile)
        if group is not None and worker in group:
            self._moved -= 1
            group[worker] = self._moved
            group.move_to_end(worker, last=False)

    def remove(self, worker: Worker) -> None:
        """Remove a worker. It must be in the set."""
        group = self._by_profile[worker.profile]
        del group[worker]
        if not group:
            del self._by_profile[worker.profile]
        neighbours = self._by_agent[worker.agent]
        del neighbours[worker]
        if not neighbours:
            del self._by_agent[worker.agent]
        self._count -= 1

    def newest(self, capabilities: Capabilities, kind: str) -> Worker | None:
        """Return the worker that was added last, of those that can serve. None if there is none."""
        best: Worker | None = None
        highest = self._moved - 1
        for group in self._by_profile.values():
            worker = next(reversed(group))
            if group[worker] > highest and worker.can_serve(capabilities, kind):
                best, highest = worker, group[worker]
        return best

    def oldest(self, capabilities: Capabilities, kind: str, reserved: Collection[Need] = ()) -> Worker | None:
        """Return the worker that was added first, of those that can serve and are not reserved. None if there is
        none."""
        best: Worker | None = None
        lowest = self._added + 1
        for group in self._by_profile.values():
            worker = next(iter(group))
            if group[worker] < lowest and worker.can_serve(capabilities, kind) and not is_reserved(worker, reserved):
                best, lowest = worker, group[worker]
        return best

    def newest_of_agent(self, agent: int, capabilities: Capabilities, kind: str) -> Worker | None:
        """Return the newest worker of this host agent that can serve. None if there is none."""
        for worker in reversed(self._by_agent.get(agent, ())):
            if worker.can_serve(capabilities, kind):
                return worker
        return None

    def of_agent(self, agent: int) -> Collection[Worker]:
        """The free workers of this host agent, the oldest first."""
        return self._by_agent.get(agent, ())

    def agents(self) -> Iterable[int]:
        """The incarnations of the host agents that have free workers."""
        return self._by_agent

    def can_serve(self, capabilities: Capabilities, kind: str) -> bool:
        """Whether one of the workers can run functions of this kind and has these capabilities."""
        return any(next(iter(group)).can_serve(capabilities, kind) for group in self._by_profile.values())


def is_reserved(worker: Worker, reserved: Collection[Need]) -> bool:
    """Whether the worker can serve one of these needs."""
    for capabilities, kind in reserved:
        if worker.can_serve(capabilities, kind):
            return True
    return False
