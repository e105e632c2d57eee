"""The exceptions of the core."""

from collections.abc import Sequence


class ProtocolError(Exception):
    """A legal message that is wrong in the current state. The sender gets an error. The message has changed nothing,
    unless it is a submit of which only some tasks are rejected; `tasks` names these.

    Args:
        text: what is wrong, in one line.
        tasks: ids of the rejected tasks of a submit.
    """

    def __init__(self, text: str, tasks: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.tasks = tasks


class NotAdmittedError(Exception):
    """A peer that must not join. The peer gets `refused`, and does not try again.

    Args:
        text: why it may not join, in one line.
        reason: one of the REFUSED_ constants of effects.
    """

    def __init__(self, text: str, reason: int) -> None:
        super().__init__(text)
        self.reason = reason


class InvariantError(Exception):
    """The core contradicts itself, which is a defect. The process ends, and clients submit their open tasks to the next
    scheduler."""
