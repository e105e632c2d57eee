"""The way of environments from clients to agents. Each content travels once to the scheduler and once to a host."""

from __future__ import annotations

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.state.counts import WASTED_MESSAGE_US
from scaler_scheduler.core.state.environments import Environment
from scaler_scheduler.core.state.records import Agent, AgentEnvironment, Client

MESSAGE_BYTES = 4 << 20
"""Contents for an agent travel in messages of about this size."""


class EnvironmentSupply:
    """Takes environments from clients, and sends them to agents."""

    def __init__(self, core: CoreState) -> None:
        self._table = core.tables.environments
        self._counts = core.tables.counts
        self._outbox = core.outbox

    def declare(self, client: Client, event: events.Environment) -> None:
        """Take an environment, and ask for the contents that are missing.

        Raises:
            ProtocolError: there is no room for it.
        """
        missing = self._table.declare(client.incarnation, event)
        if missing:
            self._outbox.add(effects.ContentsWanted(client.route, missing))

    def receive(self, event: events.Contents) -> None:
        """Take contents from a client. Contents that nobody lacks are dropped: another client has sent them.

        Raises:
            ProtocolError: there is no room for one of them.
        """
        error: ProtocolError | None = None
        taken = 0
        for name, content in event.by_name.items():
            try:
                taken += self._table.add_content(name, content)
            except ProtocolError as each:
                error = each
        if error is not None:
            raise error
        if not taken:
            self._counts.wasted_us += WASTED_MESSAGE_US

    def prepare(self, agent: Agent, environment: Environment) -> None:
        """Have an agent prepare a complete environment."""
        agent.environments[environment.name] = AgentEnvironment()
        self._outbox.add(
            effects.Environment(
                agent.route,
                environment.name,
                environment.contents,
                sum(len(self._table.content(name) or b"") for name in environment.contents),
                environment.level,
                environment.platform,
                environment.manifest,
            )
        )

    def send_contents(self, agent: Agent, event: events.ContentsWanted) -> None:
        """Send the contents that an agent asks for. Those that were dropped meanwhile are left out."""
        frames: list[bytes] = []
        size = 0
        for name in event.names:
            content = self._table.content(name)
            if content is None:
                continue
            frames.append(content)
            size += len(content)
            if size >= MESSAGE_BYTES:
                self._outbox.add_last(effects.Contents(agent.route, frames))
                frames, size = [], 0
        if frames:
            self._outbox.add_last(effects.Contents(agent.route, frames))
