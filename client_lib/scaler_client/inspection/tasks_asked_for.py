"""Which task somebody means, and its story as the scheduler tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..picture import Picture
from ..published import HISTORY_TOPIC, story_topic
from ..snapshots import History, HistoryKind
from ..task_names import WantedTask, exact_name
from .layout import many
from .watching import Watching

HISTORY_SECONDS = 2.5
"""How long what has happened lately is waited for: it comes with the next snapshot but one."""
STORY_SECONDS = 2.5
"""How long answers are waited for."""
MOST_CLIENTS = 64
"""Of so many clients it is asked whether they have such a task."""
MOST_NAMED = 5


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
    outcome: int
    run_seconds: float
    error: str


@dataclass(frozen=True)
class Story:
    client: int
    id: int
    name: str
    events: list[Event]


def find_story(watching: Watching, picture: Picture, wanted: WantedTask) -> Story:
    """Of the one task that is meant: of a client that is there, or else of one whose tasks are still remembered.

    Raises:
        UnknownTaskError: it is not known, or there are several.
    """
    names = {row.incarnation: row.name for row in picture.clients}
    if wanted.client is not None:
        clients = [wanted.client]
    else:
        clients = [client for client, name in names.items() if wanted.fits(client, wanted.id, name, "")]
    found = _ask(watching, clients, wanted, names)
    if not found and wanted.client is None:
        remembered = _remembered(watching, picture, wanted)
        found = _ask(watching, [client for client in remembered if client not in clients], wanted, names)
        clients = list(dict.fromkeys([*clients, *remembered]))
    if not found:
        raise UnknownTaskError(_nothing_known(wanted, clients))
    if len(found) > 1:
        tasks = ", ".join(f"{exact_name(story.client, story.id)} ({story.name})" for story in found[:MOST_NAMED])
        raise UnknownTaskError(f"{len(found)} tasks are called so, name one of them exactly: {tasks}")
    return found[0]


def _ask(watching: Watching, clients: list[int], wanted: WantedTask, names: Mapping[int, str]) -> list[Story]:
    """The stories that these clients' tasks have, as far as they may be meant."""
    if len(clients) > MOST_CLIENTS:
        raise UnknownTaskError(f"{many(len(clients), 'client')} may have a task {wanted.id}: name it as CLIENT/ID")
    asked = [(client, wanted.id) for client in clients]
    for task in asked:
        watching.subscribe(story_topic(*task))
    reader = watching.reader
    watching.until(lambda: all(task in reader.stories for task in asked), STORY_SECONDS)
    found = [story_of(*task, reader.stories[task]) for task in asked if task in reader.stories]
    return [
        story
        for story in found
        if story.events and wanted.fits(story.client, story.id, names.get(story.client, ""), story.name)
    ]


def _nothing_known(wanted: WantedTask, clients: list[int]) -> str:
    name = f"#{wanted.id}" if wanted.client is None else exact_name(wanted.client, wanted.id)
    among = f" of {many(len(clients), 'known client')}" if wanted.client is None else ""
    return f"nothing is known of task {name}{among}: it never came, or it is so long over that its story is forgotten"


def _remembered(watching: Watching, picture: Picture, wanted: WantedTask) -> list[int]:
    """The clients of such tasks among those whose history the scheduler still has."""
    watching.subscribe(HISTORY_TOPIC)
    clients: dict[int, None] = {}
    sequence = picture.snapshot.sequence

    def has_come() -> bool:
        for history in watching.reader.take_history():
            for client, task_id in zip(history.clients, history.ids):
                if task_id == wanted.id:
                    clients[client] = None
        newest = watching.reader.picture
        return newest is not None and newest.snapshot.sequence >= sequence + 2

    watching.until(has_come, HISTORY_SECONDS)
    return list(clients)


def story_of(client: int, task_id: int, history: History) -> Story:
    """Of what the scheduler has told."""
    known = {int(kind): kind for kind in HistoryKind}
    columns = zip(
        history.kinds, history.times, history.attempts, history.workers, history.names, history.outcomes,
        history.durations, history.errors,
    )  # fmt: skip
    events = [
        Event(known.get(kind, kind), time / 1e6, attempt, worker, name, outcome, duration / 1e9, error)
        for kind, time, attempt, worker, name, outcome, duration, error in columns
    ]
    names = [event.name for event in events if event.name]
    return Story(client, task_id, names[0] if names else "", events)
