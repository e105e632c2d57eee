"""A client's wish that its scheduler ends, with all clusters: what became of it, and who asked."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.messages import Message, Shutdown

PROTECTED = "protected:"
"""So begins what a scheduler answers that is not to be ended by clients."""


class ShutdownRequest:
    def __init__(self) -> None:
        self._waiting: list[Callable[[str | None], None]] = []

    @property
    def is_pending(self) -> bool:
        return bool(self._waiting)

    def ask(self, answered: Callable[[str | None], None]) -> None:
        """`answered` is called once: with None when the scheduler is gone, else with why it stays."""
        self._waiting.append(answered)

    def messages(self) -> list[Message]:
        """What to say to a scheduler that has accepted the client."""
        return [Shutdown()] if self._waiting else []

    def end(self, refusal: str | None = None) -> None:
        """The scheduler is gone, or stays."""
        waiting, self._waiting = self._waiting, []
        for answered in waiting:
            answered(refusal)
