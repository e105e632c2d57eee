"""The environments of one agent: gets their contents from the scheduler, and has them prepared. Sans-IO.

Each `environment` order of the scheduler is answered once, by `environmentReady`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from scaler_client.environments.manifest import this_platform
from scaler_client.protocol.messages import ContentsWanted, Environment, EnvironmentReady, Payload

from .effects import Effect, Log, PrepareEnvironment, RemoveEnvironment, Send, StoreContents

CONTENT_SECONDS = 60.0
"""How long contents may stay away. Each message with some of them extends this."""

MAX_ATTEMPTS = 3
"""How often contents are asked for that were changed in the cache meanwhile."""

MAX_ENVIRONMENTS = 16
"""So many prepared environments stay without a worker. Older ones are prepared again when they are needed."""

MAX_KNOWN = 256
"""The most environments whose manifests the agent keeps."""

LEVELS = {"none": 0, "modules": 1, "locked": 2, "any": 3}
"""What an operator allows (`--environments`), as levels of the protocol."""


@dataclass
class _State:
    """One environment."""

    order: Environment
    missing: set[str] = field(default_factory=set)
    """Contents that were asked for."""
    deadline: float | None = None
    """Until when the next contents must come; None: none are missing."""
    attempts: int = 0
    is_ready: bool = False
    is_ordered: bool = True
    """Whether the scheduler waits for an answer."""


class AgentEnvironments:
    """Prepares environments on request."""

    def __init__(self, allowed: str, find_missing: Callable[[Sequence[str]], list[str]]) -> None:
        """
        Args:
            allowed: a key of LEVELS.
            find_missing: returns those of these contents that the host does not have.
        """
        self._allowed = allowed
        self._find_missing = find_missing
        self._states: dict[str, _State] = {}
        """By name, those that were used last behind the others."""

    def is_ready(self, name: str) -> bool:
        """Whether workers of this environment can start."""
        state = self._states.get(name)
        return not name or (state is not None and state.is_ready)

    def order(self, order: Environment, now: float) -> list[Effect]:
        """Handle the scheduler's order to prepare an environment."""
        state = self._states.pop(order.name, None) or _State(order)
        self._states[order.name] = state
        state.is_ordered = True
        if state.is_ready:
            return self._answer(state)
        refusal = self._refusal(order)
        if refusal:
            return self._answer(state, refusal)
        if state.missing:  # the scheduler repeats its orders when the agent joins again: the request may be lost
            return self._ask(state, now)
        if state.attempts:
            return []  # it is being prepared
        return self._begin(state, now)

    def use(self, name: str, now: float) -> list[Effect]:
        """Prepare an environment again that a worker is to change to."""
        state = self._states.get(name)
        if state is None:
            return [Send(EnvironmentReady(name, "the agent does not have this environment any more"))]
        return [] if state.attempts else self._begin(state, now)

    def contents_received(self, payloads: Sequence[Payload]) -> list[Effect]:
        """Handle contents from the scheduler."""
        if not any(state.missing for state in self._states.values()):
            return [Log(logging.DEBUG, "dropped contents that nobody asked for")]
        return [StoreContents(tuple(payloads))]

    def contents_stored(self, names: Iterable[str], error: str, now: float) -> list[Effect]:
        """Handle the outcome of StoreContents: the names of the stored contents, and an error or nothing."""
        effects: list[Effect] = []
        stored = set(names)
        for state in list(self._states.values()):
            if not state.missing:
                continue
            if error:
                effects += self._fail(state, error)
            elif state.missing & stored:
                state.missing -= stored
                state.deadline = now + CONTENT_SECONDS
                if not state.missing:
                    effects += self._prepare(state)
        return effects

    def prepared(self, name: str, error: str, missing: Sequence[str], now: float) -> list[Effect]:
        """Handle the outcome of PrepareEnvironment.

        Args:
            name: the environment.
            error: why it failed; empty: it did not.
            missing: contents that are missing after all.
            now: seconds of a monotonic clock.
        """
        state = self._states.get(name)
        if state is None:
            return []
        if missing and state.attempts < MAX_ATTEMPTS:
            return self._begin(state, now)
        if missing:
            error = f"{len(missing)} contents vanish from the cache of this host"
        if error:
            return self._fail(state, error)
        state.is_ready = True
        return self._answer(state)

    def start_failed(self, name: str, cause: str) -> list[Effect]:
        """Handle workers of an environment that cannot start. The scheduler stops to ask for them."""
        state = self._states.get(name)
        if state is None:
            return []
        state.is_ordered = True
        return self._fail(state, f"its workers cannot start: {cause}")

    def remove_unused(self, used: Iterable[str]) -> list[Effect]:
        """Remove the oldest prepared environments that no worker has, if there are many."""
        names = set(used)
        unused = [name for name, state in self._states.items() if state.is_ready and name not in names]
        effects: list[Effect] = []
        for name in unused[: max(0, len(unused) - MAX_ENVIRONMENTS)]:
            self._states[name].is_ready = False
            self._states[name].attempts = 0
            effects.append(RemoveEnvironment(name))
        idle = [name for name, state in self._states.items() if not state.attempts and name not in names]
        for name in idle[: max(0, len(self._states) - MAX_KNOWN)]:
            del self._states[name]
        return effects

    def clear(self) -> None:
        """Forget the orders of an earlier scheduler. What is prepared stays."""
        for name, state in list(self._states.items()):
            state.is_ordered = False
            if state.missing:
                del self._states[name]

    def tick(self, now: float) -> list[Effect]:
        """Give up environments whose contents do not come."""
        effects: list[Effect] = []
        for state in list(self._states.values()):
            if state.deadline is not None and now >= state.deadline:
                effects += self._fail(state, f"{len(state.missing)} contents did not come from the scheduler")
        return effects

    def deadline(self) -> float:
        """When `tick` is to be called next."""
        return min(
            (state.deadline for state in self._states.values() if state.deadline is not None), default=float("inf")
        )

    def _refusal(self, order: Environment) -> str:
        if order.level > LEVELS[self._allowed]:
            needed = next(name for name, level in LEVELS.items() if level >= min(order.level, 3))
            return f"this cluster does not allow it ({self._allowed} is set): scaler_cluster --environments {needed}"
        if order.platform and order.platform != this_platform():
            return f"it has native extensions for {order.platform}: this host is {this_platform()}"
        return ""

    def _begin(self, state: _State, now: float) -> list[Effect]:
        state.attempts += 1
        missing = self._find_missing(state.order.contents)
        if not missing:
            return self._prepare(state)
        state.missing = set(missing)
        return self._ask(state, now)

    def _ask(self, state: _State, now: float) -> list[Effect]:
        state.deadline = now + CONTENT_SECONDS
        return [Send(ContentsWanted([name for name in state.order.contents if name in state.missing]))]

    def _prepare(self, state: _State) -> list[Effect]:
        state.deadline = None
        return [PrepareEnvironment(state.order.name, bytes(state.order.manifest))]

    def _fail(self, state: _State, error: str) -> list[Effect]:
        state.missing = set()
        state.deadline = None
        state.attempts = 0
        state.is_ready = False
        return self._answer(state, error)

    def _answer(self, state: _State, error: str = "") -> list[Effect]:
        if not state.is_ordered:
            return []
        state.is_ordered = False
        answer = Send(EnvironmentReady(state.order.name, error))
        if not error:
            return [answer]
        # The indent marks the lines of an installer, which may print what a package wants.
        text = error.replace("\n", "\n    ")
        return [answer, Log(logging.WARNING, f"cannot prepare environment {state.order.name[:12]}: {text}")]
