"""One thread for each provider: a provider that hangs stops nothing else. Calls and outcomes go through queues."""

from __future__ import annotations

import enum
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .providers import LogReader, Provider, ProviderError

LIST_SECONDS = 5.0
"""From the end of a list to the next one."""


class Action(enum.Enum):
    """What a provider is asked for."""

    START = "start"
    DRAIN = "drain"
    KILL = "kill"
    LIST = "list"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call."""

    pool: str
    action: Action
    names: tuple[str, ...]
    """The hosts that the call was about; of LIST: those that exist."""
    begun_at: float
    """Seconds of the monotonic clock."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why single hosts could not be started; of LIST: the ends of the logs of hosts that have ended."""
    error: str = ""
    """Why the call failed; empty: it did not."""


class ProviderThread:
    """Calls one provider, in its own thread.

    Args:
        pool: the pool's name.
        make: makes the provider, in the thread.
        outcomes: gets the outcomes of the calls.
        list_seconds: the time between two lists.
    """

    def __init__(
        self, pool: str, make: Callable[[], Provider], outcomes: queue.SimpleQueue[Outcome], list_seconds: float
    ) -> None:
        self.pool = pool
        self._make = make
        self._outcomes = outcomes
        self._list_seconds = list_seconds
        self._calls: queue.SimpleQueue[tuple[Action, tuple[str, ...]] | None] = queue.SimpleQueue()
        self.provider: Provider | None = None
        self._thread = threading.Thread(target=self._run, name=f"pool-{pool}", daemon=True)
        self._thread.start()

    def call(self, action: Action, names: tuple[str, ...]) -> None:
        """Ask the provider for something. The calls are made in this order."""
        self._calls.put((action, names))

    def stop(self) -> None:
        """End the thread after its present calls."""
        self._calls.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the end of the thread. Returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        list_at = 0.0
        while True:
            try:
                call = self._calls.get(timeout=max(0.0, list_at - time.monotonic()))
                if call is None:
                    return
            except queue.Empty:
                call = Action.LIST, ()
            self._outcomes.put(self._made(*call))
            if call[0] is Action.LIST:
                list_at = time.monotonic() + self._list_seconds

    def _made(self, action: Action, names: tuple[str, ...]) -> Outcome:
        begun_at = time.monotonic()
        failed: dict[str, str] = {}
        try:
            if self.provider is None:
                self.provider = self._make()
            if action is Action.START:
                failed = self.provider.start(names)
            elif action is Action.DRAIN:
                self.provider.drain(names)
            elif action is Action.KILL:
                self.provider.kill(names)
            else:
                names = tuple(self.provider.host_names())
                if isinstance(self.provider, LogReader):
                    failed = self.provider.last_lines()
        except ProviderError as error:
            return Outcome(self.pool, action, names, begun_at, error=" ".join(str(error).split()))
        except Exception as error:  # a fault of a provider must not end its thread
            return Outcome(self.pool, action, names, begun_at, error=f"{type(error).__name__}: {error}")
        return Outcome(self.pool, action, names, begun_at, failed)
