"""A client's request that the scheduler ends, together with all clusters."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.messages import Message, Shutdown

PROTECTED = "protected:"
"""The first word of the scheduler's answer if its options forbid clients to end it."""


class ShutdownRequest:
    """Keeps the callers that asked for the scheduler's end until the outcome is known."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[str | None], None]] = []

    @property
    def is_pending(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._waiting)

    def add(self, on_answer: Callable[[str | None], None]) -> None:
        """Add a request.

        Args:
            on_answer: called once: with None when the scheduler has ended, or with the reason why it does not end.
        """
        self._waiting.append(on_answer)

    def messages(self) -> list[Message]:
        """Return what to send to a scheduler that this client has joined."""
        return [Shutdown()] if self._waiting else []

    def answer(self, refusal: str | None = None) -> None:
        """Answer all requests.

        Args:
            refusal: why the scheduler does not end; None: it has ended.
        """
        waiting, self._waiting = self._waiting, []
        for on_answer in waiting:
            on_answer(refusal)
