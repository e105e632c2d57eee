"""What can go wrong in the core."""

from typing import Sequence


class ProtocolError(Exception):
    """A legal message that is wrong here, and changed nothing, unless `tasks` are only some; its sender is told so.

    Args:
        text: what is wrong, in one line.
        tasks: those that it would have submitted, and that are not taken.
    """

    def __init__(self, text: str, tasks: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.tasks = tasks


class NotAdmittedError(Exception):
    """A peer that may not join: it is told so, and does not try again.

    Args:
        reason: one of effects.REFUSED_...
    """

    def __init__(self, text: str, reason: int) -> None:
        super().__init__(text)
        self.reason = reason


class InvariantError(Exception):
    """The core contradicts itself: a defect. The process ends with it, and clients submit all to the next."""
