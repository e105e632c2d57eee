"""Answers to `transferObjects` that go to the scheduler together: one message for all files of a round."""

from __future__ import annotations

from scaler_client.protocol.messages import Transferred


class TransferAnswers:
    """The answers of one round of the poll loop."""

    def __init__(self) -> None:
        self._answers: dict[tuple[int, str, bool], Transferred] = {}

    @property
    def is_empty(self) -> bool:
        return not self._answers

    def add(self, answer: Transferred) -> None:
        """Add an answer. Those with the same source and outcome become one message."""
        key = answer.source, answer.error, answer.is_unreachable
        known = self._answers.get(key)
        if known is None:
            self._answers[key] = answer
        else:
            known.clients.extend(answer.clients)
            known.ids.extend(answer.ids)

    def take(self) -> list[Transferred]:
        """Return the messages, and forget them."""
        answers, self._answers = list(self._answers.values()), {}
        return answers
