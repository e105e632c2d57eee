"""Which task somebody means, and its story as the scheduler tells it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..monitor.snapshot_view import Picture
from ..monitor.task_names import WantedTask, exact_name
from ..protocol.snapshot_decoder import ANY_CLIENT, story_topic
from ..protocol.snapshots import History, HistoryKind
from .first_snapshot import NothingHeardError, Watching

ASK_AGAIN_SECONDS = 1.0
"""A scheduler answers within half a second, but drops questions where too many come at once."""
MOST_NAMED = 50


class UnknownTaskError(Exception):
    """Nothing is known of such a task, or there are several; the text is one line that says so."""


@dataclass(frozen=True)
class Event:
    kind: HistoryKind | int
    uptime_seconds: float
    """Of the scheduler, when it came to know."""
    attempt: int
    worker: int
    """0 where none has to do with it."""
    name: str
    function: str
    outcome: int
    run_seconds: float
    error: str
    traceback: str
    """Of an attempt that has failed, on its worker; empty where none is known."""


@dataclass(frozen=True)
class Story:
    client: int
    id: int
    name: str
    """Its own, or else its function's."""
    function: str
    events: list[Event]


def find_story(watching: Watching, picture: Picture, wanted: WantedTask) -> Story:
    """Of the one task that is meant, of a client that is connected or has left.

    Raises:
        UnknownTaskError: it is not known, or there are several.
        NothingHeardError: the scheduler does not answer.
    """
    names = {row.incarnation: row.name for row in picture.clients}
    if wanted.client is not None:
        wanted = replace(wanted, name=None)  # it is named exactly, whatever it is called
    stories = _ask(watching, ANY_CLIENT if wanted.client is None else wanted.client, wanted.id)
    found = _fitting(stories, wanted, names)
    if not found:
        raise UnknownTaskError(_nothing_known(wanted, _of_number(stories, wanted, names)))
    if len(found) > 1:
        raise UnknownTaskError(f"{len(found):,} tasks are called so, name one of them exactly: {_listed(found)}")
    return found[0]


def _listed(stories: list[Story]) -> str:
    tasks = ", ".join(f"{exact_name(story.client, story.id)} ({story.name})" for story in stories[:MOST_NAMED])
    more = len(stories) - MOST_NAMED
    return f"{tasks} and {more:,} more" if more > 0 else tasks


def _fitting(stories: Iterable[Story], wanted: WantedTask, names: Mapping[int, str]) -> list[Story]:
    """Those that may be meant; `names` are those of clients that are there."""

    def fits(story: Story) -> bool:
        called = names.get(story.client, "")
        return any(wanted.fits(story.client, story.id, called, name) for name in (story.name, story.function))

    return [story for story in stories if story.events and fits(story)]


def _of_number(stories: Iterable[Story], wanted: WantedTask, names: Mapping[int, str]) -> list[Story]:
    """Those that may be meant but for their name."""
    return _fitting(stories, replace(wanted, name=None), names)


def _nothing_known(wanted: WantedTask, others: list[Story]) -> str:
    name = f"{wanted.name or ''}#{wanted.id}" if wanted.client is None else exact_name(wanted.client, wanted.id)
    if others:
        return f"nothing is known of task {name} by that name; of that number there is: {_listed(others)}"
    return f"nothing is known of task {name}: it never came, or it is so long over that its story is forgotten"


def _ask(watching: Watching, client: int, task_id: int) -> list[Story]:
    """What the scheduler knows of this client's task, or for ANY_CLIENT of all tasks with this id."""
    asked = client, task_id
    deadline = time.monotonic() + watching.seconds
    while True:
        watching.subscribe(story_topic(*asked))
        left = deadline - time.monotonic()
        if watching.until(lambda: asked in watching.reader.stories, min(left, ASK_AGAIN_SECONDS)):
            return stories_of(watching.reader.stories[asked])
        if left <= ASK_AGAIN_SECONDS:
            raise NothingHeardError(f"the scheduler at {watching.address} did not answer within {watching.seconds:g} s")
        watching.unsubscribe(story_topic(*asked))


def stories_of(history: History) -> list[Story]:
    """Of what the scheduler has answered: one story a client, in the order of their first rows."""
    events: dict[tuple[int, int], list[Event]] = {}
    for row, task in enumerate(zip(history.clients, history.ids)):
        events.setdefault(task, []).append(_event(history, row))
    return [_told(*task, of_task) for task, of_task in events.items()]


def _told(client: int, task_id: int, events: list[Event]) -> Story:
    named = next((event for event in events if event.name), None)
    return Story(client, task_id, named.name if named else "", named.function if named else "", events)


def _event(history: History, row: int) -> Event:
    return Event(
        _KINDS.get(history.kinds[row], history.kinds[row]),
        history.times[row] / 1e6,
        history.attempts[row],
        history.workers[row],
        history.names[row],
        history.functions[row],
        history.outcomes[row],
        history.durations[row] / 1e9,
        history.errors[row],
        history.tracebacks[row],
    )


_KINDS = {int(kind): kind for kind in HistoryKind}
