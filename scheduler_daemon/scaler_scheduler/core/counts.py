"""How many tasks are where, of all clients, and what became of them."""

from typing import List

from scaler_scheduler.core.effects import OUTCOMES

# What messages cost that change nothing, and the rows of others that are in vain, in microseconds, about.
VAIN_MESSAGE = 50
VAIN_HELLO = 500
VAIN_ROW = 1


class Counts:
    __slots__ = (
        "dispatched",
        "late",
        "outcomes",
        "output_dropped",
        "refused",
        "resolved",
        "retracted",
        "stopped",
        "vain_microseconds",
        "waiting",
    )

    def __init__(self) -> None:
        self.waiting = 0
        """That no worker holds."""
        self.dispatched = 0
        """That some worker holds."""
        self.resolved = 0
        """Answered since the start."""
        self.outcomes = [0] * OUTCOMES
        """Of those how many ended so, by Outcome's ordinals; that of values is not kept, it is what is left of them."""
        self.late = 0
        """Results that nobody waits for any more: of an attempt, a worker or a client given up."""
        self.output_dropped = 0
        """Rows of output that nobody was sent: their client has no room for them, or is gone."""
        self.refused = 0
        """Messages that were legal and wrong, or too much."""
        self.vain_microseconds = 0
        """What messages that change nothing have cost, by the estimates below; some are in order, as heartbeats."""
        self.retracted = 0
        """Tasks that workers gave back."""
        self.stopped = 0
        """Tasks that workers were told to stop."""

    def by_outcome(self) -> List[int]:
        """Of all that were answered since the start how many ended so, by Outcome's ordinals."""
        return [self.resolved - sum(self.outcomes[1:]), *self.outcomes[1:]]
