"""The exceptions of the core."""

from typing import Sequence


class ProtocolError(Exception):
    """A legal message that is wrong in the current state. The sender gets an error.

    The message changed nothing. The exception is a submit of which some tasks are not accepted; `tasks` names them.

    Args:
        text: what is wrong, in one line.
        tasks: ids of the submitted tasks that are not accepted.
    """

    def __init__(self, text: str, tasks: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.tasks = tasks


class NotAdmittedError(Exception):
    """A peer that may not join. The peer is told so, and does not try again.

    Args:
        text: why it may not join, in one line.
        reason: one of the REFUSED_ constants of effects.
    """

    def __init__(self, text: str, reason: int) -> None:
        super().__init__(text)
        self.reason = reason


class InvariantError(Exception):
    """The core contradicts itself, which is a defect. The process ends, and clients submit their open tasks to the next
    one."""
