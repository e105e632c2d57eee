"""The tables of workers and host agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scaler_scheduler.core.state.records import Agent, Worker


class WorkerTable:
    """Workers by incarnation, by connection and by host agent."""

    def __init__(self) -> None:
        self.by_route: dict[bytes, Worker] = {}
        self._by_incarnation: dict[int, Worker] = {}
        self._by_agent: dict[int, dict[Worker, None]] = {}
        self.in_environments = 0
        """The number of workers that have an environment."""

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self.by_route.values()))

    def __len__(self) -> int:
        return len(self.by_route)

    def find(self, incarnation: int) -> Worker | None:
        return self._by_incarnation.get(incarnation)

    def of_agent(self, agent: int) -> Iterable[Worker]:
        """The workers of the host agent with this incarnation."""
        return self._by_agent.get(agent, ())

    def add(self, worker: Worker) -> None:
        self.by_route[worker.route] = worker
        self._by_incarnation[worker.incarnation] = worker
        self._by_agent.setdefault(worker.agent, {})[worker] = None
        self.in_environments += worker.environment != ""

    def remove(self, worker: Worker) -> None:
        del self.by_route[worker.route]
        del self._by_incarnation[worker.incarnation]
        self.in_environments -= worker.environment != ""
        neighbours = self._by_agent[worker.agent]
        del neighbours[worker]
        if not neighbours:
            del self._by_agent[worker.agent]

    def expired(self, now: float) -> list[Worker]:
        """Return the workers whose lease has run out."""
        return [worker for worker in self.by_route.values() if worker.deadline <= now]


class AgentTable:
    """Host agents by incarnation and by connection."""

    def __init__(self) -> None:
        self.by_route: dict[bytes, Agent] = {}
        self._by_incarnation: dict[int, Agent] = {}

    def __iter__(self) -> Iterator[Agent]:
        return iter(list(self.by_route.values()))

    def __len__(self) -> int:
        return len(self.by_route)

    def find(self, incarnation: int) -> Agent | None:
        return self._by_incarnation.get(incarnation)

    def is_expected(self, worker: Worker, now: float) -> bool:
        """Whether the agent of this worker's host has joined or is likely to join soon. `now` is in seconds of the
        monotonic clock."""
        return worker.agent in self._by_incarnation or now < worker.agent_until

    def add(self, agent: Agent) -> None:
        self.by_route[agent.route] = agent
        self._by_incarnation[agent.incarnation] = agent

    def reconnect(self, agent: Agent, route: bytes) -> None:
        """Move the agent to a new connection."""
        del self.by_route[agent.route]
        agent.route = route
        self.by_route[route] = agent

    def remove(self, agent: Agent) -> None:
        del self.by_route[agent.route]
        del self._by_incarnation[agent.incarnation]

    def expired(self, now: float) -> list[Agent]:
        """Return the host agents whose lease has run out."""
        return [agent for agent in self.by_route.values() if agent.deadline <= now]
