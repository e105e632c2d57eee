"""Finds the task that the user names, and its story."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..monitor.snapshot_view import SnapshotView
from ..monitor.task_names import TaskQuery, exact_name
from ..protocol.snapshot_decoder import ANY_CLIENT, story_topic
from ..protocol.snapshots import History, HistoryKind
from .subscription import NoAnswerError, Subscription

RETRY_SECONDS = 1.0
"""The scheduler answers within half a second, but drops questions if too many come at once."""
MAX_LISTED = 50
MAX_OTHERS = 3
"""The most tasks of other names that the answer about an unknown task lists."""


class UnknownTaskError(Exception):
    """No task matches, or several tasks match. The text is one line that says which case it is."""


@dataclass(frozen=True)
class Event:
    kind: HistoryKind | int
    uptime_seconds: float
    """The scheduler's uptime when it learned of the event."""
    attempt: int
    worker: int
    """0 if the event has no worker."""
    name: str
    function: str
    outcome: int
    run_seconds: float
    error: str
    traceback: str
    """The worker's traceback of a failed attempt; empty if none is known."""


@dataclass(frozen=True)
class Story:
    client: int
    id: int
    name: str
    """The task's name, or its function's."""
    function: str
    events: list[Event]
    wait_reasons: list[tuple[str, str]]
    """Why the task waits, or where it runs, by the scheduler: kind and text of each reason. Empty: it is not open."""


def find_story(subscription: Subscription, view: SnapshotView, query: TaskQuery) -> Story:
    """The story of the one task that matches, of a connected or a former client. If several match, it is the one that
    is open.

    Raises:
        UnknownTaskError: no task matches, or several do and not exactly one of them is open.
        NoAnswerError: the scheduler does not answer.
    """
    names = {row.incarnation: row.name for row in view.clients}
    if query.client is not None:
        query = replace(query, name=None)  # client and id are exact, so the name does not matter
    stories = _request_stories(subscription, ANY_CLIENT if query.client is None else query.client, query.id)
    found = _matching(stories, query, names)
    if not found:
        raise UnknownTaskError(_unknown_task_text(query, _ignoring_name(stories, query, names)))
    if len(found) > 1:
        found = [story for story in found if story.wait_reasons] or found
    if len(found) > 1:
        raise UnknownTaskError(f"{len(found):,} tasks have this name, give one of them exactly: {_task_list(found)}")
    return found[0]


def _task_list(stories: list[Story], most: int = MAX_LISTED) -> str:
    tasks = ", ".join(f"{exact_name(story.client, story.id)} ({story.name})" for story in stories[:most])
    more = len(stories) - most
    return f"{tasks} and {more:,} more" if more > 0 else tasks


def _matching(stories: Iterable[Story], query: TaskQuery, names: Mapping[int, str]) -> list[Story]:
    """The stories that match. `names` has the names of connected clients."""

    def matches(story: Story) -> bool:
        called = names.get(story.client, "")
        return any(query.matches(story.client, story.id, called, name) for name in (story.name, story.function))

    return [story for story in stories if story.events and matches(story)]


def _ignoring_name(stories: Iterable[Story], query: TaskQuery, names: Mapping[int, str]) -> list[Story]:
    """The stories that match by their numbers alone."""
    return _matching(stories, replace(query, name=None), names)


def _unknown_task_text(query: TaskQuery, others: list[Story]) -> str:
    name = f"{query.name or ''}#{query.id}" if query.client is None else exact_name(query.client, query.id)
    text = f"nothing is known of task {name}"
    if others:  # the name is probably wrong
        return f"{text}; with that number there is: {_task_list(others, MAX_OTHERS)}"
    return (
        f"{text}: it never arrived, or its client still keeps it because the scheduler takes no more tasks "
        "(--max-waiting, --memory-limit), or it ended so long ago that its story is forgotten, or a scheduler that was "
        "restarted has forgotten it"
    )


def _request_stories(subscription: Subscription, client: int, task_id: int) -> list[Story]:
    """Ask the scheduler for the stories of a client's task, or with ANY_CLIENT of all tasks with this id."""
    request = client, task_id
    deadline = time.monotonic() + subscription.seconds
    while True:
        subscription.subscribe(story_topic(*request))
        left = deadline - time.monotonic()
        if subscription.wait_until(lambda: request in subscription.reader.stories, min(left, RETRY_SECONDS)):
            return stories_of(subscription.reader.stories[request])
        if left <= RETRY_SECONDS:
            raise NoAnswerError(
                f"the scheduler at {subscription.address} did not answer within {subscription.seconds:g} s"
            )
        subscription.unsubscribe(story_topic(*request))


def stories_of(history: History) -> list[Story]:
    """The stories in the scheduler's answer: one a client, in the order of their first rows."""
    events: dict[tuple[int, int], list[Event]] = {}
    reasons: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for row, task in enumerate(zip(history.clients, history.ids)):
        events.setdefault(task, []).append(_event(history, row))
        if history.wait_reasons[row]:
            reasons[task] = [_reason(line) for line in history.wait_reasons[row].splitlines()]
    return [_story(*task, of_task, reasons.get(task, [])) for task, of_task in events.items()]


def _reason(line: str) -> tuple[str, str]:
    kind, _, text = line.partition(": ")
    return kind, text


def _story(client: int, task_id: int, events: list[Event], reasons: list[tuple[str, str]]) -> Story:
    named = next((event for event in events if event.name), None)
    return Story(client, task_id, named.name if named else "", named.function if named else "", events, reasons)


def _event(history: History, row: int) -> Event:
    return Event(
        kind=_KINDS.get(history.kinds[row], history.kinds[row]),
        uptime_seconds=history.times[row] / 1e6,
        attempt=history.attempts[row],
        worker=history.workers[row],
        name=history.names[row],
        function=history.functions[row],
        outcome=history.outcomes[row],
        run_seconds=history.durations[row] / 1e9,
        error=history.errors[row],
        traceback=history.tracebacks[row],
    )


_KINDS = {int(kind): kind for kind in HistoryKind}
