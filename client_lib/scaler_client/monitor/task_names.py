"""How people name a task, and what is meant by what they have copied from somewhere.

`CLIENT/ID` names exactly one: its client's incarnation and its id there. Where the client is known from what stands
around it, logs, errors and futures say `NAME#ID`, the name being the function's, or the task's own.
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
MOST = (1 << 64) - 1


def exact_name(client: int, task_id: int) -> str:
    """As in `4611686018427387904/17`."""
    return f"{client}/{task_id}"


@dataclass(frozen=True)
class TaskQuery:
    """What somebody has said of a task; what was not said is None."""

    id: int
    client: int | None = None
    """Its incarnation."""
    client_name: str | None = None
    """Or its incarnation in hexadecimal digits, which can't be told from a name."""
    name: str | None = None

    def matches(self, client: int, task_id: int, client_name: str, name: str) -> bool:
        """Whether it may be this one; what is not known of that one is empty."""
        return (
            task_id == self.id
            and self.client in (None, client)
            and (self.client_name is None or not client_name or self.client_name in (client_name, f"{client:x}"))
            and (self.name is None or not name or self.name == name)
        )


def parse_task_query(text: str) -> TaskQuery:
    """Of one of the forms in which logs, errors, futures, scaler_top and others name a task.

    Raises:
        ValueError: of none; the text is a complaint.
    """
    given = text.strip().rstrip(":,.")
    future = _FUTURE.fullmatch(given)
    given = future["name"] if future else given
    for form in _FORMS:
        found = form.fullmatch(given)
        if found is not None:
            return _query(text, found.groupdict())
    raise ValueError(f"{text!r} names no task: that is ID, NAME#ID or CLIENT/ID, as in 17, fit#17 or 4611686018427/17")


def _query(text: str, given: dict[str, str | None]) -> TaskQuery:
    client = given.get("client")
    number = int(client) if client and client.isdecimal() else None
    task_id = int(given["id"] or "")
    if max(task_id, number or 0) > MOST:
        raise ValueError(f"{text!r} names no task: its numbers are too large")
    return TaskQuery(task_id, number, client if number is None else None, given.get("name") or None)
