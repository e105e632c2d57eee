"""How tasks have ended, in four kinds, and the states of workers as letters. Needs no terminal, as --json does not."""

from __future__ import annotations

from ..monitor.snapshot_view import SnapshotView
from ..protocol.messages import Outcome
from ..protocol.snapshots import WorkerState

_STORED = 10  # number in the schema: kept on a host, reported to clients as kept
_DONE = (Outcome.VALUE, Outcome.KEPT, _STORED, Outcome.FILE)
_CANCELLED = (Outcome.CANCELLED,)
_DIED = (Outcome.WORKER_DIED,)

STATE_LETTERS = (
    (WorkerState.AGENT_CONNECTED, "A", "agent connected"),
    (WorkerState.HOLDS_TASK, "T", "holds a task"),
    (WorkerState.RUNS_LONG, "L", "runs a long task"),
    (WorkerState.DOES_NOT_ANSWER, "N", "does not answer a request to return queued tasks"),
    (WorkerState.RETIRING, "R", "gets no new tasks: agent retires"),
)


def state_letters(state: WorkerState) -> str:
    """The state as letters, for example `AT---`."""
    return "".join(letter if state & bit else "-" for bit, letter, _ in STATE_LETTERS)


def outcome_counts(view: SnapshotView) -> dict[str, int]:
    """The number of ended tasks by kind of outcome."""
    outcomes = dict(enumerate(view.snapshot.outcomes))
    done = sum(outcomes.get(int(outcome), 0) for outcome in _DONE)
    cancelled = sum(outcomes.get(int(outcome), 0) for outcome in _CANCELLED)
    died = sum(outcomes.get(int(outcome), 0) for outcome in _DIED)
    return {
        "done": done,
        "failed": sum(outcomes.values()) - done - cancelled - died,
        "cancelled": cancelled,
        "died": died,
    }
