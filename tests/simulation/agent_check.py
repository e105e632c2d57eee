"""Checks that large kept results lie at their host if its agent is there, whether the agent or its worker joins first.

A row whose result may stay must say so, although the agent has not joined yet. The result then waits for the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scaler_scheduler.core.peers import welcome
from scaler_scheduler.core.state.records import Agent, Worker

from .held_tasks import TaskId


class AgentCheck:
    """The workers of one scheduler that have joined before their agent."""

    def __init__(self) -> None:
        self._joined: dict[Worker, float] = {}
        """Until when the agent of a worker may join. 0: it was there first, or there is none."""
        self._waiting: list[tuple[Worker, TaskId, int]] = []
        """Stored results that wait for their agent, with the attempt."""

    def look(self, workers: Mapping[bytes, Worker], agents: Iterable[Agent], now: float) -> None:
        """Note which workers are here. Call it after each event."""
        if len(self._joined) == len(workers) and all(worker in self._joined for worker in workers.values()):
            return
        here = {agent.incarnation for agent in agents}
        known = self._joined
        self._joined = {}
        for worker in workers.values():
            is_first = worker.agent and worker.agent not in here
            self._joined[worker] = known.get(worker, now + welcome.JOIN_SECONDS if is_first else 0.0)

    def is_expected(self, worker: Worker, agents: Iterable[Agent], now: float) -> bool:
        """Whether a large result of this worker must stay on its host."""
        return self.is_here(worker, agents) or now < self._joined.get(worker, 0.0)

    def waits(self, worker: Worker, name: TaskId, attempt: int, agents: Iterable[Agent], now: float) -> bool:
        """Note a stored result. Returns whether it waits for the worker's agent."""
        if self.is_here(worker, agents) or now >= self._joined.get(worker, 0.0):
            return False
        self._waiting.append((worker, name, attempt))
        return True

    def pop_due(self, agents: Iterable[Agent], now: float | None) -> list[tuple[Worker, TaskId, int]]:
        """Return the results that wait no more: their agent has joined, or it is late. `now` None: nothing is late yet,
        because the scheduler reads the messages that have come first."""
        if not self._waiting:
            return []
        due = [
            each for each in self._waiting
            if self.is_here(each[0], agents) or (now is not None and now >= self._joined.get(each[0], 0.0))
        ]  # fmt: skip
        self._waiting = [each for each in self._waiting if each not in due]
        return due

    @staticmethod
    def is_here(worker: Worker, agents: Iterable[Agent]) -> bool:
        """Whether the agent of this worker has joined."""
        return any(agent.incarnation == worker.agent for agent in agents)
