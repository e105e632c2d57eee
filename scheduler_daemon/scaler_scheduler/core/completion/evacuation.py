"""Fetches the kept results that only one host has, when this host's agent is about to end.

Otherwise these results would be lost with the host, and the client would have to submit their tasks again. Results that
exceed the scheduler's memory limit, and results that the agent can't send before it ends, are still lost.
"""

from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import Agent, StoredObject
from scaler_scheduler.core.state.value_states import DEMOTE
from scaler_scheduler.core.values.copies import files, move, promote_other


class Evacuation:
    """Fetches kept results from retiring hosts."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._fetches = core.fetches
        self._memory_limit_bytes = core.limits.memory_limit_bytes

    def evacuate(self, agent: Agent) -> None:
        """Fetch the kept results that only this agent's host has."""
        away = []
        for stored in list(agent.objects):
            if stored.home is agent and stored.is_remote:
                if not stored.fetched_from and any(not place.is_retiring for place in files(stored)):
                    move(stored, agent, DEMOTE)
                    promote_other(stored)
                else:
                    away.append(stored)
        self.fetch(agent, sorted(away, key=lambda stored: (stored.client.incarnation, stored.id)))

    def fetch(self, agent: Agent, away: list[StoredObject]) -> None:
        """Fetch these objects, as far as the memory limit allows. Only the host of this retiring agent has them."""
        on_their_way = sum([stored.size for stored in agent.evacuated if stored.is_remote])
        room = self._memory_limit_bytes - self._tables.objects.bytes - on_their_way
        for stored in away:
            if stored.size > room:
                continue
            room -= stored.size
            agent.evacuated.add(stored)
            self._fetches.fetch(stored)
