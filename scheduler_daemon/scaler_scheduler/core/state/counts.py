"""Counters of all clients' tasks, by place and by outcome."""

from scaler_scheduler.core.effects import OUTCOME_CANCELLED, OUTCOMES
from scaler_scheduler.core.state.records import Lane

# Estimated cost of messages and rows that change nothing, in microseconds.
WASTED_MESSAGE_US = 50
WASTED_HELLO_US = 500
WASTED_ROW_US = 1

_BUCKETS = 32
"""Buckets of a histogram by powers of two in microseconds. The last bucket has all longer durations."""

_CAUSE_LIMIT = 100
"""The most distinct causes of worker deaths. Agents send the causes, so their number must be bounded."""

_OTHER_CAUSES = ("memory limit", "time limit", "cancelled", "lease")

_STOPPED = "stopped: "
"""What an agent puts before the reason of an EndWorker that it has obeyed."""


class Durations:
    """A histogram of durations."""

    __slots__ = ("buckets", "total_us", "count")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        """The sum of all durations."""
        self.buckets = [0] * _BUCKETS
        """Element k counts durations of less than 2^k microseconds and at least 2^(k - 1)."""

    def add(self, seconds: float, times: int = 1) -> None:
        """Add a duration, `times` times."""
        microseconds = max(0, int(seconds * 1e6))
        self.count += times
        self.total_us += microseconds * times
        self.buckets[min(microseconds.bit_length(), _BUCKETS - 1)] += times


class Counts:
    """The counters of one scheduler.

    A task is a row. A row that stands for several calls counts as one in `waiting` and `dispatched`, which the
    dispatcher shares out. It counts as its calls in `resolved`, `outcomes`, `waiting_calls` and `dispatched_calls`.
    """

    __slots__ = (
        "deaths",
        "dispatch_latencies",
        "dispatched",
        "late_results",
        "outcomes",
        "dropped_output_rows",
        "further_dispatched",
        "further_waiting",
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
        """Tasks that no worker holds."""
        self.dispatched = 0
        """Tasks that a worker holds."""
        self.further_waiting = 0
        """Calls of waiting tasks, beyond one a task. Only rows that stand for several calls have such."""
        self.further_dispatched = 0
        """The same calls of tasks that a worker holds."""
        self.resolved = 0
        """Tasks that were answered since the start, or cancelled because their client left."""
        self.outcomes = [0] * OUTCOMES
        """Resolved tasks by Outcome's ordinal. Element 0 is not kept: values are the remainder of `resolved`."""
        self.late_results = 0
        """Results that no task waits for, because the attempt is old, or the worker or client was lost."""
        self.dropped_output_rows = 0
        """Rows of output that were not sent, because their client has no room for them or has left."""
        self.rejected_messages = 0
        """Legal messages that were wrong or exceeded a limit."""
        self.wasted_us = 0
        """The estimated cost of messages that changed nothing. Some of them are legitimate, for example heartbeats."""
        self.retracted = 0
        """Tasks that workers gave back."""
        self.stopped = 0
        """Tasks for which workers got a Stop."""
        self.payload_bytes = 0
        """Bytes of the payloads of all open tasks."""
        self.deaths: dict[str, int] = {}
        """Deaths of workers, by cause."""
        self.retries = 0
        """Dispatches of tasks that had failed before."""
        self.dispatch_latencies = Durations()
        """How long tasks waited for their dispatch, since their batch arrived or their inputs were there."""

    @property
    def waiting_calls(self) -> int:
        """Calls that no worker holds."""
        return self.waiting + self.further_waiting

    @property
    def dispatched_calls(self) -> int:
        """Calls that a worker holds."""
        return self.dispatched + self.further_dispatched

    def add_waiting(self, lane: Lane, rows: int, weight: int) -> None:
        """Count `rows` more tasks that wait in this lane, or fewer if negative. Each stands for `weight` calls."""
        lane.waiting += rows
        self.waiting += rows
        if weight > 1:
            lane.further_calls += rows * (weight - 1)
            self.further_waiting += rows * (weight - 1)

    def add_dispatched(self, rows: int, weight: int) -> None:
        """Count `rows` more tasks that workers hold, or fewer if negative. Each stands for `weight` calls."""
        self.dispatched += rows
        if weight > 1:
            self.further_dispatched += rows * (weight - 1)

    def count_death(self, cause: str) -> None:
        """Count the death of a worker, by the cause that its agent or the scheduler gives."""
        kind = _kind_of_death(cause)
        if kind not in self.deaths and len(self.deaths) >= _CAUSE_LIMIT:
            kind = "other"
        self.deaths[kind] = self.deaths.get(kind, 0) + 1

    def count_client_left(self, tasks: int) -> None:
        """Count tasks that are cancelled because their client has left."""
        self.resolved += tasks
        self.outcomes[OUTCOME_CANCELLED] += tasks

    def by_outcome(self) -> list[int]:
        """The number of resolved tasks by Outcome's ordinal, since the start."""
        return [self.resolved - sum(self.outcomes[1:]), *self.outcomes[1:]]


def _kind_of_death(cause: str) -> str:
    """Return a short cause that is the same for all deaths of one kind."""
    if cause.startswith(_STOPPED):
        return "time limit" if cause.startswith("time limit", len(_STOPPED)) else "cancelled"
    words = cause.split(None, 3)
    if len(words) > 1 and words[0] == "signal" and words[1].isdigit():
        return f"signal {words[1][:3]}"
    if len(words) > 2 and words[:2] == ["exit", "code"] and words[2].isdigit():
        return f"exit {words[2][:3]}"
    return next((kind for kind in _OTHER_CAUSES if cause.startswith(kind)), "other")
