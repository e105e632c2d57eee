"""How users name a task, and how the text they give is understood.

`CLIENT/ID` names one task exactly: its client's incarnation and its id there. Logs, errors and futures write `NAME#ID`,
with the task's name or its function's, because there the client is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORMS = [
    re.compile(r"(?:(?P<name>.+), )?(?:task )?(?P<client>[0-9]+)/(?P<id>[0-9]+)(?: of client .+)?"),
    re.compile(r"(?:task )?(?P<client>[^\s/#]+)/(?P<id>[0-9]+)"),
    re.compile(r"(?:task )?#?(?P<id>[0-9]+) of client (?P<client>.+)"),
    re.compile(r"(?:task )?(?P<name>.*?)#(?P<id>[0-9]+)(?: of client (?P<client>.+))?"),
    re.compile(r"(?:(?P<name>.+), )?(?:task )?(?P<id>[0-9]+)(?: of client (?P<client>.+))?"),
]
_FUTURE = re.compile(r"<\w+ (?P<name>.*) at 0x[0-9a-f]+.*>")
MAX_UINT64 = (1 << 64) - 1


def exact_name(client: int, task_id: int) -> str:
    """The exact name, for example `4611686018427387904/17`."""
    return f"{client}/{task_id}"


@dataclass(frozen=True)
class TaskQuery:
    """The parts of a task's name that a user gave. None means that a part was not given."""

    id: int
    client: int | None = None
    """The client's incarnation."""
    client_name: str | None = None
    """The client's name, or its incarnation in hexadecimal digits: the two look alike."""
    name: str | None = None

    def matches(self, client: int, task_id: int, client_name: str, name: str) -> bool:
        """Whether this may be the task. An empty name is unknown and matches."""
        return (
            task_id == self.id
            and self.client in (None, client)
            and (self.client_name is None or not client_name or self.client_name in (client_name, f"{client:x}"))
            and (self.name is None or not name or self.name == name)
        )


def parse_task_query(text: str) -> TaskQuery:
    """Understand a task's name in any form that logs, errors, futures and scaler_top use.

    Raises:
        ValueError: the text names no task.
    """
    given = text.strip().rstrip(":,.")
    future = _FUTURE.fullmatch(given)
    given = future["name"] if future else given
    for form in _FORMS:
        found = form.fullmatch(given)
        if found is not None:
            return _query(text, found.groupdict())
    raise ValueError(
        f"{text!r} does not name a task: give ID, NAME#ID or CLIENT/ID, for example 17, fit#17 or 4611686018427/17"
    )


def _query(text: str, given: dict[str, str | None]) -> TaskQuery:
    client = given.get("client")
    number = int(client) if client and client.isdecimal() else None
    task_id = int(given["id"] or "")
    if max(task_id, number or 0) > MAX_UINT64:
        raise ValueError(f"{text!r} does not name a task: its numbers are too large")
    return TaskQuery(task_id, number, client if number is None else None, given.get("name") or None)
