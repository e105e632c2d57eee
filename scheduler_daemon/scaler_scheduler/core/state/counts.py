"""How many tasks are where, of all clients, and what became of them."""

from typing import Dict, List

from scaler_scheduler.core.effects import OUTCOME_CANCELLED, OUTCOMES

# What messages cost that change nothing, and the rows of others that are in vain, in microseconds, about.
VAIN_MESSAGE = 50
VAIN_HELLO = 500
VAIN_ROW = 1

_DURATIONS = 32
"""Powers of two in microseconds that durations are told apart by; the last one has all that are longer."""

_CAUSES = 100
"""Most causes of deaths that are told apart: agents may say anything."""

_OTHER_CAUSES = ("memory limit", "time limit", "cancelled", "lease")


class Durations:
    """How long something took, each time."""

    __slots__ = ("by_size", "microseconds", "times")

    def __init__(self) -> None:
        self.times = 0
        self.microseconds = 0
        """In all."""
        self.by_size = [0] * _DURATIONS
        """Element k: times that took less than 2^k microseconds, and not less than 2^(k - 1)."""

    def note(self, seconds: float, times: int = 1) -> None:
        microseconds = max(0, int(seconds * 1e6))
        self.times += times
        self.microseconds += microseconds * times
        self.by_size[min(microseconds.bit_length(), _DURATIONS - 1)] += times


class Counts:
    __slots__ = (
        "deaths",
        "dispatch_latencies",
        "dispatched",
        "late",
        "outcomes",
        "output_dropped",
        "payload_bytes",
        "refused",
        "resolved",
        "retracted",
        "retries",
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
        """Answered since the start, or cancelled as their client has left."""
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
        self.payload_bytes = 0
        """Of all open tasks."""
        self.deaths: Dict[str, int] = {}
        """Of workers, by cause."""
        self.retries = 0
        """Tasks given out again after an attempt that failed."""
        self.dispatch_latencies = Durations()
        """How long tasks waited before they were given out: since their batch came, or what they read was there."""

    def died(self, cause: str) -> None:
        """A worker did, by what its agent says, or the scheduler."""
        kind = _kind_of_death(cause)
        if kind not in self.deaths and len(self.deaths) >= _CAUSES:
            kind = "other"
        self.deaths[kind] = self.deaths.get(kind, 0) + 1

    def client_left(self, tasks: int) -> None:
        """So many tasks are cancelled, as their client has left."""
        self.resolved += tasks
        self.outcomes[OUTCOME_CANCELLED] += tasks

    def by_outcome(self) -> List[int]:
        """Of all that were answered since the start how many ended so, by Outcome's ordinals."""
        return [self.resolved - sum(self.outcomes[1:]), *self.outcomes[1:]]


def _kind_of_death(cause: str) -> str:
    """A few words for all deaths of one kind, without what is peculiar to each."""
    words = cause.split(None, 3)
    if len(words) > 1 and words[0] == "signal" and words[1].isdigit():
        return f"signal {words[1][:3]}"
    if len(words) > 2 and words[:2] == ["exit", "code"] and words[2].isdigit():
        return f"exit {words[2][:3]}"
    return next((kind for kind in _OTHER_CAUSES if cause.startswith(kind)), "other")
