"""How many tasks are where, of all clients, and what became of them."""

from typing import Dict, List

from scaler_scheduler.core.effects import OUTCOME_CANCELLED, OUTCOMES

# What messages cost that change nothing, and the rows of others that are in vain, in microseconds, about.
WASTED_MESSAGE_US = 50
WASTED_HELLO_US = 500
WASTED_ROW_US = 1

_DURATIONS = 32
"""Powers of two in microseconds that durations are told apart by; the last one has all that are longer."""

_CAUSES = 100
"""Most causes of deaths that are told apart: agents may say anything."""

_OTHER_CAUSES = ("memory limit", "time limit", "cancelled", "lease")


class Durations:
    """How long something took, each time."""

    __slots__ = ("buckets", "total_us", "count")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        """In all."""
        self.buckets = [0] * _DURATIONS
        """Element k: times that took less than 2^k microseconds, and not less than 2^(k - 1)."""

    def add(self, seconds: float, times: int = 1) -> None:
        microseconds = max(0, int(seconds * 1e6))
        self.count += times
        self.total_us += microseconds * times
        self.buckets[min(microseconds.bit_length(), _DURATIONS - 1)] += times


class Counts:
    __slots__ = (
        "deaths",
        "dispatch_latencies",
        "dispatched",
        "late_results",
        "outcomes",
        "dropped_output_rows",
        "payload_bytes",
        "rejected_messages",
        "resolved",
        "retracted",
        "retries",
        "stopped",
        "wasted_us",
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
        self.late_results = 0
        """Results that nobody waits for any more: of an attempt, a worker or a client given up."""
        self.dropped_output_rows = 0
        """Rows of output that nobody was sent: their client has no room for them, or is gone."""
        self.rejected_messages = 0
        """Messages that were legal and wrong, or too much."""
        self.wasted_us = 0
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

    def count_death(self, cause: str) -> None:
        """A worker did, by what its agent says, or the scheduler."""
        kind = _kind_of_death(cause)
        if kind not in self.deaths and len(self.deaths) >= _CAUSES:
            kind = "other"
        self.deaths[kind] = self.deaths.get(kind, 0) + 1

    def count_client_left(self, tasks: int) -> None:
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
