"""`scaler_client story`: the known history of one task."""

from __future__ import annotations

from typing import Any

from ..monitor.snapshot_view import SnapshotView
from ..monitor.task_names import exact_name
from ..monitor.text_layout import BOLD, OutputFormat, clean, clock, count, duration, moment, wrapped
from ..protocol.messages import Outcome
from ..protocol.snapshots import HistoryKind
from .task_lookup import Event, Story

_OUTCOMES = {
    Outcome.VALUE: "returned a value",
    Outcome.EXCEPTION: "raised",
    Outcome.FUNCTION_FAILED: "its function could not be loaded",
    Outcome.RESULT_FAILED: "its result could not be pickled",
    Outcome.RETRYABLE: "raised an exception, and is retried",
    Outcome.WORKER_DIED: "given up: its workers died",
    Outcome.CANCELLED: "cancelled",
    Outcome.TIMED_OUT: "stopped at its time limit",
    Outcome.KEPT: "done, its result is kept",
    Outcome.INPUT_LOST: "an input was lost",
    Outcome.STORED: "returned a value, which is kept on its host",
    Outcome.ENVIRONMENT_FAILED: "no host could prepare its environment",
    Outcome.NO_ROOM: "its host had no room for the result",
    Outcome.FILE: "returned a value, as a file of its client",
}


def story_text(output: OutputFormat, story: Story, view: SnapshotView) -> list[str]:
    """The lines of the story: a head, one line for each event, and the present state."""
    started_at = _started_at(view)
    first = started_at + story.events[0].uptime_seconds
    clients = {row.incarnation: row.name for row in view.clients}
    client = clean(clients[story.client]) if story.client in clients else "which has disconnected"
    lines = [
        output.styled(f"{clean(story.name)}#{story.id}", BOLD) + f"  task {exact_name(story.client, story.id)}",
        *([f"its function: {clean(story.function)}"] if story.function != story.name else []),
        *wrapped(f"its client: {story.client}, {client}", output.columns),
        *wrapped(f"since {moment(first)}, by the scheduler's clock:", output.columns),
    ]
    for event in story.events:
        at = started_at + event.uptime_seconds
        since = event.uptime_seconds - story.events[0].uptime_seconds
        head = f"{f'+{since:,.6f} s':>13}  {clock(at)}  "
        text, *more = wrapped(_event_text(event, story, view), output.columns - len(head))
        lines += [head + text, *(" " * len(head) + line for line in more)]
        lines += _traceback(event, output.columns)
    return [*lines, *wrapped(f"now: {current_state(story, view)}", output.columns)]


def _traceback(event: Event, columns: int) -> list[str]:
    """The remote traceback, indented. Long lines are split."""
    wide = columns - len(_INDENT)
    lines = [clean(line.rstrip()) for line in event.traceback.splitlines()]
    return [_INDENT + line[begin : begin + wide] for line in lines for begin in range(0, len(line) or 1, wide)]


_INDENT = "    "


def _started_at(view: SnapshotView) -> float:
    """The scheduler's start in unix time, by its own clock."""
    return view.snapshot.unix_seconds - view.snapshot.uptime_seconds


def _event_text(event: Event, story: Story, view: SnapshotView) -> str:
    attempt, worker = f"attempt {event.attempt}", worker_name(event.worker, view)
    if event.kind == HistoryKind.SUBMITTED:
        return "submitted again, after the scheduler's restart" if _is_reattached(story) else "submitted"
    if event.kind == HistoryKind.DISPATCHED:
        return f"dispatched to {worker}, {attempt}"
    if event.kind == HistoryKind.STARTED:
        return f"started there, {attempt}"
    if event.kind == HistoryKind.REATTACHED:
        if _dispatched_worker(event.attempt, story):
            return f"continues, {attempt}: {worker} has connected again"
        return f"continues after the scheduler's restart, on {worker}, {attempt}"
    if event.kind == HistoryKind.RETURNED and event.worker:
        return _return_text(event, worker)
    if event.kind == HistoryKind.RETURNED:
        is_lost = not any(row.incarnation == _dispatched_worker(event.attempt, story) for row in view.workers)
        why = "its worker was lost" if is_lost else "its worker returned it, or it is retried"
        return f"{attempt} ended without a result: {why}"
    if event.kind == HistoryKind.ENDED:
        return _end_text(event, worker)
    return f"an event that this version does not know ({int(event.kind)})"


def _is_reattached(story: Story) -> bool:
    """Whether an earlier scheduler dispatched the task to a worker that continues it."""
    return any(
        event.kind == HistoryKind.REATTACHED and not _dispatched_worker(event.attempt, story) for event in story.events
    )


def _return_text(event: Event, worker: str) -> str:
    if event.outcome == Outcome.VALUE:
        return f"attempt {event.attempt} was taken back from {worker}"
    if event.outcome == Outcome.WORKER_DIED:
        why = f": {clean(event.error)}" if event.error else ""
        return f"attempt {event.attempt} ended without a result, {worker} was lost{why}"
    return _end_text(event, worker)


def _dispatched_worker(attempt: int, story: Story) -> int:
    """The worker to which the attempt was dispatched; 0 if that is not known."""
    given = [
        event.worker for event in story.events if event.kind == HistoryKind.DISPATCHED and event.attempt == attempt
    ]
    return given[-1] if given else 0


def _end_text(event: Event, worker: str) -> str:
    text = _OUTCOMES.get(event.outcome, f"ended with outcome {event.outcome}")  # type: ignore[call-overload]
    if event.error and event.error != text:
        text += f": {clean(event.error)}"
    if not event.worker:
        return f"{text}; the scheduler ended it"
    return f"{text}; attempt {event.attempt} ran {duration(event.run_seconds)} on {worker}"


def worker_name(worker: int, view: SnapshotView) -> str:
    """The worker's name and host if it is connected."""
    for row in view.workers:
        if row.incarnation == worker:
            return f"{clean(row.name)} on {clean(row.host)}"
    return f"worker {worker} (not connected)" if worker else "no worker"


def current_state(story: Story, view: SnapshotView) -> str:
    """The state of the task at the time of the snapshot."""
    for row in view.workers:
        if row.task and (row.task.client, row.task.id) == (story.client, story.id):
            return f"it runs on {clean(row.name)}, for {duration(row.task.seconds)}, attempt {row.task.attempt}"
    last = story.events[-1]
    ago = duration(view.snapshot.uptime_seconds - last.uptime_seconds)
    if last.kind == HistoryKind.ENDED:
        return f"it ended {ago} ago"
    if last.kind in (HistoryKind.DISPATCHED, HistoryKind.STARTED, HistoryKind.REATTACHED):
        return f"it is with {worker_name(last.worker, view)}, for {ago}"
    is_whole = len(view.clients) >= view.snapshot.clients
    if is_whole and all(row.incarnation != story.client for row in view.clients):
        return "it ended: its client has disconnected"
    gang = [text for kind, text in story.wait_reasons if kind == "gang"]
    if gang:
        return f"it waits for {ago}: {clean('; '.join(gang))}"
    waiting = view.snapshot.waiting
    return f"it waits for a worker or for its inputs, for {ago}; {count(waiting)} tasks wait for workers in all"


def story_json(story: Story, view: SnapshotView) -> dict[str, Any]:
    """The story as JSON. Its keys are stable."""
    workers = {row.incarnation: row for row in view.workers}
    started_at = _started_at(view)
    events = []
    for event in story.events:
        row = workers.get(event.worker)
        # An attempt that is retried has an outcome too. An attempt that was taken back has none.
        is_end = event.kind == HistoryKind.ENDED or (event.kind == HistoryKind.RETURNED and event.outcome != 0)
        events.append(
            {
                "event": event.kind.name.lower() if isinstance(event.kind, HistoryKind) else str(event.kind),
                "seconds": event.uptime_seconds - story.events[0].uptime_seconds,
                "unix_seconds": started_at + event.uptime_seconds,
                "attempt": event.attempt,
                "worker": str(event.worker) if event.worker else None,
                "worker_name": row.name if row else None,
                "host": row.host if row else None,
                "outcome": _outcome_name(event.outcome) if is_end else None,
                "run_seconds": event.run_seconds if is_end and event.worker and event.outcome != _DIED else None,
                "error": event.error or None,
                "traceback": event.traceback or None,
            }
        )
    names = {row.incarnation: row.name for row in view.clients}
    return {
        "task": exact_name(story.client, story.id),
        "client": str(story.client),
        "client_name": names.get(story.client),
        "id": str(story.id),
        "name": story.name,
        "function": story.function,
        "events": events,
        "now": current_state(story, view),
    }


_DIED = Outcome.WORKER_DIED


def _outcome_name(outcome: int) -> str:
    return next((each.name.lower() for each in Outcome if each == outcome), f"outcome_{outcome}")
