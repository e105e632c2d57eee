"""Which task somebody means, and its story as the scheduler tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..monitor.snapshot_view import Picture
from ..monitor.task_names import WantedTask, exact_name
from ..monitor.text_layout import many
from ..protocol.snapshot_decoder import HISTORY_TOPIC, story_topic
from ..protocol.snapshots import History, HistoryKind
from .first_snapshot import Watching

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
    """Of the one task that is meant: of a client that is there, or else of one whose tasks are still remembered.

    Raises:
        UnknownTaskError: it is not known, or there are several.
    """
    names = {row.incarnation: row.name for row in picture.clients}
    if wanted.client is not None:
        clients = [wanted.client]
        wanted = replace(wanted, name=None)  # it is named exactly, whatever it is called
    else:
        clients = [client for client, name in names.items() if wanted.fits(client, wanted.id, name, "")]
    answers = _ask(watching, clients, wanted.id)
    found = _fitting(answers.values(), wanted, names)
    if not found and (wanted.client is None or len(answers) < len(clients)):
        found = _fitting(_remembered(watching, wanted), wanted, names)
    if not found:
        raise UnknownTaskError(_nothing_known(wanted, _of_number(answers.values(), wanted, names)))
    if len(found) > 1:
        tasks = ", ".join(f"{exact_name(story.client, story.id)} ({story.name})" for story in found[:MOST_NAMED])
        raise UnknownTaskError(f"{len(found)} tasks are called so, name one of them exactly: {tasks}")
    return found[0]


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
        tasks = ", ".join(f"{exact_name(story.client, story.id)} ({story.name})" for story in others[:MOST_NAMED])
        return f"nothing is known of task {name} by that name; of that number there is: {tasks}"
    return f"nothing is known of task {name}: it never came, or it is so long over that its story is forgotten"


def _ask(watching: Watching, clients: list[int], task_id: int) -> dict[int, Story]:
    """What the scheduler answers of these clients' tasks."""
    if len(clients) > MOST_CLIENTS:
        raise UnknownTaskError(f"{many(len(clients), 'client')} may have a task {task_id}: name it as CLIENT/ID")
    asked = [(client, task_id) for client in clients]
    for task in asked:
        watching.subscribe(story_topic(*task))
    reader = watching.reader
    watching.until(lambda: all(task in reader.stories for task in asked), STORY_SECONDS)
    return {task[0]: story_of(*task, reader.stories[task]) for task in asked if task in reader.stories}


def _remembered(watching: Watching, wanted: WantedTask) -> list[Story]:
    """Such tasks among all that the scheduler still has the history of."""
    watching.subscribe(HISTORY_TOPIC)
    rows: dict[int, list[tuple[int, Event]]] = {}
    sequence = watching.picture(has_rates=False).snapshot.sequence

    def has_come() -> bool:
        for history in watching.reader.take_history():
            for row, (client, task_id) in enumerate(zip(history.clients, history.ids)):
                if task_id == wanted.id and wanted.client in (None, client):
                    rows.setdefault(client, []).append((history.first + row, _event(history, row)))
        newest = watching.reader.picture
        return newest is not None and newest.snapshot.sequence >= sequence + 2

    watching.until(has_come, HISTORY_SECONDS)
    # What is kept comes behind what has just happened.
    ordered = {client: sorted(numbered, key=lambda each: each[0]) for client, numbered in rows.items()}
    return [_told(client, wanted.id, [event for _, event in numbered]) for client, numbered in ordered.items()]


def story_of(client: int, task_id: int, history: History) -> Story:
    """Of what the scheduler has answered."""
    return _told(client, task_id, [_event(history, row) for row in range(len(history.ids))])


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
